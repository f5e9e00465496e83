"""Verdicts: what a comparison of step times proves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """How many times as long one way to run a step takes as another, and how certain that is."""

    ratio: float  # geometric mean of the observed ratios
    low: float  # lower end of the 99 % interval
    high: float
    p_value: float  # of the ratios, if there were no difference
    observations: int  # independent ones
    word: str  # slower, faster, alike, cannot tell, or withheld (the machine was busy)


@dataclass(frozen=True)
class Experiment:
    """The time that running an op once more, in place, added to an untraced step."""

    name: str
    op: str  # the type that ran
    once_more_ns: float  # median of the observations
    low_ns: float  # lower end of the 95 % interval of the median
    high_ns: float
    observations: int  # each in new sessions
    predicted_ns: float | None = None  # always None; programs that read the JSON expect the key


@dataclass(frozen=True)
class Untried:
    """An op that was not run once more."""

    name: str
    op: str
    reason: str


@dataclass(frozen=True)
class Experiments:
    """The largest ops of a step, each run once more, in turn with the unchanged step."""

    ops: tuple[Experiment, ...]
    control: Experiment | None  # the unchanged step compared with itself; None if nothing was tried
    untried: tuple[Untried, ...]
    one_by_one: Experiment | None = None  # the unchanged step, with a single thread that starts ops
