"""Feature maps: what a network computed for one image, layer by layer, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

from tflab.exporters.plots import style
from tflab.records.values import IMAGE, KERNEL, LAYER, FeatureMap, Maps, Probabilities
from tflab.units import percent, plural

ACROSS = 8  # tiles of a layer beside one another
GAP = 0.1  # of a tile, between tiles
TALLEST = 2.2  # inches of a row of pictures
COLUMN = 3.3  # inches, the width of a column, about
NAME = 0.45  # inches above a picture, with the numbers below it
CLASS = 0.19  # inches, the height of a bar
GREY = LinearSegmentedColormap.from_list("grey", ["black", "white"])
SIGNED = LinearSegmentedColormap.from_list("signed", [style.BLUE, "white", style.ORANGE])
GRADIENT = "gradient"  # beside the kinds of maps
ABOUT = (
    "This is the first step after initialisation, for the first image of its batch. It ran without "
    "graph passes, so that each node computes what the program defines. A kernel's gradient is for "
    "the whole batch. Each picture has its own scale, written below it. Grey: from the least value "
    "in black to the largest in white. Blue is below 0, white is 0, orange is above 0. Vermilion: "
    "NaN or infinite."
)


@style.applied()
def draw(maps: Maps) -> Figure:
    """Draw a row for each map and the probabilities: values on the left, gradients on the right."""
    record = maps.probabilities
    if not maps.maps and record is None:
        return style.message("No feature maps", "The step computed no images.")
    heights = []
    for item in maps.maps:
        shape = tiled(item.array, item.kind).shape
        heights.append(NAME + min(TALLEST, COLUMN * shape[0] / max(shape[:2])))
    if record:
        heights.append(NAME + CLASS * len(record.array))
    about = ABOUT
    if maps.left_out:
        about += f" Too many or too large to be drawn: {plural(maps.left_out, 'more map')}."
    title = "What the network saw of the first image"
    if record and record.best is None:
        title += ": its probabilities are not all finite"
    elif record:
        share = percent(float(record.array[record.best]))
        title = f"With its initial weights, the network reads the first image as {record.best}, "
        title += f"with {share}" + (
            "" if record.label is None else f"; its label is {record.label}"
        )
    figure, _ = style.canvas(title, about, sum(heights) + 0.2, panels=0)
    rows = figure.subplots(len(heights), 2, squeeze=False, height_ratios=heights)
    for (left, right), item in zip(rows, maps.maps, strict=False):
        show(left, item.array, item.kind)
        left.set_title(f"{style.short_name(item.name)}: {size_of(item)}")
        if item.kind == IMAGE:
            right.set_axis_off()
        elif (gradient := begun(right, item.gradient)) is not None:
            show(right, gradient, KERNEL if item.kind == KERNEL else GRADIENT)
    if record:
        draw_classes(rows[-1][0], rows[-1][1], record)
    return style.settled(figure)


def begun(axes: Axes, gradient: np.ndarray | None) -> np.ndarray | None:
    """Begin the panel of a gradient, or say in it that there is none; return the gradient."""
    axes.set_title("gradient of the loss")
    if gradient is None:
        axes.set_axis_off()
        why = "not computed: no variable's\ngradient needs it"
        axes.text(0, 0.5, why, transform=axes.transAxes, size=style.SMALL)
    return gradient


def tiled(array: np.ndarray, kind: str) -> np.ndarray:
    """Return an image as it is; channels as tiles in rows of ACROSS; a kernel with a row for each
    input channel and a column for each output channel. Gaps between tiles are -inf."""
    if kind == IMAGE:
        return array[..., 0] if array.shape[-1] != 3 else array
    if kind == KERNEL:
        rows = [list(np.moveaxis(inputs, -1, 0)) for inputs in np.moveaxis(array, 2, 0)]
    else:
        tiles = list(np.moveaxis(array, -1, 0))
        rows = [tiles[start : start + ACROSS] for start in range(0, len(tiles), ACROSS)]
    high, wide = array.shape[:2]
    gap = max(1, round(GAP * max(high, wide)))
    across = max(map(len, rows))
    whole = np.full((len(rows) * (high + gap) - gap, across * (wide + gap) - gap), -np.inf)
    for down, row in enumerate(rows):
        for place, tile in enumerate(row):
            top, left = down * (high + gap), place * (wide + gap)
            # An infinite element is drawn like NaN, so that it differs from a gap.
            whole[top : top + high, left : left + wide] = np.where(np.isfinite(tile), tile, np.nan)
    return whole


def show(axes: Axes, array: np.ndarray, kind: str) -> None:
    """Draw tiles on a scale of their own, whose ends are written below. An image goes from its
    least element to its largest; values of both signs are symmetric; all else begins at 0."""
    tiles = tiled(array, LAYER if kind == GRADIENT else kind)
    colours, low, high = scale(tiles, kind)
    shares = np.clip((tiles - low) / ((high - low) or 1), 0, 1)
    rgb = shares if tiles.ndim == 3 else colours(shares)[..., :3]
    rgb[np.isneginf(tiles)] = 1
    rgb[np.isnan(tiles)] = to_rgb(style.VERMILION)
    axes.imshow(rgb, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"{low:.3g} to {high:.3g}", size=style.SMALL, labelpad=2)


def scale(tiles: np.ndarray, kind: str) -> tuple[Colormap, float, float]:
    """Return the colours of a picture, and the values at their ends."""
    finite = tiles[np.isfinite(tiles)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if kind in (KERNEL, GRADIENT) or (kind == LAYER and low < 0):
        return SIGNED, -max(-low, high), max(-low, high)
    return GREY, 0.0 if kind == LAYER else low, high


def size_of(item: FeatureMap) -> str:
    """Return the shape of a map, and how much of it is drawn."""
    high, wide, *channels = item.shape
    shown = item.array.shape[2:]
    rest = "" if shown == tuple(channels) else f", {' x '.join(map(str, shown))} shown"
    if item.kind == KERNEL:
        about = f"{channels[0]} in (down), {channels[1]} out"
    else:
        about = "fed" if item.kind == IMAGE else plural(channels[0], "channel")
    return f"{high} x {wide}, {about}{rest}"


def draw_classes(left: Axes, right: Axes, record: Probabilities) -> None:
    """Draw a bar for each class, and next to it its gradient."""
    classes = range(len(record.array))
    origin = "probabilities" if record.computed else "its softmax, the probabilities"
    bars(left, record.array, percent, [(style.PALE, style.BLUE)[n == record.best] for n in classes])
    left.set_title(f"{style.short_name(record.name)}: {origin}")
    left.set_yticks(classes, [f"{n} label" if n == record.label else f"{n}" for n in classes])
    if (gradient := begun(right, record.gradient)) is not None:
        signs = [style.BLUE if value < 0 else style.ORANGE for value in gradient]
        bars(right, gradient, "{:+#.2g}".format, signs)


def bars(
    axes: Axes, values: np.ndarray, words: Callable[[float], str], colours: Sequence[str]
) -> None:
    """Draw a bar with its number at the end for each class, from top to bottom."""
    lengths = np.nan_to_num(values, nan=0, posinf=0, neginf=0)
    drawn = axes.barh(range(len(values)), lengths, color=colours)
    axes.bar_label(drawn, list(map(words, values.tolist())), padding=3, size=style.SMALL)
    axes.margins(x=0.3)
    axes.invert_yaxis()
    axes.set(xticks=[], yticks=[])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
