"""What many steps were folded into, and the tables made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.quality import Diagnosis, Quality
from tflab.records.timed import LiveBytes, Spread
from tflab.records.verdicts import Experiments, Verdict


@dataclass(frozen=True)
class NodeStats:
    """All runs of one node as one type: what a table of `OpStats` is made of.

    An accumulator gives one for each node, whatever the table is to be; the table puts those of a
    type, layer or line together, and adds shares and work. Times in nanoseconds.
    """

    name: str
    op: str  # the type that ran
    device: str
    calls: int
    total_ns: int
    min_ns: int
    max_ns: int
    mean_ns: float
    median_ns: float  # within 1 %
    p95_ns: float  # within 1 %
    start_ns: float  # mean time from the start of the step: the order of execution
    requested_bytes: int  # that a call asked its allocators for, mean over the steps looked at
    std_ns: float  # standard deviation of the calls


@dataclass(frozen=True)
class Costs:
    """What one call of a node does, from its definition and shapes; not measured."""

    name: str
    # The mean over the runs of a step; None where a formula or a shape is missing for any part
    flops: float | None
    bytes: int | None  # of all inputs and outputs; None where a shape is not known


@dataclass(frozen=True)
class Level:
    """How fast bytes come where all that is worked on has this size: from a cache, or memory."""

    working_set_bytes: int
    one_thread_gb_s: float
    all_threads_gb_s: float  # each works on its part


@dataclass(frozen=True)
class Peaks:
    """What this machine can do at most, measured by a short benchmark."""

    gflops: float  # float32 multiply-adds, all cores, counted as two operations each
    gigabytes_per_s: float  # from memory
    levels: tuple[Level, ...] = ()  # the smallest working set first
    busy: bool = False  # whether other programs ran meanwhile, so that it may be able to do more


@dataclass(frozen=True)
class OpStats:
    """One row of a table of op statistics: a node, a type, a layer or a source line, over many
    runs. Every table of ops is made of these, and None means that a value is unknown."""

    key: str  # what the row is called
    ops: tuple[str, ...]  # the types that ran
    nodes: tuple[str, ...]
    fused_from: tuple[str, ...]  # the user's nodes whose work they do
    calls: int
    total_ns: int
    self_ns: int
    mean_ns: float
    median_ns: float
    p95_ns: float
    share: float  # of the self time of all rows
    cumulative_share: float
    requested_bytes: int  # a step
    flops: int | None  # a step; None where those of any of its nodes are not known
    gflops: float | None  # 10^9 FLOPs a second of self time
    intensity: float | None  # FLOPs a byte of inputs and outputs
    roof_share: float | None  # of what the machine could do at that intensity
    std_ns: float  # of all calls around their mean; large where the nodes differ
    step_ns: float  # that a step spends here, mean over the steps
    step_std_ns: float | None  # of that over the steps
    step_median_ns: float | None  # likewise; of many steps, of one in so many
    peak_bytes: int | None  # the most its nodes had alive at once in a step
    image_ns: float | None  # self time an image
    # Self time by the phase of its nodes (`graph.PHASES`); the three add up to `self_ns`
    forward_ns: int
    backward_ns: int
    update_ns: int
    code: str | None = None  # the text of the row's source line, in a table by line

    @property
    def op(self) -> str:
        """The types that ran, as one text."""
        return ", ".join(self.ops)


@dataclass(frozen=True)
class Fit:
    """Time of a call as fixed cost + cost per image, by least squares; of a row whose ops are of
    many kinds (a layer, a line) the time that a step spends there."""

    fixed_ns: float
    per_image_ns: float
    error: float  # the largest relative one of a point


@dataclass(frozen=True)
class Compared:
    """One row of a comparison: a type, node, layer or line at every batch size."""

    key: str
    ops: tuple[str, ...]
    fused_from: tuple[str, ...]
    cells: Mapping[int, OpStats]  # by batch size; only where it ran
    fit: Fit | None  # None for fewer than three batch sizes, and where time does not grow


@dataclass(frozen=True)
class StepTimes:
    """The steps of one batch size."""

    steps: int  # traced
    images: int  # that they worked on
    untraced_ns: Spread
    traced_ns: Spread
    # All rows over the time of all untraced steps, slow ones among them
    mean_images_per_second: float = field(metadata={"json": "images_per_second"})
    ops_ns: float  # self time of all ops in a step, mean
    untraced_steps: int = 0
    peak_bytes: int = 0  # the most alive at once in a step, of what the step itself asked for
    curve: LiveBytes | None = None  # of the median one of the steps that were kept whole
    # Images a second of each whole round, in which all batch sizes take turns
    round_rates: tuple[float, ...] = field(default=(), repr=False, metadata={"json": None})


@dataclass(frozen=True)
class ConfigTimes:
    """Untraced steps under another configuration of the runtime."""

    config: str
    batch_size: int
    untraced_ns: Spread
    median_images_per_second: float  # the batch size over the median step
    verdict: Verdict | None  # against `default`; None for that one itself
    # Of each process, in the order of its steps
    processes_ns: tuple[tuple[int, ...], ...] = field(
        default=(), repr=False, metadata={"json": None}
    )


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
    cold: tuple[OpStats, ...]  # ops of the very first step that took longest
    cold_step_ns: int
    uncovered: Mapping[str, int]  # types whose FLOPs are not known, and of how many nodes
    interrupted: bool = False
    failure: str | None = None  # of a step: these are the measurements until then
    # By batch size: all that is known of each row
    tables: Mapping[int, tuple[OpStats, ...]] = field(default_factory=dict)
    images: int = 0  # that were asked for, at each batch size
    trace_every: int = 1  # one step in so many was traced
    without: tuple[str, ...] = ()  # graph passes that were switched off
    warm_ns: Mapping[str, float] = field(default_factory=dict)  # mean call of the `cold` nodes
    # By batch size, where they were asked for
    experiments: Mapping[int, Experiments] = field(default_factory=dict)
    peaks: Peaks | None = None  # of the machine: what `roof_share` is a share of
    quality: Quality | None = None  # of the measurement; None if it was not judged
    diagnosis: tuple[Diagnosis, ...] = ()  # why a step is slow, what costs most first
    unit: str = "image"  # what a row of its data is: "image" or "row"
    # Of several processes, where the measurement is to be kept
    observed: Observed | None = field(default=None, repr=False, metadata={"json": None})


Turns = tuple[tuple[int, ...], ...]  # ns of the steps of each turn or round, in their order


@dataclass(frozen=True)
class Fingerprint:
    """What tells one model and its data from another, without the names of files."""

    graph: str  # digest of the nodes that the step needs: types, edges, attributes that matter
    nodes: int
    edges: int
    ops: Mapping[str, int]  # type -> number of nodes
    feeds: tuple[str, ...]  # `images:0 float32 [?, 32, 32, 1]`
    data: str  # digest of what is fed: size, and first rows of the split
    weights: str | None  # digest of constants and given values; None where a run draws them anew


@dataclass(frozen=True)
class Process:
    """A process of its own: all of its steps together are one observation. By batch size."""

    untraced_ns: Mapping[int, Turns]
    traced_ns: Mapping[int, Turns]
    rows_ns: Mapping[int, Mapping[str, float]]  # key of a row -> its time in a traced step, median


@dataclass(frozen=True)
class Observed:
    fingerprint: Fingerprint
    # By batch size, the steps that the tables are of, which all ran in one process
    untraced_ns: Mapping[int, Turns]
    traced_ns: Mapping[int, Turns]
    processes: tuple[Process, ...]
