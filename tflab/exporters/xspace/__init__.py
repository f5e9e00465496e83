"""XSpace: traced steps as TensorBoard Profile reads them, a run for every capture.

XProf reads the files of its own profiler and not the RunMetadata of sessions. Here the records
become what that profiler would have written: a marker for each step, ops in lanes in which none
overlaps another, the session's time before, between and after them, the number of ops at once, and
every allocation.

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
import shutil
import socket
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from tflab.analysis import lanes, stored, tracks, wires
from tflab.analysis.columns import Kind, OpRuns, columns
from tflab.analysis.memory import US
from tflab.analysis.stored import StoredRuns
from tflab.exporters.xspace import memory, steps, wire
from tflab.exporters.xspace.plane import (
    COUNTERS,
    NOTHING,
    Events,
    Plane,
    column,
    display_name,
    event_names,
    short_device_names,
)
from tflab.records.timed import Capture, OpRun, StepTime
from tflab.units import short_task, task_of

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
    profiles = Path(logdir, "plugins", "profile")
    host = file_name(host or socket.gethostname(), "localhost")
    return [
        path
        for capture in captures
        for path in write_files(
            profiles,
            capture.name,
            {
                f"{name}.xplane.pb": encoded_parts(part, name, modules, elsewhere)
                for name, part, elsewhere in split(capture, host)
            },
        )
    ]


def encode(
    capture: Capture, *, host: str = "localhost", modules: Mapping[str, bytes] | None = None
) -> bytes:
    """A capture as one serialised XSpace."""
    return b"".join(wire.pieces(encoded_parts(capture, host, modules)))


def write_files(profiles: Path, name: str, files: Mapping[str, Iterable[wire.Part]]) -> list[Path]:
    """Write files into a new folder of this name; return their paths.

    A file gets its name once it is complete, and after a failure the folder is removed.
    """
    folder = new_folder(profiles, file_name(name, "profile"))
    try:
        return [write_file(folder, file, parts) for file, parts in files.items()]
    except BaseException:
        shutil.rmtree(folder)
        raise


def write_file(folder: Path, file: str, parts: Iterable[wire.Part]) -> Path:
    unfinished = folder / f".{file}"
    with unfinished.open("xb") as out:
        out.writelines(wire.pieces(parts))
    return unfinished.rename(folder / file)


def new_folder(profiles: Path, name: str) -> Path:
    profiles.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = profiles / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
            break
        except FileExistsError:
            continue
    return folder


def encoded_parts(
    capture: Capture,
    host: str,
    modules: Mapping[str, bytes] | None = None,
    elsewhere: Sequence[OpRun] = (),
) -> list[wire.Part]:
    """The encoded file in pieces, because joining a large file needs its size in memory again.

    `elsewhere` are the runs on other hosts of the same steps: the session waits for them too.
    """
    runs = stored.in_columns(capture.runs)
    first = min((step.start_ns for step in capture.steps), default=None)
    starts = [] if first is None else [first]
    if runs and isinstance(runs, OpRuns):
        starts.append(int(runs.start_ns.min()))
    zero = min(starts, default=0) // US * US - LEAD_NS  # allocations are rounded down too
    end = max((step.start_ns + step.wall_ns for step in capture.steps), default=zero)
    traced = Plane("/host:CPU")
    kinds = kinds_by_device(runs)
    on_gpu = {name: Plane(name) for name in sorted(set(map(gpu_plane, kinds))) if name}
    groups, before, added = steps.group_ids(capture.steps), memory.Before(), 0
    for device in on_gpu.values():
        steps.add_to_device(device, capture.steps, zero)
    waiting = spans(elsewhere, groups, zero)
    for (portion,) in stored.portions(replace(capture, runs=runs)):
        own = columns(portion.runs)
        lines = op_lines({"": traced, **on_gpu}, own, kinds, groups, zero, added)
        added += len(own)
        add_lanes(traced, lines, portion.steps, capture.steps, waiting, zero)
        memory.add(traced, own, groups, zero, before)
        del portion, own, lines  # before the next ones are read
    metadata = Plane("/host:metadata")
    for name, proto in (modules or {}).items():
        metadata.event(name, stats={"Hlo Proto": proto})
    environment = Plane("Task Environment")
    environment.stat("profile_start_time", max(zero, 0))
    environment.stat("profile_stop_time", max(end, 0))
    planes = (traced, *on_gpu.values(), metadata, environment)
    return [part for plane in planes for part in plane.parts()] + [wire.field(4, host)]


def kinds_by_device(runs: OpRuns | StoredRuns) -> dict[str, list[tuple[str, str]]]:
    """The names and types of what ran on each device."""
    if isinstance(runs, StoredRuns):  # some kinds may have no runs, which changes few names
        ran = list(filter(runs.wanted, runs.kinds))
    else:
        ran = [runs.kinds[kind] for kind in runs.kinds_in_order()]
    found: dict[str, list[tuple[str, str]]] = {}
    for name, op, device in ran:
        found.setdefault(device, []).append((name, op))
    return found


def gpu_plane(device: str) -> str:
    """The plane of the GPU that did this work, such as `/device:GPU:0`; "" for work of the host."""
    match = GPU_NUMBER.search(device)
    return f"/device:GPU:{match[1]}" if match and tracks.track_kind(device) in tracks.ON_GPU else ""


Lines = list[tuple[Plane, object, str, Events]]  # with the key and the name of each line


def add_lanes(
    plane: Plane,
    lines: Lines,
    own_steps: Sequence[StepTime],
    every: Sequence[StepTime],
    elsewhere: Events,
    zero: int,
) -> None:
    """Add some of all steps, below them their ops, and a curve of the number of ops in parallel."""
    ops = joined([NOTHING, *(events for *_, events in lines)])
    steps.add(plane, own_steps, ops, zero, elsewhere, every)
    for place, key, name, events in lines:
        place.line(name, events, key=key)
    computing = (events for *_, name, events in lines if not name.startswith(wires.ON_WIRE))
    plane.line(COUNTERS, ops_at_once(plane, joined([NOTHING, *computing])), key="ops")


def op_lines(
    planes: Mapping[str, Plane],
    runs: OpRuns,
    kinds: Mapping[str, Sequence[tuple[str, str]]],
    groups: Mapping[int, int],
    zero: int,
    first: int,
) -> Lines:
    """The ops of each device in lanes of their own, and the kernels of each GPU stream, each with
    the plane that it belongs to. `kinds` are those of all runs of the profile, and
    `first` is the number of runs that were added before.

    XProf reads nesting as calling, which would change self times, so nothing nests.
    """
    # The kernels of a node have its name, but they are not its launch.
    scopes = {device: "gpu/" * (tracks.track_kind(device) in tracks.ON_GPU) for device in kinds}
    full_names = event_names(
        dict.fromkeys((scopes[device] + node, op) for device in kinds for node, op in kinds[device])
    )
    runs_of_device = runs.by_device()
    lines: Lines = []
    for device, title in short_device_names(kinds).items():
        if device not in runs_of_device:
            continue
        own, plane, scope = runs_of_device[device], planes[gpu_plane(device)], scopes[device]
        ran = [own.kinds[kind][:2] for kind in own.kinds_in_order()]
        names = {
            (node, op): plane.event(full_names[scope + node, op], display_name(node))
            for node, op in ran
        }
        ops = {kind: plane.text(full_names[scope + kind[0], kind[1]]) for kind in ran if scope}
        packed = lanes.pack(own)
        for number, lane in enumerate(packed, 1):
            events = Events(
                by_kind(lane, names),
                lane.start_ns - zero,
                lane.duration_ns,
                {"group_id": steps.groups_of(lane.step, groups)},
            )
            if scope:
                events = by_gpu(events, by_kind(lane, ops), first)
            name = title if len(packed) == 1 else f"{title}, lane {number}"
            lines.append((plane, (device, number), name, events))
    return lines


def by_kind(runs: OpRuns, numbers: Mapping[tuple[str, str], int]) -> np.ndarray:
    """For each run the number of its name and op."""
    return column(numbers.get((name, op), 0) for name, op, _ in runs.kinds)[runs.kind]


def by_gpu(events: Events, ops: np.ndarray, first: int) -> Events:
    """The events in the form that XProf expects for a GPU: each names its op, and has a number that
    links it to its launch and its step (xplane_to_step_events.cc)."""
    numbers = {**events.numbers, "correlation_id": first + np.arange(len(ops))}
    return replace(events, numbers=numbers, texts={"tf_op": ops})


def joined(lines: Sequence[Events]) -> Events:
    """The ops of all lines."""
    return Events(
        np.concatenate([events.names for events in lines]),
        np.concatenate([events.starts_ns for events in lines]),
        np.concatenate([events.durations_ns for events in lines]),
        {"group_id": np.concatenate([events.numbers["group_id"] for events in lines])},
    )


def spans(runs: Sequence[OpRun], groups: Mapping[int, int], zero: int) -> Events:
    """When anything ran."""
    table = stored.in_memory(runs)
    return Events(
        np.zeros(len(table), np.int64),
        table.start_ns - zero,
        table.duration_ns,
        {"group_id": steps.groups_of(table.step, groups)},
    )


def ops_at_once(plane: Plane, ops: Events) -> Events:
    """How many ops ran at once, an event for every time at which the number changed."""
    moments, number = lanes.spans_at_once(ops.starts_ns, ops.durations_ns)
    if len(number) and not number[0]:  # ops of no duration
        moments, number = moments[1:], number[1:]
    name = np.full(len(number), plane.event("ops running at once"))
    return Events(name, moments, np.zeros_like(name), {"ops": number})


# Hosts: which file of a profile a run belongs to. XProf takes each file for a machine.


def split(capture: Capture, host: str) -> Iterator[tuple[str, Capture, Sequence[OpRun]]]:
    """Each host with its part of the capture, and the runs that are not in that part. A capture of
    one process stays whole; `host` is the name for runs without a task."""
    runs = stored.in_columns(capture.runs)
    tasks = {device: task_named_in(device) for device in kinds_by_device(runs)}
    named = set(tasks.values()) - {""}
    if len(named) < 2:
        yield file_name("".join(named), host), replace(capture, runs=runs), ()
        return
    files = {device: file_name(task, host) for device, task in tasks.items()}
    for name in sorted(set(files.values())):
        inside = {device for device, file in files.items() if file == name}
        own = runs.of_kinds(partial(is_among, inside, True))
        elsewhere = runs.of_kinds(partial(is_among, inside, False))
        yield name, replace(capture, runs=own), elsewhere


def is_among(devices: Container[str], inside: bool, kind: Kind) -> bool:
    return (kind[2] in devices) == inside


def task_named_in(device: str) -> str:
    """The task of this device; for the wire, the receiving task."""
    if device.startswith(wires.ON_WIRE):
        return device.rpartition(" to ")[2]
    return short_task(task_of(device))


def file_name(name: str, otherwise: str) -> str:
    """A name made safe: one without characters that could make it a path."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or otherwise
