"""Recorded traces by hand, and RunMetadata.

RECORDED is three steps on a CPU and a GPU: x feeds neg on the CPU and conv on the GPU, which has a
launch and kernels; y stands alone, and between x and conv is a node that nobody timed.
"""

from tests.graph_notation import graph
from tflab.convert.read import Recording
from tflab.records.timed import OpRun, StepTime

CPU, GPU, STREAM = "/cpu:0", "/gpu:0", "/gpu:0/stream:13"
TYPES = {"_SOURCE": "NoOp", "x": "Const", "neg": "Neg", "y": "Range", "conv": "Conv2D"}
STARTS = (1_000, 5_000, 9_000)  # of the steps; us


def run(
    step: int, name: str, device: str, start: int, us: int, requested: int = 0, *held: tuple
) -> OpRun:
    """Times in us since the start of the step; `held` are allocations, as time and bytes."""
    begin = (STARTS[step] + start) * 1000
    allocations = tuple((STARTS[step] + at, size, "cpu") for at, size in held)
    return OpRun(step, name, TYPES[name], device, begin, us * 1000, requested, allocations)


RUNS = (
    run(0, "_SOURCE", CPU, 0, 1),
    run(0, "x", CPU, 2, 10, 3072, (3, 3072), (60, -3072)),
    run(0, "conv", GPU, 15, 5),
    run(0, "neg", CPU, 20, 30, 1024, (21, 1024)),
    run(0, "conv", STREAM, 40, 60),
    run(1, "_SOURCE", CPU, 0, 2),
    run(1, "x", CPU, 2, 20),
    run(1, "conv", GPU, 22, 6),
    run(1, "neg", CPU, 30, 40),
    run(1, "conv", STREAM, 60, 70),
    run(1, "conv", STREAM, 135, 10),
    run(2, "x", CPU, 0, 30, 3072, (1, 3072)),
    run(2, "neg", CPU, 10, 35),
    run(2, "y", CPU, 20, 5),
    run(2, "conv", GPU, 50, 4),
    run(2, "conv", STREAM, 60, 50, 512, (61, 512)),
)
RECORDED = Recording(
    files=("traces/first.pb", "traces/second.pb", "third.pb"),
    labels=("first.pb", "second.pb", "third.pb"),
    steps=(
        StepTime(0, 1_000_000, 100_000),
        StepTime(1, 5_000_000, 145_000),
        StepTime(2, 9_000_000, 110_000),
    ),
    runs=RUNS,
    nodes=graph("x=Const; neg=Neg; untimed=Identity(x); conv=Conv2D(untimed); y=Range"),
    notes=("In 'traces/first.pb' something was odd.",),
)

# RunMetadata, whose rows are text


def row(
    name: str, start: int, duration: int, label: str = "", unit: str = "nanos", more: str = ""
) -> str:
    return (
        f'node_stats {{ node_name: "{name}" timeline_label: "{label}" '
        f"all_start_{unit}: {start} all_end_rel_{unit}: {duration} {more} }}"
    )


def micros(name: str, start: int, duration: int, label: str = "") -> str:
    return row(name, start, duration, label, "micros")


def metadata(*devices: tuple[str, list[str]], more: str = "") -> bytes:
    """A serialized RunMetadata with these devices and their rows."""
    from google.protobuf import text_format
    from tensorflow.core.protobuf import config_pb2

    written = (f'dev_stats {{ device: "{name}" {" ".join(rows)} }}' for name, rows in devices)
    text = f"step_stats {{ {' '.join(written)} }} {more}"
    return text_format.Parse(text, config_pb2.RunMetadata()).SerializeToString()
