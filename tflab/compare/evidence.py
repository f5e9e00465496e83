"""Evidence: the measurements of a step, node by node, for its diagnosis.

The cost of an op is its median call times its calls, as a share of that of all ops, applied to the
time in which ops ran: tracing makes small ops slower, so times of traced ops are never compared
with an untraced step. Time before the first op and after the last belongs to Python and the
session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tflab.analysis import roofline, row_labels
from tflab.compare import sweep
from tflab.records.graph import Node, Shape, node_of
from tflab.records.measured import Costs, OpStats, Peaks
from tflab.records.stages import Placement
from tflab.runtime import costs, flop_counts, private

MOVING_CHANNELS = ((0, 3, 1, 2), (0, 2, 3, 1))
WITHIN_IMAGES = ((0, 1, 3, 2), (0, 2, 1, 3))  # permutations that may keep the shape


@dataclass(frozen=True)
class Work:
    """The runs of a node in the traced steps."""

    name: str
    op: str  # the type that ran
    line: str  # of the program; empty if unknown
    calls: float  # per step
    call_ns: float  # median
    bytes: int | None  # of inputs and outputs of a call
    roof_share: float | None  # of the rate that this machine can reach
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
    reading_ns: float  # time to read those bytes once from memory, at this machine's bandwidth
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


# From the sweep and the placement


def of_batch(
    batch: sweep.MeasuredBatch,
    placed: Placement,
    rows: Sequence[OpStats],
    cost_of: Mapping[str, Costs],
    peaks: Peaks,
) -> Evidence:
    """The evidence on a step at one batch size; `rows` are its nodes."""
    sources = {node.name: node.source for node in (*placed.user_nodes, *placed.nodes)}
    lines = row_labels.line_labels(sources)
    movers = costs.data_movers(placed.nodes, placed.user_nodes, placed.ledger)
    turned = movers & format_changes(placed.nodes)
    return Evidence(
        batch_size=batch.batch_size,
        steps=batch.accumulator.steps,
        step_ns=median(batch.untraced_ns),
        ops_span_ns=median(batch.ops_span_ns),
        traced_outside_ns=median(
            wall - span for wall, span in zip(batch.traced_ns, batch.ops_span_ns, strict=False)
        ),
        fed_bytes=costs.fed_bytes(placed.nodes),
        reading_ns=costs.fed_bytes(placed.nodes) / roofline.bandwidth(peaks),
        nodes=tuple(
            Work(
                name=row.key,
                op=row.op,
                line=lines.get(row.key, ""),
                calls=row.calls / batch.accumulator.steps,
                call_ns=row.median_ns,
                bytes=cost_of[row.key].bytes if row.key in cost_of else None,
                roof_share=row.roof_share,
                moves=row.key in movers,
                moves_channels=row.key in turned,
                hands_on=set(row.ops) <= flop_counts.HAND_ON,
            )
            for row in rows
        ),
    )


def format_changes(nodes: Sequence[Node]) -> set[str]:
    """The transposes next to a convolution, pooling or similar op that, by their shapes, can
    only move the channels from first to last, or from last to first."""
    makers = {node.name: node for node in nodes}
    formatted = {node.name for node in nodes if has_format(node.op)}
    neighbours = {node_of(tensor) for name in formatted for tensor in makers[name].inputs}
    neighbours |= {node.name for node in nodes if formatted & set(map(node_of, node.inputs))}
    return {name for name in neighbours if name in makers and changes_format(makers[name], makers)}


def has_format(op: str) -> bool:
    """Whether ops of this type depend on which axis of their input has the channels."""
    definition = private.op_def(op)
    return definition is not None and any(attr.name == "data_format" for attr in definition.attr)


def shape_of(tensor: str, makers: Mapping[str, Node]) -> Shape:
    maker, index = makers.get(node_of(tensor)), int(tensor.partition(":")[2] or 0)
    return maker.outputs[index].shape if maker and index < len(maker.outputs) else None


def changes_format(node: Node, makers: Mapping[str, Node]) -> bool:
    if "Transpose" not in node.op or not node.inputs:
        return False
    before, after = shape_of(node.inputs[0], makers), shape_of(node.name, makers)
    if before is None or after is None or len(before) != 4 or len(after) != 4 or before == after:
        return False

    def comes_to(order: Sequence[int]) -> bool:
        return tuple(before[axis] for axis in order) == after

    return any(map(comes_to, MOVING_CHANNELS)) and not any(map(comes_to, WITHIN_IMAGES))
