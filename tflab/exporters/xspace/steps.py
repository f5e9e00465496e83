"""Steps on the time axis: a marker for each, and the session's time while none of its ops ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tflab.analysis import lanes, timeline
from tflab.exporters.xspace.plane import NOTHING, Events, Plane, column
from tflab.records.timed import OpRun, StepTime

ALL_KEPT = 5  # steps; if there are more, XProf leaves out the first and the last

ON_DEVICE = 0xDEADBEEF - 2**32  # kThreadIdStepInfo in trace_utils.h: the line of a device's steps

FIRST, OP, LAST = range(3)  # kinds of events in a step: its start, an op, its end


def group_ids(steps: Iterable[StepTime]) -> dict[int, int]:
    """The `group_id` of each step: counted from 1, in the order of the steps' numbers."""
    return {number: group for group, number in enumerate(sorted(step.step for step in steps), 1)}


def groups_of(steps: np.ndarray, groups: Mapping[int, int]) -> np.ndarray:
    """The group of each of these steps; 0 if it has none."""
    if not groups:
        return np.zeros(len(steps), np.int64)
    at = index_in(column(groups), steps)
    return np.where(at < 0, 0, column(groups.values())[at])


def add(
    plane: Plane,
    steps: Sequence[StepTime],
    ops: Events,
    zero: int,
    elsewhere: Events = NOTHING,
    every: Sequence[StepTime] | None = None,
) -> None:
    """Add a line of markers for the steps, and one below it with the time between their ops, those
    that ran `elsewhere` on other hosts among them. `every` are all steps of the profile, if
    these are not all.

    Steps of several sessions that ran at the same time get more than one such pair of lines.
    """
    every = steps if every is None else every
    group = group_ids(every)
    in_time = {step.step: step for step in steps}
    step_runs = [OpRun(step.step, "", "", "", step.start_ns, step.wall_ns) for step in steps]
    first = min(every, key=lambda step: step.start_ns, default=None) in steps
    padded = first and sum(step.wall_ns > 0 for step in every) > ALL_KEPT
    for number, lane in enumerate(lanes.pack(step_runs)):
        row = [in_time[span.step] for span in lane]
        above = [markers(plane, row, group, zero)]
        below = idle(plane, row, group, ops, zero, elsewhere)
        if padded and number == 0:
            marker, work = padding(plane, every, zero)
            above.append(marker)
            below.append(work)
        plane.line("steps", *above, key=("steps", number))
        plane.line("session", *below, key=("session", number))


def add_to_device(plane: Plane, steps: Sequence[StepTime], zero: int) -> None:
    """Add the line by which XProf knows the steps of a device."""
    group = group_ids(steps)
    events = Events(
        column(plane.event(str(step.step)) for step in steps),
        column(step.start_ns - zero for step in steps),
        column(step.wall_ns for step in steps),
        {"group_id": column(group[step.step] for step in steps)},
    )
    plane.line("Steps", events, number=ON_DEVICE)


def markers(plane: Plane, steps: Sequence[StepTime], group: Mapping[int, int], zero: int) -> Events:
    """The events that XProf recognises as steps: each is a `SessionRun` with a name."""
    return Events(
        np.full(len(steps), plane.event("SessionRun")),
        column(step.start_ns - zero for step in steps),
        column(step.wall_ns for step in steps),
        {"group_id": column(group[step.step] for step in steps)},
        {"step_name": column(plane.text(f"step {step.step}") for step in steps)},
    )


def padding(plane: Plane, steps: Sequence[StepTime], zero: int) -> tuple[Events, Events]:
    """A step before the first and one after the last, marker and work, which XProf leaves out."""
    end = max(step.start_ns + step.wall_ns for step in steps) - zero
    starts, durations = column([0, end]), column([1, 1])
    belongs = {"group_id": column([0, len(steps) + 1])}
    titles = ("start of the profile", "end of the profile")
    marker = column(plane.event("test", title) for title in titles)
    work = column(plane.event(title) for title in titles)
    return Events(marker, starts, durations, belongs), Events(work, starts, durations, belongs)


def idle(
    plane: Plane,
    steps: Sequence[StepTime],
    group: Mapping[int, int],
    ops: Events,
    zero: int,
    elsewhere: Events,
) -> list[Events]:
    """The time of each step in which none of its ops ran, by owner, as in `timeline.time_ledger`.

    The steps are in order of time and do not overlap. XProf leaves out a step in which no event
    took time; so in a step whose ops took none here, these events belong to the step.
    """
    edge = np.arange(len(steps))
    low = column(step.start_ns - zero for step in steps)
    high = low + column(step.wall_ns for step in steps)
    numbers = column(group[step.step] for step in steps)
    own_step, own_starts, own_ends = within(ops, numbers, low, high)
    worked = own_step[own_ends > own_starts]
    others = within(elsewhere, numbers, low, high)
    # The edges of a step are put among its ops, as if something ran at that time.
    step = np.concatenate([edge, own_step, others[0], edge])
    kind: np.ndarray = np.repeat(
        [FIRST, OP, LAST], [len(edge), len(step) - 2 * len(edge), len(edge)]
    )
    starts = np.concatenate([low, own_starts, others[1], high])
    ends = np.concatenate([low, own_ends, others[2], high])
    order = np.lexsort([kind, starts, step])
    kind, step, starts, ends = kind[order], step[order], starts[order], ends[order]
    until = np.maximum.accumulate(ends)
    gap = (starts[1:] > until[:-1]) & (step[1:] == step[:-1])
    owners = [plane.event(name) for name in (timeline.BEFORE, timeline.AFTER, timeline.GAPS)]
    names = np.select([kind[:-1] == FIRST, kind[1:] == LAST], owners[:2], owners[2])[gap]
    since, length = until[:-1][gap], (starts[1:] - until[:-1])[gap]
    alone = ~np.isin(step, worked)[:-1][gap]
    belongs = {"group_id": numbers[step][:-1][gap][alone]}
    return [
        Events(names[~alone], since[~alone], length[~alone]),
        Events(names[alone], since[alone], length[alone], belongs),
    ]


def within(
    ops: Events, numbers: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The step, start and end of each op of these steps, as far as it lies in its step."""
    step = index_in(numbers, ops.numbers["group_id"])
    here = step >= 0
    step, starts, ends = step[here], ops.starts_ns[here], (ops.starts_ns + ops.durations_ns)[here]
    return step, np.clip(starts, low[step], high[step]), np.clip(ends, low[step], high[step])


def index_in(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The index of each value in `numbers`; -1 if it is missing."""
    order = np.argsort(numbers)
    at = order[np.searchsorted(numbers, values, sorter=order) % len(numbers)]
    return np.where(numbers[at] == values, at, -1)
