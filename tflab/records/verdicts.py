"""What a comparison of step times allows to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """How many times as long one way to run a step takes as another, and what that is worth."""

    ratio: float  # geometric mean of the observed ratios
    low: float  # of the interval that holds the true ratio in 99 of 100 comparisons
    high: float
    p_value: float  # of the ratios, if both ways took the same time
    observations: int  # independent of one another
    word: str  # slower, faster, alike, cannot tell, or withheld where the machine was busy


@dataclass(frozen=True)
class Experiment:
    """What running an op once more, in place, added to an untraced step."""

    name: str
    op: str  # the type that ran
    once_more_ns: float  # median of the observations
    low_ns: float  # of the interval that holds the true median in 95 of 100 experiments
    high_ns: float
    observations: int  # each with sessions of its own
    predicted_ns: float | None = None  # always None; programs that read the JSON expect the key


@dataclass(frozen=True)
class Untried:
    """An op that was not run once more."""

    name: str
    op: str
    reason: str


@dataclass(frozen=True)
class Experiments:
    """The largest ops of a step, each run once more, measured in turn with the unchanged step."""

    ops: tuple[Experiment, ...]
    control: Experiment | None  # the unchanged step against itself; None where nothing was tried
    untried: tuple[Untried, ...]
    one_by_one: Experiment | None = None  # the unchanged step, where a single thread starts ops
