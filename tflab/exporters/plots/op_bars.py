"""Op bars: the mean time of each row of a table in a step; those above 5 % of all ops are red."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from tflab.escaping import visible
from tflab.exporters import fitting
from tflab.exporters.plots import style
from tflab.records.measured import OpStats
from tflab.units import percent, plural, time

THRESHOLD = 0.05  # of the time of all ops
MOST = 10  # bars of ops


@style.applied()
def draw(rows: Sequence[OpStats], by: str) -> Figure:
    """Draw a bar for each layer; of other rows, for the ten most expensive and for the rest."""
    if not rows:
        return style.message("No op ran", "There are no op runs to add up.")
    bars = list(rows) if by == "layer" else sorted(rows, key=lambda row: -row.total_ns)[:MOST]
    names = [fitting.wrapped(visible(row.key), 36, hanging=0) for row in bars]
    drawn = [(row.step_ns, row.share, row.share > THRESHOLD) for row in bars]
    by = "op type" if by == "op" else by
    above = sum(marked for *_, marked in drawn)
    title = (
        f"{above:,} of {plural(len(rows), by)}: more than {percent(THRESHOLD)} of the op time each"
    )
    order = "Layers in the order of execution" if by == "layer" else f"The most expensive {by}s"
    about = (
        f"{order}: mean time in a step, and share of the time of all ops. Red and hatched: more "
        f"than {percent(THRESHOLD)}."
    )
    if others := len(rows) - len(bars):  # a bar of their sum would make the others short
        ns = sum(row.step_ns for row in rows) - sum(ns for ns, *_ in drawn)
        rest = percent(1 - sum(share for _, share, _ in drawn))
        about += f" All others ({others:,}): {time(ns)}, {rest}."
    figure, (axes,) = style.canvas(title, about, 0.36 * len(names) + 0.8)
    for place, (ns, share, marked) in enumerate(drawn):
        color, hatch = (style.RED, "////") if marked else (style.PALE, None)
        bar = axes.barh(place, ns, 0.7, color=color, hatch=hatch, linewidth=0, zorder=2)
        bar[0].set_edgecolor("white")
        label = f"{time(ns)}, {percent(share)}"
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # it hides no axis
        axes.bar_label(bar, [label], padding=4, size=style.SMALL, bbox=ground)
    limit = 1.3 * (max(ns for ns, *_ in drawn) or 1)
    axes.set_xlim(0, limit)
    axes.set_ylim(len(names) - 0.4, -0.7)
    axes.set_yticks(range(len(names)), names, ma="right")
    axes.tick_params(axis="y", length=0, labelcolor=style.INK)
    style.ruled(axes.xaxis, limit, time, 4)
    axes.set_xlabel("time in a step")
    axes.grid(axis="x")
    return style.settled(figure)
