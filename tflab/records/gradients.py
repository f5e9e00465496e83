"""Gradients: what the nodes that differentiation added mean, and the derivatives they compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tflab.records.graph import Source


@dataclass(frozen=True)
class GradientCall:
    """One call of a gradient function: the gradients by its op's outputs that it was given, and
    those by the op's inputs that it returned, as tensors; None where there was none."""

    forward: str
    incoming: tuple[str | None, ...]
    returned: tuple[str | None, ...]


@dataclass(frozen=True)
class GradientNode:
    """What one of the nodes is for that start, compute or add up gradients."""

    name: str
    # Over forward nodes and the gradients that come in: `x * dL/d(mul)`; "" where no formula was
    # found that gives the node's value
    formula: str
    towards: str | None  # `dL/dy`: the gradient that it leads to
    complete: bool  # whether it is that gradient, and not only on the way
    used: bool  # whether the gradient of a variable needs it
    bookkeeping: str | None  # the kind, where it computes nothing of the formula
    line: Source | None  # of the framework, that made it


@dataclass(frozen=True)
class Link:
    """One step of the chain rule: from the gradient by an op's output to that by an input."""

    forward: str  # `error`
    computes: str  # `(add - targets)**2`; "" where no formula gives its value
    by: str  # the input: `add`
    source: str  # the node from which the input comes
    gradient: str  # `dL/d(add)`
    formula: str  # `2 * dL/d(error) * (add - targets)`; "" where none gives that gradient
    factor: str | None  # what the incoming gradient is multiplied by; None: no simple product
    added_up: bool  # whether the product is added up, because the op had used the input repeatedly
    alone: bool  # whether one gradient came in, and nothing else adds to the one that goes out


@dataclass(frozen=True)
class Derivative:
    """The derivative of the loss by a variable, where a formula gives its value."""

    variable: str
    # Read off the gradient graph, from the variable towards the loss as far as it gives the value
    formula: str
    value: Any  # computed by that graph for the first batch: a number, or a list as the variable
    difference: float | None  # largest |value - finite difference|; None where there is none
    checked: float  # largest |value - the formula, evaluated on the same batch and variables|
    # The gradients in the formula that stand there by name (`dL/d(MatMul)`): how those are computed
    # is not written as a formula
    unwritten: tuple[str, ...] = field(metadata={"json": None})
    # Of the graph as it was written, that is this derivative
    tensor: str = field(metadata={"json": None})
    # The variable's own value in that run; None where it could not be read
    start: Any = field(metadata={"json": None})


@dataclass(frozen=True)
class FlowedDerivative:
    """A derivative, and the numbers that the recorded step had in its place."""

    variable: str
    formula: str
    value: Any  # as in Derivative, whose run was another than the recorded step
    tensor: str | None  # of the graph that ran, that held it; None where none did by itself
    flowed: Any  # what that tensor held, as the value
    difference: float | None  # largest |value - flowed|; None where they cannot be compared
