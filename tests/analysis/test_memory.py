"""Memory: a few allocations, added up by hand and by tflab."""

import pytest

from tests.examples.runs import runs
from tflab.analysis import memory, op_runs
from tflab.records.timed import Holder, LiveBytes, Memory, OpRun, StepTime

STEP = StepTime(0, start_ns=500, wall_ns=20_000)


@pytest.mark.parametrize(
    ("recorded", "peak"),
    [
        # That of the worst step
        ("a 0 +100/1 -100/5; b 0 +50/3 -50/9; a 0 #1 +120/1 -120/2; b 0 #1 +50/3 -50/9", 150),
        ("a 0 +100/1; b 0 #1 +30/1", 100),
        ("l 0 +10/0; l 0 +10/1; l 0 +10/2; l 0 +10/3", 40),  # a loop
        ("b 0 +8/0; c 0 +9/0; a 0 +8/0", 25),
        ("", 0),
        ("a 0 -10/1", 0),  # what it releases was allocated before
    ],
)
def test_the_peak_is_that_of_the_worst_step(recorded, peak):
    known = memory.memory(runs(recorded), [STEP])
    assert known == Memory(peak_bytes=peak, curve=known.curve)
    assert memory.peak_bytes(runs(recorded)) == peak


def test_the_curve_is_that_of_the_first_step_with_the_highest_peak():
    recorded = runs("a 0 0 +9/0; a 0 0 #2 +10/2; a 0 0 #1 +10/1")
    steps = [StepTime(0, 0, 90), StepTime(2, 0, 80), StepTime(1, 0, 70)]
    held = (Holder("a", "Op", 10, running=False),)
    curve = LiveBytes(step=2, points=((2000, 10),), peak_bytes=10, peak_ns=2000, holders=held)
    assert memory.memory(recorded, steps).curve == curve
    assert memory.memory(recorded[1:], [STEP]).curve == LiveBytes(0, (), 0, 0, ())


# One step

OF_THREE = """small 0 2000 +8/1 -8/9; gone 0 2000 +500/1 -500/2;
    big 0 4000 +64/2 +32/3 -32/4 -64/8"""
POINTS = ((500, 508), (1500, 72), (2500, 104), (3500, 72), (7500, 8), (8500, 0))


def test_the_peak_is_held_by_the_ops_that_allocated():
    assert memory.live_bytes(runs(OF_THREE), STEP) == LiveBytes(
        step=0,
        points=POINTS,
        peak_bytes=508,
        peak_ns=500,
        holders=(Holder("gone", "Op", 500, running=True), Holder("small", "Op", 8, running=True)),
    )


@pytest.mark.parametrize(
    ("recorded", "peak_ns", "holders"),  # name, bytes, and whether it is still at work
    [
        ("done 0 2000 +8/1 -8/9; busy 0 5000 +4/3 -4/5", 2500, [("done", 8, 0), ("busy", 4, 1)]),
        ("l 0 0 +10/0; l 0 0 +10/1; l 0 0 +10/2; l 0 0 +10/3", 2500, [("l", 40, 0)]),
        ("a 0 0 +8/1 -8/2; b 0 0 +8/3 -8/4", 500, [("a", 8, 0)]),  # of equal peaks the first
        ("b 0 0 +8/1; a 0 0 +8/1", 500, [("a", 8, 0), ("b", 8, 0)]),
        ("a 0 3000 +1/3", 2500, [("a", 1, 0)]),  # ends at the peak, so it is not at work any more
        ("a 0 3001 +1/3", 2500, [("a", 1, 1)]),
        # Where nothing was allocated nobody holds anything
        ("", 0, []),
        ("a 0", 0, []),
        ("a 0 -8/3", 0, []),
        ("a 0 +8/3 -8/3", 0, []),
        ("a 0 +8/0; b 0 -8/0", 0, []),
    ],
)
def test_who_holds_the_peak(recorded, peak_ns, holders):
    live = memory.live_bytes(runs(recorded), STEP)
    expected = [Holder(name, "Op", size, bool(at_work)) for name, size, at_work in holders]
    assert list(live.holders) == expected
    assert (live.peak_ns, live.peak_bytes) == (peak_ns, sum(size for _, size, _ in holders))


def test_a_node_that_ran_as_two_types_holds_bytes_as_the_last():
    kinds = (("Launch", "GPU:0"), ("Kernel", "GPU:1"))
    both = [OpRun(0, "a", op, device, 1_000, 1, 4, ((1, 4, "gpu"),)) for op, device in kinds]
    assert memory.live_bytes(both, STEP).holders == (Holder("a", "Kernel", 8, running=True),)


@pytest.mark.tensorflow
def test_the_holders_of_a_real_step_add_up_to_its_peak(walked):
    stage = walked("lenet")["execution"]
    for recorded in stage.runs:  # none releases more than it allocated
        assert (memory.curve(op_runs.of([recorded]))[1] >= 0).all()
    curve = stage.memory.curve
    assert sum(holder.bytes for holder in curve.holders) == curve.peak_bytes
    assert curve.peak_bytes == stage.memory.peak_bytes
    (step,) = (step for step in stage.step_times if step.step == curve.step)
    assert -1000 < curve.points[0][0] < curve.peak_ns < step.wall_ns
    output = 16 * 28 * 28 * 6 * 4  # of conv1/Relu: the gradients need it once more
    assert curve.holders[0] == Holder("conv1/Relu", curve.holders[0].op, output, running=False)
