"""What many steps were folded into, and the tables made of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeStats:
    """All runs of one node, folded as they came. Times in nanoseconds."""

    name: str
    op: str  # the type that ran
    device: str
    calls: int
    total_ns: int
    min_ns: int
    max_ns: int
    mean_ns: float
    median_ns: float  # by a sketch, within 1 %
    p95_ns: float  # by a sketch, within 1 %
    start_ns: float  # mean time from the start of the step: the order of execution
    requested_bytes: int  # that a call asked its allocators for, mean over the steps looked at


@dataclass(frozen=True)
class Costs:
    """What one call of a node does, from its definition and shapes; not measured."""

    name: str
    flops: int | None  # None where the framework's registry does not cover a type
    bytes: int | None  # of all inputs and outputs; None where a shape is not known


@dataclass(frozen=True)
class Peaks:
    """What this machine can do at most, measured by a short benchmark."""

    gflops: float  # float32 multiply-adds, all cores, counted as two operations each
    gigabytes_per_s: float


@dataclass(frozen=True)
class Row:
    """One line of a table of costs: a node, a type, a layer or a source line."""

    key: str
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
    flops: int | None  # a step
    gflops: float | None  # 10^9 FLOPs a second of self time
    intensity: float | None  # FLOPs a byte of inputs and outputs
    roof_share: float | None  # of what the machine could do at that intensity
