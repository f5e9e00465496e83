"""Memory: every allocation and release as TensorBoard's memory profile reads them, and a curve.

XProf has to be told with each event what its allocator held at that moment. That is added up as in
`tflab.analysis.memory`, from the start of every step, but for each allocator by itself. No
TensorFlow in here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflab.analysis.memory import US
from tflab.exporters.xspace.plane import COUNTERS, Events, Plane, column
from tflab.records import OpRun

# A number among those of lines that are no threads (xla/tsl/profiler/utils/trace_utils.h), because
# the op statistics would count the ops in these events once more.
LINE = 0xDEADBEEF - 2**32 + 7

Table = dict[str, np.ndarray]


def add(plane: Plane, runs: Sequence[OpRun], groups: Mapping[int, int], zero: int) -> None:
    """Add the allocations and releases of these runs as a line of events.

    They are known to the microsecond. Those of one microsecond all tell what was held at its end,
    as in `memory.curve`, and stand a nanosecond apart, so that they keep their order.
    """
    table = ordered(buffers(plane, runs, groups), "allocator", "step", "us", "freed")
    step, moment = alike(table, "allocator", "step"), alike(table, "allocator", "step", "us")
    changes = np.where(table["freed"], -table["bytes"], table["bytes"])
    total = np.cumsum(changes)
    held = total[last(moment)] - (total - changes)[first(step)]
    within = np.minimum(np.arange(len(held)) - first(moment), US - 1)
    names = column([plane.event("MemoryAllocation"), plane.event("MemoryDeallocation")])
    plane.line(
        "memory",
        Events(
            names[table["freed"]],
            np.maximum(table["us"] * US - zero, 0) + within,
            np.ones_like(held),  # XProf stretches what has no duration to the next event
            {
                "group_id": table["group"],
                "bytes_allocated": held,
                "peak_bytes_in_use": peaks(table["allocator"], held),
                "requested_bytes": table["bytes"],
                "allocation_bytes": table["bytes"],
                "addr": table["address"],
            },
            {"allocator_name": table["allocator"], "tf_op": table["op"]},
        ),
        number=LINE,
    )
    settled = last(moment) == np.arange(len(held))
    since = np.maximum(table["us"][settled] * US - zero, 0)
    curve = {"bytes": held[settled]}
    plane.line(COUNTERS, Events(table["curve"][settled], since, np.zeros_like(since), curve))


def buffers(plane: Plane, runs: Sequence[OpRun], groups: Mapping[int, int]) -> Table:
    """A row for each allocation and release, in no order.

    A release does not tell which allocation it undoes. Here it is the oldest of the same op run and
    allocator that has the size and is not taken yet; the two have an `address` in common.
    """
    found = [allocation for run in runs for allocation in run.allocations]
    allocators = [allocator for _, _, allocator in found]
    size = column(size for _, size, _ in found)
    run: np.ndarray = np.repeat(np.arange(len(runs)), column(len(run.allocations) for run in runs))
    table = {
        "run": run,
        "step": column(run.step for run in runs)[run],
        "group": column(groups.get(run.step, 0) for run in runs)[run],
        "op": numbered([run.name for run in runs], plane.text)[run],
        "us": column(us for us, _, _ in found),
        "bytes": np.abs(size),
        "freed": (size < 0).astype(np.int64),
        "allocator": numbered(allocators, plane.text),
        "curve": numbered(allocators, lambda name: plane.event(f"bytes held by {plain(name)}")),
    }
    table["address"] = addresses(table)
    del table["run"]
    return table


def addresses(table: Table) -> np.ndarray:
    """For each row the number of the buffer that it is about."""
    same = ("run", "allocator", "bytes")
    keys = {name: table[name] for name in (*same, "freed", "us")}
    keys["row"] = np.arange(len(table["run"]))
    keys = ordered(keys, *same, "freed", "us")
    keys["turn"] = np.arange(len(keys["row"])) - first(alike(keys, *same, "freed"))
    keys = ordered(keys, *same, "turn")
    found = np.empty_like(keys["row"])
    found[keys["row"]] = alike(keys, *same, "turn") + 1
    return found


def numbered(texts: Sequence[str], number: Callable[[str], int]) -> np.ndarray:
    """The number of each text; of these there are few different ones."""
    numbers = {text: number(text) for text in dict.fromkeys(texts)}
    return column(map(numbers.__getitem__, texts))


def plain(allocator: str) -> str:
    """XProf writes the names of curves into its JSON as they are."""
    return re.sub(r"[^A-Za-z0-9_.:/ -]", "_", allocator)


def peaks(allocators: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The most that the allocator of each row held until then."""
    found = held.copy()
    for allocator in np.unique(allocators):
        own = allocators == allocator
        found[own] = np.maximum.accumulate(held[own])
    return found


# Tables by columns


def ordered(table: Table, *keys: str) -> Table:
    """The rows in order of the first key, then of the second, and so on."""
    order = np.lexsort([table[key] for key in reversed(keys)])
    return {name: values[order] for name, values in table.items()}


def alike(table: Table, *keys: str) -> np.ndarray:
    """For each row of an ordered table the number of its group: rows that have these in common."""
    changed = np.any([np.diff(table[key]) != 0 for key in keys], axis=0)
    return np.append(0, np.cumsum(changed))[: len(table[keys[0]])]


def first(groups: np.ndarray) -> np.ndarray:
    """For each row where its group begins."""
    return np.asarray(groups.searchsorted(groups))


def last(groups: np.ndarray) -> np.ndarray:
    """For each row where its group ends, which is still in it."""
    return np.asarray(groups.searchsorted(groups, "right")) - 1
