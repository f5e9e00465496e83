"""Memory: every allocation with what its allocator held then, and the curves, event by event."""

import numpy as np
import pytest

from tests import xplane
from tflab.exporters.xspace import memory
from tflab.exporters.xspace.plane import Plane
from tflab.records.timed import Allocation, OpRun

LINE = -559_038_730  # 0xDEADBEF6 as a 32-bit number, of which XProf knows that it is no thread
ZERO = 9_999  # ns: a nanosecond before the tenth microsecond


def run(step: int, name: str, *allocations: Allocation) -> OpRun:
    return OpRun(step, name, "Op", "CPU:0", 0, 0, 0, allocations)


def lines(*runs: OpRun, groups: dict[int, int], zero: int = ZERO) -> list:
    plane = Plane("p")
    memory.add(plane, runs, groups, zero)
    (only,) = xplane.read(b"".join(plane.parts()))["planes"]
    return xplane.lines(only)


def event(start: int, size: int, held: int, peak: int, address: int, group: int, of: str) -> tuple:
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
            "addr": address,
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
                event(1, 100, 100, 100, 2, 1, "conv cpu"),
                event(2_001, 50, 150, 150, 1, 1, "conv cpu"),
                event(2_002, 30, 150, 150, 3, 1, "relu cpu"),
                event(2_003, -30, 150, 150, 3, 1, "relu cpu"),
                event(4_001, -100, 50, 150, 2, 1, "conv cpu"),
                event(10_001, 101, 101, 150, 5, 2, "conv cpu"),
                event(15_001, -101, 0, 150, 5, 2, "conv cpu"),
                event(2_001, 8, 8, 8, 4, 1, "relu gpu"),
                event(0, 7, 7, 8, 6, 0, "late gpu"),
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
        event(1, 3, 2, 2, 4, 1, "mul z"),
        event(2, -1, 2, 2, 3, 1, "mul z"),
        event(20_001, 5, 5, 5, 1, 2, "add z"),
        event(1_001, 9, 9, 9, 5, 1, "mul a"),
        event(21_001, 6, 6, 9, 2, 2, "add a"),
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
        ("memory", [event(1, 5, 5, 5, 1, 1, "add z"), event(1, 3, 3, 3, 2, 1, "add a")]),
        ("_counters_", [point("z", 1, 5), point("a", 1, 3)]),
    ]


def test_steps_of_one_microsecond_are_apart():
    both = lines(run(0, "add", (10, 5, "z")), run(1, "add", (10, 7, "z")), groups={0: 1, 1: 2})
    assert [(name, events) for _, name, events in both] == [
        ("memory", [event(1, 5, 5, 5, 1, 1, "add z"), event(1, 7, 7, 7, 2, 2, "add z")]),
        ("_counters_", [point("z", 1, 5), point("z", 1, 7)]),
    ]


def test_to_allocate_nothing_is_an_allocation():
    (_, _, events), _ = lines(run(0, "add", (10, 0, "z")), groups={})
    assert events == [event(1, 0, 0, 0, 1, 0, "add z")]


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


def addresses(*runs: tuple[Allocation, ...]) -> list[int]:
    """For each allocation and release the number of its buffer, in the order of the records."""
    table = memory.buffers(Plane("p"), [run(0, "a", *allocations) for allocations in runs], {})
    return table["address"].tolist()


