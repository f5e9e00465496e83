"""Whether a machine was quiet while it measured, and what a comparison's time is lost to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """What else the machine had to do, as far as it says so itself."""

    cores: int
    average: float | None  # of the last minute, before the measurement began; None: not known
    stolen_share: float | None  # of the processor time during it, that the host gave to others


@dataclass(frozen=True)
class Quality:
    """Whether conclusions from times can be drawn, and the numbers that say so."""

    quiet: bool
    reasons: tuple[str, ...]  # why not; empty on a quiet machine
    cores: int
    load_average: float | None  # before the measurement
    stolen_share: float | None  # of the processor time during it
    p90_to_p10: float | None  # of untraced steps, the largest; None of too few steps
    untraced_to_traced: float | None  # median by median, the largest; None of too few steps
    even_if_busy: bool = False  # whether the user wants conclusions all the same, marked


@dataclass(frozen=True)
class Diagnosis:
    """One reason why a step is slow: what it costs, what shows it, what to try."""

    sentence: str
    cost_ns: float  # of a step that is lost to it, at most; 0 where nothing stands out
    share: float  # of the untraced step at that batch size: what reasons are ranked by
    batch_size: int
    kind: str  # movement, format, small ops, one op, session, feeds, configuration, or none
