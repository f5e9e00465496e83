"""Tracks: what rows stand for, and which of them repeat others."""

import pytest

from tests.approval import approve
from tests.examples import runs as notation
from tflab.analysis import timeline
from tflab.analysis.op_runs import of

NAMES = """
/job:localhost/replica:0/task:0/device:CPU:0 /job:w/task:0/cpu:0 /cpu:0 /device:XLA_CPU:0
/device:TPU:0 /job:worker/replica:0/task:3/device:GPU:1 /job:w/task:0/gpu:0 /gpu:0
/device:XLA_GPU:0 /device:GPU:0/stream:13 /gpu:0/stream:7 /device:GPU:0/stream:3<Kernel>
/device:GPU:0/stream:all /device:GPU:0/stream:14<MemcpyH2D> /device:GPU:0/memcpy /gpu:0/memcpy
/device:GPU:0/stream: /device:GPU:0/sync /host:CPU
"""
ROWS = (  # names and labels; one without a label is of 2016
    ("conv1/Conv2D:Conv2D", "void cudnn::winograd<float> regs:32"),
    ("conv1/Conv2D:Conv2D", ""),
    ("x:Const:MEMCPYHtoD", "MEMCPYHtoD 4 bytes (Pageable to Device)"),
    ("unknown:MEMCPYDtoH", "MEMCPYDtoH 8 bytes"),
    ("x:_Send", "MemcpyD2H bytes:40 async"),
    *((name, "") for name in ("void fill<int, ns::kind>(int)", "unknown", "")),
)


def test_devices_tell_what_their_rows_are_and_a_kernel_or_a_copy_belongs_to_an_op():
    kinds = [f"{device}: {timeline.track_kind(device)}" for device in (*NAMES.split(), "")]
    ops = [
        f"{name!r}, {label!r}: {', '.join(timeline.node_and_op(name, label))}"
        for name, label in ROWS
    ]
    approve("tracks.txt", "\n".join([*kinds, "", *ops]))


DEVICES = {
    "cpu": "/job:a/device:CPU:0",
    "launches": "/job:a/device:GPU:0",
    "s7": "/device:GPU:0/stream:7",
    "s8": "/device:GPU:0/stream:8",
    "h2d": "/device:GPU:0/stream:8<MemcpyH2D>",
    "all": "/device:GPU:0/stream:all",
    "memcpy": "/device:GPU:0/memcpy",
    "sync": "/device:GPU:0/sync",
    "host": "/host:CPU",
    "other": "/device:GPU:1/stream:7",
}


def by_device(text):
    """`s7 ab; all`: on each device, runs that are letters."""
    rows = [part.partition(" ") for part in text.split("; ")]
    return {
        DEVICES[name]: of([notation.run(f"{letter} {ord(letter)}") for letter in letters])
        for name, _, letters in rows
    }


@pytest.mark.parametrize(
    ("recorded", "kept"),
    [
        ("s7 ab; all abc; s8 c", "s7 ab; all; s8 c"),  # kernels are in their stream
        ("memcpy xy; s7 axb; s8 y; all ab", "memcpy; s7 axb; s8 y; all"),  # copies, too
        ("h2d x; memcpy x", "h2d x; memcpy"),
        ("all ab", "all ab"),  # no repetition
        ("h2d x", "h2d x"),
        ("memcpy x", "memcpy x"),
        # An op with the name of a kernel is none, nor is one of another GPU
        ("cpu a; launches a; sync a; s7 a", "cpu a; launches a; sync a; s7 a"),
        ("all a; other a", "all a; other a"),
        ("host abc; cpu ab", "host; cpu ab"),  # the threads of a profiler
    ],
)
def test_runs_that_repeat_others_are_left_out(recorded, kept):
    assert timeline.without_repeats(by_device(recorded)) == by_device(kept)


def test_a_nodes_work_on_a_gpu_is_what_its_kernels_took():
    launch, shape, wait, kernel = notation.runs(
        "a 0 @/gpu:0; shape 0 @/gpu:0; wait 0 @/gpu:0/sync; a 9 @/gpu:0/stream:7"
    )
    assert timeline.work_runs([launch, shape, wait, kernel]) == [shape, kernel]
