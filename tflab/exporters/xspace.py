"""XSpace: traced steps as TensorBoard Profile reads them, a run for every capture.

XProf reads the files of its own profiler and not the RunMetadata of sessions. Here the records
become what that profiler would have written: a marker for each step, ops in lanes in which none
overlaps another, the session's time before, between and after them, and every allocation.

An XSpace holds planes (a host, a device), a plane holds lines (a thread), and a line holds events
with a start and a duration in picoseconds. Names are kept in the plane's tables, and events refer
to them by number; other properties of an event are a list of stats. The format is that of
tsl/profiler/protobuf/xplane.proto. What XProf expects is documented only by its source (checked
with xprof 2.24):

- An op is an event called `<node>:<OpType>`. XProf splits the name at the first colon, and an event
  that does not match its patterns is in none of its statistics (`ParseTfOpFullname` in
  tf_op_utils.cc of xla/tsl/profiler/utils).
- An event with a `group_id` belongs to that step, and a `SessionRun` with a `step_name` marks the
  step.
- Memory events are on a line whose number says that it is not a thread.
- The events of a line called `_counters_` are points of curves.
- Times count from the start of the profile, and a time of 0 counts as missing.
"""

from __future__ import annotations

import re
import socket
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import EncodeError

from tflab.analysis import op_runs, timeline, wires
from tflab.analysis.memory import US
from tflab.analysis.op_runs import OpRuns
from tflab.cli import output_paths
from tflab.errors import TflabError
from tflab.escaping import visible
from tflab.records.timed import Capture, OpRun, StepTime
from tflab.runtime.private import watched_functions
from tflab.units import short_device, short_task, task_of

GPU_NUMBER = re.compile(r"gpu:(\d+)", re.IGNORECASE)
LEAD_NS = 1  # from the start of the profile to the first event, whose time must not be 0
PS = 1000  # picoseconds in a nanosecond
Message = Any  # of xplane.proto
Stats = Mapping[str, int | str]
ALL_KEPT = 5  # steps; if there are more, XProf leaves out the first and the last
ON_DEVICE = 0xDEADBEEF - 2**32  # kThreadIdStepInfo in trace_utils.h: the line of a device's steps
# One of the numbers for lines that are not threads (xla/tsl/profiler/utils/trace_utils.h): on a
# thread's line the op statistics would count the ops of these events again.
MEMORY_LINE = 0xDEADBEEF - 2**32 + 7


def write(
    logdir: str | Path, captures: Iterable[Capture], *, host: str | None = None
) -> list[Path]:
    """Write each capture to `<logdir>/plugins/profile/<name>/<host>.xplane.pb`, with a file for
    each task; return the paths. The folder is new, because XProf caches its results there."""
    host = file_name(host or socket.gethostname(), "localhost")
    paths: list[Path] = []
    for capture in captures:
        own = Path(logdir, "plugins", "profile", file_name(capture.name, "profile"))
        folder = output_paths.free_name(own)
        with output_paths.new(folder, "folder", folder=True) as run:
            for name, part, elsewhere in split(capture, host):
                content = encode(part, host=name, elsewhere=elsewhere)
                (run.work / f"{name}.xplane.pb").write_bytes(content)
        paths += sorted(run.final.iterdir())
    return paths


