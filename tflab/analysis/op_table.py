"""Op table: the statistics of nodes as rows, by type, node, layer or source line.

Every table of ops is made here, from the statistics of nodes that `fold` makes: `rows` groups the
nodes, the functions `with_...` take rows and return them with something more, and `with_shares`
is the last. A node is in exactly one row, so the rows of any table add up to the same time.

Ops of a data-flow graph call nothing, because loops and functions are expanded before they run, so
the time of a row is all its own. The exception is a call that stayed a node (`PartitionedCall`,
`While`, `If`): its run lasts as long as its body, whose ops may be in the trace, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import Index, OpRuns, renumbered, sums
from tflab.analysis.row_labels import NO_LINE, Graph, fused_into, labels_of, line_labels
from tflab.records.graph import BACKWARD, FORWARD, UPDATE, grouped
from tflab.records.measured import NodeStats, OpStats
from tflab.records.timed import OpRun


@dataclass(frozen=True)
class Row:
    """A row that is not complete yet, with its nodes in the order of their starts."""

    stats: OpStats
    nodes: tuple[NodeStats, ...]
    steps: int  # that the nodes cover


Rows = Sequence[Row]


def rows(
    nodes: Sequence[NodeStats],
    by: str,
    steps: int,
    images: int | None,
    graph: Graph | None = None,
) -> Rows:
    """Return the rows by one of `row_labels.KEYS`: layers in the order of execution, others by
    time, largest first. A node that ran as several types has a row for each of them. `steps` is the
    number of steps that `nodes` cover, and `images` the number of images in them (None if unknown).
    `fused_from` names the user's nodes that were fused into the nodes of the row; by line, it names
    their lines, if these differ from the row's. Raises UsageError for an unknown `by`."""
    graph = graph or Graph()
    labels = labels_of(nodes, by, graph)
    types = [node.op if by == "node" else "" for node in nodes]
    groups = grouped(zip(zip(labels, types, strict=True), nodes, strict=True))
    parts = fused_into(graph.ledger)
    code: dict[str, str] = {}
    if by == "line":
        lines = line_labels(graph.sources)
        parts = {into: [lines.get(name, NO_LINE) for name in parts[into]] for into in parts}
        code = {lines[node]: source.code for node, source in graph.sources.items() if source}
    made = []
    for (label, _), members in groups.items():
        own = tuple(sorted(members, key=lambda node: (node.start_ns, node.name)))
        names = tuple(dict.fromkeys(node.name for node in own))
        fused = dict.fromkeys(part for name in names for part in parts.get(name, ()))
        calls, total_ns = sum(node.calls for node in own), sum(node.total_ns for node in own)
        spent: Counter[str] = Counter()
        for node in own:
            spent[graph.phases.get(node.name, FORWARD)] += node.total_ns
        stats = OpStats(
            key=label,
            ops=tuple(dict.fromkeys(node.op for node in own)),
            nodes=names,
            fused_from=tuple(part for part in fused if part != label),
            calls=calls,
            total_ns=total_ns,
            mean_ns=total_ns / calls,
            # Of several nodes it is the mean of their medians, weighted by calls
            median_ns=sum(node.calls * node.median_ns for node in own) / calls,
            share=0,
            requested_bytes=round(sum(node.requested_bytes * node.calls for node in own) / steps),
            flops=None,
            gflops=None,
            step_ns=total_ns / steps,
            image_ns=None if images is None else total_ns / images,
            forward_ns=spent[FORWARD],
            backward_ns=spent[BACKWARD],
            update_ns=spent[UPDATE],
            code=code.get(label),
        )
        made.append(Row(stats, own, steps))
    if by == "layer":  # variables of a layer are read long before its work
        return sorted(made, key=lambda row: (row.nodes[-1].start_ns, row.stats.key))
    return sorted(made, key=lambda row: (-row.stats.total_ns, row.stats.key))


def with_flops(rows: Rows, flops_of: Mapping[str, float | None]) -> Rows:
    """Add FLOPs per step and GFLOP/s, except for a row with a node whose FLOPs are unknown."""
    made = []
    for row in rows:
        each = [(node.calls, flops_of.get(node.name)) for node in row.nodes]
        known = [calls * flops for calls, flops in each if flops is not None]
        if len(known) == len(each):
            per_ns = sum(known) / row.stats.total_ns if row.stats.total_ns else None
            stats = replace(row.stats, flops=round(sum(known) / row.steps), gflops=per_ns)
            row = replace(row, stats=stats)
        made.append(row)
    return made


def with_shares(rows: Rows) -> tuple[OpStats, ...]:
    """Return the rows, complete with their shares of the total time."""
    everything = sum(row.stats.total_ns for row in rows) or 1
    return tuple(replace(row.stats, share=row.stats.total_ns / everything) for row in rows)


# Statistics

CHUNK = 16_384  # runs that are put into columns at once, because NumPy is cheap in bulk


