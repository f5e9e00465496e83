"""Measurements that are saved in files, and the results of comparing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.measured import Comparison, ConfigTimes, Observed
from tflab.records.verdicts import Verdict


@dataclass(frozen=True)
class Measurement:
    """A comparison of batch sizes with everything that is needed to compare it elsewhere."""

    tflab: str  # version
    when: str  # in UTC, as 2026-03-01T12:00:00Z
    environment: Mapping[str, str]  # the machine, its software, and variables that matter
    options: Mapping[str, str]  # that were chosen
    comparison: Comparison
    observed: Observed


@dataclass(frozen=True)
class Difference:
    """Something that differs between measurements."""

    what: str
    values: tuple[str, ...]  # one for each measurement


@dataclass(frozen=True)
class RowTimes:
    """A row of the tables in one measurement: an op type, node, layer or line."""

    key: str
    batch_size: int
    measurement: str
    step_ns: float | None  # time per traced step; None if it did not run
    share: float | None  # of the time of all rows
    verdict: Verdict | None  # compared with the first measurement; None for the first one


@dataclass(frozen=True)
class Gate:
    """Whether a slowdown of at least this percentage is proven."""

    percent: float
    slower: tuple[str, ...]  # what is proven slower, in words
    undecided: tuple[str, ...]  # what is undecided, in words


@dataclass(frozen=True)
class Contrast(Shown):
    """Several measurements of one step, each compared with the first."""

    measurements: tuple[str, ...]  # the name of each
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
