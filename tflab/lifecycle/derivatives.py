"""Derivatives: the formula of the loss's derivative with respect to each variable, and its value in
the gradient graph.

The formula is read from the graph that `tf.gradients` has added, and kept if it gives what that
graph computes. The value is that of the first batch and the initial values of the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import chain_rule, evaluation
from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Expression
from tflab.analysis.gradient_graph import GradientGraph
from tflab.lifecycle import check_points, gradient_check, graph_copies
from tflab.lifecycle.gradient_check import Pairs, Point
from tflab.lifecycle.graph_copies import Copy, Values
from tflab.records.gradients import Derivative
from tflab.records.options import Program
from tflab.runtime import nodes

LARGEST = 64  # elements of a variable: each costs two runs of the loss
MOST = 256  # over all variables
ROUNDING = 1e-3  # of the largest element: the gradients may be computed in float32
ROWS = "the gradient of a variable has only some of its rows, or is not a separate tensor"
LARGE = f"tflab writes formulas for at most {LARGEST} floats in a variable, and {MOST} in all"
NONE = (
    f"tflab has none with at most {chain_rule.LONGEST} names and ops that was seen to give the "
    "values"
)
FLOATS = (tf.float32, tf.float64)


def read(
    copy: Copy, program: Program, pairs: Pairs, graph: GradientGraph, batch_size: int
) -> tuple[tuple[Derivative, ...], str]:
    """Return a derivative for each variable for which a formula gives it, and why others have none;
    none if a variable is too large."""
    pairs = [(g, v) for g, v in pairs if g is not None]
    if not all(isinstance(gradient, tf.Tensor) for gradient, _ in pairs):
        return (), ROWS
    if not all(map(simple, pairs)) or sum(size_of(variable) for _, variable in pairs) > MOST:
        return (), LARGE
    ends = {v.op.name: nodes.tensor_name(gradient) for gradient, v in pairs}
    formulas = chain_rule.derivatives(graph, ends)
    if not formulas:
        return (), NONE
    point = Point(copy.initial, check_points.batch_of(program, batch_size))
    names = check_points.names(set().union(*map(ex.tensors, formulas.values())))
    gradients = {v.op.name: gradient for gradient, v in pairs if v.op.name in formulas}
    fetches = {name: gradient.name for name, gradient in gradients.items()}
    loss = program.loss.name
    copy.assign(point.variables)
    first, values, named = copy.run((loss, fetches, names), point.feeds)
    named = {name: np.asarray(value, np.float64) for name, value in named.items()}
    slopes = differences(copy, loss, point, first, values)
    known = (
        Derivative(
            variable=name,
            formula=ex.text(formula),
            value=np.asarray(values[name], gradients[name].dtype.as_numpy_dtype).tolist(),
            difference=difference(values[name], slopes.get(name)),
            checked=checked(formula, values[name], named),
        )
        for name, formula in formulas.items()
    )
    return tuple(row for row in known if row.checked <= ROUNDING * largest(row.value)), NONE


def differences(
    copy: Copy, loss: str, point: Point, first: Any, gradients: Values
) -> Mapping[str, np.ndarray]:
    """Return the central differences of the loss, which was computed once at this point; none if it
    has no slope, or takes too long."""
    elements = {name: np.arange(np.size(value)) for name, value in gradients.items()}
    count = sum(map(len, elements.values()))
    losses, seconds = gradient_check.losses_of(lambda: copy.run(loss, point.feeds))
    if gradient_check.no_slope_reason([first, *losses]):
        return {}
    if gradient_check.affordable(count, seconds) < count:
        return {}
    return gradient_check.slopes(copy, loss, point, elements)


def checked(formula: Expression, value: np.ndarray, values: Mapping[str, np.ndarray]) -> float:
    """Return the largest difference between a gradient's elements and the values of its formula."""
    try:
        result = evaluation.fitted(evaluation.evaluated(formula, values), value.shape)
    except (evaluation.UnknownError, ValueError):
        return float("inf")
    unequal = ~((result == value) | (np.isnan(result) & np.isnan(value)))
    return float(np.abs(result[unequal] - value[unequal]).max(initial=0))


def largest(value: Any) -> float:
    array = np.abs(np.asarray(value, np.float64))
    return float(array[np.isfinite(array)].max(initial=0))


def simple(pair: tuple[Any, Any]) -> bool:
    """Return whether a gradient is one tensor, of a small floating-point variable."""
    gradient, variable = pair
    floats = graph_copies.dtype_of(variable) in FLOATS
    return isinstance(gradient, tf.Tensor) and floats and size_of(variable) <= LARGEST


def size_of(variable: Any) -> int:
    shape = variable.shape
    return prod(shape.as_list()) if shape.is_fully_defined() else LARGEST + 1


def difference(value: np.ndarray, slopes: np.ndarray | None) -> float | None:
    """Return the largest distance of a gradient's elements from the finite differences."""
    if slopes is None:
        return None
    return float(np.abs(np.asarray(value, np.float64).ravel() - slopes).max(initial=0))
