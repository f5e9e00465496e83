"""Steps: markers, the session's own time and the steps that XProf leaves out, event by event."""

import pytest

from tests import xplane
from tflab.analysis import op_runs
from tflab.analysis.timeline import AFTER, BEFORE, GAPS
from tflab.exporters.xspace import steps
from tflab.exporters.xspace.plane import Plane
from tflab.records.timed import OpRun, StepTime
from tflab.runtime import private

pytestmark = pytest.mark.tensorflow


def ops(*rows: tuple[int, int, int]) -> tuple[OpRun, ...]:
    """Ops by the group of their step, start since 1000 and duration."""
    return tuple(OpRun(group, "a", "Op", "", start + 1_000, ns) for group, start, ns in rows)


Ops = tuple[OpRun, ...]


def lines(times: list[StepTime], ran: Ops, elsewhere: Ops = ()) -> list:
    """The lines that are added for these steps, with times in ns since 1000."""
    plane = Plane(private.xspace(), "p")
    number_of = {group: number for number, group in steps.group_ids(times).items()}
    own, others = (
        [run._replace(step=number_of.get(run.step, -1)) for run in runs]
        for runs in (ran, elsewhere)
    )
    steps.add(plane, times, op_runs.of(own), 1_000, others)
    return [
        (
            number,
            name,
            sorted(
                ((event, start // 1000, ps // 1000, stats) for event, start, ps, stats in events),
                key=lambda event: event[1:3],
            ),
        )
        for number, name, events in xplane.lines(plane.proto)
    ]


def marker(number: int, group: int, start: int, wall: int) -> tuple:
    return ("SessionRun", start, wall, {"group_id": group, "step_name": f"step {number}"})


def test_groups_count_from_1_in_the_order_of_the_numbers_of_the_steps():
    times = [StepTime(9, 0, 1), StepTime(-3, 5, 1), StepTime(4, 7, 1)]
    assert steps.group_ids(times) == {-3: 1, 4: 2, 9: 3}


def test_two_steps_with_ops_of_their_own_and_of_no_step():
    # Step 7 lasts from 10 to 110 and step 3 from 200 to 260; step 3 is the first by its number.
    times = [StepTime(7, 1_010, 100), StepTime(3, 1_200, 60)]
    ran = ops(
        *((2, 20, 15), (2, 30, 20), (2, 60, 5), (2, 70, 0)),  # busy 20 to 50, 60 to 65
        *((1, 190, 20), (1, 230, 40)),  # reach out of the step on both sides
        *((0, 100, 50), (5, 240, 1)),  # of no step
    )
    assert lines(times, ran) == [
        (1, "steps", [marker(7, 2, 10, 100), marker(3, 1, 200, 60)]),
        (
            2,
            "session",
            [
                (BEFORE, 10, 10, {}),
                (GAPS, 50, 10, {}),
                (GAPS, 65, 5, {}),
                (AFTER, 70, 40, {}),
                (GAPS, 210, 20, {}),
            ],
        ),
    ]


def test_the_time_of_a_step_without_ops_belongs_to_the_step():
    times = [StepTime(1, 1_010, 30), StepTime(2, 1_050, 30), StepTime(3, 1_090, 30)]
    ran = ops((2, 60, 5), (3, 100, 0))
    assert lines(times, ran) == [
        (1, "steps", [marker(1, 1, 10, 30), marker(2, 2, 50, 30), marker(3, 3, 90, 30)]),
        (
            2,
            "session",
            [
                (BEFORE, 10, 30, {"group_id": 1}),
                (BEFORE, 50, 10, {}),
                (AFTER, 65, 15, {}),
                (BEFORE, 90, 10, {"group_id": 3}),
                (AFTER, 100, 20, {"group_id": 3}),
            ],
        ),
    ]


def test_an_op_that_fills_its_step_leaves_the_session_no_time():
    times = [StepTime(0, 1_010, 30)]
    assert lines(times, ops((1, 10, 30)))[1] == (2, "session", [])
    assert lines(times, ops((1, 10, 29)))[1] == (2, "session", [(AFTER, 39, 1, {})])
    assert lines(times, ops((1, 11, 29)))[1] == (2, "session", [(BEFORE, 10, 1, {})])


def test_a_long_op_covers_the_short_ones_that_start_after_it():
    times = [StepTime(0, 1_000, 100)]
    ran = ops((1, 10, 50), (1, 20, 5), (1, 70, 20))
    assert lines(times, ran)[1][2] == [(BEFORE, 0, 10, {}), (GAPS, 60, 10, {}), (AFTER, 90, 10, {})]


def test_an_op_that_reaches_into_the_next_step_takes_none_of_its_time():
    times = [StepTime(0, 1_000, 50), StepTime(1, 1_060, 40)]
    ran = ops((1, 10, 70), (2, 85, 5))
    assert lines(times, ran)[1][2] == [
        (BEFORE, 0, 10, {}),
        (BEFORE, 60, 25, {}),
        (AFTER, 90, 10, {}),
    ]


@pytest.mark.parametrize("start, owner", [(-30, AFTER), (130, BEFORE)])
def test_of_an_op_outside_its_step_only_the_side_is_known(start, owner):
    ran = ops((1, start, 10))
    assert lines([StepTime(0, 1_000, 100)], ran)[1][2] == [(owner, 0, 100, {"group_id": 1})]


def test_ops_of_a_line_need_not_be_in_order():
    times = [StepTime(5, 1_200, 50), StepTime(2, 1_000, 100)]
    ran = ops((2, 210, 10), (1, 50, 10), (1, 0, 20))
    assert lines(times, ran) == [
        (1, "steps", [marker(2, 1, 0, 100), marker(5, 2, 200, 50)]),
        (
            2,
            "session",
            [(GAPS, 20, 30, {}), (AFTER, 60, 40, {}), (BEFORE, 200, 10, {}), (AFTER, 220, 30, {})],
        ),
    ]


def test_steps_of_one_time_have_lines_of_their_own():
    times = [StepTime(0, 1_000, 50), StepTime(1, 1_020, 50), StepTime(2, 1_050, 9)]
    ran = ops((1, 10, 40), (2, 20, 10), (3, 50, 9))
    assert lines(times, ran) == [
        (1, "steps", [marker(0, 1, 0, 50), marker(2, 3, 50, 9)]),
        (2, "session", [(BEFORE, 0, 10, {})]),
        (3, "steps", [marker(1, 2, 20, 50)]),
        (4, "session", [(AFTER, 30, 40, {})]),
    ]


def test_without_steps_there_are_no_lines():
    assert steps.group_ids([]) == {}
    assert lines([], ops((0, 5, 5))) == []


PADS = [
    (("test", "start of the profile"), 0, 1, {"group_id": 0}),
    (("test", "end of the profile"), 153, 1, {"group_id": 7}),
]
WORK = [
    ("start of the profile", 0, 1, {"group_id": 0}),
    ("end of the profile", 153, 1, {"group_id": 7}),
]


def in_a_row(*walls: int) -> list[StepTime]:
    """A step every 30 ns from 1,001 on, with these wall times."""
    return [StepTime(n, 1_001 + 30 * n, wall) for n, wall in enumerate(walls)]


def test_six_steps_stand_between_two_that_xprof_leaves_out():
    times = in_a_row(2, 2, 2, 2, 2, 2)
    ran = ops(*((n + 1, 1 + 30 * n, 1) for n in range(6)))
    assert lines(times, ran) == [
        (1, "steps", [PADS[0], *(marker(n, n + 1, 1 + 30 * n, 2) for n in range(6)), PADS[1]]),
        (2, "session", [WORK[0], *((AFTER, 2 + 30 * n, 1, {}) for n in range(6)), WORK[1]]),
    ]


def test_only_the_first_pair_of_lines_has_the_steps_that_xprof_leaves_out():
    times = [*in_a_row(2, 2, 2, 2, 2), StepTime(5, 1_002, 151)]
    (_, first, above), (_, _, below), *rest = lines(times, ops())
    assert (first, above[:: len(above) - 1], below[:: len(below) - 1]) == ("steps", PADS, WORK)
    assert [(number, name, len(events)) for number, name, events in rest] == [
        (3, "steps", 1),
        (4, "session", 1),
    ]


def test_a_nanosecond_is_time():
    ((_, _, markers), _) = lines(in_a_row(1, 1, 1, 1, 1, 1), ops())
    assert [event for event, *_ in markers[::7]] == [event for event, *_ in PADS]


@pytest.mark.parametrize("walls", [(2, 2, 2, 2, 2), (2, 2, 2, 2, 2, 0)])
def test_of_five_steps_that_took_time_xprof_leaves_out_none(walls):
    ((_, _, markers), (_, _, session)) = lines(in_a_row(*walls), ops())
    assert [event for event, *_ in markers] == ["SessionRun"] * len(walls)
    assert [event for event, *_ in session] == [BEFORE] * 5


def test_the_session_waits_for_the_ops_of_all_hosts():
    """Of a step from 1000 to 1100 this host ran 10 to 20, another one 40 to 70."""
    times = [StepTime(0, 1_000, 100)]
    (_, (_, name, session)) = lines(times, ops((1, 10, 10)), ops((1, 40, 30), (2, 0, 100)))
    assert name == "session"
    assert session == [
        (BEFORE, 0, 10, {}),
        (GAPS, 20, 20, {}),
        (AFTER, 70, 30, {}),
    ]


def test_a_step_in_which_this_host_took_no_time_has_that_of_the_session():
    times = [StepTime(0, 1_000, 100)]
    (_, (_, _, session)) = lines(times, ops((1, 10, 0)), ops((1, 40, 30)))
    assert session == [
        (BEFORE, 0, 10, {"group_id": 1}),
        (GAPS, 10, 30, {"group_id": 1}),
        (AFTER, 70, 30, {"group_id": 1}),
    ]
