"""XSpace: what XProf's own converters make of it equals the records that went in."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.examples.profiles import drawn, table
from tests.exporters.xspace import xplane
from tflab.analysis import memory, timeline
from tflab.exporters import xspace
from tflab.records.timed import Capture, OpRun, StepTime

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

TASK = "/job:localhost/replica:0/task:0"
CPU, OTHER = f"{TASK}/device:CPU:0", f"{TASK}/device:CPU:1"
EPOCH = 1_700_000_000_000_000_000  # ns, a whole number of us


def run(name, start, duration, step=0, op="Op", device=CPU, allocations=()) -> OpRun:
    events = tuple((EPOCH // 1000 + us, size, allocator) for us, size, allocator in allocations)
    return OpRun(step, name, op, device, EPOCH + start, duration, 0, events)


def capture(*runs: OpRun, steps=((0, 0, 1000),), name="made by hand") -> Capture:
    """A capture of these runs; a step is its number, start and wall time."""
    times = tuple(StepTime(number, EPOCH + start, wall) for number, start, wall in steps)
    return Capture(name, times, runs)


def spread(count: int) -> Capture:
    """As many steps, one after another."""
    runs = (run("a", 100 * step + 10, 50, step) for step in range(count))
    return capture(*runs, steps=[(step, 100 * step, 80 + step) for step in range(count)])


# What XProf makes of it


def counted_ops(recorded: Capture) -> dict[str, tuple[int, float]]:
    """Occurrences and self time in us of each op, from framework op stats."""
    return {
        f"{row['operation']}:{row['type']}": (row["occurrences"], row["total_self_time"])
        for row in table(drawn(recorded, "framework_op_stats")[0])
        if (row["operation"], row["type"]) != ("IDLE", "IDLE")
    }


def counted_steps(recorded: Capture) -> list[tuple[str, float]]:
    """Name and milliseconds of each step, from the overview page."""
    return [
        (row["stepnum"], row["stepTimeMs"]) for row in table(drawn(recorded, "overview_page")[1])
    ]


def counted_peaks(recorded: Capture) -> dict[str, int]:
    """The most bytes that each allocator held, from the memory profile."""
    profiles = drawn(recorded, "memory_profile")["memoryProfilePerAllocator"]
    return {
        allocator: int(profile["profileSummary"]["peakStats"]["peakBytesInUse"])
        for allocator, profile in profiles.items()
    }


def assert_conserved(recorded: Capture) -> None:
    """Ops, steps and the peaks of allocators are those of the records."""
    names = xspace.event_names(dict.fromkeys((run.name, run.op) for run in recorded.runs))
    ns: dict[str, list[int]] = {}
    for run in recorded.runs:
        ns.setdefault(names[run.name, run.op], []).append(run.duration_ns)
    assert counted_ops(recorded) == {
        name: (len(each), pytest.approx(sum(each) / 1000, abs=1e-6)) for name, each in ns.items()
    }
    assert counted_steps(recorded) == [
        (f"step {step.step}", pytest.approx(step.wall_ns / 1e6, abs=1e-9))
        for step in sorted(recorded.steps, key=lambda step: step.step)
    ]
    assert counted_peaks(recorded) == {
        allocator: memory.peak_bytes(
            run._replace(allocations=tuple(a for a in run.allocations if a[2] == allocator))
            for run in recorded.runs
        )
        for allocator in {name for run in recorded.runs for _, _, name in run.allocations}
    }


@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_ops_steps_and_memory_of_lenet_are_those_of_its_trace(captured, devices):
    for recorded in (example.capture for example in captured("lenet", devices)):
        assert len(recorded.runs) > 400
        assert_conserved(recorded)
        assert_every_nanosecond_is_drawn_once(recorded)


NASTY_NAMES = (
    *("a", "a/b", "_arg_x", "__arg_x", "runtime/arg_x", "_", "/", "//", "", "a:b", "a b", "é"),
    *("日本", "-x", ">x", ".", "..", "a\nb", "a\0b", "\ud800", '"', "\\", "x" * 300, "IDLE"),
    *("train", "train:0", "train_step", "trainer/x", "test", "tester", "TraceContext"),
    *("Iterator", "Iterator::Batch", "FunctionRun/x", "EagerExecute", "SessionRun", "_counters_"),
    *("MEMCPYHtoD", "MemoryAllocation", "input/IteratorGetNext", "while/body"),
)
NASTY_TYPES = ("Op", "_Arg", "", "unknown", "conv2d", "A:B", "Addons>X", "2D", "é", "IDLE", "While")
ALLOCATIONS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(-3, 3), st.sampled_from(["cpu", "mklcpu", 'x"y', "é"])
    ),
    max_size=4,
)
RUNS = st.lists(
    st.builds(
        run,
        st.sampled_from(NASTY_NAMES) | st.text(max_size=5),
        st.integers(0, 150),
        st.integers(0, 40),
        st.integers(0, 3),  # there is no step 3
        st.sampled_from(NASTY_TYPES) | st.text(max_size=3),
        st.sampled_from([CPU, OTHER]),
        ALLOCATIONS,
    ),
    max_size=12,
)
THREE_STEPS = ((0, 0, 60), (1, 60, 60), (2, 130, 20))


@pytest.mark.thorough
@settings(max_examples=25)
@given(RUNS)
def test_whatever_ran_is_conserved(runs):
    recorded = capture(*runs, steps=THREE_STEPS)
    assert_conserved(recorded)
    assert_every_nanosecond_is_drawn_once(recorded)


@pytest.mark.parametrize("count", [0, 3, 4, 5, 6, 7, 300])
def test_all_steps_are_conserved_however_many_there_are(count):
    """XProf leaves out the first and the last of six steps and more."""
    assert_conserved(spread(count))


def test_xprof_takes_the_kernels_of_a_gpu_for_the_work_of_a_device_and_not_of_their_launch():
    launch = run("conv", 0, 5, op="Conv2D", device=f"{TASK}/device:GPU:0")
    kernel = launch._replace(device="/device:GPU:0/stream:13", start_ns=EPOCH + 100, duration_ns=90)
    recorded = capture(launch, kernel)
    assert counted_ops(recorded) == {"conv:Conv2D": (1, 0.005), "gpu/conv:Conv2D": (1, 0.09)}
    rows = table(drawn(recorded, "framework_op_stats")[1])
    assert {row["operation"]: row["host_or_device"] for row in rows} == {
        "conv": "Host",
        "gpu/conv": "Device",
    }
    _, advice, about, *_ = drawn(recorded, "overview_page")
    assert (about["p"]["device_type"], about["p"]["device_core_count"]) == ("GPU", "1")
    assert "No step time measured" not in advice["p"]["input_conclusion"]


# What is in the file


def lines(recorded: Capture) -> list[tuple[str, list[tuple[int, int]]]]:
    """The lines in which something is drawn, with each event's name, start and end in ps."""
    traced = xplane.lines(xplane.planes(xspace.encode(recorded))["/host:CPU"])
    return [
        (name, [(event, start, start + duration) for event, start, duration, _ in events])
        for number, name, events in traced
        if number > 0 and name != "_counters_"
    ]


