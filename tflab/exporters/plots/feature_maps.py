"""Feature maps: what a network computed for one image, layer by layer, and its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tflab.exporters.plots import mosaic, style
from tflab.exporters.plots.mosaic import Mosaic
from tflab.records.values import IMAGE, KERNEL, FeatureMap, Maps, Probabilities
from tflab.units import percent, plural

LINE = 14  # points
BASELINE = 9  # points from the top of a line to the foot of its letters
NUMBER = 8.5  # points, the size of numbers beside what they measure
EDGE = style.MARGIN * style.POINTS  # points
GUTTER = 22  # points between the two columns
TILE = 56  # points, the largest width of a tile
PIXEL = 2.5  # points, the largest width of a pixel of a fed image
TALL = 190  # points, the largest height of a mosaic
AIR = 11  # points below a row
STRIP = (34, 6)  # points, the scale
ACROSS = 8  # tiles in a row
NARROW = 16  # tiles in a row of a kernel with several rows
COLUMN_HEADS = ("Value", "Gradient of the loss")


# The sheet: a figure that is laid out by hand, in points from the top left corner


@dataclass(frozen=True)
class Page:
    """Where the two columns are, in points from the top left corner."""

    axes: Axes
    width: float  # of a column
    lefts: tuple[float, float]


def sheet(figure: Figure, room: float) -> Axes:
    """Axes over all that is below the caption, whose units are points from the top left."""
    across = style.width() * style.POINTS
    height_points = figure.get_figheight() * style.POINTS
    axes = figure.add_axes((0, 0, 1, room / height_points))
    axes.set_axis_off()
    axes.set_xlim(0, across)
    axes.set_ylim(room, 0)
    axes.set_autoscale_on(False)
    return axes


def name(page: Page, top: float, words: str, note: str) -> None:
    """A name, and a note in a fainter colour, shortened to the width of the page."""
    room = page.lefts[1] + page.width - page.lefts[0]
    left = room - style.text_width(note, style.SMALL) - 8
    short = words
    for most in range(60, 8, -2):
        short = style.short_name(words, most)
        if style.text_width(short, style.SMALL, "bold") <= left:
            break
    write(page, page.lefts[0], top, short, style.INK, weight="bold")
    after = page.lefts[0] + style.text_width(short, style.SMALL, "bold") + 8
    write(page, after, top, note, style.FAINT)


def image(
    page: Page, pixels: np.ndarray, left: float, top: float, area: tuple[float, float]
) -> None:
    wide, high = area
    drawn = page.axes.imshow(
        pixels,
        extent=(left, left + wide, top + high, top),
        aspect="auto",
        interpolation="none",
        zorder=2,
    )
    drawn.set_gid(f"image_{len(page.axes.images)}")  # two that are equal would have the same id


def box(
    page: Page,
    left: float,
    top: float,
    area: tuple[float, float],
    color: str,
    edge: str = "none",
) -> None:
    page.axes.add_patch(
        Rectangle((left, top), *area, facecolor=color, edgecolor=edge, linewidth=0.5, zorder=3)
    )


def wrapped(page: Page, words: str) -> str:
    return "\n".join(style.wrapped(words, page.width, style.SMALL))


def write(
    page: Page,
    left: float,
    top: float,
    words: str,
    color: str,
    *,
    weight: str = "normal",
    size: float = style.SMALL,
    align: str = "left",
) -> None:
    page.axes.text(
        left,
        top + BASELINE,
        words,
        color=color,
        weight=weight,
        size=size,
        ha=align,
        linespacing=1.3,
        va="baseline",
        zorder=4,
    )


# The maps


@style.applied()
def draw(maps: Maps) -> Figure:
    """A row for the image, for each layer and kernel in the order of the network, and for the
    probabilities: on the left the values, on the right their gradients."""
    if not maps.maps and maps.probabilities is None:
        return style.message("No feature maps", "The step computed no images.")
    column = (style.width() * style.POINTS - 2 * EDGE - GUTTER) / 2
    pairs = [(item, mosaics(item)) for item in maps.maps]
    heights = [height(item, drawn[0], column) for item, drawn in pairs]
    room = LINE + sum(heights) + bars_height(maps.probabilities) + EDGE
    figure, _ = style.canvas(headline(maps), caption(maps), room / style.POINTS, panels=0)
    figure.set_layout_engine("none")  # everything is placed explicitly
    page = Page(sheet(figure, room), column, (EDGE, EDGE + column + GUTTER))
    for left, words in zip(page.lefts, COLUMN_HEADS, strict=True):
        write(page, left, 0, words, style.FAINT)
    top = float(LINE)
    for (item, drawn), high in zip(pairs, heights, strict=True):
        draw_row(page, item, drawn, top)
        top += high
    if maps.probabilities is not None:
        draw_classes(page, maps.probabilities, top)
    return figure


def mosaics(item: FeatureMap) -> tuple[Mosaic, Mosaic | None]:
    """A value, and its gradient."""
    if item.kind == KERNEL:
        kernel = mosaic.of_kernel(item.array)
        return kernel, None if item.gradient is None else mosaic.of_kernel(item.gradient)
    kernel = mosaic.of_image(item.array) if item.kind == IMAGE else channels(item.array)
    return kernel, None if item.gradient is None else channels(item.gradient, signed=True)


def channels(array: np.ndarray, signed: bool = False) -> Mosaic:
    return mosaic.of_channels(array, ACROSS, signed=signed)


def size(item: FeatureMap, mosaic: Mosaic, column: float) -> tuple[float, float]:
    """Width and height of a mosaic in points; its elements are squares."""
    high, wide = mosaic.pixels.shape[:2]
    if item.kind == IMAGE:
        width = min(column, PIXEL * wide)
    elif item.kind == KERNEL:
        width = column * mosaic.columns / (NARROW if mosaic.columns > ACROSS else ACROSS)
    else:
        width = column
    width = min(width, TILE * mosaic.columns, TALL * wide / high)
    return width, width * high / wide


def height(item: FeatureMap, mosaic: Mosaic, column: float) -> float:
    return 2 * LINE + size(item, mosaic, column)[1] + AIR


def draw_row(page: Page, item: FeatureMap, drawn: tuple[Mosaic | None, ...], top: float) -> None:
    """The name above, the tiles of both columns, and below each the scale of its colours."""
    name(page, top, item.name, about(item))
    for left, part in zip(page.lefts, drawn, strict=True):
        if part is None:
            write(page, left, top + LINE, wrapped(page, NO_GRADIENT), style.FAINT)
            continue
        area = size(item, part, page.width)
        image(page, part.pixels, left, top + LINE, area)
        draw_scale(page, part, left, top + LINE + area[1] + 3)


def about(item: FeatureMap) -> str:
    if item.kind == KERNEL:
        high, wide, inputs, channels = item.shape
        shown = item.array.shape
        rest = "" if shown[2:] == (inputs, channels) else f", {shown[2]} and {shown[3]} shown"
        return f"{high} x {wide}, {inputs} in (down), {channels} out (across){rest}"
    high, wide, channels = item.shape
    if item.kind == IMAGE:
        return f"{high} x {wide}, fed"
    rest = "" if item.array.shape[2] == channels else f", {item.array.shape[2]} shown"
    return f"{high} x {wide}, {plural(channels, 'channel')}{rest}"


def draw_scale(page: Page, drawn: Mosaic, left: float, top: float) -> None:
    """A strip of the colours between the numbers at its ends."""
    most = mosaic.limit(drawn)
    low, high = f"{drawn.low:.3g}", f"{drawn.high:.3g}"
    if drawn.signed:
        low, high = f"{-most:.2g}", f"+{most:.2g}"
    write(page, left, top, low, style.FAINT, size=NUMBER)
    left += style.text_width(low, NUMBER) + 4
    image(page, mosaic.strip(drawn), left, top + 2.5, STRIP)
    box(page, left, top + 2.5, STRIP, "none", style.FAINT)
    write(page, left + STRIP[0] + 4, top, high, style.FAINT, size=NUMBER)


# Words


def headline(maps: Maps) -> str:
    record = maps.probabilities
    if record is None:
        return "What the network saw of the first image"
    if record.best is None:
        return "What the network saw of the first image: its probabilities are not all finite"
    share = percent(float(record.array[record.best]))
    reads = f"The network reads the first image as {record.best}, with {share}"
    return reads if record.label is None else f"{reads}; its label is {record.label}"


def caption(maps: Maps) -> str:
    """What is shown, what the colours mean, and what is missing."""
    sentences = [
        "This is the first step after initialisation, for the first image of its batch. It ran "
        "without graph passes, so that each node computes what the program defines. A kernel's "
        "gradient is for the whole batch. Each picture has its own scale: grey, with 0 in black; "
        "with both signs, blue is below 0, white is 0 and orange is above 0. The colour grows "
        "with the square root of the number, so that small numbers are visible.",
        *(["Vermilion: NaN or infinite."] if any(map(is_bad, maps.maps)) else []),
        *left_out(maps),
    ]
    return " ".join(sentences)


def is_bad(item: FeatureMap) -> bool:
    """Whether any element of a map or of its gradient is not finite."""
    arrays = [item.array] if item.gradient is None else [item.array, item.gradient]
    return not all(np.isfinite(array).all() for array in arrays)


# Class bars: a probability for each class, and next to it the gradient of its score


BAR = 11  # points, the height of a bar
NO_GRADIENT = "not computed: no variable's gradient needs it"


def bars_height(probabilities: Probabilities | None) -> float:
    if probabilities is None:
        return 0
    return LINE + (BAR + 3) * len(probabilities.array)


def draw_classes(page: Page, record: Probabilities, top: float) -> None:
    """A bar for each class, and next to it its gradient, to either side of a line."""
    origin = "left: probabilities" if record.computed else "left: its softmax, the probabilities"
    name(page, top, record.name, origin)
    best = record.best
    shares = np.nan_to_num(record.array, nan=0, posinf=0, neginf=0)
    digits = max(style.text_width(f"{len(record.array) - 1}", style.SMALL, "bold"), 8) + 5
    room = page.width - digits - 92
    for number, (share, exact) in enumerate(zip(shares, record.array, strict=True)):
        at = top + LINE + number * (BAR + 3)
        weight = "bold" if number in (best, record.label) else "normal"
        write(page, page.lefts[0], at, str(number), style.INK, weight=weight)
        color = style.BLUE if number == best else style.PALE
        left, long = page.lefts[0] + digits, room * float(share) / (float(max(shares)) or 1)
        box(page, left, at, (long, BAR), color)
        known = percent(float(share)) if np.isfinite(exact) else f"{exact}"
        words = f"{known}{' label' if number == record.label else ''}"
        write(page, left + long + 4, at, words, style.INK, weight=weight, size=NUMBER)
    if record.gradient is None:
        write(page, page.lefts[1], top + LINE, wrapped(page, NO_GRADIENT), style.FAINT)
        return
    draw_signed_bars(page, record.gradient, top + LINE)


def draw_signed_bars(page: Page, gradient: np.ndarray, top: float) -> None:
    """Bars from the middle of the column; negative numbers to the left."""
    lengths = np.nan_to_num(np.abs(gradient), nan=0, posinf=0)
    most = float(lengths.max()) or 1
    half = page.width / 2 - 44
    middle = page.lefts[1] + page.width / 2
    for number, value in enumerate(gradient):
        at, long = top + number * (BAR + 3), half * float(lengths[number]) / most
        color = style.BLUE if value < 0 else style.ORANGE
        box(page, middle - long if value < 0 else middle, at, (long, BAR), color)
        align, side = ("right", -long - 4) if value < 0 else ("left", long + 4)
        write(page, middle + side, at, f"{value:+#.2g}", style.INK, size=NUMBER, align=align)
    end = top + len(gradient) * (BAR + 3) - 3
    page.axes.plot([middle, middle], [top, end], color=style.FAINT, linewidth=0.8, zorder=4)


def left_out(maps: Maps) -> Iterator[str]:
    if maps.left_out:
        verb = "is" if maps.left_out == 1 else "are"
        yield f"{plural(maps.left_out, 'more map')} {verb} too many or too large to be drawn."
