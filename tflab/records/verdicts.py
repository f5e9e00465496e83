"""Verdicts: what a comparison of step times proves, what the load was, and why a step is slow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """How many times as long one way to run a step takes as another, and how certain that is."""

    ratio: float  # geometric mean of the observed ratios
    low: float  # lower end of the 99 % interval
    high: float
    # The 90 % interval of a ratio of the same thing to itself, measured in the same turns
    control_low: float
    control_high: float
    observations: int
    word: str  # slower, faster, alike, or cannot tell


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


@dataclass(frozen=True)
class Load:
    """What else kept the processors of the machine busy, as far as it is known."""

    processors: int
    before: float | None  # processes that ran or waited in the minute before the measurement, mean
    during: float | None  # processors that were not available to it, mean


@dataclass(frozen=True)
class Diagnosis:
    """One reason why a step is slow: its cost, the evidence, and a suggestion."""

    sentence: str
    cost_ns: float  # the part of a step that is lost to it, at most; 0 if nothing stands out
    share: float  # of the untraced step at that batch size, by which reasons are ranked
    batch_size: int
    kind: str  # movement, format, small ops, one op, session, feeds, configuration, or none
