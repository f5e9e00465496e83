"""How a step scales with the number of tasks."""

from __future__ import annotations

from dataclasses import dataclass

from tflab.records.quality import Quality
from tflab.records.timed import Spread

Tasks = int | tuple[str, ...]  # number of new tasks, or the addresses of existing ones


def as_given(tasks: Tasks) -> str:
    """The tasks in the form that --cluster takes."""
    return str(tasks) if isinstance(tasks, int) else ",".join(tasks)


@dataclass(frozen=True)
class ScalingRow:
    """The same step on a number of tasks; 0 is this process alone."""

    tasks: int
    steps: int  # untraced
    step_ns: Spread  # untraced
    images_per_second: float
    speed_up: float  # compared with this process alone
    efficiency: float | None  # speed-up per task; None without tasks
    # share of the traced step with no op running and a tensor on the wire
    communication: float | None
    messages: int  # over the wire, per step
    bytes: int  # over the wire, per step


@dataclass(frozen=True)
class Scaling:
    model: str
    phase: str
    batch_size: int
    split: str
    data: str
    rows: tuple[ScalingRow, ...]
    quality: Quality | None  # of the first measurement on a busy machine, otherwise of the last
    cores: int
    local: bool  # whether all tasks were on this machine
    failure: str | None = None  # of a step, or a task: these are the measurements before it
    interrupted: bool = False  # whether Ctrl-C ended it: these are the measurements before it
