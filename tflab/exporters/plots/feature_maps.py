"""Feature maps: what a network computed for one image, layer by layer, and its gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
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
NO_GRADIENT = "not computed: no variable's\ngradient needs it"


@style.applied()
def draw(maps: Maps) -> Figure:
    """A row for the image, for each layer and kernel in the order of the network, and for the
    probabilities: on the left the values, on the right their gradients."""
    record = maps.probabilities
    if not maps.maps and record is None:
        return style.message("No feature maps", "The step computed no images.")
    pictures = [(item, tiled(item.array, item.kind)) for item in maps.maps]
    heights = [
        NAME + min(TALLEST, COLUMN * tiles.shape[0] / max(tiles.shape[:2])) for _, tiles in pictures
    ]
    if record:
        heights.append(NAME + CLASS * len(record.array))
    figure, _ = style.canvas(headline(maps), caption(maps), sum(heights) + 0.2, panels=0)
    rows: list[tuple[Axes, Axes]] = [
        tuple(row) for row in figure.subplots(len(heights), 2, squeeze=False, height_ratios=heights)
    ]
    for (left, right), (item, tiles) in zip(rows, pictures, strict=False):
        head(left, f"{style.short_name(item.name)}: {about(item)}")
        show(left, tiles, item.kind)
        if item.kind == IMAGE:
            right.set_axis_off()
        else:
            draw_gradient(right, item)
    if record:
        draw_classes(*rows[-1], record)
    return style.settled(figure)


def head(axes: Axes, words: str) -> None:
    axes.set_title(words, loc="left", size=style.SMALL, pad=3)


def draw_gradient(axes: Axes, item: FeatureMap) -> None:
    """Draw a gradient, or say why there is none."""
    head(axes, "gradient of the loss")
    if item.gradient is None:
        axes.set_axis_off()
        axes.text(0, 0.5, NO_GRADIENT, transform=axes.transAxes, size=style.SMALL)
    else:
        show(axes, tiled(item.gradient, item.kind), GRADIENT)


def tiled(array: np.ndarray, kind: str) -> np.ndarray:
    """Return an image as it is; channels as tiles in rows of ACROSS; a kernel with a row for each
    channel that goes in and a column for each that comes out. Gaps between tiles are -inf."""
    if kind == IMAGE:
        return array[..., 0] if array.shape[-1] != 3 else array
    if kind == KERNEL:
        rows = [list(np.moveaxis(inputs, -1, 0)) for inputs in np.moveaxis(array, 2, 0)]
    else:
        tiles = list(np.moveaxis(array, -1, 0))
        rows = [tiles[start : start + ACROSS] for start in range(0, len(tiles), ACROSS)]
    high, wide = rows[0][0].shape
    gap = max(1, round(GAP * max(high, wide)))
    whole = np.full(
        (len(rows) * (high + gap) - gap, max(map(len, rows)) * (wide + gap) - gap), -np.inf
    )
    for down, row in enumerate(rows):
        for across, tile in enumerate(row):
            top, left = down * (high + gap), across * (wide + gap)
            # An infinite element is drawn like NaN, so that it differs from a gap.
            whole[top : top + high, left : left + wide] = np.where(np.isfinite(tile), tile, np.nan)
    return whole


def show(axes: Axes, tiles: np.ndarray, kind: str) -> None:
    """Draw tiles on a scale of their own, whose ends are written below: an image from its least
    element to its largest, what has both signs symmetrically, all else from 0."""
    colours, low, high = scale(tiles, kind)
    shares = np.clip((tiles - low) / ((high - low) or 1), 0, 1)
    rgb = shares if tiles.ndim == 3 else colours(shares)[..., :3]
    rgb[np.isneginf(tiles)] = 1
    rgb[np.isnan(tiles)] = style.rgb(style.VERMILION)
    axes.imshow(rgb, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(f"{low:.3g} to {high:.3g}", size=style.SMALL, labelpad=2)


def scale(tiles: np.ndarray, kind: str) -> tuple[Colormap, float, float]:
    """Return the colours of a picture, and the values at their ends."""
    finite = tiles[np.isfinite(tiles)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if kind in (KERNEL, GRADIENT) or (kind == LAYER and low < 0):
        return SIGNED, -max(-low, high), max(-low, high)
    return GREY, 0.0 if kind == LAYER else low, high


def about(item: FeatureMap) -> str:
    """Return the shape of a map, and how much of it is drawn."""
    if item.kind == KERNEL:
        high, wide, inputs, channels = item.shape
        shown = item.array.shape[2:]
        rest = "" if shown == (inputs, channels) else f", {shown[0]} x {shown[1]} shown"
        return f"{high} x {wide}, {inputs} in (down), {channels} out{rest}"
    high, wide, channels = item.shape
    if item.kind == IMAGE:
        return f"{high} x {wide}, fed"
    rest = "" if item.array.shape[2] == channels else f", {item.array.shape[2]} shown"
    return f"{high} x {wide}, {plural(channels, 'channel')}{rest}"


def draw_classes(left: Axes, right: Axes, record: Probabilities) -> None:
    """Draw a bar for each class, and next to it its gradient."""
    origin = "probabilities" if record.computed else "its softmax, the probabilities"
    head(left, f"{style.short_name(record.name)}: {origin}")
    head(right, "gradient of the loss")
    classes = range(len(record.array))
    names = [f"{n} label" if n == record.label else f"{n}" for n in classes]
    colours = [style.BLUE if n == record.best else style.PALE for n in classes]
    shares = np.nan_to_num(record.array, nan=0, posinf=0, neginf=0)
    words = [percent(share) if np.isfinite(share) else f"{share}" for share in record.array]
    bars(left, shares, words, colours)
    left.set_yticks(classes, names)
    if record.gradient is None:
        right.set_axis_off()
        right.text(0, 0.5, NO_GRADIENT, transform=right.transAxes, size=style.SMALL)
        return
    gradient = np.nan_to_num(record.gradient, nan=0, posinf=0, neginf=0)
    colours = [style.BLUE if value < 0 else style.ORANGE for value in gradient]
    bars(right, gradient, [f"{value:+#.2g}" for value in record.gradient], colours)
    right.set_yticks([])


def bars(axes: Axes, lengths: np.ndarray, words: list[str], colours: list[str]) -> None:
    """Draw a bar with words at its end for each class, from top to bottom."""
    drawn = axes.barh(range(len(lengths)), lengths, color=colours)
    axes.bar_label(drawn, words, padding=3, size=style.SMALL)
    axes.margins(x=0.3)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


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
    return " ".join(sentences(maps))


def sentences(maps: Maps) -> Iterator[str]:
    """Yield what is shown, what the colours mean, and what is missing."""
    yield (
        "This is the first step after initialisation, for the first image of its batch. It ran "
        "without graph passes, so that each node computes what the program defines. A kernel's "
        "gradient is for the whole batch. Each picture has its own scale, written below it."
    )
    used = [scale(item.array, item.kind)[0] for item in maps.maps]
    if GREY in used:
        yield "Grey: from the least value in black to the largest in white."
    if SIGNED in used or any(item.gradient is not None for item in maps.maps):
        yield "Blue is below 0, white is 0, orange is above 0."
    if any(map(has_bad_elements, maps.maps)):
        yield "Vermilion: NaN or infinite."
    if maps.left_out:
        verb = "is" if maps.left_out == 1 else "are"
        yield f"{plural(maps.left_out, 'more map')} {verb} too many or too large to be drawn."


def has_bad_elements(item: FeatureMap) -> bool:
    """Return True if any element of a map or of its gradient is not finite."""
    arrays = [item.array] if item.gradient is None else [item.array, item.gradient]
    return not all(np.isfinite(array).all() for array in arrays)
