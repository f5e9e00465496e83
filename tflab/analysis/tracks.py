"""Tracks: what the rows of a trace stand for, and which of them say the same again.

No TensorFlow in here. A RunMetadata puts its rows under devices, and not all of these are devices:

- `/job:.../device:CPU:0`, or `/cpu:0`: ops, and the time that they took;
- `/job:.../device:GPU:0`, or `/gpu:0`: ops too, but timed is the thread that launches kernels;
- `/device:GPU:0/stream:13`, or `/gpu:0/stream:13`: the kernels of one stream, which old traces list
  with its copies. Newer ones have the copies apart, under `/stream:13<MemcpyH2D>`;
- `/device:GPU:0/stream:all`: the kernels of all streams once more;
- `/device:GPU:0/memcpy`: the copies once more;
- `/device:GPU:0/stream:`: what else the GPU did, setting memory for one;
- `/device:GPU:0/sync`: threads that wait for a stream;
- `/host:CPU`: what a profiler of 2019 and 2020 saw on its threads, the ops once more among it.

Read in TensorFlow's gpu_tracer.cc of 2016, device_tracer.cc of 2018, host_tracer.cc of 2019 and
xplane_to_step_stats.cc of today; stat_summarizer.cc leaves the same rows out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tflab.records import OpRun

OPS = "ops"
LAUNCHES = "launches of GPU kernels"
KERNELS = "kernels of a stream"
COPIES = "copies"
OTHERS = "other work of a GPU"
WAITS = "waits for a GPU"
REPEATS = "left out: repeats other rows"
ON_GPU = (KERNELS, COPIES, OTHERS)

TRACER = re.compile(
    r"(?P<gpu>.*)/(?P<track>memcpy|sync|stream:(?P<stream>\w*)(<((?P<copies>memcpy).*|.*)>)?)",
    re.IGNORECASE,
)
GPU = re.compile(r"(.*[/:_])?gpu:\d+", re.IGNORECASE)
HOST = "/host:CPU"
# What the runtime writes above the kernels that an op launches: `conv1/Conv2D:Conv2D`, and
# `conv1/Conv2D:Conv2D:MEMCPYHtoD` for a copy of old.
ANNOTATION = re.compile(r"(?P<node>[^:\s]+):(?P<op>[A-Za-z_]\w*)(:\w+)?")
ROCM_ANNOTATION = re.compile(r"@@(.+?)#")


def kind(device: str) -> str:
    """What the rows of a device are, by its name."""
    match = TRACER.fullmatch(device)
    if match and match["track"] == "sync":
        return WAITS
    if match and (match["track"] == "memcpy" or match["copies"]):
        return COPIES
    if match:
        return KERNELS if match["stream"] else OTHERS
    if device.endswith(HOST):
        return REPEATS
    return LAUNCHES if GPU.fullmatch(device) else OPS


def traced(name: str, label: str) -> tuple[str, str]:
    """The node and the op type of a kernel or a copy; of a copy the type is its direction.

    Where nothing tells which op it was for, the name is all that there is.
    """
    annotated = ROCM_ANNOTATION.search(label)
    match = ANNOTATION.fullmatch(annotated[1] if annotated else name)
    node, op = (match["node"], match["op"]) if match else (name, "unknown")
    first = label.partition(" ")[0]
    return node, first if first.upper().startswith("MEMCPY") else op


def once(runs: Mapping[str, Sequence[OpRun]]) -> dict[str, list[OpRun]]:
    """The runs of each device, without those that another one has as well.

    Copies count where they are told apart, kernels in their stream. The tracer writes its rows
    twice, so that a copy of a row has its name and its times, and takes away one row, not more.
    """
    kept = {device: list(group) for device, group in runs.items()}
    tracks: dict[str, dict[str, str]] = {}  # GPU -> track -> device
    for device in runs:
        if device.endswith(HOST):
            kept[device] = []
        elif match := TRACER.fullmatch(device):
            tracks.setdefault(match["gpu"], {})[match["track"]] = device
    for own in tracks.values():
        streams = [own[track] for track in own if track not in ("memcpy", "sync", "stream:all")]
        copies = Counter(map(told, runs.get(own.get("memcpy", ""), ())))
        kernels = Counter(told(run) for device in streams for run in runs[device])
        for device in streams:
            kept[device] = without(copies, runs[device])
        if "stream:all" in own:
            kept[own["stream:all"]] = without(kernels, runs[own["stream:all"]])
    return kept


def told(run: OpRun) -> tuple[str, str, int, int]:
    return run.name, run.op, run.start_ns, run.duration_ns


def without(repeated: Counter[tuple[str, str, int, int]], runs: Iterable[OpRun]) -> list[OpRun]:
    """The runs that are not among these; each of these takes one away."""
    kept = []
    for run in runs:
        if repeated[told(run)]:
            repeated[told(run)] -= 1
        else:
            kept.append(run)
    return kept


def at_work(runs: Iterable[OpRun]) -> list[OpRun]:
    """The runs that tell what a node's work took: its kernels and copies where it has any on a GPU,
    and then not the launches, which end before the work is done."""
    runs = list(runs)
    kinds = {device: kind(device) for device in {run.device for run in runs}}
    on_gpu = {run.name for run in runs if kinds[run.device] in ON_GPU}
    return [
        run
        for run in runs
        if kinds[run.device] in ON_GPU
        or (kinds[run.device] in (OPS, LAUNCHES) and run.name not in on_gpu)
    ]