def assert_every_nanosecond_is_drawn_once(recorded: Capture) -> None:
    """Nothing overlaps in a lane, and the session's own time is what the ops leave of the steps."""
    idle: Counter[str] = Counter()
    for name, events in lines(recorded):
        for (_, _, end), (_, start, _) in pairwise(sorted(events, key=lambda event: event[1:])):
            assert end <= start
        if name == "session":
            for owner, start, end in events:
                idle[owner] += (end - start) // 1000
    ledger = {row.owner: row.ns for row in timeline.time_ledger(recorded.runs, recorded.steps)}
    del ledger[timeline.BUSY]  # what is left of the steps
    assert {owner: idle[owner] for owner in ledger} == ledger


# Memory


def test_memory_at_the_peak_is_listed_by_op():
    recorded = capture(
        run("old", 0, 2000, allocations=[(0, 100, "cpu"), (1, 100, "cpu"), (2, -100, "cpu")]),
        run("new", 3000, 2000, allocations=[(3, 50, "cpu"), (3, 7, "cpu"), (3, -7, "cpu")]),
        run("other", 0, 9, allocations=[(0, 999, "gpu")]),
        run("later", 8000, 9, step=1, allocations=[(8, 20, "cpu")]),
        steps=((0, 0, 6000), (1, 8000, 100)),
    )
    profile = drawn(recorded, "memory_profile")["memoryProfilePerAllocator"]["cpu"]
    held = Counter()
    for active in profile["activeAllocations"]:
        kept = profile["memoryProfileSnapshots"][int(active["snapshotIndex"])]["activityMetadata"]
        held[kept["tfOpName"]] += int(kept["allocationBytes"]) * int(active["numOccurrences"])
    assert profile["profileSummary"]["peakStats"]["peakBytesInUse"] == "200"
    assert held == {"old": 200}
    assert profile["specialAllocations"] == []


# Files


CLIENT, TASK = "/job:client/replica:0/task:0", "/job:worker/replica:0/task:12"
ON_CLUSTER = (
    OpRun(0, "feed", "Op", f"{CLIENT}/device:CPU:0", 1, 1),
    OpRun(0, "mul", "Mul", f"{TASK}/device:CPU:0", 5, 1),
    OpRun(0, "x_S1", "RecvTensor", "wire from client to task 12", 3, 1),
)


def test_each_task_of_a_cluster_is_a_host_with_what_it_ran_and_received(tmp_path):
    whole = Capture("toy", (StepTime(0, 0, 9),), ON_CLUSTER)
    paths = xspace.write(tmp_path, [whole], host="here")
    assert [path.name for path in paths] == ["client.xplane.pb", "task-12.xplane.pb"]
    both = [xplane.described(path.read_bytes()) for path in paths]
    approve("xspace-cluster.txt", "\n\n".join(both))
