"""Mosaic: the channels of an array as tiles of one image, and the colours of its elements.

What has no negative elements is grey, from 0 in black to the largest in white. What has both signs
is white at 0, blue below it and orange above: of these two orange is the lighter one in grey, too.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_rgb
from PIL import Image

from tflab.exporters.plots import style

PAPER, FRAME = 255, 205  # between tiles, and around those that may be white at their edge
TILE = 56  # pixels of a tile, about: each element is that much enlarged
NEGATIVE, POSITIVE, BAD = (
    np.array(to_rgb(color)) for color in (style.BLUE, style.ORANGE, style.VERMILION)
)
ALONE = 256  # pixels, about, of a smaller image in a file of its own
ROOT = 0.5  # signed elements are coloured by their root, or a few large ones would hide the rest


@dataclass(frozen=True, eq=False)
class Mosaic:
    """Tiles as an image [height, width, red, green, blue] of bytes, and what its colours mean."""

    pixels: np.ndarray
    columns: int
    rows: int
    low: float
    high: float
    signed: bool


def of_channels(array: np.ndarray, most: int, *, signed: bool = False) -> Mosaic:
    """A tile for each channel of [height, width, channels], `most` beside one another."""
    tiles = np.moveaxis(array, -1, 0)
    columns = min(most, len(tiles))
    return of_tiles([tiles[at : at + columns] for at in range(0, len(tiles), columns)], signed)


def of_kernel(array: np.ndarray) -> Mosaic:
    """A row of tiles for each channel that goes in, a column for each that comes out."""
    return of_tiles(list(np.moveaxis(array, (2, 3), (0, 1))), True)


def of_image(array: np.ndarray) -> Mosaic:
    """An image as it is, in grey or in colour, from its least element to its largest."""
    low, high = span(array)
    shares = np.clip((np.nan_to_num(array) - low) / ((high - low) or 1), 0, 1)
    rgb = shares if array.shape[-1] == 3 else np.repeat(shares[..., :1], 3, axis=-1)
    return Mosaic(np.round(rgb * 255).astype(np.uint8), 1, 1, low, high, False)


def of_tiles(rows: list[np.ndarray], signed: bool) -> Mosaic:
    """Rows of tiles with a gap between them. They share one scale."""
    columns, (height, width) = max(map(len, rows)), rows[0].shape[1:]
    spans = [span(row) for row in rows]
    low, high = min(least for least, _ in spans), max(largest for _, largest in spans)
    signed = signed or low < 0
    low = low if signed else 0.0  # which is black
    zoom = max(1, round(TILE / max(height, width)))
    tall, wide = height * zoom + 2, width * zoom + 2  # with a frame of one pixel
    gap = max(3, round(max(tall, wide) / 12))
    shape = (len(rows) * (tall + gap) - gap, columns * (wide + gap) - gap, 3)
    pixels = np.full(shape, PAPER, np.uint8)
    for down, row in enumerate(rows):
        for across, tile in enumerate(row):
            top, left = down * (tall + gap), across * (wide + gap)
            place = pixels[top : top + tall, left : left + wide]
            place[:] = FRAME
            coloured = colours(tile, low, high, signed)
            place[1:-1, 1:-1] = coloured.repeat(zoom, axis=0).repeat(zoom, axis=1)
    return Mosaic(pixels, columns, len(rows), low, high, signed)


def span(array: np.ndarray) -> tuple[float, float]:
    """The least and the largest of the finite elements."""
    finite = array[np.isfinite(array)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def colours(array: np.ndarray, low: float, high: float, signed: bool) -> np.ndarray:
    """Bytes of red, green and blue; vermilion where an element is not finite."""
    finite = np.where(np.isfinite(array), array, 0.0).astype(np.float64)
    if signed:
        most = max(-low, high) or 1
        strength = (np.abs(finite) / most)[..., None] ** ROOT
        ends = np.where((finite < 0)[..., None], NEGATIVE, POSITIVE)
        rgb = 1 - strength * (1 - ends)
    else:
        rgb = np.repeat((finite / (high or 1))[..., None], 3, axis=-1)
    rgb = np.where(np.isfinite(array)[..., None], rgb, BAD)
    return np.round(np.clip(rgb, 0, 1) * 255).astype(np.uint8)


def strip(mosaic: Mosaic) -> np.ndarray:
    """The colours of the scale from its low end to its high one, a pixel high."""
    ends = (-limit(mosaic), limit(mosaic)) if mosaic.signed else (0.0, mosaic.high)
    values = np.linspace(*ends, 64)[None]
    return colours(values, *ends, mosaic.signed)


def limit(mosaic: Mosaic) -> float:
    """How far the scale of signed elements reaches to both sides."""
    most = max(-mosaic.low, mosaic.high)
    return most if math.isfinite(most) else 0.0


def png(mosaic: Mosaic) -> bytes:
    """The tiles as a file of their own, in which those of a small image are enlarged."""
    zoom = max(1, ALONE // max(mosaic.pixels.shape[:2]))
    out = io.BytesIO()
    enlarged = mosaic.pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
    Image.fromarray(enlarged).save(out, "PNG")
    return out.getvalue()