def encode(capture: Capture, *, host: str = "localhost", elsewhere: Iterable[OpRun] = ()) -> bytes:
    """Return a capture as one serialised XSpace. `elsewhere` are the runs of its steps on other
    hosts: the session waits for them too."""
    runs, steps = op_runs.of(capture.runs), capture.steps
    # The `group_id` of each step: counted from 1, in the order of the steps' numbers
    groups = {number: group for group, number in enumerate(sorted(step.step for step in steps), 1)}
    starts = [step.start_ns for step in steps]
    end = max((step.start_ns + step.wall_ns for step in steps), default=0)
    starts += [int(runs.start_ns.min())] if runs else []
    zero = min(starts, default=0) // US * US - LEAD_NS  # allocations are rounded down too
    space = watched_functions.xspace()
    space.hostnames.append(host)
    traced = Plane(space, "/host:CPU", zero)
    gpus = sorted({*map(gpu_plane, runs.by_device())} - {""})
    on_gpu = {name: Plane(space, name, zero) for name in gpus}
    for plane in on_gpu.values():
        line = plane.line("Steps", ON_DEVICE)
        for step in steps:
            group = {"group_id": groups[step.step]}
            plane.add(line, plane.event(str(step.step)), step.start_ns, step.wall_ns, group)
    add_steps(traced, steps, runs, groups, elsewhere)
    add_ops({"": traced, **on_gpu}, runs, groups)
    add_memory(traced, runs, groups)
    environment = Plane(space, "Task Environment", zero)
    for name, time in (("profile_start_time", zero), ("profile_stop_time", max(end, zero))):
        environment.proto.stats.add(metadata_id=environment.text(name), uint64_value=max(time, 0))
    try:
        return bytes(space.SerializeToString())
    except EncodeError as error:
        raise TflabError(
            f"The profile '{capture.name}' would exceed 2 GiB; export fewer steps."
        ) from error


# Hosts: which file of a profile a run belongs to. XProf takes each file for a machine.


def split(capture: Capture, host: str) -> Iterator[tuple[str, Capture, Sequence[OpRun]]]:
    """Yield each host with its part of the capture, and the runs that are not in that part. A
    capture of one process stays whole; `host` is the name for runs without a task."""
    runs = op_runs.of(capture.runs)
    tasks = {
        # For the wire, the receiving task
        device: device.rpartition(" to ")[2]
        if device.startswith(wires.ON_WIRE)
        else short_task(task_of(device))
        for device in runs.by_device()
    }
    if len(named := set(tasks.values()) - {""}) < 2:
        yield file_name("".join(named), host), replace(capture, runs=runs), ()
        return
    files = {device: file_name(task, host) for device, task in tasks.items()}
    for name in sorted(set(files.values())):
        own = np.array([files.get(device) == name for *_, device in runs.kinds])[runs.kind]
        yield name, replace(capture, runs=runs.where(own)), runs.where(~own)


