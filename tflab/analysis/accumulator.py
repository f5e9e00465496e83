"""Accumulator: statistics of a measurement that is too long to keep its runs, updated step by step.

Count and sum of the runs of each node are exact. Quantiles come from a sketch that counts durations
in buckets whose bounds grow by 2 %, so every quantile is within 1 % of the true one
(DDSketch: Masson, Rim and Lee 2019, "a fast and fully-mergeable quantile sketch", which uses
another rank). Quantiles are nearest-rank, like those of `op_stats`.

Deviations are exact but for rounding. The squares of each batch of runs are taken around the
batch's mean, and batches are combined as Chan, Golub and LeVeque do ("Updating formulae and a
pairwise algorithm for computing sample variances", 1979), so nothing overflows or cancels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt

import numpy as np

from tflab.analysis.statistics import rank
from tflab.records.measured import NodeStats

ERROR = 0.01  # relative error of a quantile
GROWTH = (1 + ERROR) / (1 - ERROR)  # ratio of a bucket's bounds
CHUNK = 16384  # runs that are folded at once, because NumPy is cheap in bulk
PAIRED = 1000  # largest number of nodes whose step times are compared in pairs: 8 MB
SAMPLED = 2**19  # step times of nodes that are kept for medians: 2 MB


class Accumulator:
    """Statistics of the runs of every node: `add` each step, then call `stats`."""

    def __init__(self) -> None:
        self.steps = 0
        self._columns: dict[str, int] = {}  # node -> its index in the arrays
        self._names: list[str] = []  # runs that are not folded yet
        self._starts: list[int] = []
        self._durations: list[int] = []
        self._lengths: list[int] = []  # the number of those runs in each step
        self._folded = 0  # steps
        self._count: np.ndarray = np.zeros(0, np.int64)
        self._total: np.ndarray = np.zeros(0, np.int64)
        self._start: np.ndarray = np.zeros(0, np.int64)
        self._squares: np.ndarray = np.zeros(0)  # of the durations, around their mean
        # The same for the step times of any two nodes; None if there are too many nodes
        self._products: np.ndarray | None = np.zeros((0, 0))
        # Step times of all nodes in every `_stride`-th step, for the medians of sums of nodes
        self._sample: np.ndarray = np.zeros((0, 0), np.float32)
        self._stride = 1
        self._buckets: dict[int, int] = {}  # (node, bucket) as one number -> number of runs
        self._by_node: dict[int, dict[int, int]] | None = None  # the same by node, made on demand

    def add(self, names: list[str], starts_ns: list[int], durations_ns: list[int]) -> None:
        """Add one step: for each run its node, its start since the start of the step, and its
        duration."""
        self.steps += 1
        self._names += names
        self._starts += starts_ns
        self._durations += durations_ns
        self._lengths.append(len(names))
        if len(self._names) >= CHUNK:
            self._fold()

    def _fold(self) -> None:
        """Fold the waiting runs. Ctrl-C may come at any time, so everything is computed before it
        is stored."""
        if not self._lengths:
            return
        places = list(map(self._columns.get, self._names))
        if None in places:
            for name in dict.fromkeys(self._names):
                self._columns.setdefault(name, len(self._columns))
            places = list(map(self._columns.get, self._names))
        count, total, start = self._grown(len(self._columns) - len(self._count))
        columns = np.array(places, np.int64)
        durations = np.array(self._durations, np.int64)
        np.add.at(count, columns, 1)
        np.add.at(total, columns, durations)
        np.add.at(start, columns, np.array(self._starts, np.int64))
        # Bucket 0 is for durations of 0, which have no logarithm.
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
        self._by_node = None
        self._buckets.update(filled)
        self._squares, self._products = squares, products
        self._sample, self._stride = sample, stride
        self._folded += len(self._lengths)
        self._names, self._starts, self._durations, self._lengths = [], [], [], []

    def _squares_with(self, columns: np.ndarray, durations: np.ndarray) -> np.ndarray:
        """For each node, the sum of the squares of all its durations around their mean."""
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
        """A row for each waiting step: the time of every node in it, 0 if it did not run. None if
        there are too many nodes."""
        nodes, steps = len(self._columns), len(self._lengths)
        if nodes > PAIRED:
            return None
        places = np.repeat(np.arange(steps), self._lengths) * nodes + columns
        return np.bincount(places, durations, steps * nodes).reshape(steps, nodes)

    def _products_with(self, times: np.ndarray | None) -> np.ndarray | None:
        """The products of the step times of any two nodes, with the waiting steps included."""
        if times is None or self._products is None:
            return None
        (new, nodes), old = times.shape, self._folded
        more = nodes - len(self._products)
        mean = times.mean(axis=0)
        apart = mean - np.pad(self._total, (0, more)) / max(old, 1)
        times = times - mean
        between = np.outer(apart, apart) * (old * new / (old + new))
        # Not with `@`: the threads of a BLAS would spin, which slows down the next step.
        within = np.einsum("si,sj->ij", times, times)
        return np.pad(self._products, (0, more)) + within + between

    def _sample_with(self, times: np.ndarray | None) -> tuple[np.ndarray, int]:
        """The sample with the waiting steps included, thinned until it is small enough, and its
        stride."""
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
        """Copies of the arrays with `more` further nodes."""
        return (
            np.pad(self._count, (0, more)),
            np.pad(self._total, (0, more)),
            np.pad(self._start, (0, more)),
        )

    def _runs(self) -> dict[int, dict[int, int]]:
        """For each node that ran, its number of runs in each bucket."""
        self._fold()
        if self._by_node is None:
            self._by_node = {}
            for key, runs in self._buckets.items():
                self._by_node.setdefault(key >> 16, {})[key & 0xFFFF] = runs
        return self._by_node

    def quantile(self, names: Iterable[str], q: float) -> float:
        """The q-quantile of the durations of all runs of these nodes, by nearest rank, within 1 %;
        ns.

        Raises ValueError if none of them ever ran.
        """
        by_node = self._runs()
        runs: Counter[int] = Counter()
        for name in set(names) & self._columns.keys():
            runs.update(by_node[self._columns[name]])
        return quantile(runs, q)

    def step_std_ns(self, names: Iterable[str]) -> float | None:
        """The standard deviation of the time that a step spends in these nodes together; ns.

        None if there are no steps, or more than PAIRED nodes.
        """
        self._fold()
        if self._products is None or not self.steps:
            return None
        columns = [self._columns[name] for name in set(names) & self._columns.keys()]
        squares = self._products[np.ix_(columns, columns)].sum()
        return sqrt(max(squares, 0.0) / self.steps)  # rounding can make it negative

    def step_median_ns(self, names: Iterable[str]) -> float | None:
        """The median time that a step spends in these nodes together, by nearest rank; ns.

        For many steps, it is the median of a sample. None if there are no steps, or more than
        PAIRED nodes.
        """
        self._fold()
        if not len(self._sample):
            return None
        columns = [self._columns[name] for name in set(names) & self._columns.keys()]
        times = np.sort(self._sample[:, columns].sum(axis=1, dtype=np.float64))
        return float(times[rank(0.5, len(times)) - 1])

    def round_medians_ns(self, names: Iterable[str], rounds: Sequence[range]) -> tuple[float, ...]:
        """Return, for each round of steps, the median time that a step spends in these nodes
        together; ns. It is 0 if they did not run.

        For many steps, it is the median of a sample. Rounds without a step are left out, and with
        more than PAIRED nodes all are.
        """
        self._fold()
        if not len(self._sample):
            return ()
        columns = [self._columns[name] for name in set(names) & self._columns.keys()]
        times = self._sample[:, columns].sum(axis=1, dtype=np.float64)
        bounds = (
            (-(-steps.start // self._stride), -(-steps.stop // self._stride)) for steps in rounds
        )
        return tuple(
            float(np.median(times[start:stop])) for start, stop in bounds if len(times[start:stop])
        )

    def total_ns(self) -> int:
        """The total time of all runs of all nodes."""
        self._fold()
        return int(self._total.sum())

    def stats(
        self,
        types: Mapping[str, str],
        devices: Mapping[str, str],
        requested_bytes: Mapping[str, int],
    ) -> tuple[NodeStats, ...]:
        """One NodeStats for each node that ran, in the order of their first runs."""
        buckets = self._runs()
        # A name without a type, such as the executor's own _SOURCE, is not a node of the graph.
        return tuple(
            NodeStats(
                name=name,
                op=types[name],
                device=devices.get(name, ""),
                calls=int(self._count[column]),
                total_ns=int(self._total[column]),
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
    """The q-quantile of runs that were counted by bucket. Raises ValueError if there are none."""
    if not runs:
        raise ValueError("without runs there is no quantile")
    place = rank(q, sum(runs.values()))
    seen = 0
    for bucket in sorted(runs):
        seen += runs[bucket]
        if seen >= place:
            break
    # The middle of the bucket, on a logarithmic scale
    return 2 * GROWTH ** (bucket - 1) / (GROWTH + 1) if bucket else 0.0
