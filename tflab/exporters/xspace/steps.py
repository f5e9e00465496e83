"""Steps on the time axis: a marker for each, and the session's time while none of its ops ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tflab.analysis import op_runs, timeline
from tflab.analysis.op_runs import OpRuns
from tflab.exporters.xspace.plane import Plane
from tflab.records.timed import OpRun, StepTime

ALL_KEPT = 5  # steps; if there are more, XProf leaves out the first and the last
ON_DEVICE = 0xDEADBEEF - 2**32  # kThreadIdStepInfo in trace_utils.h: the line of a device's steps


def group_ids(steps: Iterable[StepTime]) -> dict[int, int]:
    """Return the `group_id` of each step: counted from 1, in the order of the steps' numbers."""
    return {number: group for group, number in enumerate(sorted(step.step for step in steps), 1)}


def add(
    plane: Plane, steps: Sequence[StepTime], runs: OpRuns, zero: int, elsewhere: Iterable[OpRun]
) -> None:
    """Add a line of markers for the steps, and one below it with the time between their ops, those
    that ran `elsewhere` on other hosts among them.

    Steps of several sessions that ran at the same time get more than one such pair of lines.
    """
    groups, in_time = group_ids(steps), {step.step: step for step in steps}
    own, others = runs.by_step(), op_runs.of(elsewhere).by_step()
    spans = [OpRun(step.step, "", "", "", step.start_ns, step.wall_ns) for step in steps]
    for number, lane in enumerate(timeline.pack(spans)):
        row = [in_time[span.step] for span in lane]
        above, below = plane.line("steps"), plane.line("session")
        for step in row:
            group = {"group_id": groups[step.step]}
            marker = group | {"step_name": f"step {step.step}"}
            start = step.start_ns - zero
            plane.add(above, plane.event("SessionRun"), start, step.wall_ns, marker)
            ran = own.get(step.step, runs[:0])
            # XProf leaves out a step in which no event took time; so in a step whose ops took none
            # here, the session's time belongs to the step.
            belongs = {} if timeline.busy_ns(ran, step) else group
            spent = timeline.busy_spans([*ran, *others.get(step.step, ())], step)
            for owner, begin, end in idle(step, spent):
                plane.add(below, plane.event(owner), begin - zero, end - begin, belongs)
        if number == 0 and sum(step.wall_ns > 0 for step in steps) > ALL_KEPT:
            # A step before the first and one after the last, marker and work, are left out instead
            end = max(step.start_ns + step.wall_ns for step in steps) - zero
            pads = ((0, 0, "start"), (end, len(steps) + 1, "end"))
            for start, group_id, edge in pads:
                title, group = f"{edge} of the profile", {"group_id": group_id}
                plane.add(above, plane.event("test", title), start, 1, group)
                plane.add(below, plane.event(title), start, 1, group)


def idle(step: StepTime, busy: Sequence[timeline.Span]) -> Iterator[tuple[str, int, int]]:
    """Yield the times of a step between these spans, with their owners, as in the time ledger."""
    ends = [step.start_ns, *(end for _, end in busy)]
    starts = [*(start for start, _ in busy), step.start_ns + step.wall_ns]
    for place, (begin, end) in enumerate(zip(ends, starts, strict=True)):
        if end > begin:
            last = timeline.AFTER if place == len(busy) else timeline.GAPS
            yield timeline.BEFORE if place == 0 else last, begin, end


def add_to_device(
    plane: Plane, steps: Iterable[StepTime], groups: Mapping[int, int], zero: int
) -> None:
    """Add the line by which XProf knows the steps of a device."""
    line = plane.line("Steps", ON_DEVICE)
    for step in steps:
        group = {"group_id": groups[step.step]}
        plane.add(line, plane.event(str(step.step)), step.start_ns - zero, step.wall_ns, group)
