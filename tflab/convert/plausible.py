"""Plausible: what a trace tells that cannot have been, and what is done about it.

No TensorFlow in here. A clock that is set while a step runs gives negative durations. Times that
are days away and absurd sizes are a tracer's mistakes, or a damaged file's.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median_low

from tflab.analysis.memory import US
from tflab.records import OpRun
from tflab.units import plural

DAY_NS = 24 * 3600 * 10**9  # a step that takes longer has a wrong clock
LATEST_NS = 2**62  # the year 2116: what is later does not fit into the formats of other tools
MOST_BYTES = 2**48  # 256 TB: no op asks for more


def plausible(runs: list[OpRun]) -> tuple[list[OpRun], list[str]]:
    """The runs with possible times and sizes, and what was done about the others."""
    notes = []
    negative = sum(run.duration_ns < 0 for run in runs)
    if negative:
        runs = [replace(run, duration_ns=max(0, run.duration_ns)) for run in runs]
        notes.append(f"{plural(negative, 'op run')} ended before the start: counted as 0 ns")
    middle = median_low(run.start_ns for run in runs) if runs else 0
    low, high = max(0, middle - DAY_NS), min(LATEST_NS, middle + DAY_NS)
    kept = [run for run in runs if low <= run.start_ns <= high - run.duration_ns]
    if len(kept) < len(runs):
        away = plural(len(runs) - len(kept), "op run")
        notes.append(f"{away} more than a day away from the rest left out")
    wrong = {id(run) for run in kept if not 0 <= run.requested_bytes <= MOST_BYTES}
    wrong |= {
        id(run)
        for run in kept
        for time, size, _ in run.allocations
        if not low <= time * US <= high or size < -MOST_BYTES
    }
    if wrong:
        kept = [
            replace(run, requested_bytes=0, allocations=()) if id(run) in wrong else run
            for run in kept
        ]
        notes.append(f"impossible allocations of {plural(len(wrong), 'op run')} left out")
    return kept, notes
