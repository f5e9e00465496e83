"""Synthetic: images of CIFAR-10's shape with coloured stripes, ten classes by their direction.

To distinguish them a network has to find edges between any two colours, at any place and of any
width. Their accuracy says nothing about CIFAR-10, for which they stand in.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tflab.datasets import Dataset, files
from tflab.errors import TflabError

SIDE = 32
CLASSES = 10  # 18 degrees apart
ROWS = {"train": 5_000, "test": 10_000}
CYCLES = (2.0, 5.0)  # periods across an image: stripes of 3 to 8 pixels
NOISE = 0.1  # standard deviation, in a range of 0..1


def load(split: str, data_dir: str | Path | None = None) -> Dataset:
    """Return columns `images`, float32 [n, 32, 32, 3] of 0..1, and `labels`, int32 [n]."""
    if split not in ROWS:
        raise TflabError(f"No split named {split!r}; choose from {', '.join(ROWS)}.")
    files.announce("Using made-up stripes of CIFAR-10's shape, not CIFAR-10.")
    rng = np.random.default_rng(sorted(ROWS).index(split))
    count = ROWS[split]
    labels = rng.integers(0, CLASSES, count)
    directions = labels * (np.pi / CLASSES)
    across = 2 * np.pi * rng.uniform(*CYCLES, count)
    phases = rng.uniform(0, 2 * np.pi, (count, 1))
    along = (across * np.cos(directions), across * np.sin(directions))  # a column, a row
    row, column = np.mgrid[:SIDE, :SIDE].reshape(2, SIDE * SIDE).astype(np.float32) / SIDE
    angles = np.outer(along[0], column) + np.outer(along[1], row) + phases
    share = (1 + np.sin(angles.astype(np.float32))[..., None]) / 2  # of one colour
    first, second = rng.uniform(0, 1, (2, count, 1, 3)).astype(np.float32)
    images = second + share * (first - second)
    images += NOISE * rng.standard_normal(images.shape, np.float32)
    np.clip(images, 0, 1, out=images)
    columns = {
        "images": images.reshape(count, SIDE, SIDE, 3),
        "labels": labels.astype(np.int32),
    }
    return Dataset("made-up stripes, not CIFAR-10", split, columns, stands_in_for="CIFAR-10")
