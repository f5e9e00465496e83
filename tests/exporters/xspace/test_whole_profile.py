"""Whole profiles: every plane, line, event and stat. The times of steps and the bytes of allocators
are worked out by hand in test_steps and test_memory."""

import pytest

from tests.approval import approve
from tests.exporters.xspace import xplane
from tflab.exporters import xspace
from tflab.records.timed import Capture, OpRun, StepTime

pytestmark = pytest.mark.tensorflow

TASK = "/job:localhost/replica:0/task:0"
CPU, GPU, STREAM = f"{TASK}/device:CPU:0", f"{TASK}/device:GPU:0", "/device:GPU:0/stream:13"

CAPTURE = Capture(
    "toy",
    (StepTime(4, 50_300, 900), StepTime(6, 51_500, 400)),
    (
        OpRun(4, "c1/Conv", "_FusedConv2D", CPU, 50_400, 200, 64, ((50, 64, "cpu"),)),
        OpRun(4, "relu", "Relu", CPU, 50_500, 300),  # while the convolution runs
        OpRun(
            6, "c1/Conv", "_FusedConv2D", CPU, 51_600, 100, 0, ((51, 64, "cpu"), (51, -64, "cpu"))
        ),
        OpRun(4, "mul", "Mul", GPU, 50_700, 50),
        OpRun(4, "mul", "Mul", STREAM, 50_720, 300),  # the kernel that it launched
    ),
)


def test_two_steps_and_five_runs():
    """Times count from 49,999 ns: a nanosecond before the microsecond of the first step."""
    modules = {"cluster_0": b"\x01", "f": b"\x02"}
    approve("xspace.txt", xplane.described(xspace.encode(CAPTURE, host="a-7", modules=modules)))


def of(*runs: tuple, steps: tuple[StepTime, ...] = ()) -> Capture:
    """A capture of runs: name, device, start and duration."""
    return Capture("c", steps, tuple(OpRun(0, name, "Op", *rest) for name, *rest in runs))


CASES = {
    "nothing at all": of(),
    "an op before the first step": of(("a", CPU, 5_000, 3), steps=(StepTime(0, 6_200, 100),)),
    "no step": of(("a", CPU, 5_000, 3)),
    "the first step ends last": of(steps=(StepTime(0, 2_000, 900), StepTime(1, 2_100, 100))),
    "an op ends as another begins, and one takes no time": of(
        ("a", CPU, 1_009, 21), ("b", "CPU:1", 1_019, 10), ("c", "CPU:1", 1_029, 0),
        ("d", CPU, 1_030, 9),
    ),
    "a gap between ops": of(
        ("a", CPU, 2_010, 10), ("b", CPU, 2_030, 10), steps=(StepTime(0, 2_000, 50),)
    ),
    "an op within the time of another": of(("a", CPU, 2_000, 50), ("b", CPU, 2_010, 10)),
    "a stream, copies, and two GPUs": of(
        ("a/b", "/device:GPU:0/stream:", 1_000, 5), ("a/b", "/device:GPU:0/stream:", 2_000, 5),
        ("a", "/gpu:0/memcpy", 1_000, 5), ("a", f"{TASK}/device:GPU:1", 1_000, 5),
        ("a", "/device:GPU:1/stream:7", 1_000, 5),
    ),
    "a node on two devices": of(("a", CPU, 1_000, 5), ("a", "CPU:1", 1_000, 5)),
    "a node with two types": Capture(
        "c", (), tuple(OpRun(0, "a", op, CPU, 1_000 + 5 * n, 5) for n, op in enumerate("AB"))
    ),
}  # fmt: skip


def test_cases():
    shown = (f"# {name}\n\n{xplane.described(xspace.encode(CASES[name]))}\n" for name in CASES)
    approve("xspace-cases.txt", "\n".join(shown))
