"""Prediction images: test images in rows, with the predicted class below each.

A right prediction has a blue-green frame, a wrong one a vermilion frame and the right class beside
it. The colours are two of Okabe and Ito's that the colour-blind can distinguish.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tflab.cli import environment
from tflab.records.options import Program

if TYPE_CHECKING:
    from PIL import Image

# A picture is as wide as TensorBoard shows it, so that its letters keep their size
SHOWN, COLUMNS = 20, 5  # images in a picture, and in a row
SIDE, FRAME, GAP, CAPTION = 64, 4, 6, 26  # pixels: an image, its frame, between two, below one
RIGHT, WRONG = "#009E73", "#D55E00"
LETTERS = 18  # pixels, the height of letters


def pictures(program: Program, predicted: np.ndarray) -> Iterator[tuple[str, Image.Image]]:
    """Yield pictures of the first test images and of the first mistakes, if the model classifies
    images [n, height, width, 1 or 3], and there is a package that draws them."""
    columns = program.dataset("test").columns
    fed = [columns[name] for name in program.model.feeds.values()]
    arrays = (column for column in fed if isinstance(column, np.ndarray) and column.ndim == 4)
    images = next((array for array in arrays if array.shape[-1] in (1, 3)), None)
    if images is None or predicted.ndim > 1 or environment.missing("PIL"):
        return
    labels = columns["labels"]
    mistakes = np.flatnonzero(predicted != labels)
    for tag, rows in (("first", np.arange(len(predicted))[:SHOWN]), ("mistakes", mistakes[:SHOWN])):
        if len(rows):
            yield f"predictions/{tag}", draw(images[rows], predicted[rows], labels[rows])


def draw(images: np.ndarray, predicted: np.ndarray, labels: np.ndarray) -> Image.Image:
    """Draw images [n, height, width, 1 or 3] of any range, with `7` below a right one and
    `9, is 7` below a wrong one. The least value is black, the greatest white."""
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    least, most = float(images.min()), float(images.max())
    scaled = ((images - least) * (255 / ((most - least) or 1))).astype(np.uint8)
    width, height = SIDE + 2 * FRAME + GAP, SIDE + 2 * FRAME + CAPTION
    rows = -(-len(images) // COLUMNS)
    sheet = Image.new("RGB", (min(COLUMNS, len(images)) * width, rows * height), "white")
    brush, font = ImageDraw.Draw(sheet), ImageFont.load_default(LETTERS)
    for index, image in enumerate(np.broadcast_to(scaled, (*images.shape[:3], 3))):
        row, column = divmod(index, COLUMNS)
        found, label = int(predicted[index]), int(labels[index])
        colour, words = (RIGHT, f"{found}") if found == label else (WRONG, f"{found}, is {label}")
        picture = Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        sheet.paste(ImageOps.expand(picture, FRAME, colour), (column * width, row * height))
        middle = (column * width + FRAME + SIDE // 2, (row + 1) * height - CAPTION // 2)
        brush.text(middle, words, fill="black", anchor="mm", font=font)
    return sheet
