"""Op table: the statistics of nodes as rows, by type, node, layer or source line.

Every table of ops is made here, from the statistics of `tflab.analysis.statistics`. A node is in
exactly one row, so the rows of any table add up to the same time.

Self and total time are defined as in profilers since Graham, Kessler and McKusick, "gprof: a call
graph execution profiler" (SIGPLAN Symposium on Compiler Construction, 1982): *self* is the time in
the op, *total* includes the time in what it called. Ops of a data-flow graph call nothing, because
loops and functions are expanded before they run, so the two are equal. The exception is a call that
stayed a node (`PartitionedCall` of a function that must not be inlined, `While` and `If` without
lowering): its run lasts as long as its body. If the trace also has the ops of the body, as for
`PartitionedCall`, that time is in their rows *and* in the row of the call, whose self time is then
its total time. Ops run in parallel, so all rows together may exceed the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import sqrt

from tflab.analysis.row_labels import (
    NO_LINE,
    Sources,
    code_of_lines,
    fused_into,
    labels_of,
    line_labels,
)
from tflab.records.graph import BACKWARD, FORWARD, PHASES, UPDATE
from tflab.records.measured import Costs, NodeStats, OpStats
from tflab.records.placed import Fate

Quantile = Callable[[Sequence[str], float], float]
OfSteps = Callable[[Sequence[str]], float | None]
PeakBytes = Callable[[Sequence[Sequence[str]]], Sequence[int]]


def table(
    nodes: Sequence[NodeStats],
    by: str,
    steps: int,
    images: int | None,
    *,
    costs: Iterable[Costs] = (),
    ledger: Sequence[Fate] = (),
    sources: Sources | None = None,
    phases: Mapping[str, str] | None = None,
    layers: Mapping[str, str] | None = None,
    quantile: Quantile | None = None,
    step_std_ns: OfSteps | None = None,
    step_median_ns: OfSteps | None = None,
    peak_bytes: PeakBytes | None = None,
) -> tuple[OpStats, ...]:
    """The rows by one of `row_labels.KEYS`: layers in the order of execution, others by self time,
    largest first. A node that ran as several types has a row for each of them.

    `steps` is the number of steps that `nodes` cover, and `images` the number of images in them
    (None if unknown); `requested_bytes` and `flops` are per step. `sources` gives the lines of
    nodes, and `phases` their phases; the default is forward. `layers` gives the names of layers
    whose name scopes are called differently. `fused_from` names the user's nodes that the ledger
    says were fused into those of the row; by line it has their lines instead, if these differ from
    the row: a node's time belongs to the line of the node whose name it has.

    `quantile(names, q)` returns the q-quantile of all runs of some nodes, in ns. Without it, the
    median and p95 of a row of several nodes are the means of theirs, weighted by calls; this is not
    a quantile, but lies between them.

    There are two deviations. `std_ns` is that of the calls, exact; calls of different nodes differ,
    so in a row of several nodes it says little about their steadiness. `step_std_ns` is that of the
    time that a step spends in the row, and belongs to its mean `step_ns`. Nodes of a step are slow
    together, so it does not follow from their deviations: `step_std_ns(names)` returns it. Without
    that function, only a row of one node that runs once in every step has one. The same holds for
    `step_median_ns`. `peak_bytes(rows)` takes the nodes of each row, and returns the most bytes
    that those of each had alive at once in a step.

    FLOPs and GFLOP/s are None if the FLOPs of any node of a row are unknown. Raises UsageError for
    an unknown `by`.
    """
    phases, sources = phases or {}, sources or {}
    labels = labels_of(nodes, by, sources, ledger, phases, layers or {})
    cost_of = {cost.name: cost for cost in costs}
    parts = fused_parts(ledger, by, sources)
    groups = grouped(nodes, labels, by)
    highest = peak_bytes([names_of(members) for _, members in groups]) if peak_bytes else None
    rows = []
    for place, (key, members) in enumerate(groups):
        row = replace(
            measured(key, members, steps, images, parts, phases, quantile),
            peak_bytes=highest[place] if highest else None,
            step_std_ns=of_steps(members, steps, step_std_ns, "std_ns"),
            step_median_ns=of_steps(members, steps, step_median_ns, "median_ns"),
        )
        rows.append(with_work(row, members, steps, cost_of))
    return with_shares(rows, code_of_lines(sources) if by == "line" else {})


def fused_parts(ledger: Sequence[Fate], by: str, sources: Sources) -> dict[str, list[str]]:
    """The user's nodes that were fused into each node or, by line, their lines."""
    parts = fused_into(ledger)
    if by != "line":
        return parts
    lines = line_labels(sources)
    return {into: [lines.get(name, NO_LINE) for name in parts[into]] for into in parts}


