"""What was measured: op runs, steps, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass

from tflab.records.verdicts import Verdict

# (time in us, bytes and negative when freed, the allocator asked)
Allocation = tuple[int, int, str]


@dataclass(frozen=True, slots=True)  # there may be millions of them
class OpRun:
    """One execution of one node. Times are on the clock of `time.time_ns()`."""

    step: int
    name: str
    op: str  # the type that ran, which fusion and oneDNN may have changed
    device: str
    start_ns: int
    duration_ns: int
    requested_bytes: int = 0  # all that the op asked its allocators for
    allocations: tuple[Allocation, ...] = ()


@dataclass(frozen=True)
class Occupancy:
    """How much of a step a device worked."""

    device: str
    busy_ns: int  # with at least one of its ops running
    idle_share: float  # of the step's wall time, with none of its ops running


@dataclass(frozen=True)
class StepShape:
    """How many ops of a step ran at once."""

    most_at_once: int
    mean_at_once: float  # over the step's wall time, so that idle time counts as 0
    lanes: int  # that hold its runs, where runs may nest but never partly overlap
    devices: tuple[Occupancy, ...]


@dataclass(frozen=True)
class StepTime:
    """One traced step, as seen from the caller."""

    step: int
    start_ns: int
    wall_ns: int
    shape: StepShape | None = None  # once its op runs have been looked at


@dataclass(frozen=True)
class Capture:
    """Traced steps that belong together: of one batch size, or recorded somewhere else."""

    name: str  # of the profile that is made of it: `lenet-batch-64`
    steps: tuple[StepTime, ...]
    runs: tuple[OpRun, ...]


@dataclass(frozen=True)
class Spread:
    """A measured time: median and the 10th to 90th percentile."""

    median: float
    p10: float
    p90: float


@dataclass(frozen=True)
class Race:
    """The untraced step with all graph passes and without some, measured in turn."""

    steps: int  # of each way
    usual_step_ns: Spread
    without_step_ns: Spread
    verdict: Verdict  # without, against usual


@dataclass(frozen=True)
class Owner:
    """A part of the wall time and what it belongs to."""

    owner: str
    ns: int


@dataclass(frozen=True)
class CriticalPath:
    nodes: tuple[str, ...]  # one in a loop once for each iteration; none where it did not check
    ns: float
    parallelism: float  # possible: work of all ops over the length of the path
    achieved_parallelism: float = 0  # work of all ops over the time with at least one running
    slack: tuple[tuple[str, float], ...] = ()  # (node, ns), in the order of their first runs
    durations_ns: tuple[int, ...] = ()  # of `nodes`


@dataclass(frozen=True)
class OpMemory:
    name: str
    requested_bytes: int  # per step, mean over the traced steps


@dataclass(frozen=True)
class Holder:
    """An op and the bytes it had allocated that were alive, whoever used them by then."""

    name: str
    op: str  # the type that ran
    bytes: int
    running: bool  # still at work: some of it may be working memory, not an output


@dataclass(frozen=True)
class LiveBytes:
    """One step's memory as a curve."""

    step: int
    points: tuple[tuple[int, int], ...]  # (ns since the step's start, bytes alive from then on)
    peak_bytes: int
    peak_ns: int  # since the step's start
    holders: tuple[Holder, ...]  # at the peak, the largest first; their bytes add up to it


@dataclass(frozen=True)
class Memory:
    per_op: tuple[OpMemory, ...]
    peak_bytes: int  # the most alive at once in any step, of what the step itself asked for
    curve: LiveBytes | None = None  # of the step whose wall time is the median
