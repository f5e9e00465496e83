"""Tasks: one step on several tasks, on one time axis, with an arrow for each tensor on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tflab.analysis import timeline as ledger
from tflab.analysis import wires as wire_runs
from tflab.analysis.timeline import Span
from tflab.exporters.plots import style, timeline
from tflab.records.placed import Transfer
from tflab.records.timed import CriticalPath, OpRun, StepTime
from tflab.units import percent, plural, short_task, size, task_of, time

MOST = 200  # arrows; of more, those that took longest
THIN, THICK = 0.9, 2.0  # points; thick ones are on the critical path
EDGE = 0.5 * timeline.BAR  # from the middle of a lane to where its bars end
AWAY = 4  # points from an arrow to its words
HALF = 0.2  # of a lane: half the height of words

Lane = tuple[str, Sequence[OpRun]]
Band = tuple[int, int]  # the first and the last lane of a task


@style.applied()
def draw(
    runs: Sequence[OpRun],
    wires: Sequence[OpRun],
    step: StepTime,
    path: CriticalPath,
    transfers: Sequence[Transfer] = (),
) -> Figure:
    """The ops of this step in a band of lanes for each task, and between the bands what went from
    one to another; `transfers` say which tensors these are. What is of other steps is ignored."""
    runs = [run for run in runs if run.step == step.step]
    wires = [wire for wire in wires if wire.step == step.step]
    if not runs:
        return style.message("No op ran", f"Step {step.step} took {time(step.wall_ns)}.")
    packed, bands = in_bands(runs, wires)
    critical = set(path.nodes)
    arrows = sorted(sorted(wires, key=lambda wire: -wire.duration_ns)[:MOST], key=ledger.START)
    words = headline(runs, wires, step, bands), caption(wires, step)
    figure, axes = timeline.bars_in_lanes(packed, runs, step, critical, words)
    for first, last in bands.values():
        for edge in (first - 0.5, last + 0.5):
            axes.axhline(edge, color=style.RULE, linewidth=0.8, zorder=1)
    for wire in arrows:
        draw_arrow(axes, ends(wire, step, bands), thick=wire.name in critical)
    style.settle(figure)
    timeline.write_names(axes, packed, step, critical)
    write_tensors(axes, arrows, step, bands, {one.recv: one for one in transfers})
    return figure


def in_bands(
    runs: Sequence[OpRun], wires: Sequence[OpRun]
) -> tuple[Sequence[Lane], Mapping[str, Band]]:
    """The lanes of all tasks with an empty one between two of them, and where each task's are."""
    of_task: dict[str, list[OpRun]] = {}
    for run in runs:
        of_task.setdefault(short_task(task_of(run.device)), []).append(run)
    for wire in wires:
        for task in wire_runs.ends_of(wire):
            of_task.setdefault(task, [])
    packed: list[Lane] = []
    bands: dict[str, Band] = {}
    for task in sorted(of_task, key=wire_runs.order):
        packed += [("", ())] if packed else []
        first = len(packed)
        packed += timeline.lanes_by_device(of_task[task]) or [(task, ())]
        bands[task] = first, len(packed) - 1
    return packed, bands


Point = tuple[float, float]  # ns since the step's start, lane
Line = tuple[Point, Point]


def ends(wire: OpRun, step: StepTime, bands: Mapping[str, Band]) -> Line:
    """Where an arrow begins and ends: at the edges of two bands that face each other."""
    start, end = timeline.span_in_step(wire, step)
    sender, receiver = (bands[task] for task in wire_runs.ends_of(wire))
    if sender[0] < receiver[0]:
        return (start, sender[1] + EDGE), (end, receiver[0] - EDGE)
    return (start, sender[0] - EDGE), (end, receiver[1] + EDGE)


def draw_arrow(axes: Axes, line: Line, thick: bool) -> None:
    axes.annotate(
        "",
        line[1],
        line[0],
        arrowprops={
            "arrowstyle": "-|>,head_length=0.45,head_width=0.18",
            "color": style.VERMILION,
            "linewidth": THICK if thick else THIN,
            "shrinkA": 0,
            "shrinkB": 0,
        },
        zorder=4,
    )


