"""Step work: the measurements of a step, node by node, for its diagnosis.

The cost of an op is its median call times its calls, as a share of that of all ops, applied to the
time in which ops ran: tracing makes small ops slower, so times of traced ops are never compared
with an untraced step. Time before the first op and after the last belongs to Python and the
session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """The runs of a node in the traced steps."""

    name: str
    op: str  # the type that ran
    line: str  # of the program; empty if unknown
    calls: float  # per step
    call_ns: float  # median
    bytes: int | None  # of inputs and outputs of a call
    moves: bool  # copies, fills or converts data, and computes nothing
    moves_channels: (
        bool  # moves the channels of images to another axis, next to an op that depends on the axis
    )
    hands_on: bool  # passes a buffer on: its time is the overhead of an op

    @property
    def ns(self) -> float:
        return self.calls * self.call_ns


@dataclass(frozen=True)
class Evidence:
    """Measurements of a step at one batch size."""

    batch_size: int
    steps: int  # traced
    step_ns: float  # untraced, median
    ops_span_ns: float  # in a traced step, from the first op to the end of the last, median
    traced_outside_ns: float  # in a traced step, before the first op and after the last, median
    fed_bytes: int
    nodes: tuple[Work, ...]

    @property
    def ops_ns(self) -> float:
        return sum(node.ns for node in self.nodes)

    @property
    def outside_ns(self) -> float:
        """The time of an untraced step before the first op and after the last; a lower bound.

        Tracing makes both the ops and the time outside of them longer, so the true time is at least
        the remainder of an untraced step and at most that of a traced one, unless the machine was
        disturbed.
        """
        return max(0.0, min(self.step_ns - self.ops_span_ns, self.traced_outside_ns))

    def cost_ns(self, nodes: Iterable[Work]) -> float:
        """What these nodes cost an untraced step; an upper bound if ops run in parallel."""
        if not self.ops_ns:
            return 0.0
        return sum(node.ns for node in nodes) / self.ops_ns * (self.step_ns - self.outside_ns)
