"""Trace: StepStats of a traced step go in, `OpRun` records come out; and the op runs of a profile.

This imports no TensorFlow. The format is that of tensorflow/core/framework/step_stats.proto.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from tflab.errors import TflabError
from tflab.records.graph import Shape, output_name
from tflab.records.timed import OpRun, Received
from tflab.runtime.private import watched_functions
from tflab.units import task_of

if TYPE_CHECKING:
    from tensorflow.core.framework.step_stats_pb2 import NodeExecStats, StepStats
    from tensorflow.core.protobuf.config_pb2 import RunMetadata

# The runtime drops the op runs of a step in a process that end after so many: kMaxCollectedNodes,
# tensorflow/core/common_runtime/step_stats_collector.h, TensorFlow 2.21.0.
MOST_OP_RUNS = 2**20
INCOMPLETE = (
    f"The trace of a step is incomplete: the step has {MOST_OP_RUNS:,} op runs or more, and "
    "TensorFlow records no more. Measure a step with fewer, such as one whose loops have fewer "
    "iterations."
)
RECEIVED = "RecvTensor"  # what tasks call a row of a tensor that came over the wire
EXECUTOR = "_SOURCE"  # the executor's own start: in every trace, but no node of the graph
HOST = "/host:CPU"  # the plane of a profile
OP = re.compile(r"(?P<node>[^\s:]+):(?P<op>\w+)")  # `StatefulPartitionedCall/MatMul:_MklMatMul`
# The profiler does not record the run of an op that returns later, but the wait of an iterator
DATA = "IteratorGetNext"
WAIT = re.compile(rf"(?P<node>(?P<op>{DATA}))\w*Op::DoCompute")
STAGE = "Iterator::"  # begins the path of a stage of tf.data, such as Iterator::Root::Prefetch::Map


def op_runs(step: int, step_stats: StepStats, types: Mapping[str, str]) -> Iterator[OpRun]:
    """Yield every op run of a step, in the runtime's order, which is not that of time. Raises
    TflabError for an incomplete trace.

    `types` maps nodes to op types and comes from the partition graph, because fusion reuses names;
    a node that is not in it gets the type in its label.
    """
    if is_incomplete(step_stats):
        raise TflabError(INCOMPLETE)

    @functools.cache
    def typed(name: str, label: str) -> tuple[str, str]:
        return name, types.get(name) or labelled_type(label)

    for device in step_stats.dev_stats:
        rows = (stats for stats in device.node_stats if stats.node_name != RECEIVED)
        yield from device_runs(step, device.device, rows, typed)


def is_incomplete(step_stats: StepStats) -> bool:
    """Return whether op runs may be missing from a trace, because a process recorded as many op
    runs of the step as the runtime allows."""
    of_tasks: Counter[str] = Counter()
    for device in step_stats.dev_stats:
        of_tasks[task_of(device.device)] += len(device.node_stats)
    return max(of_tasks.values(), default=0) >= MOST_OP_RUNS


# `[25600B] [1.5Gb/s] edge_26_flatten/Reshape from /job:worker/... to /job:worker/...`
RECEIVED_LABEL = re.compile(
    r"\[[\d.]+M?B\] \[[\d.]+[MG]b/s\] (?P<edge>.+) from (?P<sender>\S+) to (?P<receiver>\S+)"
)


def received(step: int, step_stats: StepStats) -> Iterator[Received]:
    """Yield the tensors that came to each task over the wire, as the tasks recorded them.

    `RecordRecvTensor` in tensorflow/core/distributed_runtime/worker_cache_logger.cc; the row starts
    when the sender began to send by its own clock, or when the receiver requested it by its own,
    whichever is later (grpc_remote_worker.cc, TensorFlow 2.21.0).
    """
    for device in step_stats.dev_stats:
        for stats in device.node_stats:
            label = RECEIVED_LABEL.fullmatch(stats.timeline_label)
            if stats.node_name == RECEIVED and label:
                start_ns, duration_ns = microseconds(stats)
                names = label["edge"], label["sender"], label["receiver"]
                yield Received(step, *names, start_ns, duration_ns)


def device_runs(
    step: int,
    device: str,
    rows: Iterable[NodeExecStats],
    typed: Callable[[str, str], tuple[str, str]],
) -> Iterator[OpRun]:
    """Yield the op runs of one device. `typed` returns node and op type for name and label."""
    for stats in rows:
        name, op = typed(stats.node_name, stats.timeline_label)
        start_ns, duration_ns = stats.all_start_nanos, stats.all_end_rel_nanos
        if not start_ns:
            start_ns, duration_ns = microseconds(stats)
        records = tuple(
            (record.alloc_micros, record.alloc_bytes, used.allocator_name)
            for used in stats.memory
            for record in used.allocation_records
        )
        # Old traces have only a total for each allocator
        requested = sum(used.total_bytes for used in stats.memory if not used.allocation_records)
        requested += sum(size for _, size, _ in records if size > 0)
        yield OpRun(step, name, op, device, start_ns, duration_ns, requested, records)


def microseconds(stats: NodeExecStats) -> tuple[int, int]:
    """Return start and duration in ns of a row with microseconds, as old and GPU rows are."""
    duration_us = stats.all_end_rel_micros or stats.op_end_rel_micros
    return stats.all_start_micros * 1000, duration_us * 1000


def op_times(
    serialized: bytes, start_ns: int, parsed: Callable[[], RunMetadata]
) -> tuple[list[str], list[int], list[int]]:
    """Return three lists from a serialised RunMetadata: node, start in ns since `start_ns`, and
    duration in ns of every op run. `parsed` returns the RunMetadata as a message. Raises TflabError
    for an incomplete trace.

    Reading by columns takes a third of the time. It is impossible if a row does not write all
    fields (a run of 0 ns has no duration), if the trace may be incomplete, or if tensors came over
    the wire.
    """
    rows = merging().FromString(serialized).steps.device.rows
    names, starts, spans = (getattr(rows, name)[:] for name in FIELDS)  # quicker than `list`
    if len(names) == len(starts) == len(spans) < MOST_OP_RUNS and RECEIVED not in names:
        return names, [start - start_ns for start in starts], spans
    runs = list(op_runs(0, parsed().step_stats, {}))
    starts = [run.start_ns - start_ns for run in runs]
    return [run.name for run in runs], starts, [run.duration_ns for run in runs]


FIELDS = {"node_name": 1, "all_start_nanos": 13, "all_end_rel_nanos": 16}  # of NodeExecStats


@functools.cache
def merging() -> type[message.Message]:
    """Return a class of messages that reads the times of op runs from a RunMetadata by columns.

    In it, devices and rows are declared as single messages, which a parser merges, and the fields
    of a row as repeated ones, which line up. So there is no object for each row
    (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
    """
    file = descriptor_pb2.FileDescriptorProto(name="tflab/columns.proto", package="tflab")
    kinds = descriptor_pb2.FieldDescriptorProto
    nesting = (("Metadata", "steps", 1), ("Steps", "device", 1), ("Device", "rows", 2))
    for name, field, number in nesting:
        file.message_type.add(name=name).field.add(
            name=field,
            number=number,
            label=kinds.LABEL_OPTIONAL,
            type=kinds.TYPE_MESSAGE,
            type_name=f".tflab.{field.title()}",
        )
    rows = file.message_type.add(name="Rows")
    for name, number in FIELDS.items():
        kind = kinds.TYPE_STRING if name == "node_name" else kinds.TYPE_INT64
        rows.field.add(name=name, number=number, label=kinds.LABEL_REPEATED, type=kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tflab.Metadata"))


def labelled_type(label: str) -> str:
    """Return the op type in `[mklcpu 1.2MB 1.2MB] conv1/Relu = _MklNativeFusedConv2D(a, b)`."""
    return label.rpartition(" = ")[2].partition("(")[0] or "unknown"


def output_shapes(step_stats: StepStats) -> dict[str, Shape]:
    """Return the shapes of the tensors that a step made, by tensor name (`split:1`, plain `mul`). A
    size that was not always the same is None, as in a loop."""
    shapes: dict[str, Shape] = {}
    for device in step_stats.dev_stats:
        for stats in device.node_stats:
            for output in stats.output:
                tensor = output_name(stats.node_name, output.slot)
                shape = tuple(dim.size for dim in output.tensor_description.shape.dim)
                known = shapes.setdefault(tensor, shape)
                if known is None or len(known) != len(shape):
                    shapes[tensor] = None
                elif known != shape:
                    both = zip(known, shape, strict=True)
                    shapes[tensor] = tuple(a if a == b else None for a, b in both)
    return shapes


# The op runs in what TensorFlow's profiler recorded of a function


class Profiled(NamedTuple):
    """The op runs in a profile, as columns, the types of the nodes, and the ns of each stage of
    tf.data, with the stages that it takes its data from."""

    names: list[str]
    starts: list[int]
    spans: list[int]
    types: dict[str, str]
    stages: Counter[str]


def profiled_durations(content: bytes) -> Profiled:
    """Return the op runs in a profile, an XSpace. A run that waits for data of an iterator gets the
    name `DATA` instead of its node's. Devices other than the host have names of kernels."""
    profile = Profiled([], [], [], {}, Counter())
    for plane in watched_functions.xspace(content).planes:
        if plane.name != HOST:
            continue
        names = {key: event.name for key, event in plane.event_metadata.items()}
        stages = {key: name for key, name in names.items() if name.startswith(STAGE)}
        matches = {key: OP.fullmatch(name) or WAIT.fullmatch(name) for key, name in names.items()}
        nodes = {key: match["node"] for key, match in matches.items() if match}
        profile.types.update((match["node"], match["op"]) for match in matches.values() if match)
        for line in plane.lines:
            for event in line.events:
                if event.metadata_id in nodes:
                    profile.names.append(nodes[event.metadata_id])
                    profile.starts.append(line.timestamp_ns + event.offset_ps // 1000)
                    profile.spans.append(event.duration_ps // 1000)
                elif event.metadata_id in stages:
                    profile.stages[stages[event.metadata_id]] += event.duration_ps // 1000
    return profile
