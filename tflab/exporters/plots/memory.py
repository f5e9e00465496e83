"""Memory: the bytes alive over one step, and which nodes held them at the peak."""

from __future__ import annotations

from matplotlib.figure import Figure

from tflab.exporters.plots import style
from tflab.records.timed import LiveBytes
from tflab.units import plural, size, time


@style.applied()
def draw(curve: LiveBytes) -> Figure:
    """Draw the curve as a staircase, known at the end of each microsecond, with its peak marked."""
    if not curve.peak_bytes:
        return style.message("No op requested memory", f"Step {curve.step} has no allocations.")
    title = (
        f"In step {curve.step}, at most {size(curve.peak_bytes)} are alive at once, "
        f"{time(curve.peak_ns)} after its start, requested by {plural(len(curve.holders), 'op')}"
    )
    about = (
        "The step of median length: bytes that its ops had requested and not yet released. "
        "Variables and feeds are not included."
    )
    figure, (axes,) = style.canvas(title, about, 3.4)
    times, alive = zip((0, 0), *((max(0, ns), held) for ns, held in curve.points), strict=True)
    axes.fill_between(times, alive, step="post", color=style.PALE, linewidth=0)
    axes.step(times, alive, where="post", color=style.BLUE)
    axes.plot(curve.peak_ns, curve.peak_bytes, "o", color=style.VERMILION, clip_on=False)
    width, height = max(times[-1], 1), 1.1 * curve.peak_bytes
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    style.ruled(axes.yaxis, height, size)
    style.ruled(axes.xaxis, width, time)
    axes.set_ylabel("memory alive")
    axes.set_xlabel("time since the step's start")
    axes.grid(axis="y")
    return style.settled(figure)
