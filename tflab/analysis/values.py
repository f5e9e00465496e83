"""Values: what the elements of tensors come to, and where the first NaN or Inf came from.

A node in a loop computes its tensor several times in a step; the n-th time it takes what its loop's
other nodes computed the n-th time. No TensorFlow in here.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflab.analysis import critical_path
from tflab.records import Node, NotFinite, Source, Statistics, Transfer, Value, node_of
from tflab.records.values import FED, VARIABLE

KEPT = 64  # elements of a tensor whose values are kept
LONGEST = 64  # characters of a text that is an element
NO_NUMBERS: dict[str, None] = dict.fromkeys(("mean", "std", "min", "max"))
# Ops that hand on what they are given: none of them is where a NaN comes from
HANDING_ON = frozenset(
    prefix + op
    for prefix in ("", "Ref")
    for op in ("Identity", "Switch", "Merge", "Enter", "Exit", "NextIteration")
)


@dataclass(frozen=True)
class Bad:
    """The first time that a tensor was not finite."""

    call: int  # from 0
    nan: int
    infinite: int
    size: int


def statistics(array: np.ndarray) -> Statistics:
    """The elements where they are few, and what they come to."""
    array = np.asarray(array)
    few = array if array.dtype.kind == "b" else plain(array)
    values = tuple(map(element, few.ravel().tolist())) if array.size <= KEPT else None
    array = plain(array)
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


def plain(array: np.ndarray) -> np.ndarray:
    """The array in a type that NumPy calculates with: bfloat16 and its like become float32, bool
    and quantised integers become integers."""
    array = np.asarray(array)
    if array.dtype.names:  # quantised: a structure of one field
        array = array[array.dtype.names[0]]
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "V" or array.dtype.num >= 256:  # registered by others, as bfloat16 is
        return array.astype(np.float32)
    return array


def element(value: Any) -> Any:
    """A number as it is; a text or a complex number as text."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, int | float):
        return value
    text = str(value).strip("()") if isinstance(value, complex) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def moved(before: np.ndarray, after: np.ndarray) -> float | None:
    """The largest change of an element that is finite before and after; None where none is."""
    before, after = plain(before), plain(after)
    if before.shape != after.shape or before.dtype.kind not in "fiub":
        return None
    with np.errstate(invalid="ignore"):  # infinite before and after
        change = np.abs(after.astype(np.float64) - before)
    change = change[np.isfinite(change)]
    return float(change.max()) if change.size else None


def bad(array: np.ndarray, call: int) -> Bad | None:
    """That a tensor is not finite; None where it is."""
    array = plain(array)
    if array.dtype.kind not in "fc":
        return None
    nan, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    return Bad(call, nan, infinite, array.size) if nan or infinite else None


def in_order(
    nodes: Sequence[Node], transfers: Iterable[Transfer], us: Mapping[str, int]
) -> list[Node]:
    """Nodes after those that they take from, and where that leaves a choice in the order of time.

    The debugger notes a tensor while its consumers already run, so that its times alone are no
    order. `us` has the time of each node that was noted.
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


def first_not_finite(
    ordered: Sequence[Node],
    bads: Mapping[str, Bad],
    transfers: Iterable[Transfer],
    values: Mapping[str, Value],
    sources: Mapping[str, Source],
) -> NotFinite | None:
    """The first node in this order whose output is not finite although all that it takes is.

    What was fed and what variables held before the step goes before what was computed. `bads` and
    `values` go by tensor as a GraphDef writes it: `split:1`, plain `mul`.
    """
    sent = {transfer.recv: transfer.tensor for transfer in transfers}
    outputs: dict[str, list[str]] = {}
    for tensor in bads:
        outputs.setdefault(node_of(tensor), []).append(tensor)
    origins = []
    for node in ordered:
        taken = [*node.inputs, *([sent[node.name]] if node.name in sent else [])]
        if node.name not in outputs:
            continue
        tensor = min(outputs[node.name], key=lambda name: bads[name].call)
        if not any(comes_before(bads, other, tensor, node.op) for other in taken):
            origins.append((node, tensor))
    origins.sort(key=lambda origin: values[origin[1]].kind not in (FED, VARIABLE))  # stable
    if not origins:
        return None
    node, tensor = origins[0]
    first, value = bads[tensor], values[tensor]
    return NotFinite(
        tensor=value.tensor,
        node=node.name,
        op=node.op,
        kind=value.kind,
        nan=first.nan,
        infinite=first.infinite,
        size=first.size,
        call=first.call + 1,
        source=sources.get(node.name),
        others=len(origins) - 1,
    )


def comes_before(bads: Mapping[str, Bad], taken: str, made: str, op: str) -> bool:
    """Whether what a node takes was not finite when the node made what is not."""
    if taken not in bads:
        return False
    return op in HANDING_ON or bads[taken].call <= bads[made].call
