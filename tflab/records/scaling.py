"""How a step scales with the number of tasks."""

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
class Scaling:
    model: str
    phase: str
    batch_size: int
    split: str
    data: str
    rows: tuple[ScalingRow, ...]
    quality: Quality | None  # of the first measurement that was disturbed, else of the last
    cores: int
    local: bool  # all tasks were on this machine
    failure: str | None = None  # of a step, or a task: these are the measurements until then
    interrupted: bool = False  # by Ctrl-C: so are these
