"""Conversion: what is told of recorded steps, every sentence and cell, worked out by hand.

Three steps on a CPU and a GPU: x feeds neg on the CPU and conv on the GPU, which has a launch and
kernels; y stands alone, and between x and conv is a node that nobody timed.
"""

import io
import json
from dataclasses import replace

import pytest

from tests.records_by_hand import op_total
from tflab.analysis import tracks
from tflab.convert import conversion, view, write
from tflab.convert.conversion import Conversion
from tflab.convert.read import Recording, TrackSummary
from tflab.records.blocks import Table
from tflab.records.graph import Node
from tflab.records.timed import (
    CriticalPath,
    Holder,
    LiveBytes,
    Memory,
    Occupancy,
    OpMemory,
    OpRun,
    Owner,
    StepShape,
    StepTime,
)

CPU, GPU, STREAM, ALL = "/cpu:0", "/gpu:0", "/gpu:0/stream:13", "/gpu:0/stream:all"
TYPES = {"_SOURCE": "NoOp", "x": "Const", "neg": "Neg", "y": "Range", "conv": "Conv2D"}
STARTS = (1_000, 5_000, 9_000)  # of the steps; us


def run(step, name, device, start, us, requested=0, *allocations) -> OpRun:
    """Times in us since the start of the step."""
    begin = STARTS[step] + start
    held = tuple((STARTS[step] + at, size, "cpu") for at, size in allocations)
    return OpRun(step, name, TYPES[name], device, begin * 1000, us * 1000, requested, held)


RUNS = (
    run(0, "_SOURCE", CPU, 0, 1),
    run(0, "x", CPU, 2, 10, 3072, (3, 3072), (60, -3072)),
    run(0, "conv", GPU, 15, 5),
    run(0, "neg", CPU, 20, 30, 1024, (21, 1024)),
    run(0, "conv", STREAM, 40, 60),
    run(1, "_SOURCE", CPU, 0, 2),
    run(1, "x", CPU, 2, 20),
    run(1, "conv", GPU, 22, 6),
    run(1, "neg", CPU, 30, 40),
    run(1, "conv", STREAM, 60, 70),
    run(1, "conv", STREAM, 135, 10),
    run(2, "x", CPU, 0, 30, 3072, (1, 3072)),
    run(2, "neg", CPU, 10, 35),
    run(2, "y", CPU, 20, 5),
    run(2, "conv", GPU, 50, 4),
    run(2, "conv", STREAM, 60, 50, 512, (61, 512)),
)
RECORDED = Recording(
    files=("traces/first.pb", "traces/second.pb", "third.pb"),
    labels=("first.pb", "second.pb", "third.pb"),
    steps=(
        StepTime(0, 1_000_000, 100_000),
        StepTime(1, 5_000_000, 145_000),
        StepTime(2, 9_000_000, 110_000),
    ),
    runs=RUNS,
    tracks=(
        TrackSummary(CPU, tracks.OPS, 9, 173_000, 0),
        TrackSummary(GPU, tracks.LAUNCHES, 3, 15_000, 0),
        TrackSummary(STREAM, tracks.KERNELS, 4, 190_000, 0),
        TrackSummary(ALL, tracks.REPEATS, 0, 0, 6),
    ),
    nodes=(
        Node("x", "Const"),
        Node("neg", "Neg"),
        Node("untimed", "Identity", ("x",)),
        Node("conv", "Conv2D", ("untimed",)),
        Node("y", "Range"),
    ),
)


def told(found: Conversion) -> list:
    """Each sentence; of each table title, headers, rows and how many are left out."""
    return [shown(block) if isinstance(block, Table) else block for block in view.blocks(found)]


def shown(table: Table) -> tuple:
    headers = tuple(column.header for column in table.columns)
    return table.title, headers, [*table.cells()], table.more


