"""Maps: the tensors of a recorded step that can be drawn, for the first row of its batch, as the
program defines them.

Arrays are NumPy's, of float32, no larger than they are drawn; they are not in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `--help` does not need NumPy, which takes as long to import as everything else
    import numpy as np

IMAGE, LAYER, KERNEL = "image", "layer", "kernel"  # kinds of a map


@dataclass(frozen=True, eq=False)  # arrays have no single truth value for ==
class FeatureMap:
    """A fed image, the output of a node that depends on it, or the kernel of a convolution."""

    name: str  # of the user's node or variable
    kind: str
    shape: tuple[int, ...]  # height, width, channels; of a kernel: height, width, inputs, channels
    array: np.ndarray = field(repr=False)  # the same, but only the first channels
    # Of the loss with respect to these elements; None if the step did not compute it
    gradient: np.ndarray | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The result of the network for the image: a probability for each class."""

    name: str  # of the node with the scores (logits), or with the probabilities
    computed: bool  # by the step; otherwise tflab computed the softmax of the step's scores
    array: np.ndarray = field(repr=False)
    gradient: np.ndarray | None = field(repr=False)  # with respect to the output of the node
    label: int | None  # the class that was fed

    @property
    def best(self) -> int | None:
        """The most likely class; None if not all are finite."""
        finite = all(map(isfinite, self.array))
        return int(self.array.argmax()) if finite else None


@dataclass(frozen=True, eq=False)
class Maps:
    """The maps, in the order in which the program made their nodes."""

    maps: tuple[FeatureMap, ...]
    probabilities: Probabilities | None
    left_out: int  # computed maps that are too many or too large to be drawn
