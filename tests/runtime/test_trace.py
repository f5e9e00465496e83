"""Trace: StepStats become op runs."""

from unittest.mock import Mock

import pytest
import tensorflow.compat.v1 as tf1
from tensorflow.core.framework.step_stats_pb2 import StepStats
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tflab.errors import TflabError
from tflab.records.timed import OpRun, Received
from tflab.runtime import trace

pytestmark = pytest.mark.tensorflow


def memory(*records, total=0):
    """One allocator's records: (microseconds, bytes)."""
    listed = [{"alloc_micros": micros, "alloc_bytes": size} for micros, size in records]
    return {"allocator_name": "cpu", "total_bytes": total, "allocation_records": listed}


def output(slot, *shape):
    sizes = {"dim": [{"size": size} for size in shape]}
    return {"slot": slot, "tensor_description": {"shape": sizes}}


def row(name, label="", start=0, duration=0, **more):
    """A row of a trace with times in nanoseconds, and more in microseconds."""
    times = {"all_start_nanos": start, "all_end_rel_nanos": duration}
    return {"node_name": name, "timeline_label": label, **times, **more}


def step_stats(**devices):
    return StepStats(dev_stats=[{"device": d, "node_stats": rows} for d, rows in devices.items()])


def serialised(stats):
    return tf1.RunMetadata(step_stats=stats).SerializeToString()


def test_what_came_over_the_wire_has_its_ends():
    rates = ("[25600B] [1.5Mb/s]", "[25600B] [2.0Gb/s]", "[1.5MB] [250.0Mb/s]")
    ends = "edge_26_flatten/Reshape", "/job:worker/task:0", "/job:worker/task:1"
    words = "edge_26_flatten/Reshape from /job:worker/task:0 to /job:worker/task:1"
    rows = [
        row("RecvTensor", f"{label} {words}", all_start_micros=7, all_end_rel_micros=3)
        for label in rates
    ]
    other = row("mul", "mul = Mul(x, y)")
    expected = [Received(4, *ends, 7_000, 3_000)] * 3
    assert list(trace.received(4, step_stats(cpu0=[other, *rows]))) == expected


def test_every_row_of_every_device_is_a_run_in_the_runtimes_order():
    """So is each iteration of a loop. The partition graph knows a type better than the label."""
    stats = step_stats(
        cpu0=[
            row("mul", "mul = Mul(x, y)", start=2_000, duration=30),
            row("x", "x = _Arg()", start=1_000, duration=5),
            row("x", "x = _Arg()", start=1_010, duration=6),
        ],
        cpu1=[row("add", "add = AddV2(mul, z)", start=3_000, duration=7)],
        cpu2=[],
    )
    assert list(trace.op_runs(4, stats, {"add": "_Fused"})) == [
        OpRun(4, "mul", "Mul", "cpu0", 2_000, 30),
        OpRun(4, "x", "_Arg", "cpu0", 1_000, 5),
        OpRun(4, "x", "_Arg", "cpu0", 1_010, 6),
        OpRun(4, "add", "_Fused", "cpu1", 3_000, 7),
    ]
    assert list(trace.op_runs(0, step_stats(), {})) == []


def test_memory_of_all_allocators_counts():
    """Frees are not requested. Old traces have only a total of each allocator."""
    known = row("a", memory=[memory((10, 64), (12, -64)), memory((11, 256))])
    old = row("a", memory=[memory(total=64), memory(total=256)])
    runs = list(trace.op_runs(0, step_stats(cpu=[known, old]), {"a": "Op"}))
    events = ((10, 64, "cpu"), (12, -64, "cpu"), (11, 256, "cpu"))
    assert [(run.requested_bytes, run.allocations) for run in runs] == [(320, events), (320, ())]


def test_microseconds_count_where_there_are_no_nanoseconds():
    rows = [
        row("a", all_start_micros=7, all_end_rel_micros=3, op_end_rel_micros=2),
        row("a", all_start_micros=7, op_end_rel_micros=2),
        row("a", all_start_micros=7, all_end_rel_micros=3, all_start_nanos=7_019),
    ]
    runs = trace.op_runs(0, step_stats(cpu=rows), {})
    assert [(run.start_ns, run.duration_ns) for run in runs] == [
        *((7_000, 3_000), (7_000, 2_000), (7_019, 0))
    ]


PLACED = {"memory": [memory((1, 64))]}  # what columns are read past
WHOLE, OTHER = row("mul", "mul = Mul(x, y)", 2_000, 30, **PLACED), row("x", "", 1_000, 5)
THIRD, INSTANT = row("add", "", 3_000, 7), row("x", "", 1_000)


