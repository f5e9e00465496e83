"""View of experiments: what an op costs a step, with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tflab.analysis import quality
from tflab.records import Experiments, Quality
from tflab.records.blocks import Block, Column, Table
from tflab.units import plural, time

WITHHELD = "What an op costs a step is withheld, for the machine was busy."


def blocks(
    experiments: Experiments,
    self_ns: Mapping[str, float],
    at: str = "",
    judgement: Quality | None = None,
) -> Iterable[Block]:
    """The experiments and what could not be tried; nothing of a machine that was busy. `self_ns` is
    of a step, by node, where it is known; `at` says at which batch size, where there are several.
    """
    if experiments.control and quality.disturbed(judgement):
        yield WITHHELD
        return
    own = Column("self a step, mean", lambda row: known(self_ns.get(row.name)), right=True, spare=2)
    if experiments.control:
        yield Table(
            f"What an op costs a step{at}{quality.mark(judgement)}: run once more in place, it "
            "adds",
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
            f"Median of {plural(observations, 'observation')}, each with sessions of its own in "
            "which all of these steps took turns, untraced; from and to: the interval that holds "
            "the true median in 95 of 100 experiments. The control is the unchanged step against "
            "itself: what is not clear of it cannot be told from nothing."
        )
    if experiments.one_by_one:
        yield (
            "Ops one by one: the unchanged step where a single thread starts ops, each with all "
            "processors. Where that adds less than nothing, it does not pay to run ops at once."
        )
    for row in experiments.untried:
        yield f"Not run once more{at}: {row.name} ({row.op}): {row.reason}."


def known(ns: float | None) -> str:
    return "" if ns is None else time(ns)
