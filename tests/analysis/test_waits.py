"""Waits: which task the others waited for, in steps worked out by hand."""

from tflab.analysis.wires import waits
from tflab.records.timed import OpRun, StepTime

A, B = "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
STEP = StepTime(0, start_ns=1_000, wall_ns=100)


def op(task, start, duration, step=0):
    return OpRun(step, "x", "Op", f"{task}/device:CPU:0", start, duration)


def wire(start, duration):
    return OpRun(0, "x", "RecvTensor", "wire from task 0 to task 1", start, duration)


def test_time_in_which_one_task_computes_is_its_own():
    # a 1010..1040, b 1030..1070: 20 ns of a alone, 30 of b, and 10 before the first
    alone, awaited = waits([op(A, 1_010, 30), op(B, 1_030, 40)], [], [STEP])
    assert (alone, awaited) == ({A: 20, B: 30}, {A: 10})


def test_a_pause_belongs_to_the_task_that_ends_it():
    alone, awaited = waits([op(A, 1_000, 10), op(B, 1_080, 10)], [], [STEP])
    assert (alone, awaited) == ({A: 10, B: 10}, {A: 0, B: 70})


def test_a_pause_in_which_a_tensor_is_on_its_way_belongs_to_the_network():
    # The wire 1030..1060: 20 ns until it begins are nobody's, 20 after it b's
    alone, awaited = waits([op(A, 1_000, 10), op(B, 1_080, 10)], [wire(1_030, 30)], [STEP])
    assert (alone, awaited) == ({A: 10, B: 10}, {A: 0, B: 20})


def test_a_tensor_on_its_way_does_not_keep_a_task_from_being_alone():
    alone, _ = waits([op(A, 1_000, 50)], [wire(1_010, 20)], [STEP])
    assert alone == {A: 50}


def test_ops_of_one_task_at_once_count_once_and_steps_add_up():
    runs = [op(A, 1_000, 20), op(A, 1_010, 20), op(A, 5_010, 20, step=1)]
    assert waits(runs, [], [STEP, StepTime(1, 5_000, 100)]) == ({A: 50}, {A: 10})
