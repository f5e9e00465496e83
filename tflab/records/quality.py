"""Quality: whether the machine was quiet during a measurement, and why a step is slow."""

from __future__ import annotations

from dataclasses import dataclass


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