def test_steps_of_a_cpu_and_a_gpu_are_told():
    assert told(conversion.convert(RECORDED)) == [
        "3 steps with 16 op runs, 2 of them the executor's own (_SOURCE). A RunMetadata does not "
        "contain the time of session.run, so a step is measured from the start of its first op "
        "to the end of its last.",
        (
            "What was recorded",
            ("device", "its rows are", "op runs", "total", "left out"),
            [
                ("/cpu:0", "ops", "9", "173 us", "0"),
                ("/gpu:0", "launches of GPU kernels", "3", "15.0 us", "0"),
                ("/gpu:0/stream:13", "kernels of a stream", "4", "190 us", "0"),
                ("/gpu:0/stream:all", "left out: repeats other rows", "0", "0 ns", "6"),
            ],
            0,
        ),
        "Totals of different kinds overlap and must not be added: a launch ends before its "
        "kernel, and a thread waits for GPU work that is counted elsewhere.",
        (
            "The steps",
            (
                "step",
                "file",
                "start to end",
                "an op ran",
                "op runs",
                "at most at once",
            ),
            [
                ("0", "first.pb", "100 us", "96.0 us", "5", "2"),
                ("1", "second.pb", "145 us", "138 us", "6", "2"),
                ("2", "third.pb", "110 us", "99.0 us", "5", "3"),
            ],
            0,
        ),
        (
            "Where the time of the steps went",
            ("owner", "a step", "share"),
            [
                ("at least one op running", "111 us", "93.8 %"),
                ("no op running between ops (scheduling, waiting)", "7.33 us", "6.2 %"),
            ],
            0,
        ),
        (
            "The most expensive nodes (self time)",
            ("node", "type that ran", "kind", "calls", "self", "mean", "share of kind"),
            [
                ("conv", "Conv2D", "kernels of a stream", "4", "190 us", "47.5 us", "100.0 %"),
                ("neg", "Neg", "ops", "3", "105 us", "35.0 us", "61.8 %"),
                ("x", "Const", "ops", "3", "60.0 us", "20.0 us", "35.3 %"),
                ("conv", "Conv2D", "launches of GPU kernels", "3", "15.0 us", "5.00 us", "100.0 %"),
                ("y", "Range", "ops", "1", "5.00 us", "5.00 us", "2.9 %"),
            ],
            0,
        ),
        "The critical path, the longest chain of ops that wait for one another, has 2 op runs. In "
        "the trace these took 80.0 us. A node in a loop occurs in it once for each iteration. All "
        "ops together took 1.50 x as long. While any op ran, 1.14 ran at once on average.",
        (
            "The critical path",
            ("node", "type that ran", "took", "share"),
            [("x", "Const", "30.0 us", "37.5 %"), ("conv", "Conv2D", "50.0 us", "62.5 %")],
            0,
        ),
        "The ops had at most 4.00 KiB alive at once; x requested most, 2.00 KiB a step. The step "
        "of median length peaked after 61.0 us: 3.50 KiB, allocated by 2 ops, the largest parts "
        "by x (3.00 KiB), conv (512 B, still running).",
    ]


def test_steps_of_a_cpu_alone_are_told_without_kinds():
    wide = tuple(
        OpRun(step, f"n{n:02}", f"Op{n}", CPU, 1_000_000 * step + 10_000 * n, 1_000 * (n + step))
        for step in range(1, 45)
        for n in range(1, 13)
    )
    recorded = Recording(
        files=("first.pb", *(f"{step}.pb" for step in range(1, 45))),
        labels=("first.pb", *(f"{step}.pb" for step in range(1, 45))),
        steps=tuple(
            StepTime(step, 1_000_000 * step + 10_000, (110 + 12 + step) * 1_000)
            for step in range(1, 45)
        ),
        runs=wide,
        tracks=(TrackSummary(CPU, tracks.OPS, 528, 7_654_321, 0),),
    )
    first, devices, steps, owners, top, graphless = told(conversion.convert(recorded))
    assert first.startswith("44 steps with 528 op runs. A RunMetadata does not contain the time")
    assert devices == (
        "What was recorded",
        ("device", "its rows are", "op runs", "total"),
        [("/cpu:0", "ops", "528", "7.65 ms")],
        0,
    )
    title, headers, rows, more = steps
    assert (title, len(headers), len(rows), more) == ("The steps", 6, 40, 4)
    assert rows[0] == ("1", "1.pb", "123 us", "87.0 us", "12", "2")
    assert rows[8] == ("9", "9.pb", "131 us", "131 us", "12", "2")
    assert rows[-1] == ("40", "40.pb", "162 us", "162 us", "12", "5")
    assert [owner for owner, *_ in owners[2]] == [
        "at least one op running",
        "no op running between ops (scheduling, waiting)",
    ]
    title, headers, rows, more = top
    assert (title, more) == ("The most expensive nodes (self time)", 2)
    assert headers == ("node", "type that ran", "calls", "self", "mean", "share")
    # 44 calls of n + 22.5 us on average; all together 44 * (78 + 12 * 22.5) us
    assert rows == [
        ("n12", "Op12", "44", "1.52 ms", "34.5 us", "9.9 %"),
        ("n11", "Op11", "44", "1.47 ms", "33.5 us", "9.6 %"),
        ("n10", "Op10", "44", "1.43 ms", "32.5 us", "9.3 %"),
        ("n09", "Op9", "44", "1.39 ms", "31.5 us", "9.1 %"),
        ("n08", "Op8", "44", "1.34 ms", "30.5 us", "8.8 %"),
        ("n07", "Op7", "44", "1.30 ms", "29.5 us", "8.5 %"),
        ("n06", "Op6", "44", "1.25 ms", "28.5 us", "8.2 %"),
        ("n05", "Op5", "44", "1.21 ms", "27.5 us", "7.9 %"),
        ("n04", "Op4", "44", "1.17 ms", "26.5 us", "7.6 %"),
        ("n03", "Op3", "44", "1.12 ms", "25.5 us", "7.3 %"),
    ]
    assert graphless == ("The trace has no graph. With --graph, the critical path is shown too.")


