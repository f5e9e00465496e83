"""How a step scales with the number of tasks: what was measured, and what is only calculated."""

from __future__ import annotations

from dataclasses import dataclass

from tflab.records.quality import Quality
from tflab.records.timed import Spread

Tasks = int | tuple[str, ...]  # so many new ones, or those at these addresses


def as_given(tasks: Tasks) -> str:
    """As --cluster takes them."""
    return str(tasks) if isinstance(tasks, int) else ",".join(tasks)


@dataclass(frozen=True)
class ScalingRow:
    """The same step on so many tasks; 0 are none, which is this process alone."""

    tasks: int
    steps: int  # untraced
    step_ns: Spread  # untraced
    images_per_second: float
    speed_up: float  # against this process alone
    efficiency: float | None  # speed-up for each task; None without any
    communication: float | None  # share of the traced step with no op running, a tensor on the wire
    messages: int  # over the wire, a step
    bytes: int  # over the wire, a step


@dataclass(frozen=True)
class WireCost:
    """What a message costs, by a line through those of the measurement with the most tasks."""

    message_ns: float
    byte_ns: float
    tensors: int  # that the line goes through


@dataclass(frozen=True)
class Amdahl:
    """`step = serial + parallel / tasks + byte_ns * bytes`, by least squares over the rows."""

    serial_ns: float
    parallel_ns: float
    error: float  # the largest relative one of a measured step

    @property
    def serial_share(self) -> float:
        whole = self.serial_ns + self.parallel_ns
        return self.serial_ns / whole if whole else 0.0


@dataclass(frozen=True)
class Extrapolated:
    """A number of tasks that was not measured."""

    tasks: int
    step_ns: float
    images_per_second: float
    speed_up: float
    bytes: float


@dataclass(frozen=True)
class Scaling:
    model: str
    phase: str
    batch_size: int
    split: str
    data: str
    rows: tuple[ScalingRow, ...]
    wire: WireCost | None
    amdahl: Amdahl | None  # None for under three different numbers of tasks, and on a busy machine
    extrapolated: tuple[Extrapolated, ...]
    quality: Quality | None  # of the first measurement that was disturbed, else of the last
    cores: int
    local: bool  # all tasks were on this machine
    failure: str | None = None  # of a step, or a task: these are the measurements until then
    interrupted: bool = False  # by Ctrl-C: so are these
