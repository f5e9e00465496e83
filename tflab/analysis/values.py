"""Values: statistics of the elements of tensors, and the order of tensors."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tflab.analysis import critical_path
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.values import Statistics

KEPT = 64  # elements of a tensor whose values are kept
LONGEST = 64  # characters of an element that is text
# By bytes per element: passes add in another order, and half precision has few digits
ROUNDING = {2: 0.03, 4: 1e-4, 8: 1e-9, 16: 1e-9}
NO_NUMBERS: dict[str, None] = dict.fromkeys(("mean", "std", "min", "max"))


def statistics(array: np.ndarray) -> Statistics:
    """The elements, if they are few, and their statistics."""
    array = np.asarray(array)
    few = array if array.dtype.kind == "b" else computable(array)
    values = tuple(map(element, few.ravel().tolist())) if array.size <= KEPT else None
    array = computable(array)
    if array.dtype.kind not in "fiubc":  # text
        return Statistics(values, **NO_NUMBERS, zeros=None, not_finite=0)
    finite = array[np.isfinite(array)]
    zeros = float(np.mean(array == 0)) if array.size else None
    not_finite = array.size - finite.size
    if array.dtype.kind == "c" or not finite.size:
        return Statistics(values, **NO_NUMBERS, zeros=zeros, not_finite=not_finite)
    with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest float64
        mean, std = finite.mean(dtype=np.float64), finite.std(dtype=np.float64)
    least, most = finite.min().item(), finite.max().item()
    return Statistics(values, float(mean), float(std), least, most, zeros, not_finite)


def computable(array: np.ndarray) -> np.ndarray:
    """The array in a type that NumPy computes with: bfloat16 and similar types become float32, bool
    and quantised integers become integers."""
    array = np.asarray(array)
    if array.dtype.names:  # quantised: a structure of one field
        array = array[array.dtype.names[0]]
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "V" or array.dtype.num >= 256:  # registered by others, such as bfloat16
        return array.astype(np.float32)
    return array


def element(value: Any) -> Any:
    """A number as it is; text and complex numbers as text."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, int | float):
        return value
    text = str(value).strip("()") if isinstance(value, complex) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def largest_change(before: np.ndarray, after: np.ndarray) -> float | None:
    """The largest change of an element that is finite before and after; None if there is none."""
    before, after = computable(before), computable(after)
    if before.shape != after.shape or before.dtype.kind not in "fiub":
        return None
    with np.errstate(invalid="ignore"):  # infinite before and after
        change = np.abs(after.astype(np.float64) - before)
    change = change[np.isfinite(change)]
    return float(change.max()) if change.size else None


def in_order(
    nodes: Sequence[Node], transfers: Iterable[Transfer], us: Mapping[str, int]
) -> list[Node]:
    """Nodes after their inputs and, if that leaves a choice, in the order of time.

    The debugger records a tensor while its consumers may already run, so its times alone are not an
    order. `us` has the time of each recorded node.
    """
    by_name = {node.name: node for node in nodes}
    parents = critical_path.in_order(critical_path.dependencies(nodes, transfers))
    waiting = {name: len(set(before)) for name, before in parents.items()}
    children: dict[str, list[str]] = {}
    for name, before in parents.items():
        for parent in set(before):
            children.setdefault(parent, []).append(name)
    ready = [(us.get(name, 0), name) for name, count in waiting.items() if not count]
    heapq.heapify(ready)
    ordered = []
    while ready:
        time, name = heapq.heappop(ready)
        ordered.append(by_name[name])
        for child in children.get(name, ()):
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, (us.get(child, time), child))
    return ordered


def agree(first: np.ndarray, other: np.ndarray) -> bool:
    """Whether two tensors hold the same numbers within rounding: their largest difference, compared
    with the largest element. Non-finite and integer elements must be equal."""
    first, other = computable(first), computable(other)
    if first.shape != other.shape or first.dtype != other.dtype:
        return False
    if first.dtype.kind not in "fc":
        return bool(np.array_equal(first, other))
    finite = np.isfinite(other)
    if not np.array_equal(first[~finite], other[~finite], equal_nan=True):
        return False
    with np.errstate(over="ignore"):
        difference = np.abs(first[finite] - other[finite]).max(initial=0)
        return bool(
            difference <= ROUNDING[first.dtype.itemsize] * np.abs(other[finite]).max(initial=0)
        )
