"""What was measured: op runs, steps, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OpRun:
    """One execution of one node. Times are on the clock of `time.time_ns()`."""

    step: int
    name: str
    op: str  # the type that ran, which fusion and oneDNN may have changed
    device: str
    start_ns: int
    duration_ns: int
    requested_bytes: int = 0  # all that the op asked its allocators for
    allocations: tuple[tuple[int, int], ...] = ()  # (time in us, bytes; negative when freed)


@dataclass(frozen=True)
class StepTime:
    """One traced step, as seen from the caller."""

    step: int
    start_ns: int
    wall_ns: int


@dataclass(frozen=True)
class Spread:
    """A measured time: median and the middle eight tenths."""

    median: float
    p10: float
    p90: float


@dataclass(frozen=True)
class Race:
    """The untraced step with all graph passes and without some, measured in turn."""

    pairs: int
    usual_step_ns: Spread
    without_step_ns: Spread
    ratio: float  # median over the pairs of: without / usual
    p_value: float
    significant: bool


@dataclass(frozen=True)
class OpTotal:
    """All runs of one node, or of one op type, added up."""

    name: str
    op: str
    calls: int
    total_ns: int
    self_ns: int
    mean_ns: float
    share: float  # of the self time of all ops


@dataclass(frozen=True)
class Owner:
    """A part of the wall time and what it belongs to."""

    owner: str
    ns: int


@dataclass(frozen=True)
class CriticalPath:
    nodes: tuple[str, ...]
    ns: float
    parallelism: float  # work of all ops over the length of the path


@dataclass(frozen=True)
class OpMemory:
    name: str
    requested_bytes: int  # per step, mean over the traced steps


@dataclass(frozen=True)
class Memory:
    per_op: tuple[OpMemory, ...]
    peak_bytes: int  # the most that was alive at once in a step, of what the step itself asked for
