"""Maps: what of a recorded step can be drawn, for the first row of its batch, computed as the
program defines it.

Arrays are NumPy's, of float32, and at most so large as they are drawn; they are in no JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `--help` does without NumPy, which takes as long as all the rest
    import numpy as np

IMAGE, LAYER, KERNEL = "image", "layer", "kernel"  # kinds of a map


@dataclass(frozen=True, eq=False)  # two arrays are not simply equal
class FeatureMap:
    """An image that was fed, what a node made of it, or the kernel of a convolution."""

    name: str  # of the user's node or variable
    kind: str
    shape: tuple[int, ...]  # height, width, channels; of a kernel height, width, inputs, channels
    array: np.ndarray = field(repr=False)  # the same, with the first channels alone
    # Of the loss, by these elements; None where the step did not compute it
    gradient: np.ndarray | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class Probabilities:
    """What the network thinks of the image: a probability for each class."""

    name: str  # of the node with the scores (logits), or with the probabilities
    computed: bool  # by the step; else the softmax of the step's scores, which tflab has taken
    array: np.ndarray = field(repr=False)
    gradient: np.ndarray | None = field(repr=False)  # by the output of the node
    label: int | None  # the class that was fed

    @property
    def best(self) -> int | None:
        """The most likely class; None where not all are finite."""
        finite = all(map(isfinite, self.array))
        return int(self.array.argmax()) if finite else None


@dataclass(frozen=True, eq=False)
class Maps:
    """The maps in the order in which the user's program made their nodes."""

    maps: tuple[FeatureMap, ...]
    probabilities: Probabilities | None
    left_out: int  # maps that the step computed and that are too many or too large to be drawn
