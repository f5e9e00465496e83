"""Gallery: images in rows, each framed by whether the network read it right. No TensorFlow.

What is right has a thin blue-green frame, what is wrong a thick vermilion one: the two colours are
those of Okabe and Ito that the colour-blind tell apart, and caption and width say it once more.
"""

from __future__ import annotations

import functools
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

COLUMNS = 10
SIDE = 76  # pixels of a frame and all within
INSET = 6  # pixels from there to the image: paper shows between them, whatever the image's colours
GAP = 10
CAPTION = 20  # pixels of the line below
RIGHT, WRONG = "#009E73", "#D55E00"
THIN, THICK = 2, 4  # pixels of a frame
LETTERS = 14  # pixels of their height
PAPER, INK = "#FFFFFF", "#222222"


@dataclass(frozen=True)
class Picture:
    png: bytes
    width: int
    height: int


def draw(images: np.ndarray, read: np.ndarray, labels: np.ndarray) -> Picture:
    """Images [n, height, width, 1 or 3] of any range, what they were read as, and what they are."""
    tiles = shades(images)
    columns = min(COLUMNS, len(tiles))
    rows = -(-len(tiles) // columns)
    width = GAP + columns * (SIDE + GAP)
    height = GAP + rows * (SIDE + CAPTION + GAP)
    sheet = Image.new("RGB", (width, height), PAPER)
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        place = (GAP + column * (SIDE + GAP), GAP + row * (SIDE + CAPTION + GAP))
        hang(sheet, place, tile, int(read[index]), int(labels[index]))
    png = io.BytesIO()
    sheet.save(png, "PNG")
    return Picture(png.getvalue(), width, height)


def shades(images: np.ndarray) -> np.ndarray:
    """As bytes, three channels: black is the least value of all, white the greatest."""
    least, greatest = float(images.min()), float(images.max())
    scaled = (images - least) * (255 / ((greatest - least) or 1))
    return np.broadcast_to(scaled.astype(np.uint8), (*images.shape[:3], 3))


def hang(
    sheet: Image.Image, place: tuple[int, int], tile: np.ndarray, read: int, label: int
) -> None:
    """One image in its frame, with `7` below where it was read right, else `9, is 7`."""
    left, top = place
    colour, frame, caption = RIGHT, THIN, str(read)
    if read != label:
        colour, frame, caption = WRONG, THICK, f"{read}, is {label}"
    brush = ImageDraw.Draw(sheet)
    brush.rectangle((left, top, left + SIDE - 1, top + SIDE - 1), outline=colour, width=frame)
    inside = SIDE - 2 * INSET
    picture = Image.fromarray(tile).resize((inside, inside), Image.Resampling.LANCZOS)
    sheet.paste(picture, (left + INSET, top + INSET))
    below = (left + SIDE // 2, top + SIDE + CAPTION // 2)
    brush.text(below, caption, fill=INK, anchor="mm", font=font())


@functools.cache
def font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(LETTERS)  # it comes with Pillow
