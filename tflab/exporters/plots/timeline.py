"""Timeline: one step with its ops in lanes, and the critical path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tflab.analysis import timeline
from tflab.exporters.plots import style
from tflab.records.graph import grouped
from tflab.records.timed import CriticalPath, OpRun, StepTime
from tflab.units import plural, short_device, time

LANE = 0.5  # inches
SHORTEST, TALLEST = 1.6, 8.0  # inches, for all lanes
BAR = 0.8  # height of a bar, in lanes


# A run: its lane, start and duration in ns, name, type, and whether it is on the critical path
Slice = tuple[int, int, int, str, str, bool]
ON_PATH = "; on the critical path"


class Slices(TypedDict):
    """The runs of a step, cut off at its edges, with times since its start."""

    wall: int
    lanes: list[str]
    slices: list[Slice]


@style.applied()
def draw(runs: Sequence[OpRun], step: StepTime, path: CriticalPath) -> Figure:
    """Draw the runs of this step in as few lanes per device as possible. Lanes are not threads. The
    critical path is that of the medians over all steps."""
    runs = [run for run in runs if run.step == step.step]
    if not runs:
        return style.message("No op ran", f"Step {step.step} took {time(step.wall_ns)}.")
    packed = slices(runs, step, path)
    count = len(packed["lanes"])
    height = min(max(LANE * count, SHORTEST), TALLEST) + 0.5
    about = (
        f"Step {step.step}. Strong colour: the critical path by median times, an estimate. A row "
        "has ops that did not overlap; it is not a thread."
    )
    figure, (axes,) = style.canvas(headline(runs, step, {*path.nodes}), about, height)
    axes.set_xlim(0, max(step.wall_ns, 1))
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks(range(count), packed["lanes"])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    style.ruled(axes.xaxis, max(step.wall_ns, 1), time)
    axes.set_xlabel("time since the step's start")
    for lane, bars in grouped((bar[0], bar) for bar in packed["slices"]).items():
        draw_lane(axes, lane, bars)
    return style.settled(figure)


def draw_lane(axes: Axes, lane: int, bars: Sequence[Slice]) -> None:
    """Draw a bar for each run, with the end of the run's name if that fits."""
    width = axes.get_xlim()[1]
    colors = [style.BLUE if critical else style.PALE for *_, critical in bars]
    spans, place = [(start, ns) for _, start, ns, *_ in bars], (lane - BAR / 2, BAR)
    long = [100 * ns > width for _, ns in spans]  # these have edges
    edges = ["white" if apart else own for apart, own in zip(long, colors, strict=True)]
    # One shape for all, because a step may have 100,000 runs
    axes.broken_barh(spans, place, facecolors=colors, edgecolors=edges, linewidth=0.5, zorder=2)
    for _, start, ns, name, _, critical in bars:
        letters = int(84 * ns / width)  # a name as long as the step has 84
        last = name.rpartition("/")[2]
        if letters >= 3 and len(last) <= letters:
            words = style.short_name(name if len(name) <= letters else last, letters)
            color = "white" if critical else style.INK
            style.write(axes, start + ns / 2, lane, words, color=color, size=8.5)


def slices(runs: Sequence[OpRun], step: StepTime, path: CriticalPath) -> Slices:
    """Return the runs of this step in lanes; only a device's first lane has its name."""
    critical = set(path.nodes)
    names: list[str] = []
    bars: list[Slice] = []
    of_device = grouped((short_device(run.device), run) for run in runs if run.step == step.step)
    for device in sorted(of_device):
        for number, lane in enumerate(timeline.pack(of_device[device])):
            starts, ends = timeline.clipped(lane, step)
            times = (starts - step.start_ns).tolist(), (ends - starts).tolist()
            for run, start, ns in zip(lane, *times, strict=True):
                on = run.name in critical
                said = f"{run.name} ({run.op}): {time(ns)}, from {time(start)} on{ON_PATH * on}"
                bars.append((len(names), start, ns, run.name, said, on))
            names.append("" if number else style.short_name(device, 16))
    return {"wall": step.wall_ns, "lanes": names, "slices": bars}


def headline(runs: Sequence[OpRun], step: StepTime, critical: set[str]) -> str:
    marked = sum(run.name in critical for run in runs)
    verb = "is" if marked == 1 else "are"
    return (
        f"A step of {time(step.wall_ns)}: {plural(marked, 'op')} of {len(runs):,} {verb} on the "
        "critical path"
    )
