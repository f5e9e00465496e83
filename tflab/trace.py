"""The door for traces: StepStats of a traced step go in, `OpRun` records come out.

Works on the protos as objects and imports no TensorFlow. The format is that of
tensorflow/core/framework/step_stats.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tflab.records import OpRun, Shape

EXECUTOR = "_SOURCE"  # the executor's own start: it is in every trace, and a node of no graph


def op_runs(step: int, step_stats: Any, types: Mapping[str, str]) -> Iterator[OpRun]:
    """Every op run of a step, in the runtime's order, which is not that of time.

    `types` maps nodes to op types and is read from the partition graph, because fusion reuses
    names; a node that is not in it gets the type in its label.
    """
    for device in step_stats.dev_stats:
        for stats in device.node_stats:
            yield OpRun(
                step=step,
                name=stats.node_name,
                op=types.get(stats.node_name) or labelled_type(stats.timeline_label),
                device=device.device,
                start_ns=stats.all_start_nanos,
                duration_ns=stats.all_end_rel_nanos,
                **allocations(stats),
            )


def durations(step_stats: Any, start_ns: int) -> tuple[list[str], list[int], list[int]]:
    """Node, start (from `start_ns`) and duration of every op run, as three lists, and no more.

    This is what a tally needs of a step; it costs a fraction of making records.
    """
    names: list[str] = []
    starts: list[int] = []
    spans: list[int] = []
    for device in step_stats.dev_stats:
        for stats in device.node_stats:
            names.append(stats.node_name)
            starts.append(stats.all_start_nanos - start_ns)
            spans.append(stats.all_end_rel_nanos)
    return names, starts, spans


def labelled_type(label: str) -> str:
    """The op type in `[mklcpu 1.2MB 1.2MB] conv1/Relu = _MklNativeFusedConv2D(a, b)`."""
    return label.rpartition(" = ")[2].partition("(")[0] or "unknown"


def allocations(stats: Any) -> dict[str, Any]:
    records = [
        (record.alloc_micros, record.alloc_bytes, memory.allocator_name)
        for memory in stats.memory
        for record in memory.allocation_records
    ]
    return {
        "requested_bytes": sum(size for _, size, _ in records if size > 0),
        "allocations": tuple(records),
    }


def output_shapes(step_stats: Any) -> dict[str, Shape]:
    """Shapes of the tensors that a step really made, by tensor name (`split:1`, plain `mul`)."""
    shapes: dict[str, Shape] = {}
    for device in step_stats.dev_stats:
        for stats in device.node_stats:
            for output in stats.output:
                tensor = f"{stats.node_name}:{output.slot}" if output.slot else stats.node_name
                shape = output.tensor_description.shape
                shapes[tensor] = tuple(dim.size for dim in shape.dim)
    return shapes
