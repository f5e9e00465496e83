"""Values: the numbers of one step, which was recorded and not timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from tflab.records.graph import Shape, Source

if TYPE_CHECKING:  # `--help` does not need NumPy, which takes as long to import as everything else
    import numpy as np

FED, VARIABLE, CONSTANT, COMPUTED = "fed", "variable", "constant", "computed"  # kinds of a value
UPDATE = "update"  # of non-finite values also: a variable, by the node that updates it


@dataclass(frozen=True)
class Statistics:
    """The elements of a tensor, and their statistics.

    Mean, deviation, minimum and maximum are those of the finite elements; None if there are none,
    or if the elements are not real numbers.
    """

    values: tuple[Any, ...] | None  # in row-major order; None if there are too many to keep
    mean: float | None
    std: float | None  # standard deviation
    min: float | None
    max: float | None
    zeros: float | None  # share of the elements
    not_finite: int  # elements that are NaN or infinite


@dataclass(frozen=True)
class Value(Statistics):
    """A tensor of the recorded step. A variable has its value before the step."""

    tensor: str  # `x:0` for a feed, `y` for a variable, otherwise the output of a node: `mul:0`
    node: str  # that it comes from, in the graph that ran
    op: str  # the type that ran
    kind: str  # fed, variable, constant or computed
    dtype: str
    shape: Shape
    calls: int  # how often the step computed it; in a loop this is the last value
    after: Statistics | None  # of a variable: after the step
    moved: float | None  # of a variable: the largest change of an element
    # Whether the program's node of this name computes the same by definition; None if there is no
    # such node, or if the reference step cannot tell
    agrees: bool | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Defined(Value):
    """A tensor of the program as the program defines it: computed in the reference step, without
    graph passes."""

    held_by: str | None  # the tensor of the graph that ran with the same numbers, within rounding


@dataclass(frozen=True)
class Entered:
    """Finite elements that a node took where its output is not finite."""

    tensor: str
    elements: int  # of these
    size: int  # of the whole tensor
    zeros: int  # of these
    negative: int
    min: float
    max: float


@dataclass(frozen=True)
class NotFinite:
    """A tensor with NaN or infinite elements that were computed from finite ones alone."""

    tensor: str  # for an update, the variable
    node: str  # inside a function, its name there
    op: str
    kind: str  # fed, variable, constant, computed or update
    dtype: str
    nan: int  # elements
    infinite: int
    size: int
    call: int  # index, from 1, of this computation in the step; in a loop it may not be the first
    source: Source | None  # the user's line
    inside: str | None  # the node of the graph that calls the function which contains the node
    derives: str | None  # for a gradient node, the forward node
    overflow: bool  # whether the true result is finite but too large for its type
    entered: tuple[Entered, ...]
    optimised: bool  # whether it was found in the graph that ran; otherwise in the reference step


@dataclass(frozen=True)
class PathPoint:
    """The values of the variables after a number of steps."""

    step: int  # 0 is before the first
    loss: float | None  # computed by this step, with the variables before it
    variables: Mapping[str, float]


@dataclass(frozen=True)
class RecordedStep:
    """Which step was recorded, and what is missing from its values."""

    which: str  # step
    ns: int | None  # time of recording it, with its session; None if it was not recorded
    notes: tuple[str, ...]  # what could not be recorded, or why there are no values
    path: tuple[PathPoint, ...]  # of scalar variables, if their goal is known
    answer: Mapping[str, float]  # the values of the variables that generated the data
    # Fetched tensors, and variables after the step, that were not finite: in the step as it ran,
    # and in the reference step; None if there is none
    not_finite: tuple[str, ...] = ()
    reference_not_finite: tuple[str, ...] | None = None


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
        """The most likely class; None if not all are finite."""
        finite = all(map(isfinite, self.array))
        return int(self.array.argmax()) if finite else None


@dataclass(frozen=True, eq=False)
class Maps:
    """The maps, in the order in which the program made their nodes."""

    maps: tuple[FeatureMap, ...]
    probabilities: Probabilities | None
    left_out: int  # computed maps that are too many or too large to be drawn
