"""Statistics: the number, sum and quantiles of the runs of nodes, all exact.

All quantiles are nearest-rank: the q-quantile of n runs is the run of rank ceil(q * n), the
shortest that at least a share q of all runs does not exceed (definition 1 of Hyndman and Fan,
"Sample quantiles in statistical packages", 1996). So the p95 of fewer than 20 runs is the longest
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from math import ceil

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import Index, OpRuns, renumbered, sums
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun

CHUNK = 16_384  # runs that are put into columns at once, because NumPy is cheap in bulk


def fold(runs: Iterable[OpRun]) -> tuple[NodeStats, ...]:
    """Return one NodeStats for each node and type, in the order of the runs.

    A recorded trace may have a node with several types: the op that launched a kernel, and the
    kernel.
    """
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
    """Return the statistics of the runs of one node as one type, and of their starts within their
    steps."""
    name, op, device = runs.kinds[int(runs.kind[0])]
    durations = np.sort(runs.duration_ns)
    calls, total = len(runs), int(durations.sum())
    return NodeStats(
        name=name,
        op=op,
        device=device,
        calls=calls,
        total_ns=total,
        mean_ns=total / calls,
        median_ns=quantile(durations, 0.5),
        p95_ns=quantile(durations, 0.95),
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
        """Add one step: for each run its node, its start since the start of the step, and its
        duration. The lists are kept as they are."""
        self.steps += 1
        self._waiting.append((names, starts_ns, durations_ns))
        self._count += len(names)
        if self._count >= CHUNK:
            self._settle()

    def _settle(self) -> None:
        """Put the waiting runs into columns. Ctrl-C may come at any time, so all columns are
        computed before one is stored."""
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

    def _of(self, names: Iterable[str]) -> np.ndarray:
        """Return the places of the runs of these nodes."""
        self._columns()
        known = set(names) & self._nodes.keys()
        none: np.ndarray = np.zeros(0, np.int64)
        return np.concatenate([none, *(self._places[self._nodes[name]] for name in known)])

    def quantile(self, names: Iterable[str], q: float) -> int:
        """Return the q-quantile of the durations of all runs of these nodes; ns. Raises ValueError
        if none of them ever ran."""
        places = self._of(names)
        if not len(places):
            raise ValueError("without runs there is no quantile")
        return quantile(np.sort(self._columns()[3][places]), q)

    def _step_times(self, names: Iterable[str]) -> np.ndarray:
        """Return the time that each step spends in these nodes together."""
        places = self._of(names)
        _, step, _, duration_ns = self._columns()
        return sums(step[places], duration_ns[places], self.steps)

    def step_median_ns(self, names: Iterable[str]) -> float | None:
        """Return the median time that a step spends in these nodes together, by nearest rank; ns.
        None without steps."""
        return float(quantile(np.sort(self._step_times(names)), 0.5)) if self.steps else None

    def round_medians_ns(self, names: Iterable[str], rounds: Sequence[range]) -> tuple[float, ...]:
        """Return, for each round of steps, the median time that a step spends in these nodes
        together; ns. It is 0 if they did not run. Rounds without a step are left out."""
        times = self._step_times(names)
        own = (times[steps.start : steps.stop] for steps in rounds)
        return tuple(float(np.median(part)) for part in own if len(part))


def places_of(groups: np.ndarray) -> list[np.ndarray]:
    """Return for each group, from 0 on, the places of its rows."""
    ends = np.cumsum(np.bincount(groups))
    return np.split(np.argsort(groups, kind="stable"), ends[:-1]) if len(groups) else []


def quantile(ascending: np.ndarray, q: float) -> int:
    """Return the q-quantile of values in ascending order."""
    return int(ascending[rank(q, len(ascending)) - 1])


def rank(q: float, runs: int) -> int:
    """Return the rank of the q-quantile, from 1, among this many runs sorted by duration."""
    # Exact decimal fractions: in floats, 0.1 * 30 is a little more than 3.
    return ceil(Fraction(str(q)) * runs)
