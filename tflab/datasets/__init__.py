"""Data sets: named columns of equal length, and their batches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflab.errors import TflabError, UsageError


@dataclass(frozen=True)
class Whole:
    """A column that is not divided into batches: each batch gets all of it."""

    value: np.ndarray
    rows: int  # the length of the other columns

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self.value


Column = np.ndarray | Whole


def first_rows(column: Column, rows: int) -> Column:
    """Return the first rows of a column."""
    return replace(column, rows=rows) if isinstance(column, Whole) else column[:rows]


@dataclass(frozen=True)
class Dataset:
    name: str  # "MNIST", or "digits, not MNIST"
    split: str  # "train" or "test"
    columns: Mapping[str, Column]  # all equally long along axis 0
    stands_in_for: str | None = None  # the data set that this one replaces

    def __post_init__(self) -> None:
        rows = {name: len(column) for name, column in self.columns.items()}
        if len(set(rows.values())) != 1:
            raise TflabError(f"The columns of a data set differ in their lengths: {rows}.")

    @property
    def unit(self) -> str:
        """Return the name of a row: an image if a column is called so, otherwise a row."""
        return "row" if self.columns.keys().isdisjoint(("image", "images")) else "image"

    @property
    def size(self) -> int:
        return len(next(iter(self.columns.values())))


def slices(
    columns: Sequence[Column], start: int, stop: int, size: int
) -> Iterator[Sequence[np.ndarray]]:
    """Yield views of consecutive rows of every column; the last may be shorter."""
    for row in range(start, stop, size):
        yield [column[row : min(row + size, stop)] for column in columns]


def batches(dataset: Dataset, batch_size: int) -> Iterator[dict[str, np.ndarray]]:
    """Return endless batches of exactly `batch_size` rows in their stored order: the last batch of
    an epoch continues with the next. Do not write into them. Raises UsageError for fewer rows."""
    if not 1 <= batch_size <= dataset.size:
        raise UsageError(
            f"A batch of {batch_size} cannot be taken from the {dataset.size} rows of "
            f"{dataset.name} ({dataset.split}); choose a batch size from 1 to {dataset.size}."
        )
    return _cut(dataset, batch_size)  # a generator; the error above is raised at the call


def _cut(dataset: Dataset, batch_size: int) -> Iterator[dict[str, np.ndarray]]:
    left = np.arange(0)  # rows of the last epoch that are not yet in a batch
    while True:
        left = np.concatenate([left, np.arange(dataset.size)])
        while len(left) >= batch_size:
            rows, left = left[:batch_size], left[batch_size:]
            is_view = rows[0] <= rows[-1]  # nothing is copied
            chosen = slice(rows[0], rows[-1] + 1) if is_view else rows
            yield {name: column[chosen] for name, column in dataset.columns.items()}


def centred(pixels: np.ndarray, brightest: int, side: int) -> np.ndarray:
    """Return grey images [n, h, h] put into black ones: float32 [n, side, side, 1] of 0..1."""
    height = pixels.shape[1]
    margin = (side - height) // 2
    images = np.zeros((len(pixels), side, side, 1), np.float32)
    inside = slice(margin, margin + height)
    np.divide(pixels, brightest, out=images[:, inside, inside, 0], dtype=np.float32)
    return images
