"""Values: the numbers that flowed through one step, which was recorded and not timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tflab.records.graph import Shape, Source

FED, VARIABLE, CONSTANT, COMPUTED = "fed", "variable", "constant", "computed"  # kinds of a value
UPDATE = "update"  # and of what became not finite: a variable, by a node that updates it


@dataclass(frozen=True)
class Statistics:
    """The elements of a tensor, and what they come to.

    Mean, deviation, least and most are those of the finite elements; None where there are none, or
    where the elements are no real numbers.
    """

    values: tuple[Any, ...] | None  # row after row; None where there are too many to keep
    mean: float | None
    std: float | None  # standard deviation
    min: float | None
    max: float | None
    zeros: float | None  # share of the elements
    not_finite: int  # elements that are NaN or infinite


@dataclass(frozen=True)
class Value(Statistics):
    """A tensor of the recorded step. A variable has its value before the step."""

    tensor: str  # `x:0` of what is fed, `y` of a variable, else the output of a node: `mul:0`
    node: str  # that it comes from in the graph that ran
    op: str  # the type that ran
    kind: str  # fed, variable, constant or computed
    dtype: str
    shape: Shape
    calls: int  # how often the step computed it; in a loop this is the last time
    after: Statistics | None  # of a variable: after the step
    moved: float | None  # of a variable: the largest change of an element
    # Whether the program's node of this name computes the same by its definition; None where there
    # is no such node, or the reference step does not say
    agrees: bool | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Defined(Value):
    """A tensor of the program, computed as the program defines it: in the reference step, in which
    no graph pass changed anything."""

    held_by: str | None  # the tensor of the graph that ran with the same numbers, but for rounding


@dataclass(frozen=True)
class Entered:
    """Finite elements that went into a node where its output is not finite."""

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

    tensor: str  # of an update, the variable
    node: str  # within a function, as it is named there
    op: str
    kind: str  # fed, variable, constant, computed or update
    dtype: str
    nan: int  # elements
    infinite: int
    size: int
    call: int  # which of its computations in the step, from 1; in a loop it may not be the first
    source: Source | None  # the user's line behind the node
    inside: str | None  # the node of the graph that calls the function which the node is in
    derives: str | None  # of a gradient node, the forward node
    overflow: bool  # whether a finite result was too large for its type
    entered: tuple[Entered, ...]
    optimised: bool  # found in the graph that ran; else in the reference step


@dataclass(frozen=True)
class PathPoint:
    """Where the variables were after so many steps."""

    step: int  # 0 is before the first
    loss: float | None  # that this step computed, with the variables as they were before it
    variables: Mapping[str, float]


@dataclass(frozen=True)
class RecordedStep:
    """What belongs to the values of a step: which step, and what is not among them."""

    which: str  # step
    ns: int | None  # that recording it took, with its session; None where it was not recorded
    notes: tuple[str, ...]  # what could not be seen, or why there are no values
    path: tuple[PathPoint, ...]  # of scalar variables, where it is known where they should get to
    answer: Mapping[str, float]  # the values of variables with which the data were made
    # Fetched tensors, and variables after the step, that were not finite: as it ran, and in the
    # reference step; None where there is none
    not_finite: tuple[str, ...] = ()
    reference_not_finite: tuple[str, ...] | None = None
