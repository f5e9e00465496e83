"""Timeline: the owner of each nanosecond of a step, lanes of op runs, and the times of steps."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import OpRuns
from tflab.records.timed import OpRun, Owner, StepTime

BEFORE = "before the first op (session and feeds)"
BUSY = "at least one op running"
WIRE = "no op running, a tensor on its way between tasks (network)"
GAPS = "no op running between ops (scheduling and waiting)"
# The runtime records the end of neither; reading the trace comes later and is part of no step.
AFTER = "after the last op (fetching, and collecting the trace)"

Span = tuple[int, int]  # start and end in nanoseconds; the end is exclusive
Spans = tuple[np.ndarray, np.ndarray]  # the same of many


def time_ledger(
    runs: Iterable[OpRun], steps: Sequence[StepTime], wires: Sequence[OpRun] = ()
) -> tuple[Owner, ...]:
    """Return every nanosecond of the steps' wall time, attributed to exactly one owner. `wires` are
    tensors on their way between tasks; with them, the network is an owner. A run that exceeds its
    step, because the clock was set, is cut off at the edge of the step."""
    in_step, on_wire = op_runs.of(runs).by_step(), op_runs.of(wires).by_step()
    network = (WIRE,) if wires else ()
    totals = dict.fromkeys((BEFORE, BUSY, *network, GAPS, AFTER), 0)
    for step in steps:
        ops = clipped(in_step.get(step.step, ()), step)
        moving = clipped(on_wire.get(step.step, ()), step)
        starts, ends = merged(*map(np.concatenate, zip(ops, moving, strict=True)))
        if not len(starts):
            totals[BEFORE] += step.wall_ns
            continue
        first, last = int(starts[0]), int(ends[-1])
        busy, any_ns = total_ns(*merged(*ops)), total_ns(starts, ends)
        totals[BEFORE] += first - step.start_ns
        totals[BUSY] += busy
        if wires:
            totals[WIRE] += any_ns - busy
        totals[GAPS] += last - first - any_ns
        totals[AFTER] += step.start_ns + step.wall_ns - last
    return tuple(Owner(owner, ns) for owner, ns in totals.items())


def clipped(runs: Iterable[OpRun], step: StepTime) -> Spans:
    """Return the starts and the ends of runs, cut off at the edges of their step."""
    table = op_runs.of(runs)
    low, high = step.start_ns, step.start_ns + step.wall_ns
    ends = table.start_ns + table.duration_ns
    return np.clip(table.start_ns, low, high), np.clip(ends, low, high)


def busy_spans(runs: Iterable[OpRun], step: StepTime) -> list[Span]:
    """Return the times within a step in which at least one op ran: disjoint and sorted."""
    starts, ends = merged(*clipped(runs, step))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def merged(starts: np.ndarray, ends: np.ndarray) -> Spans:
    """Return the union of spans: disjoint spans that do not touch, sorted."""
    if not len(starts):
        return starts, ends
    # There is a gap before a start if as many spans have ended as have begun, whichever they are.
    starts, ends = np.sort(starts, kind="stable"), np.sort(ends, kind="stable")
    apart = np.flatnonzero(starts[1:] > ends[:-1])
    return starts[np.append(0, apart + 1)], ends[np.append(apart, len(ends) - 1)]


def total_ns(starts: np.ndarray, ends: np.ndarray) -> int:
    """Return the sum of the lengths of spans; overlaps count several times."""
    return int((ends - starts).sum())


# Lanes: rows of op runs that do not overlap. On a CPU the runtime does not say which thread ran an
# op (every `thread_id` is 0); lanes are the rows that a picture of the overlaps needs.


def pack(runs: Iterable[OpRun]) -> tuple[OpRuns, ...]:
    """Return runs in lanes, in the order of their starts. Within a lane no run overlaps another,
    because viewers take an overlap for a call. Each run goes into the first lane that is free, the
    shortest of equal starts first. This takes as many lanes as there are runs at once, and no
    packing takes fewer (Kleinberg and Tardos, Algorithm Design, 2006, section 4.1)."""
    table = op_runs.of(runs)
    ends = table.start_ns + table.duration_ns
    order = np.lexsort((table.duration_ns, table.start_ns))
    spans = zip(table.start_ns[order].tolist(), ends[order].tolist(), strict=True)
    places: list[list[int]] = []  # of the runs of each lane
    busy: list[tuple[int, int]] = []  # (end, lane)
    free: list[int] = []
    for place, (start, end) in zip(order.tolist(), spans, strict=True):
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if not free:
            free.append(len(places))
            places.append([])
        lane = heappop(free)
        heappush(busy, (end, lane))
        places[lane].append(place)
    return tuple(table.take(np.array(own)) for own in places)


# The times of steps


def median_step(steps: Sequence[StepTime]) -> StepTime:
    """Return the step with the (lower) median wall time. Raises IndexError without steps."""
    return sorted(steps, key=lambda step: step.wall_ns)[(len(steps) - 1) // 2]


# Tracks
#
# A RunMetadata lists its rows by device, and not all of these are devices:
#
# - `/job:.../device:CPU:0`, or `/cpu:0`: ops, and the time that they took;
# - `/job:.../device:GPU:0`, or `/gpu:0`: ops too, but the times are of launching kernels;
# - `/device:GPU:0/stream:13`, or `/gpu:0/stream:13`: the kernels of one stream, in old traces also
#   its copies, which newer ones list under `/stream:13<MemcpyH2D>`;
# - `/device:GPU:0/stream:all`: the kernels of all streams, repeated;
# - `/device:GPU:0/memcpy`: the copies, repeated;
# - `/device:GPU:0/stream:`: other work of the GPU, such as setting memory;
# - `/device:GPU:0/sync`: threads that wait for a stream;
# - `/host:CPU`: what a profiler of 2019 and 2020 saw on its threads, with the ops repeated.
#
# These names are in TensorFlow's gpu_tracer.cc of 2016, device_tracer.cc of 2018, host_tracer.cc of
# 2019 and xplane_to_step_stats.cc of today. stat_summarizer.cc leaves the same rows out.

OPS = "ops"
LAUNCHES = "launches of GPU kernels"
ON_GPU = "work of a GPU"
WAITS = "waits for a GPU"

TRACER = re.compile(r"(?P<gpu>.*)/(?P<track>memcpy|sync|stream:(?P<stream>\w*)(<.*>)?)")
GPU = re.compile(r"(.*[/:_])?gpu:\d+", re.IGNORECASE)
HOST = "/host:CPU"
# The annotation of an op's kernels: `conv1/Conv2D:Conv2D`, with `:MEMCPYHtoD` for an old copy.
ANNOTATION = re.compile(r"(?P<node>[^:\s]+):(?P<op>[A-Za-z_]\w*)(:\w+)?")


@functools.lru_cache(1_000)  # there are few devices, and many ask
def track_kind(device: str) -> str:
    """Return what the rows of a device show, by its name: ops, waits, launches or GPU work."""
    if match := TRACER.fullmatch(device):
        return WAITS if match["track"] == "sync" else ON_GPU
    return LAUNCHES if GPU.fullmatch(device) else OPS


def node_and_op(name: str, label: str) -> tuple[str, str]:
    """Return the node and the op type of a kernel or a copy. The type of a copy is its direction.
    If the name has no annotation with a node, the name itself stands for the node."""
    match = ANNOTATION.fullmatch(name)
    node, op = (match["node"], match["op"]) if match else (name, "unknown")
    first = label.partition(" ")[0]
    return node, first if first.upper().startswith("MEMCPY") else op


def without_repeats(runs: Mapping[str, OpRuns]) -> dict[str, OpRuns]:
    """Return the runs of each device; none for a row that repeats others. The tracer writes what a
    GPU does into the row of a stream, and again into rows for all streams and all copies."""
    matches = {device: TRACER.fullmatch(device) for device in runs}
    streamed = {m["gpu"] for m in matches.values() if m and m["stream"] not in (None, "", "all")}
    repeated = {
        device
        for device, match in matches.items()
        if match and match["gpu"] in streamed and match["track"] in ("memcpy", "stream:all")
    }
    return {
        device: own[:0] if device in repeated or device.endswith(HOST) else own
        for device, own in runs.items()
    }


def work_runs(runs: Iterable[OpRun]) -> OpRuns:
    """Return the runs that show the work of nodes: of a node with kernels or copies on a GPU only
    these, because the launch of a kernel ends before the work is done."""
    table = op_runs.of(runs)
    shows = {device: track_kind(device) for *_, device in table.kinds}
    on_gpu = {name for name, _, device in table.kinds if shows[device] == ON_GPU}
    return table.of_kinds(
        lambda kind: shows[kind[2]] == ON_GPU or (shows[kind[2]] != WAITS and kind[0] not in on_gpu)
    )
