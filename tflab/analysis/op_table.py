"""Op table: the statistics of nodes as rows, by type, node, layer or source line.

Every table of ops is made here, from the statistics of `tflab.analysis.statistics`: `rows` groups
the nodes, the functions `with_...` take rows and return them with something more, and `with_shares`
is the last. A node is in exactly one row, so the rows of any table add up to the same time.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from tflab.analysis import memory
from tflab.analysis.row_labels import (
    NO_LINE,
    Graph,
    code_of_lines,
    fused_into,
    labels_of,
    line_labels,
)
from tflab.analysis.statistics import Accumulator
from tflab.records.graph import BACKWARD, FORWARD, PHASES, UPDATE
from tflab.records.measured import Costs, NodeStats, OpStats
from tflab.records.timed import OpRun


@dataclass(frozen=True)
class Row:
    """A row in the making: what is known so far, and its nodes in the order of their starts."""

    stats: OpStats
    nodes: tuple[NodeStats, ...]
    steps: int  # that the nodes cover

    def plus(self, **values: Any) -> Row:
        return replace(self, stats=replace(self.stats, **values))


Rows = Sequence[Row]


def table(
    nodes: Sequence[NodeStats], by: str, steps: int, images: int | None
) -> tuple[OpStats, ...]:
    """Return the rows of a table from statistics alone, by one of `row_labels.KEYS`."""
    return with_shares(rows(nodes, by, steps, images))


def rows(
    nodes: Sequence[NodeStats],
    by: str,
    steps: int,
    images: int | None,
    graph: Graph | None = None,
) -> Rows:
    """Return the rows by one of `row_labels.KEYS`: layers in the order of execution, others by self
    time, largest first. A node that ran as several types has a row for each of them.

    `steps` is the number of steps that `nodes` cover, and `images` the number of images in them
    (None if unknown). `fused_from` names the user's nodes that, by the ledger, were fused into the
    nodes of the row; by line, it names their lines instead, if these differ from the line of the
    row: a node's time belongs to the line of the node whose name it has.

    Raises UsageError for an unknown `by`.
    """
    graph = graph or Graph()
    labels = labels_of(nodes, by, graph)
    groups: dict[tuple[str, str], list[NodeStats]] = {}
    for label, node in zip(labels, nodes, strict=True):
        groups.setdefault((label, node.op if by == "node" else ""), []).append(node)
    parts = fused_parts(graph, by)
    code = code_of_lines(graph.sources) if by == "line" else {}
    made = []
    for (label, _), members in groups.items():
        in_order = sorted(members, key=lambda node: (node.start_ns, node.name))
        row = measured(label, tuple(in_order), steps, images)
        fused = dict.fromkeys(part for name in row.stats.nodes for part in parts.get(name, ()))
        made.append(
            row.plus(
                fused_from=tuple(part for part in fused if part != label),
                code=code.get(label),
                **time_of_phases(row.nodes, graph.phases),
            )
        )
    return sorted(made, key=last_start if by == "layer" else largest)


def fused_parts(graph: Graph, by: str) -> dict[str, list[str]]:
    """Return the user's nodes that were fused into each node or, by line, their lines."""
    parts = fused_into(graph.ledger)
    if by != "line":
        return parts
    lines = line_labels(graph.sources)
    return {into: [lines.get(name, NO_LINE) for name in parts[into]] for into in parts}