def write_tensors(
    axes: Axes,
    arrows: Sequence[OpRun],
    step: StepTime,
    bands: Mapping[str, Band],
    transfers: Mapping[str, Transfer],
) -> None:
    """Write next to an arrow what it carries, where there is space."""
    a_point = max(step.wall_ns, 1) / (axes.bbox.width * style.POINTS / axes.figure.dpi)  # ns
    lines = [ends(wire, step, bands) for wire in arrows]
    sent = [(transfers.get(wire.name), line) for wire, line in zip(arrows, lines, strict=True)]
    labelled = [(one, line) for one, line in sent if one and one.bytes]
    silent = [line for one, line in sent if not (one and one.bytes)]
    taken: dict[int, list[Span]] = {}  # of each empty lane
    for transfer, line in sorted(labelled, key=lambda pair: -(pair[0].bytes or 0)):
        lane = lane_of_words(line)
        spans = taken.setdefault(lane, [crossing(one, lane) for one in lines if crosses(one, lane)])
        joined = [crossing(one, lane) for one in silent if crosses(one, lane)]
        for words, (start, end) in places(transfer, crossing(line, lane), joined, a_point):
            inside = start >= 0 and end <= step.wall_ns
            if inside and not any(start < other[1] and other[0] < end for other in spans):
                spans.append((start, end))
                middle = (start + end) / 2
                axes.text(middle, lane, words, ha="center", va="center", size=timeline.LETTERS)
                break


def lane_of_words(line: Line) -> int:
    """The empty lane that has an arrow's words: that before the band where it ends."""
    (_, begin), (_, end) = line
    return round(end + EDGE - 1) if begin < end else round(end - EDGE + 1)


def crosses(line: Line, lane: int) -> bool:
    """Whether an arrow goes through a lane."""
    (_, begin), (_, end) = line
    return min(begin, end) <= lane <= max(begin, end)


def crossing(line: Line, lane: int) -> Span:
    """From when to when an arrow goes through the words of a lane; ns."""
    (x, y), (to_x, to_y) = line
    first, last = (x + (to_x - x) * (at - y) / (to_y - y) for at in (lane - HALF, lane + HALF))
    return floor(min(first, last)), ceil(max(first, last))


def places(
    transfer: Transfer, own: Span, silent: Sequence[Span], a_point: float
) -> Iterator[tuple[str, Span]]:
    """What may be written beside an arrow and the silent ones that it touches, and where: the
    tensor and its bytes, or these alone."""
    low, high = next(s for s in ledger.union([own, *silent]) if s[0] <= own[0] <= s[1])
    bytes_ = size(transfer.bytes or 0)
    for words in (f"{style.short_name(transfer.tensor)}, {bytes_}", bytes_):
        width = ceil((style.text_width(words, timeline.LETTERS) + 2 * AWAY) * a_point)
        yield words, (high, high + width)
        yield words, (low - width, low)


def headline(
    runs: Sequence[OpRun], wires: Sequence[OpRun], step: StepTime, bands: Mapping[str, Band]
) -> str:
    tasks = sum(task != short_task(wire_runs.CLIENT) for task in bands)
    owners = {owner.owner: owner.ns for owner in ledger.time_ledger(runs, [step], wires)}
    share = owners.get(ledger.WIRE, 0) / step.wall_ns if step.wall_ns else 0
    return (
        f"A step of {time(step.wall_ns)} on {plural(tasks, 'task')}: for {percent(share)} of it, "
        "no op ran and a tensor was on the wire"
    )


def caption(wires: Sequence[OpRun], step: StepTime) -> str:
    limit_note = f" (the {MOST} slowest of {len(wires):,})" if len(wires) > MOST else ""
    return (
        f"Step {step.step}, all times on one clock. Strong colour: the critical path by median "
        "times, a model. Grey columns: no op was running. Arrows: tensors on the wire, from "
        f"sending to arrival; thick ones are on the critical path{limit_note}. A row has ops "
        "that did not overlap; it is not a thread."
    )
