"""Rows: the rows of a device in a trace, read into columns."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from tflab.analysis import columns
from tflab.analysis.columns import Index, Kind, OpRuns
from tflab.convert import decoded
from tflab.runtime import trace

PORTION = 4096  # rows that are gathered in lists before they become arrays
MOST = 2**63 - 1  # a number that a damaged file makes larger becomes this


class Tables:
    """The kinds of op runs and the allocators of a recording, which all its columns share."""

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.allocators: list[str] = []
        self._kinds = Index()
        self._allocators: dict[bytes, int] = {}

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
    step: int, device: str, rows: Iterable[Any], words: decoded.Vocabulary, tables: Tables
) -> OpRuns:
    """The rows of one device in one step, as op runs."""
    kinds = KindsOfRows(device, words, tables)
    rows = iter(rows)
    parts = []
    while portion := list(islice(rows, PORTION)):
        parts.append(read(step, portion, kinds, words, tables))
    return columns.joined(parts or [read(step, [], kinds, words, tables)])


def read(
    step: int,
    rows: list[Any],
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
