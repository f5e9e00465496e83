"""Columns: op runs as NumPy arrays, for traces of millions of them.

`OpRuns` is a sequence of `OpRun` records that makes each record when it is asked for. Whatever adds
up many runs takes the arrays instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from tflab.records.timed import OpRun

PORTION = 4096  # runs that are made into records at once
EXACT = 2**21  # numbers that are added as floats at once

Kind = tuple[str, str, str]  # name, op and device of a run


@dataclass(frozen=True, eq=False)
class OpRuns(Sequence[OpRun]):
    """Op runs in columns: each array has one element for each run, or for each allocation."""

    kinds: Sequence[Kind]  # may contain kinds that no run has
    allocators: Sequence[str]
    kind: np.ndarray  # int32, an index in `kinds`
    step: np.ndarray  # int64, like all others that follow
    start_ns: np.ndarray
    duration_ns: np.ndarray
    requested_bytes: np.ndarray
    first: np.ndarray  # index of a run's first allocation; one element more than there are runs
    event_us: np.ndarray
    event_bytes: np.ndarray
    event_allocator: np.ndarray  # int32, an index in `allocators`

    def __len__(self) -> int:
        return len(self.kind)

    @overload
    def __getitem__(self, index: int) -> OpRun: ...

    @overload
    def __getitem__(self, index: slice) -> OpRuns: ...

    def __getitem__(self, index: int | slice) -> OpRun | OpRuns:
        if isinstance(index, slice):
            begin, end, stride = index.indices(len(self))
            if stride == 1:
                return self.between(begin, max(begin, end))
            return self.take(np.arange(begin, end, stride))
        place = range(len(self))[index]
        return next(self.portion(place, place + 1))

    def __iter__(self) -> Iterator[OpRun]:
        for begin in range(0, len(self), PORTION):
            yield from self.portion(begin, min(begin + PORTION, len(self)))

    def portion(self, begin: int, end: int) -> Iterator[OpRun]:
        """The records of the runs from `begin` to `end`."""
        first = self.first[begin : end + 1].tolist()
        events = list(self.events(first[0], first[-1]))
        columns = (self.kind, self.step, self.start_ns, self.duration_ns, self.requested_bytes)
        values = zip(*(column[begin:end].tolist() for column in columns), strict=True)
        for place, (kind, step, start_ns, duration_ns, requested) in enumerate(values):
            own = tuple(events[first[place] - first[0] : first[place + 1] - first[0]])
            name, op, device = self.kinds[kind]
            yield OpRun(step, name, op, device, start_ns, duration_ns, requested, own)

    def events(self, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Allocations as in an OpRun: time in us, bytes, allocator."""
        columns = (self.event_us, self.event_bytes, self.event_allocator)
        for us, size, allocator in zip(*(one[begin:end].tolist() for one in columns), strict=True):
            yield us, size, self.allocators[allocator]

    def __eq__(self, other: object) -> bool:
        """Whether these are the same runs, in columns or not."""
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(OpRun.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def between(self, begin: int, end: int) -> OpRuns:
        """The runs from `begin` to `end`, without a copy."""
        runs = slice(begin, end)
        events = slice(int(self.first[begin]), int(self.first[end]))
        return OpRuns(
            self.kinds,
            self.allocators,
            self.kind[runs],
            self.step[runs],
            self.start_ns[runs],
            self.duration_ns[runs],
            self.requested_bytes[runs],
            self.first[begin : end + 1] - events.start,
            self.event_us[events],
            self.event_bytes[events],
            self.event_allocator[events],
        )

    def take(self, places: np.ndarray) -> OpRuns:
        """The runs at these places, in this order."""
        counts = np.diff(self.first)[places]
        first = np.concatenate([[0], np.cumsum(counts)])
        events = np.repeat(self.first[places] - first[:-1], counts) + np.arange(first[-1])
        return OpRuns(
            self.kinds,
            self.allocators,
            self.kind[places],
            self.step[places],
            self.start_ns[places],
            self.duration_ns[places],
            self.requested_bytes[places],
            first,
            self.event_us[events],
            self.event_bytes[events],
            self.event_allocator[events],
        )

    def without_allocations(self) -> OpRuns:
        none: np.ndarray = np.zeros(0, np.int64)
        return replace(
            self,
            first=np.zeros(len(self) + 1, np.int64),
            event_us=none,
            event_bytes=none,
            event_allocator=none.astype(np.int32),
        )

    def where(self, wanted: np.ndarray) -> OpRuns:
        """The runs for which the elements are true; without a copy if all are."""
        return self if wanted.all() else self.take(np.flatnonzero(wanted))

    def of_kinds(self, wanted: Callable[[Kind], bool]) -> OpRuns:
        """The runs whose kind is wanted."""
        return self.where(np.fromiter(map(wanted, self.kinds), bool, len(self.kinds))[self.kind])

    def by_step(self) -> dict[int, OpRuns]:
        """The runs of each step, in the order in which they are given; without a copy if they are
        given step by step."""
        edges = np.flatnonzero(np.diff(self.step, prepend=-1, append=-1))
        if len(edges) == len(np.unique(self.step[edges[:-1]])) + 1:
            spans = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            return {int(self.step[begin]): self.between(begin, end) for begin, end in spans}
        steps, first = np.unique(self.step, return_index=True)
        in_order = steps[np.argsort(first)].tolist()
        return {step: self.where(self.step == step) for step in in_order}

    def on_device(self, device: str) -> OpRuns:
        return self.of_kinds(lambda kind: kind[2] == device)

    def by_device(self) -> dict[str, OpRuns]:
        """The runs of each device, in the order in which they are given."""
        devices = dict.fromkeys(self.kinds[kind][2] for kind in self.kinds_in_order())
        if len(devices) == 1:
            return dict.fromkeys(devices, self)
        return {device: self.on_device(device) for device in devices}

    def kinds_in_order(self) -> list[int]:
        """The kinds that have runs, in the order of the first runs."""
        return in_order(self.kind, len(self.kinds))

    def event_run(self) -> np.ndarray:
        """For each allocation, the index of its run."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))


class Pairs(Sequence[tuple[int, int]]):
    """Pairs of numbers from two arrays of the same length."""

    def __init__(self, first: np.ndarray, second: np.ndarray) -> None:
        self.first, self.second = first, second

    def __len__(self) -> int:
        return len(self.first)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, index: slice) -> Pairs: ...

    def __getitem__(self, index: int | slice) -> tuple[int, int] | Pairs:
        if isinstance(index, slice):
            return Pairs(self.first[index], self.second[index])
        return int(self.first[index]), int(self.second[index])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.first.tolist(), self.second.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        """Whether these are the same pairs, in arrays or not."""
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Index(dict[Kind, int]):
    """Numbers for kinds, in the order in which they are asked for."""

    def __missing__(self, kind: Kind) -> int:
        self[kind] = number = len(self)
        return number


def columns(runs: Iterable[OpRun]) -> OpRuns:
    """The runs in columns."""
    if isinstance(runs, OpRuns):
        return runs
    runs = list(runs)
    kinds = Index()
    kind = [kinds[run.name, run.op, run.device] for run in runs]
    events = [event for run in runs for event in run.allocations]
    allocators = {name: place for place, name in enumerate(dict.fromkeys(e[2] for e in events))}
    return OpRuns(
        list(kinds),
        list(allocators),
        np.array(kind, np.int32),
        integers(run.step for run in runs),
        integers(run.start_ns for run in runs),
        integers(run.duration_ns for run in runs),
        integers(run.requested_bytes for run in runs),
        np.cumsum([0, *(len(run.allocations) for run in runs)]),
        integers(us for us, *_ in events),
        integers(size for _, size, _ in events),
        np.array([allocators[name] for *_, name in events], np.int32),
    )


def concatenate(parts: Sequence[OpRuns]) -> OpRuns:
    """Runs one after the other, all of which have the same `kinds` and `allocators`."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return columns(())
    shifts = np.cumsum([0, *(len(part.event_us) for part in parts)])
    firsts = (part.first[:-1] + shift for part, shift in zip(parts, shifts, strict=False))

    def column(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])

    return OpRuns(
        parts[0].kinds,
        parts[0].allocators,
        column("kind"),
        column("step"),
        column("start_ns"),
        column("duration_ns"),
        column("requested_bytes"),
        np.concatenate([*firsts, shifts[-1:]]),
        column("event_us"),
        column("event_bytes"),
        column("event_allocator"),
    )


def in_order(numbers: np.ndarray, count: int) -> list[int]:
    """The different numbers below `count`, in the order in which they come first."""
    first: np.ndarray = np.full(count, len(numbers))
    places = np.arange(len(numbers))
    first[numbers[::-1]] = places[::-1]  # of several places of a number, the last assigned
    return list(np.argsort(first)[: np.count_nonzero(first < len(numbers))].tolist())


def integers(values: Iterable[int]) -> np.ndarray:
    return np.fromiter(values, np.int64)


def sums(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """The exact sum of the values of each of `count` groups, as integers."""
    # bincount adds floats, which are exact up to 2**53.
    if values.min(initial=0) >= 0 and values.sum(dtype=float) < 2**53:
        return np.bincount(groups, values, count).astype(np.int64)
    # Otherwise, the halves of numbers below 2**62 are exact in sums of up to 2**22 numbers.
    totals: np.ndarray = np.zeros(count, np.int64)
    for begin in range(0, len(groups), EXACT):
        part, own = values[begin : begin + EXACT], groups[begin : begin + EXACT]
        high = np.bincount(own, part >> 31, count).astype(np.int64)
        totals += (high << 31) + np.bincount(own, part & (2**31 - 1), count).astype(np.int64)
    return totals
