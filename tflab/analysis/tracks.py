"""Tracks: what the rows of a trace stand for, and which of them repeat others.

A RunMetadata lists its rows by device, and not all of these are devices:

- `/job:.../device:CPU:0`, or `/cpu:0`: ops, and the time that they took;
- `/job:.../device:GPU:0`, or `/gpu:0`: ops too, but the times are those of launching their kernels;
- `/device:GPU:0/stream:13`, or `/gpu:0/stream:13`: the kernels of one stream. Old traces list its
  copies among them, newer ones under `/stream:13<MemcpyH2D>`;
- `/device:GPU:0/stream:all`: the kernels of all streams, repeated;
- `/device:GPU:0/memcpy`: the copies, repeated;
- `/device:GPU:0/stream:`: other work of the GPU, such as setting memory;
- `/device:GPU:0/sync`: threads that wait for a stream;
- `/host:CPU`: what a profiler of 2019 and 2020 saw on its threads, with the ops repeated.

Read in TensorFlow's gpu_tracer.cc of 2016, device_tracer.cc of 2018, host_tracer.cc of 2019 and
xplane_to_step_stats.cc of today; stat_summarizer.cc leaves the same rows out.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import Kind, OpRuns
from tflab.records.timed import OpRun

OPS = "ops"
LAUNCHES = "launches of GPU kernels"
KERNELS = "kernels of a stream"
COPIES = "copies"
OTHERS = "other work of a GPU"
WAITS = "waits for a GPU"
ON_GPU = (KERNELS, COPIES, OTHERS)

TRACER = re.compile(
    r"(?P<gpu>.*)/(?P<track>memcpy|sync|stream:(?P<stream>\w*)(<((?P<copies>memcpy).*|.*)>)?)",
    re.IGNORECASE,
)
GPU = re.compile(r"(.*[/:_])?gpu:\d+", re.IGNORECASE)
HOST = "/host:CPU"
# The annotation of the kernels that an op launches: `conv1/Conv2D:Conv2D`; for a copy in old traces
# `conv1/Conv2D:Conv2D:MEMCPYHtoD`.
ANNOTATION = re.compile(r"(?P<node>[^:\s]+):(?P<op>[A-Za-z_]\w*)(:\w+)?")
ROCM_ANNOTATION = re.compile(r"@@(.+?)#")


@functools.lru_cache(1_000)  # there are few devices, and many ask
def track_kind(device: str) -> str:
    """Return the kind of rows that a device has, by the device's name."""
    match = TRACER.fullmatch(device)
    if match and match["track"] == "sync":
        return WAITS
    if match and (match["track"] == "memcpy" or match["copies"]):
        return COPIES
    if match:
        return KERNELS if match["stream"] else OTHERS
    return LAUNCHES if GPU.fullmatch(device) else OPS


def node_and_op(name: str, label: str) -> tuple[str, str]:
    """Return the node and the op type of a kernel or a copy; the type of a copy is its direction.

    If there is no annotation with the op, its own name stands for the node.
    """
    annotated = ROCM_ANNOTATION.search(label)
    match = ANNOTATION.fullmatch(annotated[1] if annotated else name)
    node, op = (match["node"], match["op"]) if match else (name, "unknown")
    first = label.partition(" ")[0]
    return node, first if first.upper().startswith("MEMCPY") else op


def without_repeats(runs: Mapping[str, OpRuns]) -> dict[str, OpRuns]:
    """Return the runs of each device, without those that another device repeats.

    Copies are kept in the row of copies, kernels in the row of their stream. The tracer writes
    these rows twice with the same names and times; each repetition removes one run.
    """
    kept = dict(runs)
    tracks: dict[str, dict[str, str]] = {}  # GPU -> track -> device
    for device in runs:
        if device.endswith(HOST):
            kept[device] = runs[device][:0]
        elif match := TRACER.fullmatch(device):
            tracks.setdefault(match["gpu"], {})[match["track"]] = device
    for devices in tracks.values():
        streams = [
            devices[track] for track in devices if track not in ("memcpy", "sync", "stream:all")
        ]
        copies = Counter(map(identity, runs.get(devices.get("memcpy", ""), ())))
        kernels = Counter(identity(run) for device in streams for run in runs[device])
        for device in streams:
            kept[device] = runs_without(copies, runs[device])
        if "stream:all" in devices:
            kept[devices["stream:all"]] = runs_without(kernels, runs[devices["stream:all"]])
    return kept


def identity(run: OpRun) -> tuple[str, str, int, int]:
    return run.name, run.op, run.start_ns, run.duration_ns


def runs_without(repeated: Counter[tuple[str, str, int, int]], runs: OpRuns) -> OpRuns:
    """Return the runs that are not among `repeated`; each of those removes one run."""
    is_kept: np.ndarray = np.ones(len(runs), bool)
    for place, run in enumerate(runs if repeated else ()):
        if repeated[identity(run)]:
            repeated[identity(run)] -= 1
            is_kept[place] = False
    return runs.where(is_kept)


def work_runs(runs: Iterable[OpRun]) -> OpRuns:
    """Return the runs that have the times of a node's work: its kernels and copies if it has any on
    a GPU. Launches do not count then, because they end before the work is done."""
    table = op_runs.of(runs)
    tracks = {device: track_kind(device) for *_, device in table.kinds}
    on_gpu = {name for name, _, device in table.kinds if tracks[device] in ON_GPU}

    def is_work(kind: Kind) -> bool:
        name, _, device = kind
        track = tracks[device]
        return track in ON_GPU or (track in (OPS, LAUNCHES) and name not in on_gpu)

    return table.of_kinds(is_work)
