"""View of experiments: what an op costs a step, with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tflab.analysis import quality
from tflab.records.blocks import Block, Column, Table
from tflab.records.quality import Quality
from tflab.records.verdicts import Experiments
from tflab.units import plural, time

WITHHELD = "What an op costs a step is withheld because the machine was busy."


def blocks(
    experiments: Experiments,
    self_ns: Mapping[str, float],
    at: str = "",
    judgement: Quality | None = None,
) -> Iterable[Block]:
    """The experiments, and the ops without one; nothing from a busy machine. `self_ns` has the
    self time per step of nodes, if known; `at` is the batch size, if there are several."""
    if experiments.control and quality.disturbed(judgement):
        yield WITHHELD
        return
    own = Column("self a step, mean", lambda row: known(self_ns.get(row.name)), right=True, spare=2)
    if experiments.control:
        yield Table(
            f"What an op costs a step{at}{quality.mark(judgement)}: time added by running it a "
            f"second time in place",
            (
                Column("node", lambda row: row.name, elastic=True, name=True),
                Column("type that ran", lambda row: row.op, spare=3),
                Column("adds", lambda row: time(row.once_more_ns), right=True),
                Column("from", lambda row: time(row.low_ns), right=True),
                Column("to", lambda row: time(row.high_ns), right=True),
                *([own] if self_ns else []),
            ),
            (*filter(None, (experiments.control, experiments.one_by_one)), *experiments.ops),
        )
        observations = experiments.control.observations
        yield (
            f"Median of {plural(observations, 'observation')}, each in new sessions in which all "
            f"of these steps alternate, untraced. From and to: the interval that contains the "
            f"true median in 95 of 100 experiments. The control compares the unchanged step with "
            f"itself: an op whose interval overlaps it may add nothing."
        )
    if experiments.one_by_one:
        yield (
            "Ops one by one: the unchanged step with a single thread that starts ops, each on all "
            "processors. If this is negative, running ops in parallel does not pay."
        )
    for row in experiments.untried:
        yield f"Not repeated{at}: {row.name} ({row.op}): {row.reason}."


def known(ns: float | None) -> str:
    return "" if ns is None else time(ns)
