"""Timeline: one step with its ops in lanes, the critical path and the gaps between ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tflab.analysis import lanes, timeline
from tflab.analysis.timeline import Span
from tflab.exporters.plots import style
from tflab.records.timed import CriticalPath, OpRun, StepTime
from tflab.units import plural, short_device, time

LANE = 0.5  # inches
SHORTEST, TALLEST = 1.6, 8.0  # inches, for all lanes
BAR = 0.8  # height of a bar, in lanes
IDLE = "#EDEDED"
LONG = 100  # in a step: a bar that is longer has edges
LETTERS = 84  # of a name that is as long as a step


@style.applied()
def draw(runs: Sequence[OpRun], step: StepTime, path: CriticalPath) -> Figure:
    """Draw the runs of this step, in as few lanes per device as possible; other steps are ignored.

    Lanes are not threads: on a CPU the runtime does not record which thread ran an op. Grey columns
    are times without any op. The critical path is that of the medians over all steps; in this step
    another path may have been critical.
    """
    runs = [run for run in runs if run.step == step.step]
    if not runs:
        return style.message("No op ran", f"Step {step.step} took {time(step.wall_ns)}.")
    packed, critical = lanes_by_device(runs), set(path.nodes)
    height = min(max(LANE * len(packed), SHORTEST), TALLEST) + 0.5
    figure, (axes,) = style.canvas(headline(runs, step, critical), caption(step), height)
    axes.set_xlim(0, max(step.wall_ns, 1))
    axes.set_ylim(len(packed) - 0.4, -0.6)
    axes.set_yticks(range(len(packed)), [name for name, _ in packed])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    style.ruled(axes.xaxis, max(step.wall_ns, 1), time)
    axes.set_xlabel("time since the step's start")
    for start, end in gaps(runs, step):
        axes.axvspan(start, end, color=IDLE, linewidth=0, zorder=0)
    for lane, (_, lane_runs) in enumerate(packed):
        for run in lane_runs:
            draw_bar(axes, lane, run, span_in_step(run, step), run.name in critical)
    return style.settled(figure)


def draw_bar(axes: Axes, lane: int, run: OpRun, span: Span, marked: bool) -> None:
    """Draw a bar with the end of the run's name; without a name if not even its last part fits."""
    start, end = span
    share = (end - start) / axes.get_xlim()[1]
    color = style.BLUE if marked else style.PALE
    # A long one is apart from its neighbours, and the shortest is visible.
    edge = "white" if LONG * share > 1 else color
    axes.barh(lane, end - start, BAR, start, color=color, edgecolor=edge, linewidth=0.5, zorder=2)
    letters = int(LETTERS * share)
    last = run.name.rpartition("/")[2]
    if letters >= 3 and len(last) <= letters:
        name = style.short_name(run.name if len(last) <= letters - 2 else last, letters)
        look: dict[str, Any] = {"color": "white" if marked else style.INK, "size": 8.5, "zorder": 3}
        axes.text((start + end) / 2, lane, name, ha="center", va="center", **look)


def slices(runs: Sequence[OpRun], step: StepTime, path: CriticalPath) -> dict[str, Any]:
    """Return the same runs for a page: (lane, start and duration in ns, name, type, whether it is
    on the critical path) of each."""
    packed = lanes_by_device([run for run in runs if run.step == step.step])
    return {
        "wall": step.wall_ns,
        "lanes": [name for name, _ in packed],
        "slices": [
            (lane, start, end - start, run.name, run.op, run.name in path.nodes)
            for lane, (_, lane_runs) in enumerate(packed)
            for run in lane_runs
            for start, end in (span_in_step(run, step),)
        ],
    }


def lanes_by_device(runs: Iterable[OpRun]) -> list[tuple[str, Sequence[OpRun]]]:
    """Return (label, runs) of each lane, device by device; only a device's first lane has its
    name."""
    runs_of_device: dict[str, list[OpRun]] = {}
    for run in runs:
        runs_of_device.setdefault(short_device(run.device), []).append(run)
    return [
        (style.short_name(device, 16) if lane == 0 else "", packed)
        for device in sorted(runs_of_device)
        for lane, packed in enumerate(lanes.pack(runs_of_device[device]))
    ]


def span_in_step(run: OpRun, step: StepTime) -> Span:
    """Return a run's start and end in ns since the step's start, cut off at the step's edges."""
    start, end = timeline.clipped_span(run, step)
    return start - step.start_ns, end - step.start_ns


def gaps(runs: Sequence[OpRun], step: StepTime) -> list[Span]:
    """Return the times of a step without any op, from its start to its end."""
    busy = [edge - step.start_ns for span in timeline.busy_spans(runs, step) for edge in span]
    edges = [0, *busy, step.wall_ns]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]


def headline(runs: Sequence[OpRun], step: StepTime, critical: set[str]) -> str:
    marked = sum(run.name in critical for run in runs)
    verb = "is" if marked == 1 else "are"
    return (
        f"A step of {time(step.wall_ns)}: {plural(marked, 'op')} of {len(runs):,} {verb} on the "
        "critical path"
    )


def caption(step: StepTime) -> str:
    return (
        f"Step {step.step}. Strong colour: the critical path by median times, a model. Grey "
        "columns: no op was running. A row has ops that did not overlap; it is not a thread."
    )
