"""Records by hand: what several tests of views share."""

import re
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from tflab.records.graph import Source
from tflab.records.measured import ConfigTimes, Load, OpStats, StepTimes, Verdict
from tflab.records.placed import Pass
from tflab.records.stages import Backward, Frontend, Placement
from tflab.records.timed import OpRun, Spread

CPU_0 = "/job:localhost/replica:0/task:0/device:CPU:0"
CPU_1 = "/job:localhost/replica:0/task:0/device:CPU:1"

LOAD = Load(processors=2, during=0.5)
LOAD_LINE = "Other programs used 0.5 of 2 processors."

EMPTY = {"tuple": (), "Mapping": {}, "str": "", "int": 0, "bool": False}  # by type


def blank(kind: Any, *known: Any, **said: Any) -> Any:
    """A record of which a test says what it needs; nothing else was measured."""
    types = {item.name: item.type for item in fields(kind) if item.default is MISSING}
    unsaid = {name: EMPTY.get(re.sub(r"\[.*\]$", "", of)) for name, of in types.items()}
    return kind(**unsaid | dict(zip(types, known, strict=False)) | said)


a_frontend, a_backward = partial(blank, Frontend), partial(blank, Backward)
a_placement, a_pass = partial(blank, Placement), partial(blank, Pass)


def source(line: int, code: str = "", file: str = "model.py") -> Source:
    return Source(f"project/models/{file}", line, "build", code)


# What a test does not say of op statistics is -1 or unknown, so that a view that shows it is wrong
UNSAID: dict[str, Any] = {
    **dict.fromkeys(("ops", "nodes", "fused_from"), ()),
    **dict.fromkeys(("calls", "total_ns", "mean_ns", "median_ns"), -1),
    **dict.fromkeys(("share", "requested_bytes", "step_ns"), -1),
    **dict.fromkeys(("flops", "gflops", "image_ns", "code")),
}


def run(name: str, start: int, duration: int = 5, step: int = 0, device: str = "CPU:0") -> OpRun:
    return OpRun(step, name, "Op", device, start, duration)


def op_stats(key: str, **said: Any) -> OpStats:
    """A row of a table of ops of which a test says what it needs."""
    spent = {"forward_ns": said.get("total_ns", 0), "backward_ns": 0, "update_ns": 0}
    return OpStats(key, **UNSAID | spent | said)


COLUMNS = (  # of `op_row`
    *("calls", "total_ns", "mean_ns", "median_ns", "share"),
    *("requested_bytes", "flops", "gflops", "step_ns", "image_ns"),
)


def op_row(key: str, ops: str, nodes: str, fused_from: str, *numbers: float | None) -> OpStats:
    """A row of a table of ops, whose numbers are in the order of COLUMNS; the last may be left
    out."""
    names = {"ops": ops, "nodes": nodes, "fused_from": fused_from}
    named = {name: tuple(text.split()) for name, text in names.items()}
    return op_stats(key, **named, **dict(zip(COLUMNS, numbers, strict=False)))


def op_total(
    name: str, op: str, calls: int, total_ns: int, mean_ns: float, share: float
) -> OpStats:
    """All runs of one node or type."""
    times = {"total_ns": total_ns, "mean_ns": mean_ns, "median_ns": 77}
    return op_stats(name, ops=(op,), nodes=(name,), calls=calls, share=share, **times)


def op_at_size(
    calls: int,
    total_ns: int,
    mean_ns: float,
    image_ns: float,
    share: float,
    requested_bytes: int,
    gflops: float | None,
    steps: int = 10,
    flops: int | None = None,
) -> OpStats:
    """A row at one batch size, as a comparison has it."""
    times = {"total_ns": total_ns, "mean_ns": mean_ns, "image_ns": image_ns}
    times["step_ns"] = total_ns / steps
    rest = {"share": share, "requested_bytes": requested_bytes, "gflops": gflops}
    rest["flops"] = flops
    return op_stats("at this size", calls=calls, **times, **rest)


def step_times(
    counts: tuple[int, int, int, int],
    untraced_us: tuple[int, int, int],
    traced_us: tuple[int, int, int],
    per_second: float,
    ops_us: int,
) -> StepTimes:
    """The steps of a batch size: how many were traced, of how many images, how many were untraced,
    and the bytes of the peak; the median, p10 and p90."""
    steps, images, untraced, peak = counts
    spreads = (Spread(*(1_000 * us for us in times)) for times in (untraced_us, traced_us))
    rates = tuple(per_second * swing for swing in (0.99, 1, 1.01))
    return StepTimes(steps, images, *spreads, per_second, 1_000 * ops_us, untraced, peak, rates)


def verdict(ratio: float, different: bool) -> Verdict:
    """Of 7 observations; its interval is a tenth to each side, its control a hundredth."""
    word = ("slower" if ratio > 1 else "faster") if different else "cannot tell"
    return Verdict(ratio, 0.9 * ratio, 1.1 * ratio, 0.99, 1.01, 7, word)


def config_times(
    config: str, size: int, median: float, default_ns: float = 0, against: Verdict | None = None
) -> ConfigTimes:
    """Steps under a configuration; p10 and p90 are a fifth away from the median."""
    spread = Spread(median, 0.8 * median, 1.2 * median)
    step_ns = default_ns * against.ratio if against else median
    usual_ns = default_ns or median
    return ConfigTimes(config, size, spread, usual_ns, step_ns, against)