def test_edges_that_the_trace_does_not_keep_are_not_blamed_on_it():
    found = replace(conversion.convert(RECORDED), critical_path=CriticalPath((), 0, 0))
    (sentence,) = view.path(found, found.critical_path)
    assert sentence == (
        "No critical path is shown: according to the edges of the graph, an op of this trace "
        "began before an op that it depends on had ended. The graph may not be the one that ran, "
        "because passes change edges."
    )


def test_ops_that_took_no_time_have_no_share_of_their_path():
    found = conversion.convert(RECORDED)
    nothing = replace(found.critical_path, ns=0, durations_ns=(0, 0))
    _, table = view.path(found, nothing)
    assert [*table.cells()] == [
        ("x", TYPES["x"], "0 ns", "0.0 %"),
        ("conv", TYPES["conv"], "0 ns", "0.0 %"),
    ]


def test_what_steps_add_up_to_is_worked_out_kind_by_kind():
    found = conversion.convert(RECORDED)
    assert found.recorded is RECORDED
    assert found.wall_ns == 355_000
    assert [(owner.owner.split(" (")[0], owner.ns) for owner in found.time_ledger] == [
        ("before the first op", 0),
        ("at least one op running", 333_000),
        ("no op running between ops", 22_000),
        ("after the last op", 0),
    ]
    assert [
        (kind, row.key, row.op, row.calls, row.total_ns, row.self_ns, row.mean_ns, row.share)
        for kind, row in conversion.ranked(found)
    ] == [
        (kind, name, TYPES[name], calls, ns, ns, mean, pytest.approx(share))
        for kind, name, calls, ns, mean, share in (
            (tracks.KERNELS, "conv", 4, 190_000, 47_500, 1),
            (tracks.OPS, "neg", 3, 105_000, 35_000, 105 / 170),
            (tracks.OPS, "x", 3, 60_000, 20_000, 60 / 170),
            (tracks.LAUNCHES, "conv", 3, 15_000, 5_000, 1),
            (tracks.OPS, "y", 1, 5_000, 5_000, 5 / 170),
        )
    ]
    assert {kind: [row.key for row in table] for kind, table in found.top_ops.items()} == {
        tracks.OPS: ["neg", "x", "y"],
        tracks.KERNELS: ["conv"],
        tracks.LAUNCHES: ["conv"],
    }
    assert found.critical_path.nodes == ("x", "conv")  # through a node without a run
    assert found.critical_path.durations_ns == (30_000, 50_000)
    assert found.critical_path.ns == 80_000
    assert found.critical_path.parallelism == 1.5
    assert found.critical_path.achieved_parallelism == pytest.approx(363 / 318)
    assert found.memory.per_op[:3] == (
        OpMemory("x", 2048),
        OpMemory("neg", 341),
        OpMemory("conv", 171),
    )
    assert conversion.convert(replace(RECORDED, nodes=())).critical_path is None


# For other programs

