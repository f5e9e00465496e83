"""The stand-in for MNIST: the 1,797 handwritten digits that come with scikit-learn.

They were scanned at 8x8 pixels, so they are easier to learn and the accuracy says nothing about
MNIST. With them every command runs without an internet connection.
"""

import numpy as np

from tflab.datasets import Dataset, centred
from tflab.errors import TflabError

BRIGHTEST = 16  # the largest value: a pixel counts the dark dots in a 4x4 square of the scan
ENLARGED = 3  # 8 x 3 = 24 pixels in MNIST's 28, which leaves a border as in MNIST
ROWS = {  # in scikit-learn's order, which mixes the ten digits evenly
    "train": slice(0, 1500),
    "test": slice(1500, 1797),
}


def load(split: str, side: int = 32) -> Dataset:
    """The digits of a split, in the columns and shapes of `mnist.load`."""
    if split not in ROWS:
        raise TflabError(f"No split named {split!r}; choose from {', '.join(ROWS)}.")
    from sklearn.datasets import load_digits  # here, because it takes a second to import

    bundled = load_digits()
    pixels = bundled.images[ROWS[split]].astype(np.uint8)
    enlarged = pixels.repeat(ENLARGED, axis=1).repeat(ENLARGED, axis=2)
    return Dataset(
        name="digits, not MNIST",
        split=split,
        columns={
            "images": centred(enlarged, BRIGHTEST, side),
            "labels": bundled.target[ROWS[split]].astype(np.int32),
        },
        stands_in_for="MNIST",
    )
