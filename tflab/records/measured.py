"""Measured: statistics of many steps, their tables and verdicts, and a training's measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.timed import Spread


@dataclass(frozen=True)
class NodeStats:
    """All runs of one node as one type. Tables combine several of these to an `OpStats`."""

    name: str
    op: str  # the type that ran
    device: str
    calls: int
    total_ns: int
    mean_ns: float
    median_ns: float
    start_ns: float  # mean time from the start of the step: the order of execution
    requested_bytes: int  # that a call requested from its allocators, mean over the steps


@dataclass(frozen=True)
class OpStats:
    """One row of a table of op statistics: a node, a type, a layer or a source line, over many
    runs. Every table of ops consists of these; None means that a value is unknown."""

    key: str  # label of the row
    ops: tuple[str, ...]  # the types that ran
    nodes: tuple[str, ...]
    fused_from: tuple[str, ...]  # the user's nodes that were fused into them
    calls: int
    total_ns: int  # of all steps
    mean_ns: float
    median_ns: float
    share: float  # of the time of all rows
    requested_bytes: int  # per step
    flops: int | None  # per step; None if those of any of its nodes are unknown
    gflops: float | None  # 10^9 FLOPs per second of its time
    step_ns: float  # mean time per step
    image_ns: float | None  # time per image
    # Time by the phase of its nodes (`graph.PHASES`); the three add up to `total_ns`
    forward_ns: int
    backward_ns: int
    update_ns: int
    code: str | None  # the text of the row's source line, in a table by line

    @property
    def op(self) -> str:
        """Return the types that ran, as text."""
        return ", ".join(self.ops)


@dataclass(frozen=True)
class Compared:
    """One row of a comparison: a type, node, layer or line at each batch size."""

    key: str
    ops: tuple[str, ...]
    fused_from: tuple[str, ...]
    cells: Mapping[int, OpStats]  # by batch size, if it ran


@dataclass(frozen=True)
class StepTimes:
    """The steps of one batch size."""

    steps: int  # traced
    images: int  # processed by the traced steps
    untraced_ns: Spread
    traced_ns: Spread
    # All rows divided by the time of all untraced steps, including slow ones
    mean_images_per_second: float = field(metadata={"json": "images_per_second"})
    ops_ns: float  # time of all ops in a step, mean
    untraced_steps: int
    # the most alive at once in a step, of the memory that the step itself requested
    peak_bytes: int
    # Images per second of each complete round, in which all batch sizes take turns
    round_rates: tuple[float, ...] = field(repr=False, metadata={"json": None})

    @property
    def mean_step_ns(self) -> float:
        """Return the mean of all untraced steps."""
        return 1e9 * self.images / self.steps / self.mean_images_per_second


@dataclass(frozen=True)
class Rounds:
    """The rounds of a sweep at one batch size. In each round all batch sizes take turns."""

    step_ns: tuple[float, ...]  # of each round: the median untraced step
    rows_ns: Mapping[str, tuple[float, ...]]  # key of a row -> its median time in a traced step


@dataclass(frozen=True)
class ConfigTimes:
    """Untraced steps under a configuration of the runtime."""

    config: str
    batch_size: int
    untraced_ns: Spread  # of all steps
    default_ns: float  # the default in the same turns: geometric mean of the observations
    step_ns: float  # that of the default, times the ratio
    verdict: Verdict | None  # compared with the default; None for the default itself


@dataclass(frozen=True)
class ChangingPass:
    """A graph pass that changed the graph of a step."""

    name: str
    changed_nodes: int  # that it added, changed or removed, in all its runs
    first_run_ns: int | None  # all its runs when the step first ran; None if that is unknown
    has_switch: bool  # whether a configuration without it was raced: `without NAME`


@dataclass(frozen=True)
class Comparison(Shown):
    model: str
    phase: str
    by: str
    data: str
    warmup: int
    batch_sizes: tuple[int, ...]
    rows: tuple[Compared, ...]
    steps: Mapping[int, StepTimes]
    configs: tuple[ConfigTimes, ...]
    findings: tuple[str, ...]
    interrupted: bool
    failure: str | None  # of a step: these are the measurements before it
    tables: Mapping[int, tuple[OpStats, ...]]  # by batch size: all columns of each row
    images: int  # number requested, at each batch size
    tasks: int  # of a cluster, over which a step ran; 0: it ran in this process
    load: Load | None  # of the machine
    diagnosis: tuple[Diagnosis, ...]  # why a step is slow, the largest cost first
    unit: str  # of a row of its data: "image" or "row"
    # By batch size: the rounds of the sweep, which a comparison with another file needs
    rounds: Mapping[int, Rounds] = field(repr=False)
    # The passes that changed the graph; None if they were not asked for
    passes: tuple[ChangingPass, ...] | None

    @property
    def partial(self) -> bool:
        return self.interrupted or self.failure is not None


# Verdicts


@dataclass(frozen=True)
class Verdict:
    """How many times as long one way to run a step takes as another, and how certain that is."""

    ratio: float  # trimmed geometric mean of the observed ratios
    low: float  # lower end of the 99 % interval
    high: float
    # The 90 % interval of a ratio of the same thing to itself, measured in the same turns
    control_low: float
    control_high: float
    observations: int
    word: str  # slower, faster, alike, or cannot tell


@dataclass(frozen=True)
class Experiment:
    """The time that running an op once more, in place, added to an untraced step."""

    name: str
    op: str  # the type that ran
    once_more_ns: float  # median of the observations
    low_ns: float  # lower end of the 95 % interval of the median
    high_ns: float
    observations: int  # each in new sessions
    predicted_ns: None = None  # not predicted; programs that read the JSON expect the key


@dataclass(frozen=True)
class Untried:
    """An op that was not run once more."""

    name: str
    op: str
    reason: str


@dataclass(frozen=True)
class Experiments:
    """The largest ops of a step, each run once more, in turn with the unchanged step."""

    ops: tuple[Experiment, ...]
    control: Experiment | None  # the unchanged step compared with itself; None if nothing was tried
    untried: tuple[Untried, ...]


@dataclass(frozen=True)
class Load:
    """What else kept the processors of the machine busy, as far as it is known."""

    processors: int
    during: float | None  # processors that were not available to it, mean


@dataclass(frozen=True)
class Diagnosis:
    """One reason why a step is slow: its cost, the evidence, and a suggestion."""

    sentence: str
    cost_ns: float  # the part of a step that is lost to it, at most; 0 if nothing stands out
    share: float  # of the untraced step at that batch size, at least: reasons are ranked by it
    batch_size: int
    kind: str  # movement, format, small ops, one op, session, feeds, or none


# Two comparisons, or two programs


@dataclass(frozen=True)
class SavedComparison:
    """The part of a saved comparison that verdicts need."""

    model: str
    phase: str
    by: str
    rounds: Mapping[int, Rounds]  # by batch size


@dataclass(frozen=True)
class Change:
    """A step, a configuration or a row of the tables, in two files."""

    batch_size: int | None  # None for a program
    key: str
    first_ns: float | None  # geometric mean of the rounds or turns; None if it did not run
    second_ns: float | None
    verdict: Verdict | None  # how many times as long the second takes; None if one did not run


@dataclass(frozen=True)
class Gate:
    """Whether a step is proven to take more than this percentage longer."""

    percent: float
    slower: tuple[str, ...]  # what is proven slower, in words
    undecided: tuple[str, ...]
    passed: tuple[str, ...]


@dataclass(frozen=True)
class Changes(Shown):
    """All changes from the first file to the second."""

    files: tuple[str, str]
    model: str
    phase: str
    by: str
    steps: tuple[Change, ...]  # untraced; the key is `step`
    rows: tuple[Change, ...]
    gate: Gate | None


@dataclass(frozen=True)
class Programs:
    """Two programs that ran in turns, or one with two lists of arguments."""

    programs: tuple[str, str]
    runs: tuple[int, int]  # of each that count
    # What the group of runs fetches that is compared as the step; None if no group ran twice
    steps: tuple[str | None, str | None]
    whole: tuple[Change, ...]  # the median step, if both have one, and the whole process
    least_slower: Mapping[str, float]  # key of `whole` -> the ratio from which it is shown, if any
    ops: tuple[Change, ...]  # by type, in a traced step
    lines: tuple[Change, ...]  # by code, in the whole process
    load: Load | None
    interrupted: bool
    failure: str | None
    gate: Gate | None


# Trainings


@dataclass(frozen=True)
class Settings:
    """What determines a training."""

    model: str
    data: str  # the name of the data set; it says so if the data replace another set
    train_rows: int
    test_rows: int
    batch_size: int
    epochs: int
    seed: int  # of the initial weights and of the order of the rows

    @property
    def epoch_steps(self) -> int:
        return math.ceil(self.train_rows / self.batch_size)

    @property
    def steps(self) -> int:
        return self.epoch_steps * self.epochs


@dataclass(frozen=True)
class TrainingStep:
    """One step, measured on the batch that it learned from, before the update."""

    step: int  # from 1
    loss: float  # mean over the batch
    accuracy: float  # share of the batch
    rate: float  # learning rate
    seconds: float  # since the end of the previous step, or the start of the epoch


@dataclass(frozen=True)
class Epoch:
    """One pass over the training images, and the test after it. All numbers are true means."""

    epoch: int  # from 1
    step: int  # after this many steps
    train_loss: float  # mean over the images of the epoch, each before the update of its batch
    train_accuracy: float
    test_loss: float  # mean over the test images, with the weights at the end of the epoch
    test_accuracy: float
    seconds: float  # of the training alone, without the test
    images_per_second: float


@dataclass(frozen=True)
class History:
    """A training from its first step to its last epoch, as far as it came."""

    settings: Settings
    steps: tuple[TrainingStep, ...]
    epochs: tuple[Epoch, ...]

    @property
    def interrupted(self) -> bool:
        return not self.epochs or self.epochs[-1].epoch < self.settings.epochs


def history(settings: Settings, records: Sequence[TrainingStep | Epoch]) -> History:
    """Return the history of a training from what its loop yielded."""
    steps = tuple(record for record in records if isinstance(record, TrainingStep))
    return History(settings, steps, tuple(r for r in records if isinstance(r, Epoch)))
