"""Wires: what tasks did in a step, worked out by hand from a step of two tasks."""

from dataclasses import replace

from tflab.analysis import timeline, wires
from tflab.records.cluster import Message, Offset, Received, TaskTime, WireTensor
from tflab.records.placed import Transfer
from tflab.records.timed import OpRun, StepTime

CLIENT, A, B = (
    "/job:client/replica:0/task:0",
    "/job:worker/replica:0/task:0",
    "/job:worker/replica:0/task:1",
)
STEP = StepTime(0, start_ns=1_000_000, wall_ns=100_000)


def device(task):
    return f"{task}/device:CPU:0"


def op(name, task, start, duration, step=0):
    return OpRun(step, name, "Op", device(task), start, duration)


# a (task 0) makes a tensor that b (task 1) takes; on the true time axis:
# 1010..1030 us a, 1032..1052 us the wire, 1060..1080 us b
SENT = Transfer("a", "a_S1", "a_S2", device(A), device(B), "float32", (8,), 32, edge="edge_7_a")


def edges():
    return wires.edges([SENT])


RUNS = [op("a", A, 1_010_000, 20_000), op("b", B, 1_060_000, 20_000)]
RECEIVED = Received(0, "edge_7_a", device(A), device(B), 32, 1e6, 1_032_000, 20_000)
AHEAD_NS = 5_000_000  # of b's clock, in some of the tests


def wire(start, duration):
    return OpRun(0, "a_S2", "RecvTensor", "wire from task 0 to task 1", start, duration)


# Messages


def test_a_step_and_what_it_sends_are_messages_between_clocks():
    assert list(wires.messages(RUNS, [RECEIVED], [STEP], edges())) == [
        Message(CLIENT, A, 1_000_000, 1_010_000),
        Message(A, CLIENT, 1_030_000, 1_100_000),
        Message(CLIENT, B, 1_000_000, 1_060_000),
        Message(B, CLIENT, 1_080_000, 1_100_000),
        Message(A, B, 1_030_000, 1_053_000),  # received within that microsecond
    ]


def test_a_node_that_ran_twice_in_a_step_says_nothing_about_when_it_sent():
    runs = [*RUNS, op("a", A, 1_040_000, 1_000)]
    found = list(wires.messages(runs, [RECEIVED], [STEP], edges()))
    assert not [one for one in found if (one.from_clock, one.to_clock) == (A, B)]


def test_a_clock_ahead_is_found_from_one_step():
    """Its part of the step leaves b 4,980 to 5,060 us ahead, and a 70 us behind to 10 ahead; the
    tensor says that b is 5,023 us ahead of a at most."""
    runs = [RUNS[0], wires.shifted(RUNS[1], -AHEAD_NS)]
    received = Received(0, "edge_7_a", device(A), device(B), 32, 1e6, 6_032_000, 20_000)
    axis = wires.one_axis(runs, [received], [STEP], [SENT])
    assert axis.offsets == (
        Offset(A, -16_500, 26_500, -16_500),  # -43 to 10 us
        Offset(B, 5_006_500, 26_500, 5_006_500),  # 4,980 to 5,033 us
    )
    assert axis.runs == [op("a", A, 1_026_500, 20_000), op("b", B, 1_053_500, 20_000)]
    # It was received just when a had ended, but for the microsecond in which it was
    assert axis.wires == [wire(1_045_500, 0)]


# One axis


def test_runs_of_a_clock_ahead_are_moved_back_with_their_allocations():
    run = OpRun(0, "b", "Op", device(B), 6_060_000, 20_000, 64, ((6_061, 64, "cpu"),))
    assert wires.aligned([run, RUNS[0]], {B: AHEAD_NS}) == [
        OpRun(0, "b", "Op", device(B), 1_060_000, 20_000, 64, ((1_061, 64, "cpu"),)),
        RUNS[0],
    ]


def test_what_was_received_is_a_run_named_as_the_node_that_received_it():
    for ended in ({}, wires.ends(RUNS)):  # where clocks agree, the end of its maker says nothing
        assert wires.runs_on_wire([RECEIVED], {}, edges(), ended) == [wire(1_032_000, 20_000)]


