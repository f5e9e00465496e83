"""Measurements that are kept in files, and what comes of holding them against one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.measured import Comparison, ConfigTimes, Observed
from tflab.records.verdicts import Verdict


@dataclass(frozen=True)
class Measurement:
    """A comparison of batch sizes with all that it takes to compare it elsewhere."""

    tflab: str  # version
    when: str  # in UTC, as 2026-03-01T12:00:00Z
    environment: Mapping[str, str]  # the machine, its software, and variables that matter
    options: Mapping[str, str]  # that were chosen
    comparison: Comparison
    observed: Observed


@dataclass(frozen=True)
class Difference:
    """Something that is not the same for all measurements."""

    what: str
    values: tuple[str, ...]  # of each measurement


@dataclass(frozen=True)
class RowTimes:
    """A row of the tables in one measurement: an op type, node, layer or line."""

    key: str
    batch_size: int
    measurement: str
    step_ns: float | None  # that a traced step spends here; None where it did not run
    share: float | None  # of the time of all rows
    verdict: Verdict | None  # against the first measurement; None for that one itself


@dataclass(frozen=True)
class Gate:
    """Whether a slowdown of at least so many percent is proven."""

    percent: float
    slower: tuple[str, ...]  # what is, in words
    undecided: tuple[str, ...]  # what cannot be told


@dataclass(frozen=True)
class Contrast(Shown):
    """Several measurements of one step, each compared with the first."""

    measurements: tuple[str, ...]  # what each is called
    when: tuple[str, ...]
    processes: tuple[int, ...]
    model: str
    phase: str
    by: str
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]  # what to know before reading on
    steps: tuple[ConfigTimes, ...]  # untraced; `config` is the measurement
    rows: tuple[RowTimes, ...]
    gate: Gate | None = field(default=None)


@dataclass(frozen=True)
class Point:
    """What a step took in one measurement, or spent in a row."""

    ns: float  # geometric mean of the processes
    low_ns: float  # of the interval that holds the true one in 99 of 100 measurements
    high_ns: float
    processes: int


@dataclass(frozen=True)
class Line:
    """The same thing at one batch size over time."""

    name: str  # of a row; of the untraced step, STEP
    batch_size: int
    points: tuple[Point | None, ...]  # of each measurement; None where it did not run
    verdict: Verdict | None  # the latest against the first that was given; None where they are one


@dataclass(frozen=True)
class OverTime:
    """Measurements of one step in the order in which they were made."""

    contrast: Contrast  # of the same measurements, in the order in which they were given
    measurements: tuple[str, ...]
    when: tuple[str, ...]
    lines: tuple[Line, ...]
