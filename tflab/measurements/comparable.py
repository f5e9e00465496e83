"""Comparable: whether measurements can be compared, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tflab.analysis import quality, verdicts
from tflab.errors import UsageError
from tflab.records.measured import Fingerprint
from tflab.records.measurements import Difference, Measurement
from tflab.units import plural

NOT_SET = "not set"  # value of a variable that only others have

Named = Mapping[str, Measurement]  # by name, the first measurement first


def refuse(
    first: str, usual: Measurement, name: str, other: Measurement, other_graph: bool
) -> None:
    for what, of in (
        ("phase", lambda item: item.comparison.phase),
        ("grouping of rows (--by)", lambda item: item.comparison.by),
    ):
        if of(usual) != of(other):
            raise UsageError(
                f"'{first}' and '{name}' differ in their {what}: {of(usual)} and {of(other)}. "
                "Measure one of them again with the options of the other."
            )
    if not {*usual.comparison.batch_sizes} & {*other.comparison.batch_sizes}:
        raise UsageError(
            f"'{first}' and '{name}' have no batch size in common: they have "
            f"{listed(usual.comparison.batch_sizes)} and {listed(other.comparison.batch_sizes)}."
        )
    mine, theirs = usual.observed.fingerprint, other.observed.fingerprint
    if mine.graph == theirs.graph and sizes_of(mine) != sizes_of(theirs):
        raise UsageError(
            f"'{first}' and '{name}' have the same graph fingerprint, {mine.graph}, but different "
            "ops: one of the files was edited. Measure it again."
        )
    wrong = "; ".join(of_models(usual, other))
    same_name = usual.comparison.model == other.comparison.model
    if wrong and not other_graph and not (same_name and other_tensorflow(usual, other)):
        raise UsageError(
            f"'{first}' and '{name}' are of different models: {wrong}. To compare them, give "
            "--other-graph."
        )


def of_models(usual: Measurement, other: Measurement) -> Iterator[str]:
    """How the graphs of two steps, and their feeds, differ."""
    mine, theirs = usual.observed.fingerprint, other.observed.fingerprint
    if mine.graph != theirs.graph:
        if usual.comparison.model != other.comparison.model:
            yield f"{usual.comparison.model} and {other.comparison.model}"
        counts = [
            f"{theirs.ops.get(op, 0)} {op} instead of {mine.ops.get(op, 0)}"
            for op in most_telling(mine.ops, theirs.ops)
        ]
        more = f", and {plural(len(counts) - 5, 'other type')}" if len(counts) > 5 else ""
        same = "the same ops, but other edges, shapes or attributes"
        yield f"{', '.join(counts[:5])}{more}" if counts else same
    if mine.feeds != theirs.feeds:
        yield f"fed {'; '.join(theirs.feeds) or 'nothing'} instead of {'; '.join(mine.feeds)}"


def most_telling(mine: Mapping[str, int], theirs: Mapping[str, int]) -> list[str]:
    """The op types with different counts: first those that only one graph has, then by the
    difference of the counts."""

    def rank(op: str) -> tuple[bool, int, str]:
        counts = (mine.get(op, 0), theirs.get(op, 0))
        return min(counts) > 0, -abs(counts[0] - counts[1]), op

    return sorted((op for op in {*mine, *theirs} if mine.get(op) != theirs.get(op)), key=rank)


def sizes_of(fingerprint: Fingerprint) -> tuple[int, int, Mapping[str, int]]:
    return fingerprint.nodes, fingerprint.edges, fingerprint.ops


def other_tensorflow(usual: Measurement, other: Measurement) -> bool:
    """Versions of TensorFlow write gradients, and therefore the graphs of models, differently."""
    return usual.environment.get("Framework") != other.environment.get("Framework")


def common_sizes(measurements: Named) -> list[int]:
    sizes = [{*item.comparison.batch_sizes} for item in measurements.values()]
    common = sorted(set.intersection(*sizes))
    if not common:
        raise UsageError("No batch size was measured in all of these files. Give fewer files.")
    return common


def listed(sizes: Iterable[int]) -> str:
    return ", ".join(map(str, sizes))


# Differences


def differences(measurements: Sequence[Measurement]) -> Iterator[Difference]:
    """The differences: first of machine, software and options, then of the model."""
    about = [described(item) for item in measurements]
    for what in dict.fromkeys(what for each in about for what in each):
        values = tuple(each.get(what, NOT_SET) for each in about)
        if len(set(values)) > 1:
            yield Difference(what, values)


def described(measurement: Measurement) -> dict[str, str]:
    comparison, of = measurement.comparison, measurement.observed.fingerprint
    return {
        **measurement.environment,
        "tflab": measurement.tflab,
        **measurement.options,
        "Model": comparison.model,
        "Graph": of.graph,
        "Weights": of.weights or "random in each run",
        "Data": f"{comparison.data} ({of.data})",
        "Rows": f"{comparison.images:,}",
        "Batch sizes": listed(comparison.batch_sizes),
        "Traced": f"one step in {comparison.trace_every}",
    }


def notes(measurements: Named, sizes: Sequence[int]) -> Iterator[str]:
    (first, usual), *others = measurements.items()
    for name, item in measurements.items():
        comparison = item.comparison
        if quality.disturbed(comparison.quality):
            assert comparison.quality is not None
            reasons = "; ".join(comparison.quality.reasons)
            yield f"The machine of '{name}' was busy during the measurement: {reasons}."
        if comparison.interrupted or comparison.failure:
            yield f"'{name}' is partial: the measurement ended early."
        omitted = sorted({*comparison.batch_sizes} - {*sizes})
        if omitted:
            yield (
                f"Batch {listed(omitted)} of '{name}' was not measured in every file, and is "
                "omitted."
            )
        number = len(item.observed.processes)
        if number < verdicts.LEAST:
            yield (
                f"Not enough data to tell: '{name}' was measured in {number} "
                f"process{'' if number == 1 else 'es'}, but a verdict requires {verdicts.LEAST}. "
                "Measure again with --save."
            )
    if others and any(quality.disturbed(item.comparison.quality) for item in measurements.values()):
        yield "Verdicts are withheld. Measure again on a quiet machine."
    for name, other in others:
        wrong = "; ".join(of_models(usual, other))
        if wrong:
            why = ", by another TensorFlow," if other_tensorflow(usual, other) else ""
            yield f"The graph of '{name}'{why} differs from the graph of '{first}': {wrong}."
        keys = [{row.key for row in item.comparison.rows} for item in (usual, other)]
        if not keys[0] & keys[1]:
            yield (
                f"'{first}' and '{name}' have no {usual.comparison.by} in common: the first has "
                f"{min(keys[0], default='none')}, for example, and the second "
                f"{min(keys[1], default='none')}. Only their steps can be compared."
            )