SMALL = Conversion(
    recorded=Recording(
        files=("a.pb", "b.pb"),
        labels=("a.pb", "b.pb"),
        steps=(StepTime(0, 100, 40), StepTime(1, 900, 60)),
        runs=(
            OpRun(0, "x", "Const", CPU, 100, 40, 16, ((1, 16, "cpu"), (2, -16, "cpu"))),
            OpRun(1, "conv", "Conv2D", STREAM, 905, 55, 0, ()),
        ),
        tracks=(
            TrackSummary(CPU, tracks.OPS, 1, 40, 3),
            TrackSummary(STREAM, tracks.KERNELS, 2, 55, 4),
        ),
        notes=("In 'a.pb' something was odd.",),
    ),
    step_times=(
        StepTime(0, 100, 40, StepShape(5, 1.25, (Occupancy(CPU, 30, 0.75),))),
        StepTime(1, 900, 60),
    ),
    wall_ns=100,
    time_ledger=(Owner("busy", 95), Owner("gaps", 5)),
    top_ops={tracks.KERNELS: (op_total("conv", "Conv2D", 7, 56, 55, 8.0, 0.875),)},
    critical_path=CriticalPath(("x", "conv"), 95.0, 1.5, 1.25, (("x", 0.5),), (40, 55)),
    memory=Memory(
        (OpMemory("x", 8),),
        17,
        LiveBytes(0, ((900, 16),), 18, 19, (Holder("x", "Const", 15, True),)),
    ),
)


def test_json_has_all_of_it():
    stream = io.StringIO()
    write.write_json(stream, SMALL)
    assert json.loads(stream.getvalue()) == {
        "files": ["a.pb", "b.pb"],
        "steps": 2,
        "devices": [
            {"device": CPU, "kind": "ops", "op_runs": 1, "total_ns": 40, "left_out": 3},
            {
                "device": STREAM,
                "kind": "kernels of a stream",
                "op_runs": 2,
                "total_ns": 55,
                "left_out": 4,
            },
        ],
        "step_times": [
            {
                "step": 0,
                "start_ns": 100,
                "wall_ns": 40,
                "shape": {
                    "most_at_once": 5,
                    "mean_at_once": 1.25,
                    "devices": [{"device": CPU, "busy_ns": 30, "idle_share": 0.75}],
                },
            },
            {"step": 1, "start_ns": 900, "wall_ns": 60, "shape": None},
        ],
        "wall_ns": 100,
        "time_ledger": [{"owner": "busy", "ns": 95}, {"owner": "gaps", "ns": 5}],
        "critical_path": {
            "nodes": ["x", "conv"],
            "ns": 95.0,
            "parallelism": 1.5,
            "achieved_parallelism": 1.25,
            "slack": [["x", 0.5]],
            "durations_ns": [40, 55],
        },
        "memory": {
            "per_op": [{"name": "x", "requested_bytes": 8}],
            "peak_bytes": 17,
            "curve": {
                "step": 0,
                "points": [[900, 16]],
                "peak_bytes": 18,
                "peak_ns": 19,
                "holders": [{"name": "x", "op": "Const", "bytes": 15, "running": True}],
            },
        },
        "notes": ["In 'a.pb' something was odd."],
        "top_ops": [
            {
                "name": "conv",
                "op": "Conv2D",
                "calls": 7,
                "total_ns": 56,
                "self_ns": 55,
                "mean_ns": 8.0,
                "share": 0.875,
                "kind": "kernels of a stream",
            }
        ],
        "runs": [
            {
                "step": 0,
                "name": "x",
                "op": "Const",
                "device": CPU,
                "start_ns": 100,
                "duration_ns": 40,
                "requested_bytes": 16,
                "allocations": [[1, 16, "cpu"], [2, -16, "cpu"]],
            },
            {
                "step": 1,
                "name": "conv",
                "op": "Conv2D",
                "device": STREAM,
                "start_ns": 905,
                "duration_ns": 55,
                "requested_bytes": 0,
                "allocations": [],
            },
        ],
    }


def test_csv_has_a_line_for_each_run():
    stream = io.StringIO()
    write.write_csv(stream, SMALL.recorded)
    assert stream.getvalue() == (
        "step,name,op,device,kind,start_ns,duration_ns,requested_bytes\n"
        "0,x,Const,/cpu:0,ops,100,40,16\n"
        "1,conv,Conv2D,/gpu:0/stream:13,kernels of a stream,905,55,0\n"
    )
