"""Tables: op runs folded into the rows that people ask for. No TensorFlow in here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import fmean

from tflab.records import OpRun, OpTotal


def top_ops(runs: Iterable[OpRun]) -> tuple[OpTotal, ...]:
    """One row for each node, the dearest first."""
    return totals(runs, lambda run: (run.name, run.op))


def top_types(runs: Iterable[OpRun]) -> tuple[OpTotal, ...]:
    """One row for each op type that ran, the dearest first; `name` and `op` are both the type."""
    return totals(runs, lambda run: (run.op, run.op))


def totals(runs: Iterable[OpRun], key: Callable[[OpRun], tuple[str, str]]) -> tuple[OpTotal, ...]:
    """Runs added up by (name, op).

    Op runs of a dataflow executor do not call one another, so the self time of a run is all of
    its time. Runs overlap when ops run in parallel, so totals may add up to more than the wall.
    """
    durations: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        durations.setdefault(key(run), []).append(run.duration_ns)
    everything = sum(map(sum, durations.values())) or 1
    rows = [
        OpTotal(
            name=name,
            op=op,
            calls=len(times),
            total_ns=sum(times),
            self_ns=sum(times),
            mean_ns=fmean(times),
            share=sum(times) / everything,
        )
        for (name, op), times in durations.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.self_ns, row.name)))
