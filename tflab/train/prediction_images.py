"""Prediction images: test images in rows, each framed by whether its prediction is right.

A right prediction has a thin blue-green frame, a wrong one a thick vermilion one. The colours are
two of Okabe and Ito's that the colour-blind can distinguish; caption and width differ too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tflab.datasets import Column
from tflab.records.options import Program

SHOWN = 40  # images in a picture
COLUMNS = 10
SIDE = 76  # pixels, the width of a tile with its frame
INSET = 6  # pixels from the tile's edge to the image, so that frame and image do not touch
GAP = 10  # pixels between tiles
CAPTION = 20  # pixels, the height of the caption below a tile
RIGHT, WRONG = "#009E73", "#D55E00"
THIN, THICK = 2, 4  # pixels, the widths of frames
LETTERS = 14  # pixels, the height of letters
PAPER, INK = "#FFFFFF", "#222222"


def pictures(program: Program, predicted: np.ndarray) -> Iterator[tuple[str, Image.Image]]:
    """Yield pictures of the first test images and of the first mistakes, if the model classifies
    images."""
    columns = program.dataset("test").columns
    fed = [columns[column] for column in program.model.feeds.values()]
    images = next(filter(holds_images, fed), None)
    if images is None or predicted.ndim > 1:
        return
    labels = columns["labels"]
    for tag, rows in (
        ("first", np.arange(len(predicted))),
        ("mistakes", np.flatnonzero(predicted != labels)),
    ):
        shown = rows[:SHOWN]
        if len(shown):
            yield f"predictions/{tag}", draw(images[shown], predicted[shown], labels[shown])


def holds_images(column: Column) -> bool:
    """Return True for a column of grey or coloured images: [n, height, width, 1 or 3]."""
    return isinstance(column, np.ndarray) and column.ndim == 4 and column.shape[-1] in (1, 3)


def draw(images: np.ndarray, predicted: np.ndarray, labels: np.ndarray) -> Image.Image:
    """Draw images [n, height, width, 1 or 3] of any range, with predictions and labels."""
    tiles = rgb_bytes(images)
    columns = min(COLUMNS, len(tiles))
    rows = -(-len(tiles) // columns)
    width = GAP + columns * (SIDE + GAP)
    height = GAP + rows * (SIDE + CAPTION + GAP)
    sheet = Image.new("RGB", (width, height), PAPER)
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        corner = (GAP + column * (SIDE + GAP), GAP + row * (SIDE + CAPTION + GAP))
        draw_tile(sheet, corner, tile, int(predicted[index]), int(labels[index]))
    return sheet


def rgb_bytes(images: np.ndarray) -> np.ndarray:
    """Return images as bytes [n, height, width, 3]: the least value is black, the greatest
    white."""
    least, greatest = float(images.min()), float(images.max())
    scaled = (images - least) * (255 / ((greatest - least) or 1))
    return np.broadcast_to(scaled.astype(np.uint8), (*images.shape[:3], 3))


def draw_tile(
    sheet: Image.Image, corner: tuple[int, int], image: np.ndarray, predicted: int, label: int
) -> None:
    """Draw one image in its frame, with `7` below it, or `9, is 7` for a wrong prediction."""
    left, top = corner
    colour, frame, caption = RIGHT, THIN, str(predicted)
    if predicted != label:
        colour, frame, caption = WRONG, THICK, f"{predicted}, is {label}"
    brush = ImageDraw.Draw(sheet)
    brush.rectangle((left, top, left + SIDE - 1, top + SIDE - 1), outline=colour, width=frame)
    inner_side = SIDE - 2 * INSET
    picture = Image.fromarray(image).resize((inner_side, inner_side), Image.Resampling.LANCZOS)
    sheet.paste(picture, (left + INSET, top + INSET))
    caption_at = (left + SIDE // 2, top + SIDE + CAPTION // 2)
    brush.text(caption_at, caption, fill=INK, anchor="mm", font=font())


@functools.cache
def font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(LETTERS)  # it comes with Pillow
