"""Graph: the layers of a data-flow graph, its gradients and its updates, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tflab.exporters import fitting
from tflab.exporters.plots import style
from tflab.units import plural

PITCH = 0.62  # inches from one row to the next
TALLEST = 16.0  # inches of all rows
HIGH, WIDE = 0.62, 0.92  # of a box, as shares of its place
PORT = 0.15  # rows from the middle of a box to an arrow at its side
BESIDE = 0.98  # widths of a track between the arrows beside its boxes
LETTERS = 26  # of a label on the whole width of a track
COLOURS = (style.BLUE, style.ORANGE, style.GREEN)  # of the tracks

PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind the text at an arrow

Track = tuple[str, Sequence[Sequence[tuple[str, str, str]]]]  # title, rows of (key, label, about)
Edge = tuple[str, str, str]  # from key to key, the shape of its tensor
Place = tuple[int, float, float, float]  # track, centre, row, width


@style.applied()
def draw(model: str, tracks: Sequence[Track], edges: Sequence[Edge]) -> Figure:
    """Draw boxes in rows common to all tracks, and arrows for edges that pass behind no box."""
    tracks = [track for track in tracks if any(track[1])]
    if not tracks:
        return style.message("An empty graph", f"{model} has no nodes.")
    kept = [at for at in range(len(tracks[0][1])) if any(rows[at] for _, rows in tracks)]
    places: dict[str, Place] = {}
    for track, (_, rows) in enumerate(tracks):
        for row, at in enumerate(kept):
            width = 1 / max(len(rows[at]), 1)
            for number, (key, *_) in enumerate(rows[at]):
                places[key] = track, track + (number + 0.5) * width, row, width
    ends = [(places[source], places[target], shape) for source, target, shape in edges]
    drawn = [(*end, way) for end in ends if (way := way_of(*end[:2], places.values()))]
    boxes = sum(len(row) for _, rows in tracks for row in rows)
    about = (
        f"Boxes: {boxes:,} scopes and single nodes. Arrows: tensors, some with shapes (?: open). "
        f"Not drawn: {plural(len(edges) - len(drawn), 'edge')} between distant boxes."
    )
    title = f"{fitting.middle_cut(model, 30)}: the data-flow graph, layer by layer"
    figure, (axes,) = style.canvas(title, about, min(PITCH * (len(kept) + 1), TALLEST))
    axes.set_xlim(0, len(tracks))
    axes.set_ylim(len(kept) - 0.4, -1)
    axes.set_axis_off()
    for track, (name, rows) in enumerate(tracks):
        style.write(
            axes, track + 0.5, -0.75, style.short_name(name), weight="bold", color=style.FAINT
        )
        for key, label, words in (box for row in rows for box in row):
            _, x, y, width = places[key]
            wide, color = WIDE * width, COLOURS[track % len(COLOURS)]
            axes.barh(y, wide, HIGH, x - wide / 2, color="white", edgecolor=color, zorder=2)
            shorter = style.short_name(label, max(4, int(LETTERS * width)))
            style.write(axes, x, y - 0.12, shorter, size=style.SMALL)
            words = style.short_name(words)
            if len(words) < 1.2 * LETTERS * width:
                style.write(axes, x, y + 0.16, words, size=7.5, color=style.FAINT)
    for start, end, shape, way in drawn:
        draw_edge(axes, start, end, way)
        if way == "straight" and min(start[3], end[3]) >= 0.5:  # there is room
            between = (start[1] + end[1]) / 2 + 0.03, (start[2] + end[2]) / 2
            style.write(axes, *between, shape, size=7.5, color=style.FAINT, ha="left", bbox=PAPER)
    return style.settled(figure)


def way_of(start: Place, end: Place, boxes: Iterable[Place]) -> str:
    """Return how an arrow gets from box to box without passing behind another: "straight"; "beside"
    all boxes of its track, on the left of the first track and on the right of others; or ""."""
    (track, x, y, wide), (to_track, to_x, to_y, to_wide) = start, end
    if y == to_y:
        return "straight" if 2 * abs(to_x - x) < wide + to_wide + 0.01 else ""
    if track != to_track:
        return ""
    if not any(box[0] == track and min(y, to_y) < box[2] < max(y, to_y) for box in boxes):
        return "straight"
    side = 1 if track else -1
    ends = {round(2 * at + side * width, 2) for at, width in ((x, wide), (to_x, to_wide))}
    return "beside" if ends == {2 * track + 1 + side} else ""


def draw_edge(axes: Axes, start: Place, end: Place, way: str) -> None:
    """Draw an arrow from box to box, by a way that `way_of` returned."""
    (track, x, y, wide), (_, to_x, to_y, to_wide) = start, end
    down = 1 if to_y > y else -1
    if way == "beside":
        side = 1 if track else -1
        x, to_x = x + side * WIDE * wide / 2, to_x + side * WIDE * to_wide / 2
        y, to_y = y + down * PORT, to_y - down * PORT
        aside = track + 0.5 + side * BESIDE / 2
        axes.plot((x, aside, aside), (y, y, to_y), color=style.FAINT, linewidth=1, zorder=1)
        x, y = aside, to_y
    elif y == to_y:
        side = 1 if to_x > x else -1
        x, to_x = x + side * WIDE * wide / 2, to_x - side * WIDE * to_wide / 2
    else:
        y, to_y = y + down * HIGH / 2, to_y - down * HIGH / 2
    arrow = {"arrowstyle": "-|>", "color": style.FAINT, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (to_x, to_y), (x, y), arrowprops=arrow, zorder=1)  # behind the boxes
