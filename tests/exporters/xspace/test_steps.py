"""Steps: markers, the session's own time and the steps that XProf leaves out, event by event.

A time of the session is `B`, `G` or `A` (before the first op, a gap, after the last), its start and
duration, and the group of a step whose ops took no time: `B 10+30/1`. Times are ns since 1000.
"""

import pytest

from tests.approval import approve
from tests.exporters.xspace import xplane
from tflab.analysis import op_runs
from tflab.analysis.timeline import AFTER, BEFORE, GAPS
from tflab.exporters.xspace import steps
from tflab.exporters.xspace.plane import Plane
from tflab.records.timed import OpRun, StepTime
from tflab.runtime import private

pytestmark = pytest.mark.tensorflow

LETTERS = {BEFORE: "B", GAPS: "G", AFTER: "A"}
START, END = (f"('test', '{edge} of the profile')" for edge in ("start", "end"))
Steps = list[tuple[int, int, int]]  # number, start, wall time
Ops = list[tuple[int, int, int]]  # number of the step, start, duration


def lines(times: Steps, ops: Ops, elsewhere: Ops = ()) -> list[str]:
    """The lines that are added for these steps: of markers, and below them of the session."""
    plane = Plane(private.xspace(), "p")
    ran, others = (
        [OpRun(step, "a", "Op", "", start + 1_000, ns) for step, start, ns in runs]
        for runs in (ops, elsewhere)
    )
    records = [StepTime(number, start + 1_000, wall) for number, start, wall in times]
    steps.add(plane, records, op_runs.of(ran), 1_000, others)
    shown = []
    for place, (number, name, events) in enumerate(xplane.lines(plane.proto)):
        assert (number, name) == (place + 1, ("steps", "session")[place % 2])
        words = []
        for event, start, ps, stats in sorted(events, key=lambda event: event[1:3]):
            group = f"/{stats.pop('group_id')}" if "group_id" in stats else ""
            event = stats.pop("step_name") if event == "SessionRun" else event
            words.append(f"{LETTERS.get(event, event)} {start // 1000}+{ps // 1000}{group}")
            assert not stats
        shown.append(", ".join(words))
    return shown


def test_groups_count_from_1_in_the_order_of_the_numbers_of_the_steps():
    times = [StepTime(9, 0, 1), StepTime(-3, 5, 1), StepTime(4, 7, 1)]
    assert steps.group_ids(times) == {-3: 1, 4: 2, 9: 3}
    assert steps.group_ids([]) == {}


# Steps, their ops, and ops of other hosts
CASES = {
    # Step 3 is the first by its number. Step 7 is busy from 20 to 50 and from 60 to 65; the ops of
    # step 3 reach out of it on both sides; others are of no step
    "two steps": (
        [(7, 10, 100), (3, 200, 60)],
        [
            *((7, 20, 15), (7, 30, 20), (7, 60, 5), (7, 70, 0)),
            *((3, 190, 20), (3, 230, 40), (0, 100, 50), (5, 240, 1)),
        ],
    ),
    "steps without ops, with one, and with one of no duration": (
        [(1, 10, 30), (2, 50, 30), (3, 90, 30)],
        [(2, 60, 5), (3, 100, 0)],
    ),
    "an op reaches into the next step and takes none of its time": (
        [(0, 0, 50), (1, 60, 40)],
        [(0, 10, 70), (1, 85, 5)],
    ),
    "neither steps nor ops are in order": (
        [(5, 200, 50), (2, 0, 100)],
        [(5, 210, 10), (2, 50, 10), (2, 0, 20)],
    ),
    "steps of one time have lines of their own": (
        [(0, 0, 50), (1, 20, 50), (2, 50, 9)],
        [(0, 10, 40), (1, 20, 10), (2, 50, 9)],
    ),
    "no step": ([], [(0, 5, 5)]),
    "an op that fills its step leaves no time": ([(0, 0, 100)], [(0, 0, 100)]),
    "an op that ends 1 ns before its step": ([(0, 0, 100)], [(0, 0, 99)]),
    "an op that begins 1 ns after its step": ([(0, 0, 100)], [(0, 1, 99)]),
    "an op in the time of another": ([(0, 0, 100)], [(0, 10, 50), (0, 20, 5), (0, 70, 20)]),
    "of an op before its step only the side is known": ([(0, 0, 100)], [(0, -30, 10)]),
    "of an op after its step only the side is known": ([(0, 0, 100)], [(0, 130, 10)]),
    "the session waits for the ops of all hosts": (
        *([(0, 0, 100)], [(0, 10, 10)]),
        [(0, 40, 30), (1, 0, 100)],
    ),
    "an op of no duration, and one of another host": ([(0, 0, 100)], [(0, 10, 0)], [(0, 40, 30)]),
}


def test_steps_and_the_time_of_their_session():
    shown = ("\n".join([f"# {case}", *lines(*CASES[case]), ""]) for case in CASES)
    approve("xspace-steps.txt", "\n".join(shown))


def in_a_row(*walls: int) -> Steps:
    """A step every 30 ns from 1 on, with these wall times."""
    return [(n, 1 + 30 * n, wall) for n, wall in enumerate(walls)]


def test_six_steps_stand_between_two_that_xprof_leaves_out():
    ops = [(n, 1 + 30 * n, 1) for n in range(6)]
    markers = [f"step {n} {1 + 30 * n}+2/{n + 1}" for n in range(6)]
    session = [f"A {2 + 30 * n}+1" for n in range(6)]
    assert lines(in_a_row(2, 2, 2, 2, 2, 2), ops) == [
        ", ".join([f"{START} 0+1/0", *markers, f"{END} 153+1/7"]),
        ", ".join(["start of the profile 0+1/0", *session, "end of the profile 153+1/7"]),
    ]


@pytest.mark.parametrize(
    "walls, padded",
    [((1,) * 6, True), ((2,) * 5, False), ((2, 2, 2, 2, 2, 0), False)],
)
def test_of_five_steps_that_took_time_xprof_leaves_out_none(walls, padded):
    assert (START in lines(in_a_row(*walls), [])[0]) is padded


def test_only_the_first_pair_of_lines_has_the_steps_that_xprof_leaves_out():
    first, session, *rest = lines([*in_a_row(2, 2, 2, 2, 2), (5, 2, 151)], [])
    assert first.startswith(START) and session.startswith("start of the profile")
    assert rest == ["step 5 2+151/6", "B 2+151/6"]
