"""Gradients: the meaning of the nodes that differentiation added, and the derivatives that they
compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tflab.records.graph import Source


@dataclass(frozen=True)
class GradientCall:
    """One call of a gradient function: the gradients with respect to the op's outputs that it
    received, and those with respect to the op's inputs that it returned, as tensors; None if
    there was none."""

    forward: str
    incoming: tuple[str | None, ...]
    returned: tuple[str | None, ...]


@dataclass(frozen=True)
class GradientNode:
    """The purpose of a node that starts, computes or adds up gradients."""

    name: str
    # In terms of forward nodes and incoming gradients: `x * dL/d(mul)`; "" if no formula gives the
    # node's value
    formula: str
    towards: str | None  # `dL/dy`: the gradient that it leads to
    complete: bool  # whether it is that gradient, and not only a step towards it
    used: bool  # whether the gradient of a variable needs it
    bookkeeping: str | None  # the kind of bookkeeping, if it adds nothing to the formula


@dataclass(frozen=True)
class GradientStop:
    """A variable without a gradient, or with one of zeros, and an op at which its gradient ends."""

    variable: str
    node: str  # that op; "" if the loss does not depend on the variable
    op: str
    source: Source | None  # its line
    reason: str
    path: tuple[str, ...]  # the first nodes from the variable over that op to the loss


@dataclass(frozen=True)
class Link:
    """One step of the chain rule: from the gradient with respect to an op's output to that with
    respect to an input."""

    forward: str  # `error`
    computes: str  # `(add - targets)**2`; "" if no formula gives its value
    by: str  # the input: `add`
    source: str  # the node that the input comes from
    gradient: str  # `dL/d(add)`
    formula: str  # `2 * dL/d(error) * (add - targets)`; "" if no formula gives that gradient
    # whether one gradient came in, and nothing else contributes to the one that goes out
    alone: bool


@dataclass(frozen=True)
class Derivative:
    """The derivative of the loss with respect to a variable, if a formula gives its value."""

    variable: str
    formula: str  # from the gradient graph
    # computed by that graph for the first batch: a number, or a list of the variable's shape
    value: Any
    difference: float | None  # largest |value - finite difference|; None if there is none
    checked: float  # largest |value - the formula, evaluated on the same batch and variables|
