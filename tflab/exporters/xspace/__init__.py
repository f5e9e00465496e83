"""XSpace: traced steps as TensorBoard Profile reads them, a run for every capture.

XProf reads the files of its own profiler and not the RunMetadata of sessions. Here the records
become what that profiler would have written: a marker for each step, ops in lanes in which none
overlaps another, the session's time before, between and after them, and every allocation.

What XProf expects is documented only by its source (checked with xprof 2.24):

- An op is an event called `<node>:<OpType>`, if both match a pattern; see `plane`.
- An event with a `group_id` belongs to that step, and a `SessionRun` with a `step_name` marks the
  step; see `steps`.
- Memory events are on a line whose number says that it is not a thread; see `memory`.
- The events of a line called `_counters_` are points of curves.
- Times count from the start of the profile, and a time of 0 counts as missing.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
from google.protobuf.message import EncodeError

from tflab.analysis import op_runs, timeline, tracks, wires
from tflab.analysis.memory import US
from tflab.analysis.op_runs import OpRuns
from tflab.cli import output_paths
from tflab.errors import TflabError
from tflab.exporters.xspace import memory, steps
from tflab.exporters.xspace.plane import Plane, display_name, event_names
from tflab.records.timed import Capture, OpRun
from tflab.runtime import private
from tflab.units import short_device, short_task, task_of

GPU_NUMBER = re.compile(r"gpu:(\d+)", re.IGNORECASE)
LEAD_NS = 1  # from the start of the profile to the first event, whose time must not be 0


def write(
    logdir: str | Path,
    captures: Iterable[Capture],
    *,
    host: str | None = None,
    modules: Mapping[str, bytes] | None = None,
) -> list[Path]:
    """Write each capture to `<logdir>/plugins/profile/<name>/<host>.xplane.pb`; return the paths.

    Of a capture of several tasks each gets a file of its own, as a host of its name. A capture
    never goes into a folder that exists, because XProf caches its results there.
    `modules` are the serialised HloProtos that XLA compiled for the steps, by name.
    """
    host = file_name(host or socket.gethostname(), "localhost")
    paths: list[Path] = []
    for capture in captures:
        own = Path(logdir, "plugins", "profile", file_name(capture.name, "profile"))
        folder = output_paths.free_name(own)
        with output_paths.new(folder, "folder", folder=True) as run:
            for name, part, elsewhere in split(capture, host):
                content = encode(part, host=name, modules=modules, elsewhere=elsewhere)
                (run.work / f"{name}.xplane.pb").write_bytes(content)
        paths += sorted(run.final.iterdir())
    return paths


def encode(
    capture: Capture,
    *,
    host: str = "localhost",
    modules: Mapping[str, bytes] | None = None,
    elsewhere: Iterable[OpRun] = (),
) -> bytes:
    """Return a capture as one serialised XSpace.

    `elsewhere` are the runs on other hosts of the same steps: the session waits for them too.
    """
    runs, groups = op_runs.of(capture.runs), steps.group_ids(capture.steps)
    starts = [step.start_ns for step in capture.steps]
    end = max((step.start_ns + step.wall_ns for step in capture.steps), default=0)
    starts += [int(runs.start_ns.min())] if runs else []
    zero = min(starts, default=0) // US * US - LEAD_NS  # allocations are rounded down too
    space = private.xspace()
    space.hostnames.append(host)
    traced = Plane(space, "/host:CPU")
    on_gpu = {
        name: Plane(space, name) for name in sorted({*map(gpu_plane, runs.by_device())} - {""})
    }
    for plane in on_gpu.values():
        steps.add_to_device(plane, capture.steps, groups, zero)
    steps.add(traced, capture.steps, runs, zero, elsewhere)
    add_ops({"": traced, **on_gpu}, runs, groups, zero)
    memory.add(traced, runs, groups, zero)
    metadata = Plane(space, "/host:metadata")
    for name, proto in (modules or {}).items():
        about = metadata.proto.event_metadata[metadata.event(name)]
        about.stats.add(metadata_id=metadata.text("Hlo Proto"), bytes_value=proto)
    environment = Plane(space, "Task Environment")
    for name, time in (("profile_start_time", zero), ("profile_stop_time", max(end, zero))):
        environment.proto.stats.add(metadata_id=environment.text(name), uint64_value=max(time, 0))
    try:
        return bytes(space.SerializeToString())
    except EncodeError as error:
        raise TflabError(
            f"The profile '{capture.name}' would exceed 2 GiB; export fewer steps."
        ) from error


def gpu_plane(device: str) -> str:
    """Return the plane of the GPU that did this work, such as `/device:GPU:0`; "" for work of the
    host."""
    match = GPU_NUMBER.search(device)
    return f"/device:GPU:{match[1]}" if match and tracks.track_kind(device) in tracks.ON_GPU else ""


def add_ops(
    planes: Mapping[str, Plane], runs: OpRuns, groups: Mapping[int, int], zero: int
) -> None:
    """Add the ops of each device in lanes of their own, and the kernels of each GPU stream.

    XProf reads nesting as calling, which would change self times, so nothing nests. It expects that
    an event of a GPU names its op, and has a number that links it to its launch and its step
    (xplane_to_step_events.cc).
    """
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
                plane.add(line, event, run.start_ns - zero, run.duration_ns, stats)


# Hosts: which file of a profile a run belongs to. XProf takes each file for a machine.


def split(capture: Capture, host: str) -> Iterator[tuple[str, Capture, Sequence[OpRun]]]:
    """Yield each host with its part of the capture, and the runs that are not in that part. A
    capture of one process stays whole; `host` is the name for runs without a task."""
    runs = op_runs.of(capture.runs)
    tasks = {device: task_named_in(device) for device in runs.by_device()}
    if len(named := set(tasks.values()) - {""}) < 2:
        yield file_name("".join(named), host), replace(capture, runs=runs), ()
        return
    files = {device: file_name(task, host) for device, task in tasks.items()}
    for name in sorted(set(files.values())):
        own = np.array([files.get(device) == name for *_, device in runs.kinds])[runs.kind]
        yield name, replace(capture, runs=runs.where(own)), runs.where(~own)


def task_named_in(device: str) -> str:
    """Return the task of this device; for the wire, the receiving task."""
    if device.startswith(wires.ON_WIRE):
        return device.rpartition(" to ")[2]
    return short_task(task_of(device))


def file_name(name: str, otherwise: str) -> str:
    """Return a name without characters that could make it a path."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or otherwise
