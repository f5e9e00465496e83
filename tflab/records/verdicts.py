"""Verdicts: what a comparison of step times proves, whether the machine was quiet, and why a step
is slow."""

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


@dataclass(frozen=True)
class Load:
    """The other load of the machine, as far as it is known."""

    cores: int
    average: float | None  # of the minute before the measurement began; None: unknown
    # of the processor time during it, taken by the host of a virtual machine
    stolen_share: float | None


@dataclass(frozen=True)
class Quality:
    """Whether conclusions from times can be drawn, and the numbers that show it."""

    quiet: bool
    reasons: tuple[str, ...]  # why not; empty on a quiet machine
    cores: int
    load_average: float | None  # before the measurement
    stolen_share: float | None  # of the processor time during it
    p90_to_p10: float | None  # of untraced steps, the largest; None for too few steps
    untraced_to_traced: float | None  # of the medians, the largest; None for too few steps
    even_if_busy: bool = False  # whether the user wants conclusions nevertheless, marked


@dataclass(frozen=True)
class Diagnosis:
    """One reason why a step is slow: its cost, the evidence, and a suggestion."""

    sentence: str
    cost_ns: float  # the part of a step that is lost to it, at most; 0 if nothing stands out
    share: float  # of the untraced step at that batch size, by which reasons are ranked
    batch_size: int
    kind: str  # movement, format, small ops, one op, session, feeds, configuration, or none
