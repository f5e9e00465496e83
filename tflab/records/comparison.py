"""Two saved comparisons, compared with one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.measured import Rounds
from tflab.records.verdicts import Verdict


@dataclass(frozen=True)
class SavedConfig:
    """The untraced step under a configuration, as a file has it."""

    config: str
    batch_size: int
    observations_ns: tuple[float, ...]


@dataclass(frozen=True)
class SavedComparison:
    """The part of a saved comparison that verdicts need."""

    model: str
    phase: str
    by: str
    rounds: Mapping[int, Rounds]  # by batch size
    configs: tuple[SavedConfig, ...]


@dataclass(frozen=True)
class Change:
    """A step, a configuration or a row of the tables, in two files."""

    batch_size: int
    key: str
    first_ns: float | None  # geometric mean of the rounds; None if it did not run
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
    configs: tuple[Change, ...]  # the key is the configuration
    rows: tuple[Change, ...]
    gate: Gate | None = field(default=None)
