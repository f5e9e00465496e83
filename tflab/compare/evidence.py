"""Evidence: the measurements for a diagnosis, for each batch size, from the sweep and the
placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from tflab.analysis import row_labels
from tflab.compare import sweep
from tflab.compare.step_work import Evidence, Work
from tflab.records.graph import Node, Shape, node_of
from tflab.records.measured import Costs, OpStats
from tflab.records.stages import Placement
from tflab.runtime import costs, flops, private

MOVING_CHANNELS = ((0, 3, 1, 2), (0, 2, 3, 1))
WITHIN_IMAGES = ((0, 1, 3, 2), (0, 2, 1, 3))  # permutations that may keep the shape


def of_batch(
    batch: sweep.MeasuredBatch,
    placed: Placement,
    rows: Sequence[OpStats],
    cost_of: Mapping[str, Costs],
) -> Evidence:
    """The evidence on a step at one batch size; `rows` are its nodes."""
    sources = {node.name: node.line for node in (*placed.user_nodes, *placed.nodes)}
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
        nodes=tuple(
            Work(
                name=row.key,
                op=row.op,
                line=lines.get(row.key, ""),
                calls=row.calls / batch.accumulator.steps,
                call_ns=row.median_ns,
                bytes=cost_of[row.key].bytes if row.key in cost_of else None,
                moves=row.key in movers,
                moves_channels=row.key in turned,
                hands_on=set(row.ops) <= flops.HAND_ON,
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
