"""Waits: which task of a cluster the others waited for.

What slows a step down is seen where nothing else runs: a task that computes for long computes alone
at the end, and one that stood still ends a pause in which no op ran anywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from tflab.analysis.timeline import busy_spans, by_step
from tflab.records import OpRun, StepTime
from tflab.units import task_of

WIRE = ""  # in place of a task: a tensor on its way


def waits(
    runs: Iterable[OpRun], wires: Iterable[OpRun], steps: Iterable[StepTime]
) -> tuple[Counter[str], Counter[str]]:
    """For each task the time in which only its ops ran, and the time in which nothing did until its
    next op began; ns, over all steps."""
    alone: Counter[str] = Counter()
    awaited: Counter[str] = Counter()
    ops, moving = by_step(runs), by_step(wires)
    for step in steps:
        rows: dict[str, list[OpRun]] = defaultdict(list, {WIRE: moving.get(step.step, [])})
        for run in ops.get(step.step, ()):
            rows[task_of(run.device)].append(run)
        running: set[str] = set()
        last = step.start_ns
        for at, _, task in sorted(turns(rows, step)):
            computing = running - {WIRE}
            if len(computing) == 1:
                alone[next(iter(computing))] += at - last
            elif not running:
                awaited[task] += at - last
            running ^= {task}
            last = at
    del awaited[WIRE]
    return alone, awaited


def turns(rows: dict[str, list[OpRun]], step: StepTime) -> Iterable[tuple[int, bool, str]]:
    """When each task, or the wire, begins to be busy, and when it is so no longer."""
    for task, own in rows.items():
        for start, end in busy_spans(own, step):
            yield start, True, task
            yield end, False, task