def grouped(
    nodes: Sequence[NodeStats], labels: Sequence[str], by: str
) -> list[tuple[str, list[NodeStats]]]:
    """The nodes of each row, in the order of their starts; the rows in the order of the table."""
    groups: dict[tuple[str, str], list[NodeStats]] = {}
    for label, node in zip(labels, nodes, strict=True):
        groups.setdefault((label, node.op if by == "node" else ""), []).append(node)
    for members in groups.values():
        members.sort(key=lambda node: (node.start_ns, node.name))
    labelled = ((label, members) for (label, _), members in groups.items())
    return sorted(labelled, key=by_start if by == "layer" else by_time)


def with_shares(rows: Sequence[OpStats], code: Mapping[str, str]) -> tuple[OpStats, ...]:
    """The rows with their shares of the total time; for rows that are lines, also their code."""
    everything = sum(row.self_ns for row in rows) or 1
    so_far = accumulate(row.self_ns for row in rows)
    return tuple(
        replace(
            row,
            share=row.self_ns / everything,
            cumulative_share=until / everything,
            code=code.get(row.key),
        )
        for row, until in zip(rows, so_far, strict=True)
    )


def measured(
    key: str,
    members: Sequence[NodeStats],
    steps: int,
    images: int | None,
    parts: Mapping[str, Sequence[str]],
    phases: Mapping[str, str],
    quantile: Quantile | None,
) -> OpStats:
    """Measurements of one group of nodes in the order of execution, without deviations over steps,
    memory and shares."""
    names = names_of(members)
    calls = sum(node.calls for node in members)
    requested = sum(node.requested_bytes * node.calls for node in members)
    fused = dict.fromkeys(part for name in names for part in parts.get(name, ()))
    spent = dict.fromkeys(PHASES, 0)
    for node in members:
        spent[phases.get(node.name, FORWARD)] += node.total_ns
    return OpStats(
        key=key,
        ops=tuple(dict.fromkeys(node.op for node in members)),
        nodes=names,
        fused_from=tuple(part for part in fused if part != key),
        calls=calls,
        total_ns=total_ns(members),
        self_ns=total_ns(members),
        mean_ns=total_ns(members) / calls,
        median_ns=quantile_of(members, names, 0.5, quantile),
        p95_ns=quantile_of(members, names, 0.95, quantile),
        share=0,
        cumulative_share=0,
        requested_bytes=round(requested / steps),
        flops=None,
        gflops=None,
        std_ns=std_ns(members),
        step_ns=total_ns(members) / steps,
        step_std_ns=None,
        step_median_ns=None,
        peak_bytes=None,
        image_ns=None if images is None else total_ns(members) / images,
        forward_ns=spent[FORWARD],
        backward_ns=spent[BACKWARD],
        update_ns=spent[UPDATE],
    )


def with_work(
    row: OpStats,
    members: Iterable[NodeStats],
    steps: int,
    cost_of: Mapping[str, Costs],
) -> OpStats:
    """Return the row with its FLOPs, if those of all its nodes are known."""
    costs = [(node.calls, cost_of.get(node.name, Costs(node.name, None, None))) for node in members]
    known = [calls * cost.flops for calls, cost in costs if cost.flops is not None]
    if len(known) < len(costs):
        return row
    flops = sum(known)
    return replace(
        row,
        flops=round(flops / steps),
        gflops=flops / row.self_ns if row.self_ns else None,  # FLOPs per ns
    )


def names_of(members: Iterable[NodeStats]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.name for node in members))


def by_start(group: tuple[str, list[NodeStats]]) -> tuple[float, str]:
    """The start of its last node: the variables of a layer are read long before its work."""
    return (group[1][-1].start_ns, group[0])


def by_time(group: tuple[str, list[NodeStats]]) -> tuple[int, str]:
    return (-total_ns(group[1]), group[0])


def total_ns(members: Iterable[NodeStats]) -> int:
    return sum(node.total_ns for node in members)


def quantile_of(
    members: Sequence[NodeStats], names: Sequence[str], q: float, exact: Quantile | None
) -> float:
    if exact:
        return exact(names, q)
    values = [node.median_ns if q == 0.5 else node.p95_ns for node in members]
    if len(members) == 1:
        return values[0]
    weighted = sum(node.calls * value for node, value in zip(members, values, strict=True))
    return weighted / sum(node.calls for node in members)


def std_ns(members: Sequence[NodeStats]) -> float:
    """The deviation of all calls of some nodes around their common mean: within nodes and between
    them."""
    calls = sum(node.calls for node in members)
    mean = total_ns(members) / calls
    squares = (node.calls * (node.std_ns**2 + (node.mean_ns - mean) ** 2) for node in members)
    return sqrt(sum(squares) / calls)


def of_steps(
    members: Sequence[NodeStats], steps: int, exact: OfSteps | None, field: str
) -> float | None:
    """Statistics over steps of the time that a step spends in some nodes: as `exact`, or those of
    the calls if each call is a step of its own."""
    if exact:
        return exact(names_of(members))
    alone = len(members) == 1 and members[0].calls == steps
    return float(getattr(members[0], field)) if alone else None
