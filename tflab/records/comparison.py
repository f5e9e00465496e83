"""Two saved comparisons, or two programs, compared with one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.measured import Rounds
from tflab.records.verdicts import Load, Verdict


@dataclass(frozen=True)
class SavedComparison:
    """The part of a saved comparison that verdicts need."""

    model: str
    phase: str
    by: str
    rounds: Mapping[int, Rounds]  # by batch size


@dataclass(frozen=True)
class Change:
    """A step, a configuration or a row of the tables, in two files."""

    batch_size: int | None  # None for a program
    key: str
    first_ns: float | None  # geometric mean of the rounds or turns; None if it did not run
    second_ns: float | None
    verdict: Verdict | None  # how many times as long the second takes; None if one did not run


@dataclass(frozen=True)
class Gate:
    """Whether a step is proven to take more than this percentage longer."""

    percent: float
    slower: tuple[str, ...]  # what is proven slower, in words
    undecided: tuple[str, ...]


@dataclass(frozen=True)
class Changes(Shown):
    """All changes from the first file to the second."""

    files: tuple[str, str]
    model: str
    phase: str
    by: str
    differences: tuple[tuple[str, str, str], ...]  # of the environments: name, and both values
    steps: tuple[Change, ...]  # untraced; the key is `step`
    rows: tuple[Change, ...]
    gate: Gate | None = field(default=None)


@dataclass(frozen=True)
class Programs:
    """Two programs that ran in turns, or one with two lists of arguments."""

    programs: tuple[str, str]
    runs: tuple[int, int]  # of each that count
    # What the group of runs fetches that is compared as the step; None if no group ran twice
    steps: tuple[str | None, str | None]
    whole: tuple[Change, ...]  # the median step, if both have one, and the whole process
    least_slower: Mapping[str, float]  # key of `whole` -> the ratio from which it is shown
    ops: tuple[Change, ...]  # by type, in a traced step
    lines: tuple[Change, ...]  # by code, in the whole process
    load: Load | None
    interrupted: bool
    failure: str | None
    gate: Gate | None = field(default=None)
