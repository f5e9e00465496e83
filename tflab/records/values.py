"""Values: the program's values in one step, which is not timed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from tflab.records.graph import FORWARD, Shape, Source

if TYPE_CHECKING:  # `--help` does not need NumPy, which takes as long to import as everything else
    import numpy as np

FED, VARIABLE, CONSTANT, COMPUTED = "fed", "variable", "constant", "computed"  # kinds of a value
UPDATE = "update"  # of non-finite values also: a variable, by the node that updates it


@dataclass(frozen=True)
class Statistics:
    """The elements of a tensor, and their statistics.

    Mean, minimum and maximum are those of the finite elements; None if there are none, or if the
    elements are not real numbers.
    """

    values: tuple[Any, ...] | None  # in row-major order; None if there are too many to keep
    mean: float | None
    min: float | None
    max: float | None
    not_finite: int  # elements that are NaN or infinite


@dataclass(frozen=True)
class Value(Statistics):
    """A tensor of the program. A variable has its value before the step."""

    tensor: str  # `x:0` for a feed, `y` for a variable, otherwise the output of a node: `mul:0`
    node: str  # that it comes from
    op: str
    kind: str  # fed, variable, constant or computed
    dtype: str
    shape: Shape
    after: Statistics | None  # of a variable: after the step
    phase: str = field(default=FORWARD, metadata={"json": None})  # of the node


@dataclass(frozen=True)
class NotFinite:
    """A tensor with NaN or infinite elements that were computed from finite ones alone."""

    tensor: str  # for an update, the variable
    node: str
    op: str
    kind: str  # fed, variable, constant, computed or update
    nan: int  # elements
    infinite: int
    size: int
    source: Source | None  # the user's line
    derives: str | None  # for a gradient node, the forward node


@dataclass(frozen=True)
class ValuesStep:
    """The step that computed the values, and what is missing from them."""

    which: str
    ns: int | None  # time of its session; None if it did not run
    notes: tuple[str, ...]  # what could not be fetched, or why there are no values
    not_finite: tuple[str, ...]  # fetched tensors, and variables after the step


# The tensors that can be drawn, for the first row of the batch, as the program defines them. Arrays
# are NumPy's, of float32, no larger than they are drawn; they are not in JSON.

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
        """Return the most likely class; None if not all are finite."""
        finite = all(map(isfinite, self.array))
        return int(self.array.argmax()) if finite else None


@dataclass(frozen=True, eq=False)
class Maps:
    """The maps, in the order in which the program made their nodes."""

    maps: tuple[FeatureMap, ...]
    probabilities: Probabilities | None
    left_out: int  # computed maps that are too many or too large to be drawn
