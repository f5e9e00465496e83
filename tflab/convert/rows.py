"""Rows: the rows of a device in a trace become op runs, column by column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tflab.analysis import columns
from tflab.analysis.columns import Index, Kind, OpRuns
from tflab.convert import decoded, protos

MOST_US = (
    2**63 - 1
) // 1000  # a number of microseconds that a damaged file makes larger becomes this
MOST_BYTES = 2**50  # the same limit for sums of sizes: no op requests more than a quarter of this


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
    pieces: Iterable[Any],
    words: decoded.Vocabulary,
    tables: Tables,
) -> OpRuns:
    """The rows of one device in one step, each piece as from `protos.rows`, as op runs. Raises
    DamagedError."""
    kinds = tables.rows(device, words)
    parts = [in_columns(step, rows, kinds, words, tables) for rows in pieces]
    return columns.concatenate(parts or [in_columns(step, protos.rows(b""), kinds, words, tables)])


def in_columns(
    step: int, rows: Any, kinds: KindsOfRows, words: decoded.Vocabulary, tables: Tables
) -> OpRuns:
    start_ns, duration_ns = times(rows)
    memory = rows.field("memory")
    used = memory.values
    records = used.field("allocation_records")
    # The allocations of a row are those of all its allocators.
    first, sizes = memory.offsets.to_numpy(), values(records.values, "alloc_bytes")
    records_of = records.offsets.to_numpy()
    numbers, raw = coded(used.field("allocator_name"))
    names = [tables.allocator(name, words.names) for name in raw.to_pylist()]
    allocators: np.ndarray = np.array(names, np.int32)
    # Old traces have only a total for each allocator.
    totals = np.where(np.diff(records_of) > 0, 0, values(used, "total_bytes"))
    return OpRuns(
        tables.kinds,
        tables.allocators,
        kinds_of(rows, kinds),
        np.full(len(rows), step, np.int64),
        start_ns,
        duration_ns,
        sums_between(records_of[first], np.maximum(sizes, 0)) + sums_between(first, totals),
        records_of[first].astype(np.int64),
        values(records.values, "alloc_micros"),
        sizes,
        np.repeat(allocators[numbers], np.diff(records_of)),
    )


def times(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Start and duration in ns. Rows of old traces and of GPUs have microseconds."""
    start_ns, duration_ns = values(rows, "all_start_nanos"), values(rows, "all_end_rel_nanos")
    if start_ns.all():
        return start_ns, duration_ns
    start_us, whole_us, op_us = (
        np.clip(values(rows, f"{name}_micros"), -MOST_US, MOST_US)
        for name in ("all_start", "all_end_rel", "op_end_rel")
    )
    duration_us = np.where(whole_us == 0, op_us, whole_us)
    return (
        np.where(start_ns == 0, start_us * 1000, start_ns),
        np.where(start_ns == 0, duration_us * 1000, duration_ns),
    )


def kinds_of(rows: Any, kinds: KindsOfRows) -> np.ndarray:
    """The kind of each row. Few differ, so each is looked up once."""
    import pyarrow

    name_of, names = coded(rows.field("node_name"))
    label_of, labels = coded(rows.field("timeline_label"))
    pair_of, pairs = coded(pyarrow.array(name_of.astype(np.int64) * len(labels) + label_of))
    raw_names, raw_labels = names.to_pylist(), labels.to_pylist()
    keys = (divmod(pair, len(labels)) for pair in pairs.to_pylist())
    numbers = [kinds[raw_names[name], raw_labels[label]] for name, label in keys]
    return np.array(numbers, np.int32)[pair_of]


def coded(column: Any) -> tuple[np.ndarray, Any]:
    """For each value of an Arrow array, its index in the array of different ones that follows."""
    found = column.dictionary_encode()
    return found.indices.to_numpy(), found.dictionary


def values(rows: Any, field: str) -> np.ndarray:
    # A copy, because any part of what the parser made keeps all of it in memory.
    return np.array(rows.field(field))


def sums_between(first: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The sums of sizes from each of these places to the next."""
    limited = np.clip(sizes, -MOST_BYTES, MOST_BYTES)
    return np.diff(np.concatenate([[0], np.cumsum(limited)])[first])