def test_the_start_is_that_of_its_maker_s_end_where_clocks_differ():
    """The runtime mixes both clocks: with the sender's ahead, it leaves a microsecond."""
    mixed = Received(0, "edge_7_a", device(A), device(B), 32, 1e6, 6_051_000, 1_000)
    ended = wires.ends(RUNS)
    assert wires.runs_on_wire([mixed], {B: AHEAD_NS}, edges(), ended) == [wire(1_030_000, 22_000)]


def test_a_tensor_of_an_unknown_edge_keeps_its_name():
    (run,) = wires.runs_on_wire([RECEIVED], {}, {}, {})
    assert (run.name, run.op) == ("edge_7_a", "RecvTensor")


def test_the_bytes_of_the_shape_stand_for_those_that_the_runtime_rounded():
    rounded = Received(0, "edge_7_a", device(A), device(B), 104_858, 1e6, 1, 1)
    assert [one.bytes for one in wires.with_exact_bytes([rounded], edges())] == [32]
    assert [one.bytes for one in wires.with_exact_bytes([rounded], {})] == [104_858]


# Sums


def test_the_network_owns_what_no_op_does():
    owners = timeline.time_ledger(RUNS, [STEP], [wire(1_032_000, 20_000)])
    assert {owner.owner: owner.ns for owner in owners} == {
        timeline.BEFORE: 10_000,
        timeline.BUSY: 40_000,
        timeline.WIRE: 20_000,
        timeline.GAPS: 10_000,
        timeline.AFTER: 20_000,
    }


def test_a_tensor_on_its_way_under_an_op_is_the_op_s_time():
    owners = timeline.time_ledger(RUNS, [STEP], [wire(1_015_000, 10_000)])
    assert {owner.owner: owner.ns for owner in owners}[timeline.WIRE] == 0


def test_compute_against_communication_by_task():
    moving = [wire(1_050_000, 20_000)]  # 10 us of it while b computes
    assert wires.task_times(RUNS, moving, [RECEIVED], [STEP]) == (
        TaskTime("task 0", 20_000, 0, 80_000, 0, 0, 32, 20_000, 10_000),
        TaskTime("task 1", 20_000, 10_000, 70_000, 10_000, 32, 0, 20_000, 0),
    )


def test_tasks_have_the_times_of_all_steps():
    later = 1_000_000
    second = [run._replace(step=1, start_ns=run.start_ns + later) for run in RUNS]
    moving = [wire(1_050_000, 20_000)]
    moving.append(moving[0]._replace(step=1, start_ns=moving[0].start_ns + later))
    steps = [STEP, replace(STEP, step=1, start_ns=STEP.start_ns + later)]
    first, task = wires.task_times([*RUNS, *second], moving, [RECEIVED] * 2, steps)
    assert first == TaskTime("task 0", 40_000, 0, 160_000, 0, 0, 64, 40_000, 20_000)
    assert task == TaskTime("task 1", 40_000, 20_000, 140_000, 20_000, 64, 0, 40_000, 0)


def test_tasks_go_by_number_and_the_client_comes_first():
    runs = [op("x", f"/job:worker/replica:0/task:{n}", 1_010_000, 1) for n in (10, 9)]
    runs.append(op("y", CLIENT, 1_010_000, 1))
    named = [task.task for task in wires.task_times(runs, [], [], [STEP])]
    assert named == ["client", "task 9", "task 10"]


def test_tensors_on_the_wire_are_rows_with_the_rate_of_the_median_call():
    calls = [
        Received(step, "edge_7_a", device(A), device(B), 32, rate, 1_000, duration)
        for step, rate, duration in ((0, 1e6, 50), (1, 2e6, 10), (2, 3e6, 30))
    ]
    moving = wires.runs_on_wire(calls, {}, edges(), {})
    assert wires.tensors(calls, moving, edges()) == (
        WireTensor("a", "task 0", "task 1", 3, 32, 30, 3e6),
    )
