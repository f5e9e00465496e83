"""Memory: every allocation with what its allocator held then, and the curves, event by event."""

import pytest

from tests.exporters.xspace import xplane
from tflab.analysis import op_runs
from tflab.exporters.xspace import memory
from tflab.exporters.xspace.plane import Plane
from tflab.records.timed import Allocation, OpRun
from tflab.runtime import private

pytestmark = pytest.mark.tensorflow

LINE = -559_038_730  # 0xDEADBEF6 as a 32-bit number, of which XProf knows that it is no thread
US = 1000  # ns
ZERO = 9_999  # ns: a nanosecond before the tenth microsecond


def run(step: int, name: str, *allocations: Allocation) -> OpRun:
    return OpRun(step, name, "Op", "CPU:0", 0, 0, 0, allocations)


def lines(*runs: OpRun, groups: dict[int, int]) -> tuple[list, list]:
    """The events as (start, size, bytes held, peak, group, "op allocator", address), where the size
    of a release is negative; and the points of the curves as (start, "allocator bytes")."""
    plane = Plane(private.xspace(), "p")
    memory.add(plane, op_runs.of(runs), groups, ZERO)
    (number, name, events), (_, curve, points) = xplane.lines(plane.proto)
    assert (number, name, curve) == (LINE, "memory", "_counters_")
    found = []
    for kind, start, ps, about in events:
        size = about.pop("requested_bytes")
        assert (ps, about.pop("allocation_bytes")) == (1000, size)
        held, peak = about.pop("bytes_allocated"), about.pop("peak_bytes_in_use")
        of = f"{about.pop('tf_op')} {about.pop('allocator_name')}"
        signed = {"MemoryAllocation": size, "MemoryDeallocation": -size}[kind]
        found.append((start // 1000, signed, held, peak, about.pop("group_id"), of))
        found[-1] += (about.pop("addr"),)
        assert not about
    assert not [ps for _, _, ps, _ in points if ps]
    of_curve = "bytes held by "
    assert all(title.startswith(of_curve) for title, *_ in points)
    return found, [
        (start // 1000, f"{title.removeprefix(of_curve)} {about['bytes']}")
        for title, start, _, about in points
    ]


def events(*runs: OpRun, groups: dict[int, int]) -> list:
    """The events without addresses."""
    return [event[:-1] for event in lines(*runs, groups=groups)[0]]


def test_every_event_of_two_steps_two_allocators_and_a_run_of_no_step():
    runs = (
        run(3, "conv", (10, 100, "cpu"), (12, 50, "cpu"), (14, -100, "cpu")),
        run(3, "relu", (12, 8, "gpu"), (12, -30, "cpu"), (12, 30, "cpu")),
        run(5, "conv", (20, 101, "cpu"), (25, -101, "cpu")),
        run(9, "late", (9, 7, "gpu")),  # before the profile began, and of no step
    )
    groups = {3: 1, 5: 2}
    assert events(*runs, groups=groups) == [
        (1, 100, 100, 100, 1, "conv cpu"),
        (2_001, 50, 150, 150, 1, "conv cpu"),
        (2_002, 30, 150, 150, 1, "relu cpu"),
        (2_003, -30, 150, 150, 1, "relu cpu"),
        (4_001, -100, 50, 150, 1, "conv cpu"),
        (10_001, 101, 101, 150, 2, "conv cpu"),
        (15_001, -101, 0, 150, 2, "conv cpu"),
        (2_001, 8, 8, 8, 1, "relu gpu"),
        (0, 7, 7, 8, 0, "late gpu"),
    ]
    assert lines(*runs, groups=groups)[1] == [
        *((1, "cpu 100"), (2_001, "cpu 150"), (4_001, "cpu 50"), (10_001, "cpu 101")),
        *((15_001, "cpu 0"), (2_001, "gpu 8"), (0, "gpu 7")),
    ]


@pytest.mark.parametrize(
    "runs, expected",
    [
        # The allocator that is named first comes first, and a step begins anew
        (
            [
                run(1, "add", (30, 5, "z"), (31, 6, "a")),
                run(0, "mul", (10, 3, "z"), (10, -1, "z"), (11, 9, "a")),
            ],
            [
                *((1, 3, 2, 2, 1, "mul z"), (2, -1, 2, 2, 1, "mul z")),
                *((20_001, 5, 5, 5, 2, "add z"), (1_001, 9, 9, 9, 1, "mul a")),
                (21_001, 6, 6, 9, 2, "add a"),
            ],
        ),
        # Allocators of one microsecond and step are apart, and steps of one microsecond too
        (
            [run(0, "add", (10, 5, "z"), (10, 3, "a"))],
            [(1, 5, 5, 5, 1, "add z"), (1, 3, 3, 3, 1, "add a")],
        ),
        (
            [run(0, "add", (10, 5, "z")), run(1, "add", (10, 7, "z"))],
            [(1, 5, 5, 5, 1, "add z"), (1, 7, 7, 7, 2, "add z")],
        ),
        ([run(0, "add", (10, 0, "z"))], [(1, 0, 0, 0, 1, "add z")]),  # nothing is allocated
        ([run(0, "a"), run(1, "b")], []),
        ([], []),
    ],
)
def test_what_an_allocator_holds(runs, expected):
    found, points = lines(*runs, groups={0: 1, 1: 2})
    assert [event[:-1] for event in found] == expected
    # A curve has the same numbers, but only the last of a microsecond
    last = {(start // US, of[-1], group): held for start, _, held, _, group, of in expected}
    assert [int(words.split()[1]) for _, words in points] == [*last.values()]


def test_more_events_than_a_microsecond_has_nanoseconds_stay_within_it():
    found, points = lines(run(0, "a", *[(10, 1, "cpu")] * 1_003), groups={0: 1})
    assert [start for start, *_ in found] == [*range(1, 1_001), 1_000, 1_000, 1_000]
    assert {held for _, _, held, *_ in found} == {1_003}
    assert points == [(1, "cpu 1003")]


def test_a_curve_has_a_name_that_needs_no_escape():
    found, points = lines(run(0, "a", (10, 4, 'x"é')), groups={0: 1})
    assert (found[0][5], points) == ('a x"é', [(1, "x__ 4")])
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
    found, _ = lines(
        *(run(0, "a", *((10 + us, *rest) for us, *rest in own)) for own in runs), groups={}
    )
    addresses = [address for *_, address in sorted(found)]
    letters = dict(zip(dict.fromkeys(addresses), "ABC", strict=False))
    assert "".join(letters[address] for address in addresses) == buffers
