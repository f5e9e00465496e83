"""Op runs: the one container for them, with NumPy columns.

`OpRuns` is a sequence of `OpRun`, each of which is made when it is asked for. Code that adds up
many runs takes the columns instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, overload

import numpy as np

from tflab.records.timed import OpRun

PORTION = 4096  # runs that are made into records at once

Kind = tuple[str, str, str]  # name, op and device of a run


@dataclass(frozen=True, eq=False)
class Allocations:
    """The allocations and releases of runs, in the order of the runs."""

    allocators: Sequence[str]
    run: np.ndarray  # the index of its run, rising
    us: np.ndarray
    bytes: np.ndarray  # negative if released
    allocator: np.ndarray  # an index in `allocators`

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.run, self.us, self.bytes, self.allocator

    def of_runs(self, places: np.ndarray) -> Allocations:
        """Return the allocations of the runs at these places, which get the numbers 0, 1, 2, ..."""
        first = self.run.searchsorted(places)
        counts = self.run.searchsorted(places, "right") - first
        begin = np.cumsum(counts) - counts
        rows = np.repeat(first - begin, counts) + np.arange(counts.sum())
        run: np.ndarray = np.repeat(np.arange(len(places)), counts)
        return Allocations(self.allocators, run, *(column[rows] for column in self.columns[1:]))


class OpRuns(Sequence[OpRun]):
    """Op runs in columns: each array has one element for each run."""

    def __init__(
        self,
        kinds: Sequence[Kind],
        allocations: Allocations,
        kind: np.ndarray,
        step: np.ndarray,
        start_ns: np.ndarray,
        duration_ns: np.ndarray,
        requested_bytes: np.ndarray,
    ) -> None:
        self.kinds = kinds  # may contain kinds that no run has
        self.kind = kind  # an index in `kinds`
        self.step = step
        self.start_ns = start_ns
        self.duration_ns = duration_ns
        self.requested_bytes = requested_bytes
        self.allocations = allocations

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.kind, self.step, self.start_ns, self.duration_ns, self.requested_bytes

    def __len__(self) -> int:
        return len(self.kind)

    @overload
    def __getitem__(self, index: int) -> OpRun: ...

    @overload
    def __getitem__(self, index: slice) -> OpRuns: ...

    def __getitem__(self, index: int | slice) -> OpRun | OpRuns:
        places = np.arange(len(self))[index]
        if isinstance(index, slice):
            return self.take(places)
        (run,) = self.take(places[None])
        return run

    def __iter__(self) -> Iterator[OpRun]:
        for begin in range(0, len(self), PORTION):
            own = self[begin : begin + PORTION]
            columns = [column.tolist() for column in own.columns]
            of = own.allocations
            names = [of.allocators[number] for number in of.allocator.tolist()]
            rows = list(zip(of.us.tolist(), of.bytes.tolist(), names, strict=True))
            first: np.ndarray = np.asarray(of.run.searchsorted(np.arange(len(own) + 1)))
            allocations = (tuple(rows[one:next_]) for one, next_ in pairwise(first.tolist()))
            for kind, step, *values in zip(*columns, allocations, strict=True):
                yield OpRun(step, *self.kinds[kind], *values)

    def __eq__(self, other: object) -> bool:
        """Return whether these are the same runs, in columns or not."""
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def take(self, places: np.ndarray) -> OpRuns:
        """Return the runs at these places, in this order."""
        columns = (column[places] for column in self.columns)
        return OpRuns(self.kinds, self.allocations.of_runs(places), *columns)

    def where(self, wanted: np.ndarray) -> OpRuns:
        """Return the runs for which `wanted` is true; no copy if it is true for all."""
        return self if wanted.all() else self.take(np.flatnonzero(wanted))

    def of_kinds(self, wanted: Callable[[Kind], bool]) -> OpRuns:
        """Return the runs whose kind is wanted."""
        return self.where(np.fromiter(map(wanted, self.kinds), bool, len(self.kinds))[self.kind])

    def by_step(self) -> dict[int, OpRuns]:
        """Return the runs of each step, in the order in which they are given."""
        steps, first, counts = np.unique(self.step, return_index=True, return_counts=True)
        places = np.split(np.argsort(self.step, kind="stable"), np.cumsum(counts)[:-1])
        return {int(steps[at]): self.take(places[at]) for at in np.argsort(first).tolist()}

    def by_device(self) -> dict[str, OpRuns]:
        """Return the runs of each device, in the order in which they are given."""
        devices = Index()
        numbers = renumbered([device for *_, device in self.kinds], devices)[self.kind]
        names = [*devices]
        return {names[own]: self.where(numbers == own) for own in in_order(numbers)}

    def kinds_in_order(self) -> list[int]:
        """Return the kinds that have runs, in the order of the first runs."""
        return in_order(self.kind)


class Index(dict[Any, int]):
    """Numbers for keys: 0, 1, 2, ..., in the order in which the keys are first looked up."""

    def __missing__(self, key: object) -> int:
        self[key] = number = len(self)
        return number


def of(runs: Iterable[OpRun]) -> OpRuns:
    """Return the runs in columns."""
    if isinstance(runs, OpRuns):
        return runs
    rows = list(runs)
    step, name, op, device, *numbers, allocated = zip(*rows, strict=True) if rows else [()] * 8
    kinds, allocators = Index(), Index()
    kind = [kinds[key] for key in zip(name, op, device, strict=True)]
    events = [
        (place, us, size, allocators[allocator])
        for place, own in enumerate(allocated)
        for us, size, allocator in own
    ]
    columns = np.array([kind, step, *numbers], np.int64)
    by_event = np.array(events, np.int64).reshape(-1, 4).T.copy()
    return OpRuns([*kinds], Allocations([*allocators], *by_event), *columns)


def concatenated(parts: Sequence[OpRuns]) -> OpRuns:
    """Return all runs, one part after the other."""
    kinds, allocators = Index(), Index()
    rows, events, count = [of(()).columns], [of(()).allocations.columns], 0
    for part in parts:
        own = part.allocations
        rows.append((renumbered(part.kinds, kinds)[part.kind], *part.columns[1:]))
        numbers = renumbered(own.allocators, allocators)[own.allocator]
        events.append((own.run + count, own.us, own.bytes, numbers))
        count += len(part)
    columns = map(np.concatenate, zip(*rows, strict=True))
    allocated = map(np.concatenate, zip(*events, strict=True))
    return OpRuns([*kinds], Allocations([*allocators], *allocated), *columns)


def renumbered(names: Sequence[object], numbers: Index) -> np.ndarray:
    """Return, for each name, its number in an index."""
    return np.array([numbers[name] for name in names], np.int64)


def in_order(numbers: np.ndarray) -> list[int]:
    """Return the different numbers, in the order in which they come first."""
    different, first = np.unique(numbers, return_index=True)
    return list(different[np.argsort(first)].tolist())


def sums(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Return the exact sum of the values of each of `count` groups, as integers."""
    totals: np.ndarray = np.zeros(count, np.int64)
    np.add.at(totals, groups, values)
    return totals
