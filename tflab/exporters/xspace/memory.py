"""Memory: every allocation and release for TensorBoard's memory profile, and a curve.

XProf expects each event to state the bytes of its allocator at that time. They are added up as in
`tflab.analysis.memory`, from the start of every step, but for each allocator separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tflab.analysis.columns import columns, in_order
from tflab.analysis.memory import US
from tflab.exporters.xspace.plane import COUNTERS, Events, Plane, column
from tflab.exporters.xspace.steps import groups_of
from tflab.records.timed import OpRun

# One of the numbers for lines that are not threads (xla/tsl/profiler/utils/trace_utils.h): on a
# thread's line the op statistics would count the ops of these events again.
LINE = 0xDEADBEEF - 2**32 + 7

Table = dict[str, np.ndarray]


@dataclass
class Before:
    """What was added before: the number of buffers, and the most that each allocator held."""

    buffers: int = 0
    peaks: dict[int, int] = field(default_factory=dict)


def add(
    plane: Plane,
    runs: Sequence[OpRun],
    groups: Mapping[int, int],
    zero: int,
    before: Before | None = None,
) -> None:
    """Add the allocations and releases of these runs to a line of events.

    Their times are known to the microsecond. All events of one microsecond state the bytes at its
    end, as in `memory.curve`, and are one nanosecond apart, so that they keep their order.
    """
    before = before or Before()
    table = ordered(buffers(plane, runs, groups), "allocator", "step", "us", "freed")
    step, moment = (
        group_numbers(table, "allocator", "step"),
        group_numbers(table, "allocator", "step", "us"),
    )
    changes = np.where(table["freed"], -table["bytes"], table["bytes"])
    total = np.cumsum(changes)
    held = total[last_of_group(moment)] - (total - changes)[first_of_group(step)]
    within = np.minimum(np.arange(len(held)) - first_of_group(moment), US - 1)
    address: np.ndarray = table["address"] + before.buffers
    before.buffers = int(address.max(initial=before.buffers))
    names = column([plane.event("MemoryAllocation"), plane.event("MemoryDeallocation")])
    plane.line(
        "memory",
        Events(
            names[table["freed"]],
            np.maximum(table["us"] * US - zero, 0) + within,
            np.ones_like(held),  # XProf stretches an event of no duration to the next one
            {
                "group_id": table["group"],
                "bytes_allocated": held,
                "peak_bytes_in_use": peaks(table["allocator"], held, before.peaks),
                "requested_bytes": table["bytes"],
                "allocation_bytes": table["bytes"],
                "addr": address,
            },
            {"allocator_name": table["allocator"], "tf_op": table["op"]},
        ),
        number=LINE,
        key="memory",
    )
    settled = last_of_group(moment) == np.arange(len(held))
    since = np.maximum(table["us"][settled] * US - zero, 0)
    curve = {"bytes": held[settled]}
    plane.line(
        COUNTERS, Events(table["curve"][settled], since, np.zeros_like(since), curve), key="bytes"
    )


def buffers(plane: Plane, runs: Sequence[OpRun], groups: Mapping[int, int]) -> Table:
    """A row for each allocation and release, in no order.

    A release does not name its allocation. Here it is matched with the oldest allocation of the
    same op run, allocator and size that is not matched yet; the two share an `address`.
    """

    runs = columns(runs)
    run, size, allocator = runs.event_run(), runs.event_bytes, runs.event_allocator
    texts = numbers_of([name for name, *_ in runs.kinds], plane.text, runs.kind[run])
    table = {
        "us": runs.event_us,
        "bytes": np.abs(size),
        "freed": (size < 0).astype(np.int64),
        "allocator": numbers_of(runs.allocators, plane.text, allocator),
    }
    table["address"] = addresses(table | {"run": run})
    return table | {
        "step": runs.step[run],
        "group": groups_of(runs.step, groups)[run],
        "op": texts,
        "curve": numbers_of(
            runs.allocators,
            lambda name: plane.event(f"bytes held by {plain_name(name)}"),
            allocator,
        ),
    }


def addresses(table: Table) -> np.ndarray:
    """For each row the number of its buffer."""
    same = ("run", "allocator", "bytes")
    keys = {name: table[name] for name in (*same, "freed", "us")}
    keys["row"] = np.arange(len(table["run"]))
    keys = ordered(keys, *same, "freed", "us")
    keys["turn"] = np.arange(len(keys["row"])) - first_of_group(group_numbers(keys, *same, "freed"))
    keys = ordered(keys, *same, "turn")
    address_of_row = np.empty_like(keys["row"])
    address_of_row[keys["row"]] = group_numbers(keys, *same, "turn") + 1
    return address_of_row


def numbers_of(
    texts: Sequence[str], number: Callable[[str], int], places: np.ndarray
) -> np.ndarray:
    """The numbers of the texts at these places; `number` is called for each text that is there,
    in the order in which they come."""
    numbers: np.ndarray = np.zeros(len(texts), np.int64)
    for place in in_order(places, len(texts)):
        numbers[place] = number(texts[place])
    return numbers[places]


def plain_name(allocator: str) -> str:
    """An allocator's name without special characters, because XProf's JSON does not escape it."""
    return re.sub(r"[^A-Za-z0-9_.:/ -]", "_", allocator)


def peaks(allocators: np.ndarray, held: np.ndarray, before: dict[int, int]) -> np.ndarray:
    """For each row the most bytes that its allocator has held so far, those `before` included,
    where the last ones are kept."""
    highest = held.copy()
    for allocator in in_order(allocators, int(allocators.max(initial=-1)) + 1):
        in_allocator = allocators == allocator
        so_far = np.maximum.accumulate(held[in_allocator])
        highest[in_allocator] = np.maximum(so_far, before.get(allocator, so_far[0]))
        before[allocator] = int(highest[in_allocator][-1])
    return highest


# Tables by columns


def ordered(table: Table, *keys: str) -> Table:
    """The rows in order of the first key, then of the second, and so on."""
    order = np.lexsort([table[key] for key in reversed(keys)])
    return {name: values[order] for name, values in table.items()}


def group_numbers(table: Table, *keys: str) -> np.ndarray:
    """For each row of an ordered table the number of its group: rows with equal keys."""
    changed = np.any([np.diff(table[key]) != 0 for key in keys], axis=0)
    return np.append(0, np.cumsum(changed))[: len(table[keys[0]])]


def first_of_group(groups: np.ndarray) -> np.ndarray:
    """For each row the index of the first row of its group."""
    return np.asarray(groups.searchsorted(groups))


def last_of_group(groups: np.ndarray) -> np.ndarray:
    """For each row the index of the last row of its group."""
    return np.asarray(groups.searchsorted(groups, "right")) - 1
