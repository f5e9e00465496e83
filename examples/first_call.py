"""The first call does not show what an op costs: it does much work that is done only once.

All calls in a column below do the same work. Look at how long the first call takes, at the op that
a profile of it would blame, and at what happens when only the batch size is new: the runtime then
knows the graph, but has to prepare its kernels for other shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import lesson
import numpy as np

from tflab import lifecycle
from tflab.records.blocks import Table
from tflab.records.options import Options
from tflab.records.stages import Frontend
from tflab.records.timed import OpRun
from tflab.runtime import session
from tflab.units import percent, time

BATCHES = (16, 48)  # in this order
CALLS = 60
REPORTED_CALLS = (1, 2, 3, 10)
WARM = 10  # calls before the warm ones
MOST_EXPENSIVE = 5  # ops


def calls(built: Frontend) -> list[tuple[int, dict[str, OpRun]]]:
    """The wall time of every call, with the runs of its ops: one batch size, then the other."""
    model, graph = built.program.model, built.program.graph
    step = session.Step(feeds=("images:0",), fetches=(model.output.name,), targets=())
    noise = np.random.default_rng(1).normal(size=(max(BATCHES), 32, 32, 1)).astype(np.float32)
    batches = [[noise[:size]] for size in BATCHES for _ in range(CALLS)]
    with session.opened(graph, Options()) as live:
        return list(lesson.traced(live, step, batches))


def blame(calls: Sequence[Mapping[str, OpRun]]) -> Table:
    """The ops that cost most in the first call, and what they cost when warm."""
    cold = {name: run.duration_ns for name, run in calls[0].items()}
    warm = {name: median(ops[name].duration_ns for ops in calls[WARM:]) for name in cold}
    rows = []
    for name in sorted(cold, key=cold.__getitem__, reverse=True)[:MOST_EXPENSIVE]:
        shares = (percent(of[name] / sum(of.values())) for of in (cold, warm))
        rows.append((name, time(cold[name]), time(warm[name]), *shares))
    headers = ("op", "first call", "warm", "share of the first", "share when warm")
    return lesson.table("What the very first call can be blamed on", headers, rows)


def main() -> None:
    *_, built = lifecycle.walk("lenet", stop="frontend")
    assert isinstance(built, Frontend)
    walls, ops = zip(*calls(built), strict=True)
    old, new = walls[:CALLS], walls[CALLS:]
    rows = [(str(call), time(old[call - 1]), time(new[call - 1])) for call in REPORTED_CALLS]
    rows.append(
        (f"median from call {WARM + 1}", time(median(old[WARM:])), time(median(new[WARM:])))
    )
    slower, again = (of[0] / median(of[WARM:]) for of in (old, new))
    lesson.show(
        lesson.table(
            "Inference with LeNet in a new process, traced, call by call",
            ("call", *(f"batch {size}" for size in BATCHES)),
            rows,
        ),
        blame(ops[:CALLS]),
        f"The very first call took {slower:,.0f} x as long as a warm one, the first of the new "
        f"batch size {again:,.1f} x.",
    )


if __name__ == "__main__":
    lesson.give(main)
