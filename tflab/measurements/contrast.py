"""Contrast: measurements from other places or times, each compared with the first.

An observation is a process: the median of its turns, each of which is the median of its steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from tflab.analysis import quality, step_times, two_samples
from tflab.errors import SlowerError, TflabError, UndecidedError, UsageError
from tflab.measurements import comparable
from tflab.measurements.comparable import Named
from tflab.records.measured import ConfigTimes, ObservedProcess, OpStats
from tflab.records.measurements import Contrast, Gate, Measurement, RowTimes
from tflab.records.verdicts import Verdict
from tflab.units import time
from tflab.views.abreast import ratio_text


def short_names(files: Sequence[str]) -> list[str]:
    """The names of measurements: those of their files, with folders if the names are equal."""
    short = [Path(file).name.removesuffix(".gz").removesuffix(".json") for file in files]
    names = short if len(set(short)) == len(short) else [*files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"The measurement '{twice}' is given twice; give each file once.")
    return names


def contrast(measurements: Named, other_graph: bool = False) -> Contrast:
    """The differences, and the change of every step and row.

    Raises UsageError for measurements that cannot be compared. That includes another graph, unless
    the user allows it.
    """
    (first, usual), *others = measurements.items()
    for name, other in others:
        comparable.refuse(first, usual, name, other, other_graph)
    sizes = comparable.common_sizes(measurements)
    busy = any(quality.disturbed(item.comparison.quality) for item in measurements.values())
    rows = tuple(row_times(measurements, sizes, busy))
    return Contrast(
        measurements=tuple(measurements),
        when=tuple(item.when for item in measurements.values()),
        processes=tuple(len(item.observed.processes) for item in measurements.values()),
        model=usual.comparison.model,
        phase=usual.comparison.phase,
        by=usual.comparison.by,
        differences=tuple(comparable.differences(list(measurements.values()))),
        notes=tuple(comparable.notes(measurements, sizes)),
        steps=tuple(steps(measurements, sizes, busy)),
        rows=rows,
    )


def observations(processes: Iterable[ObservedProcess], size: int) -> list[float]:
    """The untraced step of each process: the median of its turns."""
    return [median(map(median, process.untraced_ns[size])) for process in processes]


def row_observations(processes: Iterable[ObservedProcess], size: int, key: str) -> list[float]:
    """The time of a row in a traced step, for each process in which the row ran."""
    times = (process.rows_ns[size].get(key, 0) for process in processes)
    return [ns for ns in times if ns > 0]


def verdicts_on(pairs: Sequence[two_samples.Pair], busy: bool) -> tuple[Verdict, ...]:
    judgements = two_samples.judge(pairs)
    return (
        tuple(replace(verdict, word="withheld") for verdict in judgements) if busy else judgements
    )


def step_pairs(
    measurements: Named, sizes: Sequence[int]
) -> dict[tuple[str, int], two_samples.Pair]:
    """By measurement and batch size: the first measurement's observations, and its own."""
    usual, *others = measurements.items()
    return {
        (name, size): (
            observations(usual[1].observed.processes, size),
            observations(item.observed.processes, size),
        )
        for size in sizes
        for name, item in others
    }


def steps(measurements: Named, sizes: Sequence[int], busy: bool) -> Iterator[ConfigTimes]:
    """The untraced steps of all processes."""
    pairs = step_pairs(measurements, sizes)
    against = dict(zip(pairs, verdicts_on(list(pairs.values()), busy), strict=True))
    for size in sizes:
        for name, item in measurements.items():
            turns = [
                turn for process in item.observed.processes for turn in process.untraced_ns[size]
            ]
            times = [ns for turn in turns for ns in turn]
            spread = step_times.spread(times)
            rate = 1e9 * size / spread.median
            yield ConfigTimes(name, size, spread, rate, against.get((name, size)))


def row_times(measurements: Named, sizes: Sequence[int], busy: bool) -> Iterator[RowTimes]:
    """Every row at every batch size in each measurement; all verdicts are computed together."""
    first = next(iter(measurements))
    rows = {(size, key): None for size in sizes for key in keys(measurements, size)}
    by_key = {
        (size, key, name): row_observations(item.observed.processes, size, key)
        for size, key in rows
        for name, item in measurements.items()
    }
    pairs = {
        (size, key, name): (by_key[size, key, first], times)
        for (size, key, name), times in by_key.items()
        if name != first and times and by_key[size, key, first]
    }
    against = dict(zip(pairs, verdicts_on(list(pairs.values()), busy), strict=True))
    for (size, key, name), times in by_key.items():
        stats = stats_of(measurements[name], size, key)
        step_ns = stats.step_ns if stats else None
        share = stats.share if stats else None
        yield RowTimes(
            key,
            size,
            name,
            median(times) if times else step_ns,
            share,
            against.get((size, key, name)),
        )


def keys(measurements: Named, size: int) -> list[str]:
    """The rows at a batch size, in the order of the first measurement, then of the others."""
    tables = [item.comparison.tables[size] for item in measurements.values()]
    return list(dict.fromkeys(row.key for table in tables for row in table))


def stats_of(measurement: Measurement, size: int, key: str) -> OpStats | None:
    return next((row for row in measurement.comparison.tables[size] if row.key == key), None)


# The gate: whether a step is proven to be slower by a given percentage. That is so if the verdict
# is "slower" and its interval lies above the percentage, with all batch sizes of all measurements
# tested together. An undecided comparison is no proof; an option gives it an exit status of its
# own.


def judge(measurements: Named, held: Contrast, percent: float) -> Gate:
    sizes = sorted({row.batch_size for row in held.steps})
    factor = 1 + percent / 100
    pairs = step_pairs(measurements, sizes)
    proven = dict(zip(pairs, two_samples.proven_slower(list(pairs.values()), factor), strict=True))
    slower, undecided = [], []
    usual = {row.batch_size: row for row in held.steps if row.config == held.measurements[0]}
    for row in held.steps:
        if row.config == held.measurements[0]:
            continue
        verdict, pair = row.verdict, (row.config, row.batch_size)
        where = f"'{row.config}' at batch {row.batch_size}"
        assert verdict is not None
        if verdict.word == "slower" and proven[pair]:
            before = time(usual[row.batch_size].untraced_ns.median)
            after = time(row.untraced_ns.median)
            slower.append(f"{where}, {ratio_text(verdict)} ({after} after {before})")
        elif verdict.word == "withheld" or verdict.high > factor:
            undecided.append(f"{where}, {ratio_text(verdict)}")
    return Gate(percent, tuple(slower), tuple(undecided))


def failure(gate: Gate, first: str, if_undecided: bool) -> TflabError | None:
    """The error with which the command ends, if any: slower takes precedence over undecided."""
    if gate.slower:
        return SlowerError(sentence(gate, first))
    if gate.undecided and if_undecided:
        return UndecidedError(sentence(gate, first))
    return None


def sentence(gate: Gate, first: str) -> str:
    """The result of the gate, for the view and the error."""
    share = f"{gate.percent:g} %"
    if gate.slower:
        text = f"Proven to be slower than '{first}' by more than {share}: {listed(gate.slower)}."
    elif gate.undecided:
        text = f"Nothing is proven to be slower than '{first}' by more than {share}."
    else:
        text = f"Nothing is slower than '{first}' by more than {share}."
    if gate.undecided:
        text += f" Not enough data to tell: {listed(gate.undecided)}."
    return text


def listed(items: Sequence[str]) -> str:
    return "; ".join(items)
