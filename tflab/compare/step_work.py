"""Step work: what was measured of a step, node by node, from which it is told why it is slow.

What an op costs is its median call times its calls, as a share of the same of all ops, of the time
in which ops ran: tracing makes small ops slower, so times of traced ops are never compared with an
untraced step. What is neither in an op nor between ops is that of Python and the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """A node as it ran in the traced steps."""

    name: str
    op: str  # the type that ran
    line: str  # of the program that made it; empty if unknown
    calls: float  # a step
    call_ns: float  # median
    bytes: int | None  # of inputs and outputs of a call
    roof_share: float | None  # of what this machine can do at most
    moves: bool  # copies, fills or converts data, and computes nothing
    moves_channels: (
        bool  # moves the channels of images to another axis, beside an op that knows the axis
    )
    hands_on: bool  # passes a buffer on: that is what running any op costs

    @property
    def ns(self) -> float:
        return self.calls * self.call_ns


@dataclass(frozen=True)
class Evidence:
    """Measurements of a step at one batch size."""

    batch_size: int
    steps: int  # traced
    step_ns: float  # untraced, median
    ops_span_ns: float  # from the first op to the end of the last in a traced step, median
    traced_outside_ns: float  # of a traced step before and after its ops, median
    fed_bytes: int
    reading_ns: float  # that reading those once from memory takes, at this machine's best
    nodes: tuple[Work, ...]

    @property
    def ops_ns(self) -> float:
        return sum(node.ns for node in self.nodes)

    @property
    def outside_ns(self) -> float:
        """Of an untraced step, what is before the first op or after the last; at least.

        Tracing makes both the ops and what is outside of them longer, so neither what is left of an
        untraced step nor what a traced one has is less than that, unless the machine was disturbed.
        """
        return max(0.0, min(self.step_ns - self.ops_span_ns, self.traced_outside_ns))

    def cost_ns(self, nodes: Iterable[Work]) -> float:
        """Of an untraced step, what these nodes cost; where ops run at once, at most."""
        if not self.ops_ns:
            return 0.0
        return sum(node.ns for node in nodes) / self.ops_ns * (self.step_ns - self.outside_ns)
