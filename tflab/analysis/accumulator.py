"""Accumulator: the statistics of a measurement too long to keep its runs, a step at a time.

Count, sum, least and most of the runs of each node are exact. Quantiles come
from a sketch: durations are counted in buckets whose bounds grow by 2 %, which puts every quantile
within 1 % of the true one (DDSketch: Masson, Rim and Lee 2019, "a fast and fully-mergeable quantile
sketch"; it takes another rank). They are nearest-rank, as those of `op_stats`.

Deviations are exact but for rounding: squares are taken around the mean of the runs that are folded
at once, and such parts put together as Chan, Golub and LeVeque do ("Updating formulae and a
pairwise algorithm for computing sample variances", 1979): nothing overflows and nothing cancels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log, sqrt

import numpy as np

from tflab.analysis.op_stats import rank
from tflab.records import NodeStats

ERROR = 0.01  # of a quantile, relative
GROWTH = (1 + ERROR) / (1 - ERROR)  # of a bucket's bounds
CHUNK = 16384  # runs that wait to be folded; folding is NumPy's work, and cheap in bulk
PAIRED = 1000  # nodes at most whose times are compared with each other: 8 MB
SAMPLED = 2**19  # times of nodes in a step that are kept for medians: 2 MB


class Accumulator:
    """Statistics of the runs of every node. `add` steps, then ask for `stats`."""

    def __init__(self) -> None:
        self.steps = 0
        self._columns: dict[str, int] = {}  # node -> its place in the arrays
        self._names: list[str] = []  # runs that wait to be folded
        self._starts: list[int] = []
        self._durations: list[int] = []
        self._lengths: list[int] = []  # how many of them each waiting step has
        self._folded = 0  # steps
        self._count: np.ndarray = np.zeros(0, np.int64)
        self._total: np.ndarray = np.zeros(0, np.int64)
        self._start: np.ndarray = np.zeros(0, np.int64)
        self._least: np.ndarray = np.zeros(0, np.int64)
        self._most: np.ndarray = np.zeros(0, np.int64)
        self._squares: np.ndarray = np.zeros(0)  # of the durations, around their mean
        # Of two nodes' times in a step, likewise; None where they are too many
        self._products: np.ndarray | None = np.zeros((0, 0))
        # Times of all nodes in one step of every `_stride`: their sums have no median but their own
        self._sample: np.ndarray = np.zeros((0, 0), np.float32)
        self._stride = 1
        self._buckets: dict[int, int] = {}  # (node, bucket) as one number -> runs
        self._by_node: dict[int, dict[int, int]] | None = None  # the same, when asked for

    def add(self, names: list[str], starts_ns: list[int], durations_ns: list[int]) -> None:
        """One step: each run's node, its start from the step's start, and its duration."""
        self.steps += 1
        self._names += names
        self._starts += starts_ns
        self._durations += durations_ns
        self._lengths.append(len(names))
        if len(self._names) >= CHUNK:
            self._fold()

    def _fold(self) -> None:
        """Ctrl-C may come anywhere: all is computed first, and then kept."""
        if not self._lengths:
            return
        for name in dict.fromkeys(self._names):
            self._columns.setdefault(name, len(self._columns))
        count, total, start, least, most = self._grown(len(self._columns) - len(self._count))
        places = map(self._columns.__getitem__, self._names)
        columns = np.fromiter(places, np.int64, len(self._names))
        durations = np.array(self._durations, np.int64)
        np.add.at(count, columns, 1)
        np.add.at(total, columns, durations)
        np.add.at(start, columns, np.array(self._starts, np.int64))
        np.minimum.at(least, columns, durations)
        np.maximum.at(most, columns, durations)
        # Bucket 0 is for no time at all, of which there is no logarithm.
        buckets = np.ceil(np.log(np.maximum(durations, 1)) / log(GROWTH)).astype(np.int64) + 1
        buckets[durations <= 0] = 0
        keys, runs = np.unique(columns << 16 | buckets, return_counts=True)
        before = self._buckets
        filled = {
            key: before.get(key, 0) + more
            for key, more in zip(keys.tolist(), runs.tolist(), strict=True)
        }
        squares = self._squares_with(columns, durations)
        times = self._times(columns, durations)
        products = self._products_with(times)
        sample, stride = self._sample_with(times)
        self._count, self._total, self._start = count, total, start
        self._least, self._most, self._by_node = least, most, None
        self._buckets.update(filled)
        self._squares, self._products = squares, products
        self._sample, self._stride = sample, stride
        self._folded += len(self._lengths)
        self._names, self._starts, self._durations, self._lengths = [], [], [], []

    def _squares_with(self, columns: np.ndarray, durations: np.ndarray) -> np.ndarray:
        """For each node, the squares of all its durations around their mean, added up."""
        nodes = len(self._columns)
        old, old_total, squares = (
            np.pad(array, (0, nodes - len(array)))
            for array in (self._count, self._total, self._squares)
        )
        new = np.bincount(columns, minlength=nodes)
        mean = np.bincount(columns, durations, nodes) / np.maximum(new, 1)
        squares += np.bincount(columns, (durations - mean[columns]) ** 2, nodes)
        apart = mean - old_total / np.maximum(old, 1)
        return squares + apart**2 * (old * (new / np.maximum(old + new, 1)))

    def _times(self, columns: np.ndarray, durations: np.ndarray) -> np.ndarray | None:
        """A row for each waiting step: the time of every node in it, 0 of one that did not run.
        None where the nodes are too many."""
        nodes, steps = len(self._columns), len(self._lengths)
        if nodes > PAIRED:
            return None
        places = np.repeat(np.arange(steps), self._lengths) * nodes + columns
        return np.bincount(places, durations, steps * nodes).reshape(steps, nodes)

    def _products_with(self, times: np.ndarray | None) -> np.ndarray | None:
        """The squares for the times of any two nodes in a step."""
        if times is None or self._products is None:
            return None
        (new, nodes), old = times.shape, self._folded
        more = nodes - len(self._products)
        mean = times.mean(axis=0)
        apart = mean - np.pad(self._total, (0, more)) / max(old, 1)
        times = times - mean
        between = np.outer(apart, apart) * (old * new / (old + new))
        # Not with `@`: the threads of a BLAS wait for more work, and the next step would feel it.
        within = np.einsum("si,sj->ij", times, times)
        return np.pad(self._products, (0, more)) + within + between

    def _sample_with(self, times: np.ndarray | None) -> tuple[np.ndarray, int]:
        """The sample with the waiting steps, thinned until it is small enough, and its stride."""
        if times is None:
            return np.zeros((0, 0), np.float32), 1
        stride = self._stride
        more = times.shape[1] - self._sample.shape[1]
        taken: np.ndarray = times[-self._folded % stride :: stride].astype(np.float32)
        sample = np.concatenate([np.pad(self._sample, ((0, 0), (0, more))), taken])
        while sample.size > SAMPLED and len(sample) > 1:
            sample, stride = sample[::2].copy(), 2 * stride
        return sample, stride

    def _grown(self, more: int) -> tuple[np.ndarray, ...]:
        """Copies of the arrays, with places for more nodes."""
        return (
            np.pad(self._count, (0, more)),
            np.pad(self._total, (0, more)),
            np.pad(self._start, (0, more)),
            np.pad(self._least, (0, more), constant_values=np.iinfo(np.int64).max),
            np.pad(self._most, (0, more)),
        )

    def _runs(self) -> dict[int, dict[int, int]]:
        """For each node that ran, how many runs are in which bucket."""
        self._fold()
        if self._by_node is None:
            self._by_node = {}
            for key, runs in self._buckets.items():
                self._by_node.setdefault(key >> 16, {})[key & 0xFFFF] = runs
        return self._by_node

    def quantile(self, names: Iterable[str], q: float) -> float:
        """The q-quantile of the durations of all runs of these nodes, within 1 %; ns.

        By nearest rank. Raises ValueError where none of them ever ran.
        """
        by_node = self._runs()
        runs: Counter[int] = Counter()
        for name in set(names) & self._columns.keys():
            runs.update(by_node[self._columns[name]])
        return quantile(runs, q)

    def step_std_ns(self, names: Iterable[str]) -> float | None:
        """The standard deviation of the time that a step spends in these nodes together; ns.

        None where there are no steps, or more than PAIRED nodes.
        """
        self._fold()
        if self._products is None or not self.steps:
            return None
        columns = [self._columns[name] for name in set(names) & self._columns.keys()]
        squares = self._products[np.ix_(columns, columns)].sum()
        return sqrt(max(squares, 0.0) / self.steps)  # rounding can leave it below 0

    def step_median_ns(self, names: Iterable[str]) -> float | None:
        """The median time that a step spends in these nodes together, by nearest rank; ns.

        Of many steps, one in so many is looked at. None where there are no steps, or more than
        PAIRED nodes.
        """
        self._fold()
        if not len(self._sample):
            return None
        columns = [self._columns[name] for name in set(names) & self._columns.keys()]
        times = np.sort(self._sample[:, columns].sum(axis=1, dtype=np.float64))
        return float(times[rank(0.5, len(times)) - 1])

    def total_ns(self) -> int:
        """The time of all runs of all nodes together."""
        self._fold()
        return int(self._total.sum())

    def stats(
        self,
        types: Mapping[str, str],
        devices: Mapping[str, str],
        requested_bytes: Mapping[str, int],
    ) -> tuple[NodeStats, ...]:
        """One NodeStats for each node that ran, in the order in which they were first seen."""
        buckets = self._runs()
        # A name without a type, such as _SOURCE, the executor's own start, is a node of no graph.
        return tuple(
            NodeStats(
                name=name,
                op=types[name],
                device=devices.get(name, ""),
                calls=int(self._count[column]),
                total_ns=int(self._total[column]),
                min_ns=int(self._least[column]),
                max_ns=int(self._most[column]),
                mean_ns=float(self._total[column] / self._count[column]),
                median_ns=quantile(buckets[column], 0.5),
                p95_ns=quantile(buckets[column], 0.95),
                start_ns=float(self._start[column] / self._count[column]),
                requested_bytes=requested_bytes.get(name, 0),
                std_ns=sqrt(self._squares[column] / self._count[column]),
            )
            for name, column in self._columns.items()
            if name in types
        )


def quantile(runs: Mapping[int, int], q: float) -> float:
    """The q-quantile of runs that were counted by bucket; ValueError where there are none."""
    if not runs:
        raise ValueError("there is no quantile of no runs")
    place = rank(q, sum(runs.values()))
    seen = 0
    for bucket in sorted(runs):
        seen += runs[bucket]
        if seen >= place:
            break
    # The middle of the bucket, in relative terms.
    return 2 * GROWTH ** (bucket - 1) / (GROWTH + 1) if bucket else 0.0
