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
MANY = 2_000  # op runs; with more, bars that touch are joined
PIXELS = 1_000  # width of the page for that
PANEL = 460  # points, the width of the panel, about
LETTER = 5.5  # points, the width of a letter of a name, about


@style.applied()
def draw(runs: Sequence[OpRun], step: StepTime, path: CriticalPath) -> Figure:
    """The runs of this step, in as few lanes per device as possible; other steps are ignored.

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
    axes.broken_barh(
        [(start, end - start) for start, end in gaps(runs, step)],
        (0, 1),
        transform=axes.get_xaxis_transform(),
        color=IDLE,
        linewidth=0,
        zorder=0,
    )
    for lane, (_, lane_runs) in enumerate(packed):
        for color, marked in ((style.PALE, False), (style.BLUE, True)):
            spans = [
                span_in_step(run, step) for run in lane_runs if (run.name in critical) == marked
            ]
            draw_bars(axes, lane, merged_if_many(spans, len(runs), step.wall_ns), color)
        for run in lane_runs:
            write_name(axes, lane, run, step, "white" if run.name in critical else style.INK)
    draw_critical_path(axes, packed, step, critical)
    return style.settled(figure)


def slices(runs: Sequence[OpRun], step: StepTime, path: CriticalPath) -> dict[str, Any]:
    """The same runs for a page: (lane, start and duration in ns, name, type, whether it is on the
    critical path) of each."""
    packed, critical = (
        lanes_by_device([run for run in runs if run.step == step.step]),
        {*path.nodes},
    )
    return {
        "wall": step.wall_ns,
        "lanes": [name for name, _ in packed],
        "slices": [
            (lane, start, end - start, run.name, run.op, run.name in critical)
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
    spans = timeline.union(span_in_step(run, step) for run in runs)
    busy = merged_if_many(spans, len(runs), step.wall_ns)
    edges = [0, *(min(edge, step.wall_ns) for span in busy for edge in span), step.wall_ns]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]


def merged_if_many(spans: Sequence[Span], runs: int, wall_ns: int) -> Sequence[Span]:
    """Return the spans; if there are very many runs, their union at the picture's resolution."""
    if runs <= MANY:
        return spans
    grain = max(1, wall_ns // PIXELS)
    return timeline.union(
        (start // grain * grain, -(-end // grain) * grain) for start, end in spans
    )


def draw_bars(axes: Axes, lane: int, spans: Sequence[Span], color: str) -> None:
    axes.broken_barh(
        [(start, end - start) for start, end in spans],
        (lane - BAR / 2, BAR),
        facecolors=color,
        # A long one is apart from its neighbours, and the shortest is visible.
        edgecolors=[
            "white" if end - start > axes.get_xlim()[1] / LONG else color for start, end in spans
        ],
        linewidth=0.5,
        zorder=2,
    )


def draw_critical_path(
    axes: Axes, packed: Iterable[tuple[str, Sequence[OpRun]]], step: StepTime, critical: set[str]
) -> None:
    """Draw a line through the critical path: between bars it shows the wait for the next op."""
    places = sorted(
        (*span_in_step(run, step), lane)
        for lane, (_, lane_runs) in enumerate(packed)
        for run in lane_runs
        if run.name in critical
    )
    times = [edge for start, end, _ in places for edge in (start, end)]
    heights = [lane for *_, lane in places for _ in range(2)]
    axes.plot(times, heights, color=style.BLUE, linewidth=1, zorder=1)


def write_name(axes: Axes, lane: int, run: OpRun, step: StepTime, color: str) -> None:
    """Write the end of a run's name into its bar; nothing if not even its last part fits."""
    start, end = span_in_step(run, step)
    letters = int(PANEL * (end - start) / max(step.wall_ns, 1) / LETTER)
    last = run.name.rpartition("/")[2]
    name = style.short_name(run.name if len(last) <= letters - 2 else last, letters)
    if letters >= 3 and (name == run.name or len(last) <= letters):
        axes.text(
            (start + end) / 2, lane, name, size=8.5, color=color, ha="center", va="center", zorder=3
        )


def headline(runs: Sequence[OpRun], step: StepTime, critical: set[str]) -> str:
    marked = sum(run.name in critical for run in runs)
    verb = "is" if marked == 1 else "are"
    return (
        f"A step of {time(step.wall_ns)}: {plural(marked, 'op')} of {len(runs):,} {verb} on the "
        "critical path"
    )


def caption(step: StepTime) -> str:
    return (
        f"Step {step.step}. Strong colour: the critical path by median times, a model, joined by "
        "a line. Grey columns: no op was running. A row has ops that did not overlap; it is not a "
        "thread."
    )