@pytest.mark.parametrize(
    "runs, buffers",
    [
        # Two of one size: the older one is released first.
        ([((0, 8, "cpu"), (1, 8, "cpu"), (2, -8, "cpu"), (3, 9, "cpu"), (4, -8, "cpu"))], "ABACB"),
        ([((0, 8, "cpu"), (1, -8, "cpu"), (2, 8, "cpu"), (3, -8, "cpu"))], "AABB"),
        (
            [((0, 8, "cpu"), (1, 9, "cpu"), (2, 8, "cpu"), (3, -8, "cpu"), (4, -8, "cpu"))],
            "ACBAB",
        ),
        # What is older is decided by the time, not by the place.
        ([((5, 8, "cpu"), (3, 8, "cpu"), (6, -8, "cpu"), (4, -8, "cpu"))], "BABA"),
        # Of the same size, but of another allocator or of another run.
        ([((1, 8, "cpu"), (2, 8, "gpu"), (3, -8, "gpu"), (4, -8, "cpu"))], "ABBA"),
        ([((1, 8, "cpu"), (4, -8, "cpu")), ((2, 8, "cpu"), (3, -8, "cpu"))], "AABB"),
        # A release without its allocation has a buffer of its own.
        ([((1, -8, "cpu"), (2, 9, "cpu"))], "AB"),
    ],
)
def test_a_release_undoes_the_oldest_allocation_of_its_run_allocator_and_size(runs, buffers):
    assert addresses(*runs) == ["ABC".index(letter) + 1 for letter in buffers]


def test_a_row_of_the_table_has_its_run_s_step_group_and_op():
    plane = Plane("p")
    runs = [run(7, "a", (1, 5, "cpu")), run(8, "b"), run(9, "a", (3, -6, "gpu"), (2, 4, "cpu"))]
    table = memory.buffers(plane, runs, {7: 2, 8: 3})
    assert {name: values.tolist() for name, values in table.items()} == {
        "step": [7, 9, 9],
        "group": [2, 0, 0],
        "op": [1, 1, 1],
        "us": [1, 3, 2],
        "bytes": [5, 6, 4],
        "freed": [0, 1, 0],
        "allocator": [2, 3, 2],  # after the op a; b allocated nothing
        "curve": [1, 2, 1],
        "address": [1, 3, 2],
    }


# Tables by columns


def test_a_number_is_made_once_for_each_different_text():
    texts: list[str] = []

    def number(text: str) -> int:
        texts.append(text)
        return 10 * len(texts)

    places = np.array([2, 0, 2, 0])
    assert memory.numbers_of(["a", "unused", "b"], number, places).tolist() == [10, 20, 10, 20]
    assert texts == ["b", "a"]


def test_a_peak_is_the_most_that_the_same_allocator_has_held_so_far():
    held = np.array([5, 1, 3, 9, 7, 2])
    before = {2: 2}
    assert memory.peaks(np.array([1, 2, 1, 2, 1, 2]), held, before).tolist() == [5, 2, 5, 9, 7, 9]
    assert before == {1: 7, 2: 9}
    assert held.tolist() == [5, 1, 3, 9, 7, 2]


def test_rows_are_ordered_by_the_first_key_then_by_the_second_and_keep_their_order_otherwise():
    table = {
        "a": np.array([2, 1, 2, 1]),
        "b": np.array([0, 9, 0, 8]),
        "row": np.array([0, 1, 2, 3]),
    }
    assert memory.ordered(table, "a", "b")["row"].tolist() == [3, 1, 0, 2]
    assert memory.ordered(table, "b", "a")["row"].tolist() == [0, 2, 3, 1]
    assert memory.ordered(table, "b", "a")["a"].tolist() == [2, 2, 1, 1]


def test_rows_with_equal_keys_are_a_group_with_a_first_and_a_last_row():
    table = {"a": np.array([1, 1, 1, 2, 2]), "b": np.array([5, 5, 3, 3, 3])}
    groups = memory.group_numbers(table, "a", "b")
    assert groups.tolist() == [0, 0, 1, 2, 2]
    assert memory.group_numbers(table, "a").tolist() == [0, 0, 0, 1, 1]
    assert memory.first_of_group(groups).tolist() == [0, 0, 2, 3, 3]
    assert memory.last_of_group(groups).tolist() == [1, 1, 2, 4, 4]
    assert memory.group_numbers({"a": np.array([], int)}, "a").tolist() == []
