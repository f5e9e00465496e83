"""Statistics: the number, sum, quantiles and deviations of the runs of nodes, all exact.

All quantiles are nearest-rank: the q-quantile of n runs is the run of rank ceil(q * n), the
shortest that at least a share q of all runs does not exceed (definition 1 of Hyndman and Fan,
"Sample quantiles in statistical packages", 1996). So the p95 of fewer than 20 runs is the longest
run. Deviations are those of the values themselves (divided by n, not by n - 1), 0 for a single one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import Index, OpRuns, renumbered, sums
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun

CHUNK = 16_384  # runs that are put into columns at once, because NumPy is cheap in bulk


class Statistics:
    """The durations of runs by node and type, to be asked for one node or several together.

    `steps` is their number, if there are steps without runs.
    """

    def __init__(self, runs: Iterable[OpRun], steps: int | None = None) -> None:
        self._runs = table = op_runs.of(runs)
        self._groups = Index()  # (node, type) -> its number
        group = renumbered([kind[:2] for kind in table.kinds], self._groups)[table.kind]
        self._firsts = table.kind[np.unique(group, return_index=True)[1]].tolist()
        self._in_order = op_runs.in_order(group)
        own_steps, self._step = np.unique(table.step, return_inverse=True)
        self._steps = steps or len(own_steps)
        places = np.argsort(group, kind="stable")
        counts = np.bincount(group, minlength=len(self._groups))
        self._places = np.split(places, np.cumsum(counts)[:-1])  # of the runs of each group

    def nodes(self) -> tuple[NodeStats, ...]:
        """One NodeStats for each node and type, in the order of the runs.

        A recorded trace may have a node with several types: the op that launched a kernel, and the
        kernel.
        """
        runs = self._runs
        begin: np.ndarray = np.full(self._steps, np.iinfo(np.int64).max)
        np.minimum.at(begin, self._step, runs.start_ns)
        since = runs.start_ns - begin[self._step]
        found = dict(zip(sorted(self._in_order), self._firsts, strict=True))
        return tuple(
            self._node(runs.kinds[found[group]], self._places[group], since)
            for group in self._in_order
        )

    def _node(self, kind: tuple[str, str, str], places: np.ndarray, since: np.ndarray) -> NodeStats:
        durations = np.sort(self._runs.duration_ns[places])
        calls, total = len(durations), int(durations.sum())
        return NodeStats(
            name=kind[0],
            op=kind[1],
            device=kind[2],
            calls=calls,
            total_ns=total,
            mean_ns=total / calls,
            median_ns=quantile(durations, 0.5),
            p95_ns=quantile(durations, 0.95),
            start_ns=int(since[places].sum()) / calls,
            requested_bytes=round(int(self._runs.requested_bytes[places].sum()) / calls),
            std_ns=float(durations.std()),
        )

    def _of(self, nodes: Iterable[NodeStats]) -> np.ndarray:
        """The places of the runs of these nodes."""
        return np.concatenate([self._places[self._groups[node.name, node.op]] for node in nodes])

    def quantile(self, nodes: Iterable[NodeStats], q: float) -> int:
        """The q-quantile of the durations of all runs of these nodes."""
        return quantile(np.sort(self._runs.duration_ns[self._of(nodes)]), q)

    def std_ns(self, nodes: Iterable[NodeStats]) -> float:
        """The deviation of the durations of all runs of these nodes."""
        return float(self._runs.duration_ns[self._of(nodes)].std())

    def step_times(self, nodes: Iterable[NodeStats]) -> np.ndarray:
        """The time that each step spends in these nodes together, in ascending order."""
        places = self._of(nodes)
        return np.sort(sums(self._step[places], self._runs.duration_ns[places], self._steps))


class Collector:
    """The runs of many steps, of which only node, start and duration are kept: 24 bytes a run."""

    def __init__(self) -> None:
        self.steps = 0
        self._nodes = Index()
        self._names: list[str] = []  # runs that are not in columns yet
        self._starts: list[int] = []
        self._durations: list[int] = []
        self._lengths: list[int] = []  # the number of those runs in each step
        self._parts: list[tuple[np.ndarray, ...]] = []  # node, step, start and duration

    def add(self, names: list[str], starts_ns: list[int], durations_ns: list[int]) -> None:
        """Add one step: for each run its node, its start since the start of the step, and its
        duration."""
        self.steps += 1
        self._names += names
        self._starts += starts_ns
        self._durations += durations_ns
        self._lengths.append(len(names))
        if len(self._names) >= CHUNK:
            self._settle()

    def _settle(self) -> None:
        """Put the waiting runs into columns. Ctrl-C may come at any time, so all columns are
        computed before one is stored."""
        first = self.steps - len(self._lengths)
        step: np.ndarray = np.repeat(np.arange(first, self.steps, dtype=np.int32), self._lengths)
        nodes: np.ndarray = renumbered(self._names, self._nodes).astype(np.int32)
        times = (np.array(self._starts, np.int64), np.array(self._durations, np.int64))
        self._parts.append((nodes, step, *times))
        self._names, self._starts, self._durations, self._lengths = [], [], [], []

    def runs(
        self,
        types: Mapping[str, str],
        devices: Mapping[str, str],
        requested_bytes: Mapping[str, int],
    ) -> OpRuns:
        """The runs of the nodes that have a type; a name without one, such as the executor's own
        _SOURCE, is not a node of the graph."""
        self._settle()
        nodes, step, start_ns, duration_ns = map(np.concatenate, zip(*self._parts, strict=True))
        kinds = [(name, types.get(name, ""), devices.get(name, "")) for name in self._nodes]
        requested = np.array([requested_bytes.get(name, 0) for name in self._nodes], np.int64)
        found = OpRuns(
            kinds,
            op_runs.of(()).allocations,
            nodes,
            step,
            start_ns,
            duration_ns,
            requested[nodes],
        )
        return found.of_kinds(lambda kind: kind[0] in types)


def fold(runs: Iterable[OpRun]) -> tuple[NodeStats, ...]:
    """One NodeStats for each node and type, in the order of the runs."""
    return Statistics(runs).nodes()


def quantile(ascending: np.ndarray, q: float) -> int:
    """The q-quantile of values in ascending order."""
    return int(ascending[rank(q, len(ascending)) - 1])


def rank(q: float, runs: int) -> int:
    """The rank of the q-quantile, from 1, among this many runs sorted by duration."""
    # Exact decimal fractions: in floats, 0.1 * 30 is a little more than 3.
    return ceil(Fraction(str(q)) * runs)