def fold(runs: Iterable[OpRun]) -> tuple[NodeStats, ...]:
    """Return one NodeStats for each node and type, in the order of the runs. In a recorded trace, a
    node may have several types: the op that launched a kernel, and the kernel."""
    table = op_runs.of(runs)
    group = renumbered([kind[:2] for kind in table.kinds], Index())[table.kind]
    steps, step = np.unique(table.step, return_inverse=True)
    begin: np.ndarray = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(begin, step, table.start_ns)
    since = table.start_ns - begin[step]
    places = places_of(group)
    return tuple(
        node_stats(table.take(places[number]), since[places[number]])
        for number in op_runs.in_order(group)
    )


def node_stats(runs: OpRuns, since_ns: np.ndarray) -> NodeStats:
    """Return the statistics of a node's runs, and of their starts `since_ns` in their steps."""
    name, op, device = runs.kinds[int(runs.kind[0])]
    calls, total = len(runs), int(runs.duration_ns.sum())
    return NodeStats(
        name=name,
        op=op,
        device=device,
        calls=calls,
        total_ns=total,
        mean_ns=total / calls,
        median_ns=float(np.median(runs.duration_ns)),
        start_ns=int(since_ns.sum()) / calls,
        requested_bytes=round(int(runs.requested_bytes.sum()) / calls),
    )


class Accumulator:
    """The runs of many steps, of which only node, start and duration are kept: 24 bytes a run.
    `add` each step, then ask for statistics of one node or several together."""

    def __init__(self) -> None:
        self.steps = 0
        self._nodes = Index()
        self._waiting: list[tuple[list[str], list[int], list[int]]] = []  # steps not in columns yet
        self._count = 0  # of their runs
        # Node, step, start and duration of the runs, in parts that are not joined yet
        self._parts: list[tuple[np.ndarray, ...]] = [
            tuple(np.zeros(0, of) for of in (np.int32, np.int32, np.int64, np.int64))
        ]
        self._places: list[np.ndarray] = []  # of the runs of each node

    def add(self, names: list[str], starts_ns: list[int], durations_ns: list[int]) -> None:
        """Add a step's runs: their nodes, starts since the start of the step, and durations."""
        self.steps += 1
        self._waiting.append((names, starts_ns, durations_ns))
        self._count += len(names)
        if self._count >= CHUNK:
            self._settle()

    def _settle(self) -> None:
        """Put the waiting runs into columns, all computed before one is stored: Ctrl-C may come."""
        first = self.steps - len(self._waiting)
        lengths = [len(names) for names, *_ in self._waiting]
        step: np.ndarray = np.repeat(np.arange(first, self.steps, dtype=np.int32), lengths)
        names, *times = (list(chain.from_iterable(own)) for own in zip(*self._waiting, strict=True))
        node: np.ndarray = renumbered(names, self._nodes).astype(np.int32)
        self._parts.append((node, step, *(np.array(column, np.int64) for column in times)))
        self._waiting, self._count = [], 0

    def _columns(self) -> tuple[np.ndarray, ...]:
        """Return node, step, start and duration of all runs, and find the runs of each node."""
        if self._waiting:
            self._settle()
        if len(self._parts) > 1:
            self._parts = [tuple(map(np.concatenate, zip(*self._parts, strict=True)))]
            self._places = places_of(self._parts[0][0])
        return self._parts[0]

    def stats(
        self,
        types: Mapping[str, str],
        devices: Mapping[str, str],
        requested_bytes: Mapping[str, int],
    ) -> tuple[NodeStats, ...]:
        """Return one NodeStats for each node that ran and has a type, in the order of the first
        runs. A name without one, such as the executor's own _SOURCE, is not a node of the graph."""
        node, step, start_ns, duration_ns = self._columns()
        kinds = [(name, types.get(name, ""), devices.get(name, "")) for name in self._nodes]
        requested = np.array([requested_bytes.get(name, 0) for name in self._nodes], np.int64)
        sizes = requested[node] if self._nodes else duration_ns
        runs = OpRuns(kinds, op_runs.of(()).allocations, node, step, start_ns, duration_ns, sizes)
        return tuple(
            node_stats(runs.take(places), start_ns[places])
            for (name, *_), places in zip(kinds, self._places, strict=True)
            if name in types
        )

    def round_medians_ns(self, names: Iterable[str], rounds: Sequence[range]) -> tuple[float, ...]:
        """Return, for each round of steps, the median time in ns that a step spends in these nodes
        together: 0 if they did not run. Rounds without a step are left out."""
        _, step, _, duration_ns = self._columns()
        known = set(names) & self._nodes.keys()
        none: np.ndarray = np.zeros(0, np.int64)
        places = np.concatenate([none, *(self._places[self._nodes[name]] for name in known)])
        times = sums(step[places], duration_ns[places], self.steps)
        own = (times[steps.start : steps.stop] for steps in rounds)
        return tuple(float(np.median(part)) for part in own if len(part))


def places_of(groups: np.ndarray) -> list[np.ndarray]:
    """Return, for each group 0, 1, 2, ..., the indices of its elements in `groups`."""
    ends = np.cumsum(np.bincount(groups))
    return np.split(np.argsort(groups, kind="stable"), ends[:-1]) if len(groups) else []
