"""Memory: every allocation with what its allocator held then, and the curves, event by event."""

import pytest

from tests import xplane
from tflab.analysis import op_runs
from tflab.exporters.xspace import memory
from tflab.exporters.xspace.plane import Plane
from tflab.records.timed import Allocation, OpRun
from tflab.runtime import private

pytestmark = pytest.mark.tensorflow

LINE = -559_038_730  # 0xDEADBEF6 as a 32-bit number, of which XProf knows that it is no thread
ZERO = 9_999  # ns: a nanosecond before the tenth microsecond


def run(step: int, name: str, *allocations: Allocation) -> OpRun:
    return OpRun(step, name, "Op", "CPU:0", 0, 0, 0, allocations)


def every(*runs: OpRun, groups: dict[int, int] | None = None) -> list:
    plane = Plane(private.xspace(), "p")
    memory.add(plane, op_runs.of(runs), groups or {}, ZERO)
    return xplane.lines(plane.proto)


def lines(*runs: OpRun, groups: dict[int, int]) -> list:
    """The lines without addresses."""
    both = every(*runs, groups=groups)
    for *_, stats in both[0][2]:
        del stats["addr"]
    return both


def event(start: int, size: int, held: int, peak: int, group: int, of: str) -> tuple:
    """An allocation, or a release where the size is negative; `of` is an op and an allocator."""
    op, allocator = of.split()
    return (
        "MemoryDeallocation" if size < 0 else "MemoryAllocation",
        start * 1000,
        1000,
        {
            "group_id": group,
            "bytes_allocated": held,
            "peak_bytes_in_use": peak,
            "requested_bytes": abs(size),
            "allocation_bytes": abs(size),
            "allocator_name": allocator,
            "tf_op": op,
        },
    )


def point(allocator: str, start: int, held: int) -> tuple:
    return (f"bytes held by {allocator}", start * 1000, 0, {"bytes": held})


def test_every_event_of_two_steps_two_allocators_and_a_run_of_no_step():
    both = lines(
        run(3, "conv", (10, 100, "cpu"), (12, 50, "cpu"), (14, -100, "cpu")),
        run(3, "relu", (12, 8, "gpu"), (12, -30, "cpu"), (12, 30, "cpu")),
        run(5, "conv", (20, 101, "cpu"), (25, -101, "cpu")),
        run(9, "late", (9, 7, "gpu")),  # before the profile began, and of no step
        groups={3: 1, 5: 2},
    )
    assert both == [
        (
            LINE,
            "memory",
            [
                event(1, 100, 100, 100, 1, "conv cpu"),
                event(2_001, 50, 150, 150, 1, "conv cpu"),
                event(2_002, 30, 150, 150, 1, "relu cpu"),
                event(2_003, -30, 150, 150, 1, "relu cpu"),
                event(4_001, -100, 50, 150, 1, "conv cpu"),
                event(10_001, 101, 101, 150, 2, "conv cpu"),
                event(15_001, -101, 0, 150, 2, "conv cpu"),
                event(2_001, 8, 8, 8, 1, "relu gpu"),
                event(0, 7, 7, 8, 0, "late gpu"),
            ],
        ),
        (
            2,
            "_counters_",
            [
                point("cpu", 1, 100),
                point("cpu", 2_001, 150),
                point("cpu", 4_001, 50),
                point("cpu", 10_001, 101),
                point("cpu", 15_001, 0),
                point("gpu", 2_001, 8),
                point("gpu", 0, 7),
            ],
        ),
    ]


def test_the_allocator_that_is_named_first_comes_first_and_a_step_begins_anew():
    both = lines(
        run(1, "add", (30, 5, "z"), (31, 6, "a")),
        run(0, "mul", (10, 3, "z"), (10, -1, "z"), (11, 9, "a")),
        groups={0: 1, 1: 2},
    )
    (_, _, events), (_, _, points) = both
    assert events == [
        event(1, 3, 2, 2, 1, "mul z"),
        event(2, -1, 2, 2, 1, "mul z"),
        event(20_001, 5, 5, 5, 2, "add z"),
        event(1_001, 9, 9, 9, 1, "mul a"),
        event(21_001, 6, 6, 9, 2, "add a"),
    ]
    assert points == [
        point("z", 1, 2),
        point("z", 20_001, 5),
        point("a", 1_001, 9),
        point("a", 21_001, 6),
    ]


