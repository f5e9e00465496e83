"""Top ops: the ten most expensive ones."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tflab.exporters.plots import style
from tflab.records.measured import OpStats
from tflab.units import percent, plural, time

MOST = 10
PITCH = 0.48  # inches from one bar to the next
BAR = 0.4  # share of that; the rest is for the name
ROOM = 1.3  # limit of the axis, in longest bars, so that the label fits


@style.applied()
def draw(rows: Sequence[OpStats]) -> Figure:
    """A bar for each of the ten with its share and its self time, and one for the rest.

    Names are above their bars, because names of nodes are too long to be next to them.
    """
    ranked = sorted(rows, key=lambda row: -row.self_ns)
    top, rest = ranked[:MOST], ranked[MOST:]
    if not top:
        return style.message("No op took any time", "There are no op runs to add up.")
    bars = [(*names(row), row.share, row.self_ns) for row in top]
    if rest:
        share, spent = sum(row.share for row in rest), sum(row.self_ns for row in rest)
        bars.append(("all others", plural(len(rest), "row"), share, spent))
    figure, (axes,) = style.canvas(headline(top, rest), caption(top), PITCH * len(bars) + 0.2)
    for place, (name, kind, share, spent) in enumerate(bars):
        usual = place < len(top)
        axes.barh(
            place,
            share,
            BAR,
            color=style.BLUE if usual else style.PALE,
            hatch=None if usual else "////",
            edgecolor="white",
            linewidth=0,
        )
        words = f"{percent(share)}, {time(spent)}"
        axes.annotate(words, (share, place), (6, 0), textcoords="offset points", va="center")
        title(axes, place, name, kind)
    axes.set_xlim(0, ROOM * max(share for *_, share, _ in bars) or 1)
    axes.set_ylim(len(bars) - 0.6, -0.85)
    axes.set_axis_off()
    style.settle(figure)
    return figure


def title(axes: Axes, place: int, name: str, kind: str) -> None:
    """The name above the bar and, if it fits, its types behind it in smaller letters."""
    behind = style.text_width(name, style.BODY) + 8
    room = (style.width() - 3 * style.MARGIN) * style.POINTS
    if behind + style.text_width(kind, style.SMALL - 1) > room:
        kind = ""
    for words, across, size, color in (
        (name, 0, style.BODY, style.INK),
        (kind, behind, style.SMALL - 1, style.FAINT),
    ):
        axes.annotate(
            words,
            (0, place - BAR / 2),
            (across, 4),
            textcoords="offset points",
            size=size,
            color=color,
        )


def names(row: OpStats) -> tuple[str, str]:
    """The name, and the types that ran if the name is not the type itself."""
    others = ", ".join(kind for kind in row.ops if kind != row.key)
    return style.short_name(row.key, 52), style.short_name(others, 34)


def headline(top: Sequence[OpStats], rest: Sequence[OpStats]) -> str:
    if not rest:
        return f"{names(top[0])[0]} takes {percent(top[0].share)} of the time of all ops"
    share, all_rows = percent(sum(row.share for row in top)), len(top) + len(rest)
    return f"The {len(top)} most expensive of {all_rows} take {share} of the time of all ops"


def caption(top: Sequence[OpStats]) -> str:
    calls = {row.calls for row in top}
    often = f" in {plural(calls.pop(), 'call')} each" if len(calls) == 1 else ""
    return (
        f"Self time{often}, and its share of the self time of all ops. Ops may run in parallel, "
        "so the sum may exceed the wall time."
    )
