"""What stands in a figure, read back from matplotlib: for the tests of plots."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.text import Annotation

FEW = 10  # of the points of a line, the first ones and the last are shown


def title(figure: Figure) -> str:
    return plain(" ".join(t.get_text() for t in figure.texts if t.get_weight() == "bold"))


def caption(figure: Figure) -> str:
    return plain(" ".join(t.get_text() for t in figure.texts if t.get_weight() != "bold"))


def plain(words: str) -> str:
    return words.replace("\N{NO-BREAK SPACE}", " ")


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """(place, label) of every tick that can be seen."""
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [(float(at), label.get_text()) for at, label in pairs if low <= at <= high]


def number(value: float) -> str:
    return f"{round(float(value), 6) + 0.0:.7g}"


def numbers(values: Iterable[float]) -> str:
    return f"({', '.join(map(number, values))})"


def marks(figure: Figure) -> str:
    """Return the words of a figure, and all that is drawn in each of its panels, as lines.

    A line of a panel has a colour, its look, and its place in the units of the axes: of a bar or an
    area, from its left lower corner to its right upper one. `+2` is the layer above `+1`.
    """
    lines = [f"title: {title(figure)}", f"caption: {caption(figure)}"]
    for place, axes in enumerate(figure.axes, 1):
        lines += ["", f"panel {place}{'' if axes.axison else ', without axes'}"]
        lines += [f"  {line}" for line in panel(axes)]
    return "\n".join(lines)


def panel(axes: Axes) -> Iterator[str]:
    if heading := axes.get_title("left"):
        yield f"heading: {heading}"
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)) if axes.axison else ():
        shown = " ".join(f"{number(at)}={label!r}" for at, label in ticks(axis))
        ends = " to ".join(map(number, axis.get_view_interval()))
        yield f"{name} {axis.get_scale()} {ends} {axis.get_label_text()!r}: {shown}".rstrip(": ")
    if legend := axes.get_legend():
        yield f"legend: {', '.join(text.get_text() for text in legend.get_texts())}"
    for bar in axes.patches:
        hatch = f" hatched {bar.get_hatch()}" if bar.get_hatch() else ""
        ends = corners(bar.get_bbox())
        yield f"bar {to_hex(bar.get_facecolor())}{hatch} +{bar.get_zorder():g}: {ends}"
    yield from map(areas, axes.collections)
    for line in axes.lines:
        look = f"{to_hex(line.get_color())} {line.get_linestyle()} {line.get_linewidth():g}"
        steps = " steps" if line.get_drawstyle() == "steps-post" else ""
        points = [numbers(point) for point in line.get_xydata()]
        shown = points if len(points) <= FEW else [*points[:FEW], "...", points[-1]]
        name = line.get_label()
        yield (
            f"line {look} {line.get_marker()}{steps} +{line.get_zorder():g} "
            f"{'' if name.startswith('_') else repr(name)}: {' '.join(shown)}"
        )
    for image in axes.images:
        for row in np.asarray(image.get_array()):
            yield f"pixels {' '.join(map(to_hex, row))}"
    for arrow in filter(lambda text: getattr(text, "arrow_patch", None), axes.texts):
        yield f"arrow +{arrow.get_zorder():g}: {numbers(arrow.xyann)} to {numbers(arrow.xy)}"
    for text in filter(lambda text: text.get_text(), axes.texts):
        at = numbers(text.get_position())
        if isinstance(text, Annotation):
            at = f"{at} points from {numbers(text.xy)}"
        look = f"{to_hex(text.get_color())} {text.get_size():g} {text.get_weight()}"
        yield f"text {text.get_text()!r} {text.get_ha()} {look}: {at}"


def areas(drawn: Collection) -> str:
    """The areas of a collection; each with its colour if they differ."""
    faces = drawn.get_facecolor()
    colours = list(map(to_hex, faces if len(faces) else drawn.get_edgecolor()))
    outlines = list(map(outline, drawn.get_paths()))
    look = f"{colours[0]} +{drawn.get_zorder():g}" if colours else "none"
    if len({*colours}) > 1:
        look = f"of colours +{drawn.get_zorder():g}"
        outlines = [" ".join(pair) for pair in zip(colours, outlines, strict=True)]
    return f"areas {look}: {' '.join(outlines)}"


def outline(path: Path) -> str:
    """The corners of a rectangle, or the points of any other area."""
    if len(path.vertices) <= 5:
        return corners(path.get_extents())
    return " ".join(point for point, _ in groupby(map(numbers, path.vertices)))


def corners(box) -> str:
    return f"{numbers((box.x0, box.y0))}-{numbers((box.x1, box.y1))}"