def test_allocators_of_one_microsecond_and_step_are_apart():
    both = lines(run(0, "add", (10, 5, "z"), (10, 3, "a")), groups={0: 1})
    assert [(name, events) for _, name, events in both] == [
        ("memory", [event(1, 5, 5, 5, 1, "add z"), event(1, 3, 3, 3, 1, "add a")]),
        ("_counters_", [point("z", 1, 5), point("a", 1, 3)]),
    ]


def test_steps_of_one_microsecond_are_apart():
    both = lines(run(0, "add", (10, 5, "z")), run(1, "add", (10, 7, "z")), groups={0: 1, 1: 2})
    assert [(name, events) for _, name, events in both] == [
        ("memory", [event(1, 5, 5, 5, 1, "add z"), event(1, 7, 7, 7, 2, "add z")]),
        ("_counters_", [point("z", 1, 5), point("z", 1, 7)]),
    ]


def test_to_allocate_nothing_is_an_allocation():
    (_, _, events), _ = lines(run(0, "add", (10, 0, "z")), groups={})
    assert events == [event(1, 0, 0, 0, 0, "add z")]


@pytest.mark.parametrize("runs", [(), (run(0, "a"), run(1, "b"))])
def test_without_allocations_both_lines_are_empty(runs):
    assert lines(*runs, groups={}) == [(LINE, "memory", []), (2, "_counters_", [])]


def test_more_events_than_a_microsecond_has_nanoseconds_stay_within_it():
    both = lines(run(0, "a", *[(10, 1, "cpu")] * 1_003), groups={0: 1})
    (_, _, events), (_, _, points) = both
    starts = [start // 1000 for _, start, *_ in events]
    assert starts == [*range(1, 1_001), 1_000, 1_000, 1_000]
    assert {stats["bytes_allocated"] for *_, stats in events} == {1_003}
    assert points == [point("cpu", 1, 1_003)]


def test_a_curve_has_a_name_that_needs_no_escape():
    (_, _, events), (_, _, points) = lines(run(0, "a", (10, 4, 'x"é')), groups={0: 1})
    assert [stats["allocator_name"] for *_, stats in events] == ['x"é']
    assert points == [point("x__", 1, 4)]
    assert memory.plain_name('aZ9_.:/ -"\\[é\n') == "aZ9_.:/ -_____"


# Which release undoes which allocation


@pytest.mark.parametrize(
    "runs, buffers",
    [
        # Two of one size: the older one is released first.
        ([((0, 8, "cpu"), (1, 8, "cpu"), (2, -8, "cpu"), (3, 9, "cpu"), (4, -8, "cpu"))], "ABACB"),
        ([((0, 8, "cpu"), (1, -8, "cpu"), (2, 8, "cpu"), (3, -8, "cpu"))], "AABB"),
        (
            [((0, 8, "cpu"), (1, 9, "cpu"), (2, 8, "cpu"), (3, -8, "cpu"), (4, -8, "cpu"))],
            "ABCAC",
        ),
        # What is older is decided by the time, not by the place.
        ([((5, 8, "cpu"), (3, 8, "cpu"), (6, -8, "cpu"), (4, -8, "cpu"))], "AABB"),
        # Of the same size, but of another allocator or of another run.
        ([((1, 8, "cpu"), (2, 8, "gpu"), (3, -8, "gpu"), (4, -8, "cpu"))], "ABBA"),
        ([((1, 8, "cpu"), (4, -8, "cpu")), ((2, 8, "cpu"), (3, -8, "cpu"))], "ABBA"),
        # A release without its allocation has a buffer of its own.
        ([((1, -8, "cpu"), (2, 9, "cpu"))], "AB"),
    ],
)
def test_a_release_undoes_the_oldest_allocation_of_its_run_allocator_and_size(runs, buffers):
    (_, _, events), _ = every(
        *(run(0, "a", *((10 + us, *rest) for us, *rest in own)) for own in runs)
    )
    held = sorted((start, stats["addr"]) for _, start, _, stats in events)
    letters = dict(zip(dict.fromkeys(address for _, address in held), "ABC", strict=False))
    assert "".join(letters[address] for _, address in held) == buffers
