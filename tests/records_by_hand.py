"""Records by hand: what several tests of views share, and how they read what a view yields."""

from typing import Any

from tflab.records.blocks import Block, Strip, Table
from tflab.records.graph import Source
from tflab.records.measured import OpStats
from tflab.records.timed import OpRun
from tflab.records.verdicts import Quality, Verdict

CPU_0 = "/job:localhost/replica:0/task:0/device:CPU:0"
CPU_1 = "/job:localhost/replica:0/task:0/device:CPU:1"


# A machine that was disturbed in two ways, and the line that stands above its measurement
BUSY = Quality(
    quiet=False,
    reasons=("one thing was wrong", "another too"),
    cores=2,
    load_average=2.5,
    stolen_share=0.125,
    p90_to_p10=3.75,
    untraced_to_traced=1.0625,
)
BUSY_LINE = (
    "This machine was busy: one thing was wrong; another too. Conclusions are withheld; "
    "measure again on a quiet machine."
)


def source(line: int, code: str = "", file: str = "model.py") -> Source:
    return Source(f"project/models/{file}", line, "build", code)


# What a test does not say of op statistics is -1 or unknown, so that a view that shows it is wrong
UNSAID: dict[str, Any] = {
    "ops": (),
    "nodes": (),
    "fused_from": (),
    **dict.fromkeys(("calls", "total_ns", "self_ns", "mean_ns", "median_ns", "p95_ns"), -1),
    **dict.fromkeys(("share", "cumulative_share", "requested_bytes", "std_ns", "step_ns"), -1),
    **dict.fromkeys(("flops", "gflops", "step_std_ns"), None),
    "peak_bytes": None,
    "step_median_ns": None,
    "image_ns": None,
}


def run(name: str, start: int, duration: int = 5, step: int = 0, device: str = "CPU:0") -> OpRun:
    return OpRun(step, name, "Op", device, start, duration)


def op_stats(key: str, **said: Any) -> OpStats:
    """A row of a table of ops of which a test says what it needs."""
    spent = {"forward_ns": said.get("self_ns", 0), "backward_ns": 0, "update_ns": 0}
    return OpStats(key, **UNSAID | spent | said)


def op_total(
    name: str, op: str, calls: int, total_ns: int, self_ns: int, mean_ns: float, share: float
) -> OpStats:
    """All runs of one node or type."""
    times = {"total_ns": total_ns, "self_ns": self_ns, "mean_ns": mean_ns, "median_ns": 77}
    return op_stats(name, ops=(op,), nodes=(name,), calls=calls, share=share, **times)


def op_at_size(
    calls: int,
    total_ns: int,
    mean_ns: float,
    image_ns: float,
    share: float,
    requested_bytes: int,
    gflops: float | None,
) -> OpStats:
    """A row at one batch size, as a comparison has it."""
    times = {"total_ns": total_ns, "mean_ns": mean_ns, "image_ns": image_ns}
    rest = {"share": share, "requested_bytes": requested_bytes, "gflops": gflops}
    return op_stats("at this size", calls=calls, **times, **rest)


def read(block: Block) -> str | list | Strip:
    """A table as title, headers, every row and what was left out; other blocks as they are."""
    if not isinstance(block, Table):
        return block
    headers = tuple(column.header for column in block.columns)
    return [block.title, headers, *block.cells(), block.rest()]


def verdict(ratio: float, different: bool) -> Verdict:
    """Of 7 observations; its interval is a tenth to each side."""
    word = ("slower" if ratio > 1 else "faster") if different else "cannot tell"
    return Verdict(ratio, 0.9 * ratio, 1.1 * ratio, 0.001, 7, word)
