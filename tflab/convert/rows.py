"""Rows: the rows of a device in a trace, read into columns.

A parser makes an object for each row and for each allocation in it, which takes several
microseconds a row. Two rules of the format avoid this
(https://protobuf.dev/programming-guides/encoding/#last-one-wins):

- Where a single message stands several times, a parser merges them, so what is repeated in them
  lines up. `MergedRows` declares the rows as one message and its fields as repeated: names, labels,
  starts and durations are columns.
- A parser keeps fields that are not declared as they are, in their order. These are the start of a
  row in microseconds, and its memory. So the allocations of a row are the bytes from its start to
  the next one.

Rows that do not line up are read one by one: those of old traces and of GPUs, without nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tflab.analysis import columns
from tflab.analysis.columns import Index, Kind, OpRuns
from tflab.convert import decoded, protos
from tflab.runtime import trace

MOST = 2**63 - 1  # a number that a damaged file makes larger becomes this

# Tags in what a parser keeps of rows (the number of a field times 8, and its wire type)
START, MEMORY = 0x10, 0x32  # of a row
NAME, RECORD = 0x0A, 0x32  # of its memory, for each allocator
MOMENT = 0x08  # of a record; its size follows
MOMENT_BYTES = 8  # of a time in microseconds between 1987 and 4253
SIZE_BYTES = 10  # at most
WORD = 8  # bytes that are read at once
# For so many bytes of a word, those bits of them that count
COUNTING: np.ndarray = np.array(
    [sum(0x7F << 8 * byte for byte in range(length)) for length in range(WORD + 1)], np.uint64
)
# How the bits of a word move together: those that stay, and how far the others move
STAY = ((0x007F007F007F007F, 1), (0x00003FFF00003FFF, 2), (0x000000000FFFFFFF, 4))


class Tables:
    """The kinds of op runs and the allocators of a recording, which all its columns share."""

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.allocators: list[str] = []
        self._kinds = Index()
        self._allocators: dict[bytes, int] = {}
        self._rows: dict[str, KindsOfRows] = {}

    def rows(self, device: str, words: decoded.Vocabulary) -> KindsOfRows:
        """The kinds of the rows of a device; most rows recur in the next step."""
        if device not in self._rows:
            self._rows[device] = KindsOfRows(device, words, self)
        return self._rows[device]

    def kind(self, name: str, op: str, device: str) -> int:
        number = self._kinds[name, op, device]
        if number == len(self.kinds):
            self.kinds.append((name, op, device))
        return number

    def allocator(self, raw: bytes, names: decoded.NameTexts) -> int:
        if raw not in self._allocators:
            self._allocators[raw] = len(self.allocators)
            self.allocators.append(names[raw])
        return self._allocators[raw]


class KindsOfRows(dict[tuple[bytes, bytes], int]):
    """The kind of a row by its name and its label."""

    def __init__(self, device: str, words: decoded.Vocabulary, tables: Tables) -> None:
        self._device, self._labels, self._tables = device, words.labels(device), tables

    def __missing__(self, row: tuple[bytes, bytes]) -> int:
        self[row] = number = self._tables.kind(*self._labels[row], self._device)
        return number


def op_runs(
    step: int,
    device: str,
    pieces: Iterable[protos.Piece],
    words: decoded.Vocabulary,
    tables: Tables,
) -> OpRuns:
    """The rows of one device in one step, as op runs. Raises DamagedError."""
    kinds = tables.rows(device, words)
    parts = []
    for data, merged in pieces:
        part = by_column(step, merged.rows, kinds, words, tables)
        if part is None:
            part = one_by_one(step, protos.rows(data), kinds, words, tables)
        parts.append(part)
    return columns.concatenate(parts or [one_by_one(step, [], kinds, words, tables)])


# By column


def by_column(
    step: int, rows: Any, kinds: KindsOfRows, words: decoded.Vocabulary, tables: Tables
) -> OpRuns | None:
    """The rows as op runs; None if their fields do not line up."""
    names, labels = rows.node_name[:], rows.timeline_label[:]
    starts, spans = rows.all_start_nanos[:], rows.all_end_rel_nanos[:]
    count = len(names)
    if not count == len(labels) == len(starts) == len(spans):
        return None
    for field in rows.DESCRIPTOR.fields:
        rows.ClearField(field.name)
    found = allocations(rows.SerializeToString(), count)
    if found is None:
        return None
    run, us, size, allocator, names_of = found
    numbers = np.array([tables.allocator(name, words.names) for name in names_of], np.int32)
    return OpRuns(
        tables.kinds,
        tables.allocators,
        np.fromiter(map(kinds.__getitem__, zip(names, labels, strict=True)), np.int32, count),
        np.full(count, step, np.int64),
        np.array(starts, np.int64),
        np.array(spans, np.int64),
        columns.sums(run, np.maximum(size, 0), count),
        np.asarray(run.searchsorted(np.arange(count + 1))),
        us,
        size,
        numbers[allocator],
    )


def allocations(
    kept: bytes, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[bytes]] | None:
    """The allocations of this number of rows: of each its row, its time in us, its bytes and its
    allocator, as an index in the names of allocators that follow.

    `kept` are the start and the memory of each row, one after the other. None if it has anything
    else, or memory without single allocations, as old traces have it.
    """
    data = np.frombuffer(kept + bytes(2 * SIZE_BYTES), np.uint8)
    # Text is ASCII here, so all that has the length of a time and follows one of these tags is one.
    last = np.flatnonzero(data[: len(kept)] < 128)
    times = np.flatnonzero(np.diff(last, prepend=-1) == MOMENT_BYTES)
    places, until = last[times] - MOMENT_BYTES, last[times] + 1
    starts, records = data[places] == START, places[data[places] == MOMENT]
    if np.count_nonzero(starts) != count:
        return None
    memory = memory_of_rows(data, until[starts], np.append(places[starts], len(kept))[1:])
    if memory is None or (data[memory + 1] >= 128).any():  # a name of a longer length
        return None
    used = np.searchsorted(memory, records) - 1
    if np.count_nonzero(np.diff(used, prepend=-1)) < len(memory):
        return None
    sizes = data[records - 1].astype(np.int64) - (2 + MOMENT_BYTES)  # bytes of each size, if any
    if (data[records - 2] != RECORD).any() or (sizes > SIZE_BYTES).any():
        return None
    allocators, names = allocators_of(kept, data, memory)
    return (
        np.asarray(places[starts].searchsorted(records)) - 1,
        numbers(data, records + 1, np.full(len(records), MOMENT_BYTES)),
        numbers(data, records + 2 + MOMENT_BYTES, sizes),
        allocators[used],
        names,
    )


def allocators_of(
    kept: bytes, data: np.ndarray, memory: np.ndarray
) -> tuple[np.ndarray, list[bytes]]:
    """For memory at these places, its allocator as an index in the names that follow."""
    lengths: np.ndarray = data[memory + 1].astype(np.int64)
    begin: np.ndarray = memory + 2
    end: np.ndarray = begin + lengths
    if len(memory) and (lengths == lengths[0]).all() and end.max() <= len(kept):
        letters = begin[:, None] + np.arange(lengths[0])
        if (data[letters] == data[letters[0]]).all():  # mostly
            return np.zeros(len(memory), np.int32), [kept[begin[0] : end[0]]]
    names: dict[bytes, int] = {}
    spans = zip(begin.tolist(), end.tolist(), strict=True)
    numbers = [names.setdefault(kept[begin:end], len(names)) for begin, end in spans]
    return np.array(numbers, np.int32), list(names)


def memory_of_rows(data: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray | None:
    """The places of the memory of each allocator in rows between these places, in their order; None
    if there is anything else between them."""
    found = []
    begin, rows = begin.copy(), np.flatnonzero(begin < end)
    while len(rows):
        at = begin[rows]
        size, more = data[at + 1].astype(np.int64), data[at + 2].astype(np.int64)
        two = size >= 128  # bytes of the length
        size = np.where(two, size % 128 + 128 * more, size)
        at += 2 + two
        if (data[begin[rows]] != MEMORY).any() or (two & (more >= 128)).any():
            return None
        found.append(at)
        begin[rows] = at + size
        if (begin[rows] > end[rows]).any() or (data[at] != NAME).any():
            return None
        rows = rows[begin[rows] < end[rows]]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *found]))


def numbers(data: np.ndarray, places: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers with these lengths in bytes at these places; 0 for a length of 0."""
    found: np.ndarray = np.zeros(len(places), np.uint64)
    from_byte: np.ndarray = np.ndarray(len(data) - WORD + 1, "<u8", data, strides=(1,))
    for word in range(-(-int(lengths.max(initial=0)) // WORD)):
        before = word * WORD
        bits = from_byte[places + before] & COUNTING[np.clip(lengths - before, 0, WORD)]
        for stay, nearer in STAY:
            bits = bits & stay | (bits & ~np.uint64(stay)) >> nearer
        found |= bits << 7 * before
    return found.view(np.int64)


# One by one


def one_by_one(
    step: int,
    rows: Sequence[Any],
    kinds: KindsOfRows,
    words: decoded.Vocabulary,
    tables: Tables,
) -> OpRuns:
    """These rows as op runs."""
    starts = [row.all_start_nanos for row in rows]
    spans = [row.all_end_rel_nanos for row in rows]
    requested = [0] * len(rows)
    counts = [0] * len(rows)
    events: list[int] = []  # of each allocation: time, bytes, allocator
    for place, row in enumerate(rows):
        if not starts[place]:
            times = trace.microseconds(row)
            starts[place], spans[place] = (max(-MOST, min(time, MOST)) for time in times)
        for used in row.memory:
            records = used.allocation_records
            if not records:  # an old trace
                requested[place] += used.total_bytes
                continue
            allocator = tables.allocator(used.allocator_name, words.names)
            counts[place] += len(records)
            for record in records:
                size = record.alloc_bytes
                events += (record.alloc_micros, size, allocator)
                if size > 0:
                    requested[place] += size
    table = np.array(events, np.int64).reshape(-1, 3)
    return OpRuns(
        tables.kinds,
        tables.allocators,
        np.array([kinds[row.node_name, row.timeline_label] for row in rows], np.int32),
        np.full(len(rows), step, np.int64),
        np.array(starts, np.int64),
        np.array(spans, np.int64),
        np.array([max(-MOST, min(size, MOST)) for size in requested], np.int64),
        np.cumsum([0, *counts]),
        table[:, 0].copy(),
        table[:, 1].copy(),
        table[:, 2].astype(np.int32),
    )