def file_name(name: str, otherwise: str) -> str:
    """Return a name without characters that could make it a path."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or otherwise


class Plane:
    """A plane of an XSpace, with the numbers of its names, and the time when the profile began."""

    def __init__(self, space: Message, name: str, zero: int) -> None:
        self.proto, self.zero = space.planes.add(name=name), zero
        self._events: dict[tuple[str, str], int] = {}
        self._texts: dict[str, int] = {}

    def event(self, name: str, display: str = "") -> int:
        """Return the number of a name. If given, the trace viewer shows `display` instead."""
        number = self._events.setdefault((name, display), len(self._events) + 1)
        if number not in self.proto.event_metadata:
            about = self.proto.event_metadata[number]
            about.id, about.name, about.display_name = number, visible(name), visible(display)
        return number

    def text(self, text: str) -> int:
        """Return the number of a text that stats refer to, or of the name of a stat."""
        number = self._texts.setdefault(text, len(self._texts) + 1)
        if number not in self.proto.stat_metadata:
            about = self.proto.stat_metadata[number]
            about.id, about.name = number, visible(text)
        return number

    def line(self, name: str, number: int | None = None) -> Message:
        """Add a line. Without a `number` it is drawn below the lines that were added before."""
        place = len(self.proto.lines) + 1 if number is None else number
        return self.proto.lines.add(id=place, name=visible(name))

    def add(self, line: Message, event: int, start_ns: int, ns: int, stats: Stats) -> None:
        """Add an event to a line."""
        added = line.events.add(metadata_id=event)
        added.offset_ps, added.duration_ps = (start_ns - self.zero) * PS, ns * PS
        for name, value in stats.items():
            stat = added.stats.add(metadata_id=self.text(name))
            if isinstance(value, str):
                stat.ref_value = self.text(value)
            else:
                stat.int64_value = value


# Names of events that XProf recognises as ops

Kind = tuple[str, str]  # a node and the type that ran

# Names that XProf takes for step markers, input pipelines, its row for idle time or its own
# runtime; and names that do not begin as TensorFlow's do.
MISREAD = re.compile(
    r"(train|test|TraceContext)[^/]*|Iterator|IDLE"
    r"|(EagerExecute|EagerLocalExecute|EagerKernelExecute|FunctionRun).*|([^A-Za-z0-9.].*)?"
)


def event_names(kinds: Iterable[Kind]) -> dict[Kind, str]:
    """Return the name `<node>:<OpType>` of each node and type. No two have the same node.

    Characters that are not allowed become underscores. A leading underscore marks nodes that the
    runtime has added, and XProf does not count these: `_arg_x` becomes `runtime/arg_x`. A name that
    XProf would misread gets a `./`. Names that become equal are numbered, and so are the types of
    one node, because XProf adds up by node.
    """
    names: dict[Kind, str] = {}
    taken: set[str] = set()
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(2))
    # Unchanged names come first and keep their name; the numbers do not depend on the given order.
    for node, op in sorted(kinds, key=lambda kind: (plain_name(kind[0]) != kind[0], kind)):
        name = plain = plain_name(node)
        while name in taken:
            name = f"{plain}-{next(numbers[plain])}"
        taken.add(name)
        kind = re.sub(r"[^A-Za-z0-9_]", "_", op)
        names[node, op] = f"{name}:{kind if re.match('[A-Z_]', kind) else f'_{kind}'}"
    return names


def plain_name(node: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_./>-]", "_", node)
    if node.startswith("_"):
        return f"runtime/{plain.lstrip('_')}"
    return f"./{plain}" if MISREAD.fullmatch(plain) else plain


def display_name(node: str) -> str:
    """Return `Relu (conv1/Relu)`: the last part first, as few boxes are wide enough for all."""
    scope, _, leaf = node.rpartition("/")
    return f"{leaf} ({node})" if scope and leaf else node


def gpu_plane(device: str) -> str:
    """Return the plane of the GPU that did this work, `/device:GPU:0`; "" for work of the host."""
    match = GPU_NUMBER.search(device)
    if match and timeline.track_kind(device) == timeline.ON_GPU:
        return f"/device:GPU:{match[1]}"
    return ""


def add_ops(planes: Mapping[str, Plane], runs: OpRuns, groups: Mapping[int, int]) -> None:
    """Add the ops of each device, and the kernels of each GPU stream, in lanes without nesting,
    because XProf takes nesting for calls. It expects that an event of a GPU names its op, and has a
    number that links it to its launch (xplane_to_step_events.cc)."""
    of_device, numbers = runs.by_device(), count()
    # The kernels of a node have its name, but they are not its launch.
    scopes = {device: "gpu/" if gpu_plane(device) else "" for device in of_device}
    ran = [runs.kinds[kind] for kind in runs.kinds_in_order()]
    full_names = event_names(dict.fromkeys((scopes[device] + name, op) for name, op, device in ran))
    for device in sorted(of_device):
        title, plane, scope = short_device(device), planes[gpu_plane(device)], scopes[device]
        packed = timeline.pack(of_device[device])
        for number, lane in enumerate(packed, 1):
            line = plane.line(title if len(packed) == 1 else f"{title}, lane {number}")
            for run in lane:
                full_name = full_names[scope + run.name, run.op]
                event = plane.event(full_name, display_name(run.name))
                stats: dict[str, int | str] = {"group_id": groups.get(run.step, 0)}
                if scope:
                    stats |= {"correlation_id": next(numbers), "tf_op": full_name}
                plane.add(line, event, run.start_ns, run.duration_ns, stats)


def add_steps(
    plane: Plane,
    steps: Sequence[StepTime],
    runs: OpRuns,
    groups: Mapping[int, int],
    elsewhere: Iterable[OpRun],
) -> None:
    """Add a line of markers for the steps, and below it one with the time between their ops, here
    or `elsewhere`. Sessions that run at the same time have a pair of lines each."""
    in_time = {step.step: step for step in steps}
    own, others = runs.by_step(), op_runs.of(elsewhere).by_step()
    spans = [OpRun(step.step, "", "", "", step.start_ns, step.wall_ns) for step in steps]
    for number, lane in enumerate(timeline.pack(spans)):
        above, below = plane.line("steps"), plane.line("session")
        for step in (in_time[span.step] for span in lane):
            group = {"group_id": groups[step.step]}
            marker = group | {"step_name": f"step {step.step}"}
            plane.add(above, plane.event("SessionRun"), step.start_ns, step.wall_ns, marker)
            ran = own.get(step.step, runs[:0])
            # XProf leaves out a step in which no event took time. So if the ops of a step took none
            # here, the session's time belongs to the step.
            took = any(end > begin for begin, end in timeline.busy_spans(ran, step))
            belongs = {} if took else group
            spent = timeline.busy_spans([*ran, *others.get(step.step, ())], step)
            ends = [step.start_ns, *(end for _, end in spent)]
            starts = [*(begin for begin, _ in spent), step.start_ns + step.wall_ns]
            owners = [timeline.BEFORE, *[timeline.GAPS] * (len(spent) - 1), timeline.AFTER]
            for owner, begin, end in zip(owners, ends, starts, strict=False):
                if end > begin:
                    plane.add(below, plane.event(owner), begin, end - begin, belongs)
        if number == 0 and sum(step.wall_ns > 0 for step in steps) > ALL_KEPT:
            # A step before the first and one after the last, marker and work, are left out instead
            end = max(step.start_ns + step.wall_ns for step in steps)
            pads = ((plane.zero, 0, "start"), (end, len(steps) + 1, "end"))
            for start, group_id, edge in pads:
                title, group = f"{edge} of the profile", {"group_id": group_id}
                plane.add(above, plane.event("test", title), start, 1, group)
                plane.add(below, plane.event(title), start, 1, group)


def add_memory(plane: Plane, runs: OpRuns, groups: Mapping[int, int]) -> None:
    """Add the allocations and releases of these runs to a line of events, and to a curve.

    All events of one microsecond state the bytes at its end, as in `memory.curve`, and are one
    nanosecond apart, so that they keep their order. A release shares its `addr` with the oldest
    allocation of the same op run, allocator and size that is not released yet.
    """
    line, curve = plane.line("memory", MEMORY_LINE), plane.line("_counters_")
    events, names = runs.allocations, [runs.kinds[kind][0] for kind in runs.kind.tolist()]
    steps = runs.step[events.run]
    columns = (events.allocator, steps, events.us, events.bytes < 0, events.run, events.bytes)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    rows.sort(key=itemgetter(0, 1, 2, 3))
    peaks: dict[int, int] = {}
    addresses = count(1)
    waiting: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
    for (allocator, step), in_step in groupby(rows, key=itemgetter(0, 1)):
        held, name = 0, events.allocators[allocator]
        for us, together in groupby(in_step, key=itemgetter(2)):
            moment, start = list(together), max(us * US, plane.zero)
            held += sum(size for *_, size in moment)
            peaks[allocator] = max(held, peaks.get(allocator, held))
            for place, (*_, freed, run, size) in enumerate(moment):
                same = waiting[run, allocator, abs(size)]
                address = same.popleft() if freed and same else next(addresses)
                if not freed:
                    same.append(address)
                plane.add(
                    line,
                    plane.event("MemoryDeallocation" if freed else "MemoryAllocation"),
                    start + min(place, US - 1),
                    1,  # XProf stretches an event of no duration to the next one
                    {
                        "group_id": groups.get(step, 0),
                        "bytes_allocated": held,
                        "peak_bytes_in_use": peaks[allocator],
                        "requested_bytes": abs(size),
                        "allocation_bytes": abs(size),
                        "addr": address,
                        "allocator_name": name,
                        "tf_op": names[run],
                    },
                )
            plain = re.sub(r"[^A-Za-z0-9_.:/ -]", "_", name)  # XProf's JSON does not escape it
            plane.add(curve, plane.event(f"bytes held by {plain}"), start, 0, {"bytes": held})