def measured(key: str, nodes: tuple[NodeStats, ...], steps: int, images: int | None) -> Row:
    """Return a row with the measurements of its nodes.

    Its median and p95 are the means of those of its nodes, weighted by calls; this is not a
    quantile, but lies between them. Only a row of one node that runs once in every step has a
    median time per step.
    """
    calls = sum(node.calls for node in nodes)
    total_ns = sum(node.total_ns for node in nodes)
    once = nodes[0] if len(nodes) == 1 and calls == steps else None
    requested = sum(node.requested_bytes * node.calls for node in nodes)
    stats = OpStats(
        key=key,
        ops=tuple(dict.fromkeys(node.op for node in nodes)),
        nodes=tuple(dict.fromkeys(node.name for node in nodes)),
        fused_from=(),
        calls=calls,
        total_ns=total_ns,
        self_ns=total_ns,
        mean_ns=total_ns / calls,
        median_ns=mean_of_calls([node.median_ns for node in nodes], nodes),
        p95_ns=mean_of_calls([node.p95_ns for node in nodes], nodes),
        share=0,
        cumulative_share=0,
        requested_bytes=round(requested / steps),
        flops=None,
        gflops=None,
        step_ns=total_ns / steps,
        step_median_ns=float(once.median_ns) if once else None,
        peak_bytes=None,
        image_ns=None if images is None else total_ns / images,
        forward_ns=total_ns,
        backward_ns=0,
        update_ns=0,
    )
    return Row(stats, nodes, steps)


def mean_of_calls(values: Sequence[float], nodes: Sequence[NodeStats]) -> float:
    """Return the mean of one value for each node, weighted by calls."""
    if len(nodes) == 1:
        return values[0]
    weighted = sum(node.calls * value for node, value in zip(nodes, values, strict=True))
    return weighted / sum(node.calls for node in nodes)


def time_of_phases(nodes: Iterable[NodeStats], phases: Mapping[str, str]) -> dict[str, int]:
    spent = dict.fromkeys(PHASES, 0)
    for node in nodes:
        spent[phases.get(node.name, FORWARD)] += node.total_ns
    return {
        "forward_ns": spent[FORWARD],
        "backward_ns": spent[BACKWARD],
        "update_ns": spent[UPDATE],
    }


def last_start(row: Row) -> tuple[float, str]:
    """Return the start of the last node: variables of a layer are read long before its work."""
    return (row.nodes[-1].start_ns, row.stats.key)


def largest(row: Row) -> tuple[int, str]:
    return (-row.stats.self_ns, row.stats.key)


def with_quantiles(rows: Rows, runs: Accumulator) -> Rows:
    """Add exact quantiles of all runs of a row, and the median time that a step spends in it. Nodes
    of a step are slow together, so these do not follow from the statistics of nodes."""
    return [
        row.plus(
            median_ns=runs.quantile(row.stats.nodes, 0.5),
            p95_ns=runs.quantile(row.stats.nodes, 0.95),
            step_median_ns=runs.step_median_ns(row.stats.nodes),
        )
        for row in rows
    ]


def with_costs(rows: Rows, costs: Iterable[Costs]) -> Rows:
    """Add FLOPs per step and GFLOP/s, except for a row with a node whose FLOPs are unknown."""
    flops_of = {cost.name: cost.flops for cost in costs if cost.flops is not None}

    def with_flops(row: Row) -> Row:
        if any(node.name not in flops_of for node in row.nodes):
            return row
        flops = sum(node.calls * flops_of[node.name] for node in row.nodes)
        per_ns = flops / row.stats.self_ns if row.stats.self_ns else None
        return row.plus(flops=round(flops / row.steps), gflops=per_ns)

    return list(map(with_flops, rows))


def with_peaks(rows: Rows, runs: Sequence[OpRun]) -> Rows:
    """Add the most bytes that the nodes of a row had alive at once in a step of these runs."""
    peaks = memory.peaks(runs, [row.stats.nodes for row in rows])
    return [row.plus(peak_bytes=peak) for row, peak in zip(rows, peaks, strict=True)]


def with_shares(rows: Rows) -> tuple[OpStats, ...]:
    """Return the rows, complete with their shares of the total time."""
    everything = sum(row.stats.self_ns for row in rows) or 1
    so_far = accumulate(row.stats.self_ns for row in rows)
    return tuple(
        replace(
            row.stats, share=row.stats.self_ns / everything, cumulative_share=until / everything
        )
        for row, until in zip(rows, so_far, strict=True)
    )
