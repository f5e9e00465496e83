"""Op bars: the mean time of each row of a table in a step; those above 5 % of all ops are red."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tflab.exporters.plots import style
from tflab.records.measured import OpStats
from tflab.units import percent, plural, time

THRESHOLD = 0.05  # of the time of all ops
MOST = 10  # bars of ops
PITCH = 0.3  # inches from one bar to the next
LETTERS = 36  # of a name
OTHERS = "all others"
# The numbers right of the panel, and where their right edges are, in points
COLUMNS = {"mean": 50, "median": 102, "share": 146}


@style.applied()
def draw(rows: Sequence[OpStats], by: str) -> Figure:
    """A bar for each layer in the order of execution; of ops, nodes and lines one for each of the
    ten most expensive, and one for all others."""
    if not rows:
        return style.message("No op ran", "There are no op runs to add up.")
    bars = list(rows) if by == "layer" else sorted(rows, key=lambda row: -row.self_ns)[:MOST]
    above = [row for row in bars if row.share > THRESHOLD]
    total_ns = sum(row.step_ns for row in rows)
    others_ns = total_ns - sum(row.step_ns for row in bars)
    names = style.distinct_names([row.key for row in bars], LETTERS)
    if len(bars) < len(rows):
        names.append(f"{OTHERS} ({len(rows) - len(bars):,})")
    figure, (axes,) = style.canvas(
        headline(above, len(rows), by), caption(bars, by), PITCH * len(names) + 0.8
    )
    for place, row in enumerate(bars):
        draw_bar(axes, place, row.step_ns, row.share)
        if row.step_median_ns is not None:
            axes.plot(row.step_median_ns, place, "d", color=style.INK, markersize=4, zorder=3)
            write(axes, place, "median", time(row.step_median_ns))
        deviation = row.step_std_ns
        if deviation is not None:
            axes.errorbar(
                row.step_ns,
                place,
                xerr=[[min(deviation, row.step_ns)], [deviation]],
                color=style.INK,
                linewidth=1,
                capsize=2.5,
            )
    if len(bars) < len(rows):
        others = 1 - sum(row.share for row in bars)
        draw_bar(axes, len(bars), others_ns, others, is_one_row=False)
    for header in COLUMNS if any(row.step_median_ns for row in bars) else ("mean", "share"):
        write(axes, -1, header, header, style.FAINT)
    axes.axvline(THRESHOLD * total_ns, color=style.INK, linewidth=1, linestyle="--", zorder=1)
    longest = max([others_ns, *(row.step_ns for row in bars)]) or 1
    axes.set_xlim(0, 1.2 * longest)
    axes.set_ylim(len(names) - 0.4, -0.7)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor=style.INK)
    style.ruled(axes.xaxis, 1.2 * longest, time, 4)
    axes.set_xlabel("time in a step")
    axes.grid(axis="x")
    return style.settled(figure)


def draw_bar(axes: Axes, place: int, ns: float, share: float, *, is_one_row: bool = True) -> None:
    """Draw a bar with its time and share; red and hatched if one row is above the threshold."""
    marked = is_one_row and share > THRESHOLD
    axes.barh(
        place,
        ns,
        0.7,
        color=style.RED if marked else style.PALE,
        hatch="////" if marked else None,
        edgecolor="white",
        linewidth=0,
        zorder=2,
    )
    write(axes, place, "mean", time(ns))
    write(axes, place, "share", percent(share))


def write(axes: Axes, place: int, header: str, words: str, color: str = style.INK) -> None:
    """Write a number into a column right of the panel."""
    axes.annotate(
        words,
        (1, place),
        (COLUMNS[header], 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="center",
        size=style.SMALL,
        color=color,
        annotation_clip=False,
    )


def headline(above: Sequence[OpStats], count: int, by: str) -> str:
    if not above:
        return f"No {by} takes more than {percent(THRESHOLD)} of the time of all ops"
    share = percent(sum(row.share for row in above))
    verb = "takes" if len(above) == 1 else "take"
    return f"{len(above):,} of {plural(count, by)} {verb} {share} of the time of all ops"


def caption(bars: Sequence[OpStats], by: str) -> str:
    """Return what a bar shows."""
    order = "Layers in the order of execution" if by == "layer" else f"The most expensive {by}s"
    sentences = [
        f"{order}: mean time in a step, and share of the time of all ops.",
        f"Red and hatched: more than {percent(THRESHOLD)} (broken line).",
    ]
    if any(row.step_median_ns is not None for row in bars):
        sentences.append("Mark: the median over the steps.")
    if any(row.step_std_ns is not None for row in bars):
        sentences.append("Thin line: the standard deviation over the steps.")
    return " ".join(sentences)
