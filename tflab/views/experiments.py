"""View of experiments: what an op costs a step, with its interval, and beside it the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tflab.records import Experiment, Experiments, Simulation
from tflab.records.blocks import Block, Column, Table
from tflab.units import percent, plural, time

NEAR = 0.25  # of a measured cost: a model that is as near is right


def blocks(experiments: Experiments, self_ns: Mapping[str, float], at: str = "") -> Iterable[Block]:
    """The experiments and what could not be tried. `self_ns` is of a step, by node, where it is
    known; `at` says at which batch size, where there are several."""
    own = Column("self a step", lambda row: known(self_ns.get(row.name)), right=True, spare=2)
    if experiments.control:
        yield Table(
            f"What an op costs a step{at}: run once more in place, it adds",
            (
                Column("node", lambda row: row.name, elastic=True, name=True),
                Column("type that ran", lambda row: row.op, spare=3),
                Column("adds", lambda row: time(row.once_more_ns), right=True),
                Column("from", lambda row: time(row.low_ns), right=True),
                Column("to", lambda row: time(row.high_ns), right=True),
                Column("the model says", lambda row: known(row.predicted_ns), right=True, spare=1),
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
    if experiments.simulation:
        yield modelled(experiments.simulation, experiments.ops)
    for row in experiments.untried:
        yield f"Not run once more{at}: {row.name} ({row.op}): {row.reason}."


def modelled(simulation: Simulation, experiments: Sequence[Experiment]) -> str:
    """How good the model is: its step beside the measured one, its ops beside the experiments."""
    error = simulation.step_ns / simulation.untraced_ns - 1
    predicted = [row for row in experiments if row.predicted_ns is not None]
    tests = [row for row in predicted if is_test(row)]
    rough = len(predicted) - len(tests)
    return (
        "The model is a simulation of the executor on "
        f"{plural(simulation.processors, 'processor')}, with every op as long as it takes in "
        "traced steps that run them one by one, scaled to such a step untraced. It puts the step "
        f"at {time(simulation.step_ns)}; untraced, and in turn with the others, it took "
        f"{time(simulation.untraced_ns)}: an error of {100 * error:+.1f} %. "
        + agreement(tests)
        + roughness(rough)
    )


def agreement(tests: Sequence[Experiment]) -> str:
    if not tests:
        return "No op was measured well enough to test what it says of ops."
    return (
        f"What it says of an op is in the interval, or within {percent(NEAR)} of what was "
        f"measured, for {sum(map(is_near, tests))} of {plural(len(tests), 'op')}."
    )


def roughness(ops: int) -> str:
    if not ops:
        return ""
    return (
        f" {plural(ops, 'op')} {'is' if ops == 1 else 'are'} not counted: the interval is wider "
        "than twice what was measured, and most numbers would be in it."
    )


def is_test(row: Experiment) -> bool:
    """Whether the measurement is narrow enough that a wrong model would not agree with it."""
    return row.high_ns - row.low_ns <= 2 * abs(row.once_more_ns)


def is_near(row: Experiment) -> bool:
    """Whether the model's number agrees with the measured one."""
    assert row.predicted_ns is not None
    within = row.low_ns <= row.predicted_ns <= row.high_ns
    return within or abs(row.predicted_ns - row.once_more_ns) <= NEAR * abs(row.once_more_ns)


def known(ns: float | None) -> str:
    return "" if ns is None else time(ns)
