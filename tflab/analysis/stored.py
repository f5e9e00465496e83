"""Stored: op runs of more steps than fit into memory, in a temporary file.

The file has the columns of each step one after the other. A step that is asked for is mapped into
memory, so only the columns that are used are read, and they leave memory with the step.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

from tflab.analysis.columns import Kind, OpRuns, columns, concatenate
from tflab.errors import TflabError
from tflab.records.timed import Capture, OpRun, StepTime

IN_MEMORY = 1 << 26  # bytes of columns; if there are more, they go into the file
PORTION = 1 << 17  # op runs, at least, of a portion
APART_NS = 1_000  # between portions: allocations are rounded down to a microsecond
ALIGNED = 8  # bytes: each column begins at a multiple
MAPPED = 1 << 20  # bytes of a step that is mapped into memory; a smaller one is read
TABLES = ("kinds", "allocators")  # which all steps share
COLUMNS = tuple(one.name for one in fields(OpRuns) if one.name not in TABLES)
TYPES = {name: np.dtype(np.int64) for name in COLUMNS} | dict.fromkeys(
    ("kind", "event_allocator"), np.dtype(np.int32)
)
OF_EVENTS = ("event_us", "event_bytes", "event_allocator")  # the others are of runs


class Store:
    """The columns of steps. Step numbers are those of the runs."""

    def __init__(self) -> None:
        self.lengths: dict[int, int] = {}  # runs of each step
        self._in_memory: dict[int, OpRuns] = {}
        self._in_file: dict[int, tuple[int, int]] = {}  # the step's place, and its allocations
        self._bytes = 0  # in memory
        self._file: Any = None  # opened when it is needed, and closed with the store

    def add(self, runs: OpRuns) -> None:
        """Add a step. Raises TflabError if the temporary file cannot be written."""
        step = int(runs.step[0])
        self.lengths[step] = len(runs)
        self._in_memory[step] = runs
        self._bytes += sum(getattr(runs, name).nbytes for name in COLUMNS)
        if self._bytes > IN_MEMORY:
            try:
                self._write()
            except OSError as error:
                raise TflabError(
                    f"The op runs cannot be written to '{tempfile.gettempdir()}': "
                    f"{error.strerror}. Set TMPDIR to a folder with more space."
                ) from error

    def _write(self) -> None:
        """Write what is in memory."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tflab-")  # noqa: SIM115
        at = self._file.seek(0, 2)
        for step, runs in self._in_memory.items():
            self._in_file[step] = at, len(runs.event_us)
            for name in COLUMNS:
                column = np.ascontiguousarray(getattr(runs, name), TYPES[name])
                padding = bytes(-column.nbytes % ALIGNED)
                at += self._file.write(column.view(np.uint8).data) + self._file.write(padding)
        self._file.flush()
        self._in_memory.clear()
        self._bytes = 0

    def columns(self, step: int) -> dict[str, np.ndarray]:
        """The columns of a step by name."""
        if step in self._in_memory:
            return {name: getattr(self._in_memory[step], name) for name in COLUMNS}
        begin, events = self._in_file[step]
        runs = self.lengths[step]
        lengths = dict.fromkeys(COLUMNS, runs) | dict.fromkeys(OF_EVENTS, events)
        lengths["first"] = runs + 1
        offsets, size = {}, 0
        for name in COLUMNS:
            offsets[name] = size
            size += -(-lengths[name] * TYPES[name].itemsize // ALIGNED) * ALIGNED
        content: Any
        if size < MAPPED:
            self._file.seek(begin)
            content = self._file.read(size)
        else:
            content = np.memmap(self._file, np.uint8, "r", begin, size)
        return {
            name: np.ndarray(lengths[name], TYPES[name], content, offsets[name]) for name in COLUMNS
        }


@dataclass(frozen=True, eq=False)
class StoredRuns(Sequence[OpRun]):
    """Op runs in a store: a sequence of `OpRun` records like `OpRuns`, with one step in memory at a
    time."""

    kinds: Sequence[Kind]
    allocators: Sequence[str]
    store: Store = field(repr=False)
    wanted: Callable[[Kind], bool] | None = None  # None for the runs of all kinds

    def step(self, number: int) -> OpRuns:
        runs = OpRuns(self.kinds, self.allocators, **self.store.columns(number))
        return runs if self.wanted is None else runs.where(self._wanted_kinds[runs.kind])

    @cached_property
    def _wanted_kinds(self) -> np.ndarray:
        """Whether each kind is wanted: the same in all steps."""
        return np.fromiter(map(self.wanted or bool, self.kinds), bool, len(self.kinds))

    def by_step(self) -> Mapping[int, OpRuns]:
        """The runs of each step, read when they are asked for."""
        return StoredSteps(self)

    def of_kinds(self, wanted: Callable[[Kind], bool]) -> StoredRuns:
        """The runs whose kind is wanted. Steps may have none."""
        before = self.wanted
        if before is None:
            return replace(self, wanted=wanted)
        return replace(self, wanted=lambda kind: before(kind) and wanted(kind))

    def joined(self) -> OpRuns:
        """All runs, in memory."""
        return concatenate(list(self.by_step().values()))

    def __len__(self) -> int:
        if self.wanted is None:
            return sum(self.store.lengths.values())
        return sum(map(len, self.by_step().values()))

    def __iter__(self) -> Iterator[OpRun]:
        for runs in self.by_step().values():
            yield from runs

    @overload
    def __getitem__(self, index: int) -> OpRun: ...

    @overload
    def __getitem__(self, index: slice) -> OpRuns: ...

    def __getitem__(self, index: int | slice) -> OpRun | OpRuns:
        return self.joined()[index]

    def __eq__(self, other: object) -> bool:
        return self.joined() == other

    __hash__ = None  # type: ignore[assignment]


class StoredSteps(Mapping[int, OpRuns]):
    """The steps of stored runs by their number."""

    def __init__(self, runs: StoredRuns) -> None:
        self._runs = runs

    def __getitem__(self, step: int) -> OpRuns:
        if step not in self._runs.store.lengths:
            raise KeyError(step)
        return self._runs.step(step)

    def __iter__(self) -> Iterator[int]:
        return iter(self._runs.store.lengths)

    def __len__(self) -> int:
        return len(self._runs.store.lengths)


def portions(capture: Capture) -> Iterator[list[Capture]]:
    """A capture in portions that follow one another in time, each of whole steps; whole if it is
    in memory or empty."""
    if not isinstance(capture.runs, StoredRuns) or not capture.steps:
        yield [capture]
        return
    in_step, steps, parts, end = capture.runs.by_step(), list[StepTime](), list[OpRuns](), 0
    for step in sorted(capture.steps, key=lambda step: step.start_ns):
        if sum(map(len, parts)) >= PORTION and step.start_ns - end > APART_NS:
            yield [replace(capture, steps=tuple(steps), runs=concatenate(parts))]
            steps, parts = [], []
        steps.append(step)
        parts.append(in_step[step.step])
        end = max(end, step.start_ns + step.wall_ns)
    yield [replace(capture, steps=tuple(steps), runs=concatenate(parts))]


def in_columns(runs: Iterable[OpRun]) -> OpRuns | StoredRuns:
    """The runs in columns, in memory if they were."""
    return runs if isinstance(runs, StoredRuns) else columns(runs)


def in_memory(runs: Iterable[OpRun]) -> OpRuns:
    """All runs in columns."""
    return runs.joined() if isinstance(runs, StoredRuns) else columns(runs)


def in_steps(runs: Iterable[OpRun]) -> Mapping[int, OpRuns]:
    """The runs of each step in columns. Steps may be empty if the runs are stored."""
    return in_columns(runs).by_step()