@pytest.mark.parametrize(
    ("devices", "columns"),
    [
        ([[WHOLE, OTHER], [THIRD]], (["mul", "x", "add"], [1_100, 100, 2_100], [30, 5, 7])),
        ([], ([], [], [])),
        # They are refused where a row leaves a field out, or came over the wire
        ([[WHOLE, WHOLE | {"node_name": "RecvTensor"}]], None),
        ([[WHOLE, INSTANT]], None),
        ([[row("old"), WHOLE]], None),
    ],
)
def test_columns_hold_the_rows_of_all_devices_in_their_order(devices, columns):
    stats = step_stats(**{f"cpu{at}": rows for at, rows in enumerate(devices)})
    parsed = Mock(return_value=tf1.RunMetadata(step_stats=stats))
    times = trace.op_times(serialised(stats), 900, parsed)
    assert (None if parsed.called else times) == columns


TASK = "/job:worker/replica:0/task:{}/device:{}"


def test_an_incomplete_trace_is_refused(monkeypatch):
    """Two rows of one device are the most that are recorded."""
    monkeypatch.setattr(trace, "MOST_OP_RUNS", 2)
    rows = [row("a", "", 1, 5), row("b", "", 1, 6)]
    one, two = step_stats(cpu=rows[:1]), step_stats(cpu=rows)
    assert [run.name for run in trace.op_runs(0, one, {})] == ["a"]
    with pytest.raises(TflabError, match="incomplete: the step has 1,048,576 op runs or more"):
        list(trace.op_runs(0, two, {}))
    with pytest.raises(TflabError, match="incomplete"):
        trace.op_times(serialised(two), 0, lambda: tf1.RunMetadata(step_stats=two))
    assert trace.op_times(serialised(one), 0, lambda: None) == (["a"], [1], [5])
    on_gpu = {TASK.format(0, device): rows[:1] for device in ("CPU:0", "GPU:0/stream:all")}
    assert trace.is_incomplete(step_stats(**on_gpu)) and not trace.is_incomplete(step_stats())
    # Rows of two tasks are complete if each is
    both = step_stats(**{TASK.format(task, "CPU:0"): rows[:1] for task in (0, 1)})
    times = trace.op_times(serialised(both), 0, lambda: tf1.RunMetadata(step_stats=both))
    assert times == (["a", "a"], [1, 1], [5, 5])


def test_a_label_names_the_type_behind_its_equals_sign():
    types = {
        "mul = Mul(x, mul/ReadVariableOp)": "Mul",
        "[mklcpu 1.2MB 1.2MB] conv1/Relu = _FusedConv2D(a, b)": "_FusedConv2D",
        "a = Identity": "Identity",
        "MEMCPYHtoD": "MEMCPYHtoD",
        "": "unknown",
    }
    assert {label: trace.labelled_type(label) for label in types} == types


def test_shapes_stand_under_the_names_of_tensors_and_what_changes_in_a_loop_is_unknown():
    stats = step_stats(
        cpu0=[row("split", output=[output(0, 8, 2), output(1, 8, 3)])],
        cpu1=[
            row("loss", output=[output(0)]),
            row("train"),
            *(row("rows", output=[output(0, size, 5)]) for size in (2, 1, 1)),
            *(row("same", output=[output(0, 4)]) for _ in range(2)),
            *(row("rank", output=[output(0, *shape)]) for shape in ((1,), (1, 2), (1,))),
        ],
    )
    assert trace.output_shapes(stats) == {
        "split": (8, 2),
        "split:1": (8, 3),
        "loss": (),
        "rows": (None, 5),
        "same": (4,),
        "rank": None,
    }


# The op runs of a profile are those of the host, whose events bear a node and its type

EVENTS = {  # name -> (offset, duration) in ps
    "StatefulPartitionedCall/MatMul:_MklMatMul": (5_000_000, 17_000_999),
    "EagerLocalExecute: Fill": (0, 90_000_000),
    "ThreadpoolListener::Record": (0, 1_000),
    "Mean:Mean": (30_000_000, 2_000_000),
    "IteratorGetNextOp::DoCompute": (40_000_000, 9_000_000),
    "Iterator::Root::Prefetch": (40_000_000, 9_000_999),
}


def test_only_events_of_ops_are_read():
    space = xplane_pb2.XSpace()
    for plane_name in ("/host:CPU", "/device:GPU:0"):
        plane = space.planes.add(name=plane_name)
        for number, name in enumerate(EVENTS, 1):
            plane.event_metadata[number].name = name
        line = plane.lines.add(timestamp_ns=1_000)
        for number, (offset, duration) in enumerate(EVENTS.values(), 1):
            line.events.add(metadata_id=number, offset_ps=offset, duration_ps=duration)
    assert trace.profiled_durations(space.SerializeToString()) == (
        ["StatefulPartitionedCall/MatMul", "Mean", "IteratorGetNext"],
        [6_000, 31_000, 41_000],
        [17_000, 2_000, 9_000],
        {
            "StatefulPartitionedCall/MatMul": "_MklMatMul",
            "Mean": "Mean",
            "IteratorGetNext": "IteratorGetNext",
        },
        {"Iterator::Root::Prefetch": 9_000},
    )
