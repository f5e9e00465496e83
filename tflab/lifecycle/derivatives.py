"""Derivatives: the formula of the loss's derivative with respect to each variable, and its value in
the gradient graph.

The formula is read from the graph that `tf.gradients` has added, and kept if it gives what that
graph computes. The value is that of the first batch and the initial values of the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import chain_rule, evaluation
from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Expression
from tflab.analysis.gradient_graph import GradientGraph
from tflab.lifecycle import check_points, gradient_check, graph_copies
from tflab.lifecycle.gradient_check import Checked
from tflab.lifecycle.gradients import Gradient, Pairs
from tflab.lifecycle.graph_copies import Copy
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
    copy: Copy,
    program: Program,
    pairs: Pairs,
    graph: GradientGraph,
    batch_size: int,
    costs: Checked,
) -> tuple[tuple[Derivative, ...], str]:
    """Return a derivative for each variable for which a formula gives it, and why others have none;
    none if a variable is too large.

    It is compared with central differences if `costs`, the check of the gradients, says that the
    loss has a slope and there is time.
    """
    pairs = [(g, v) for g, v in pairs if g is not None]
    if not all(isinstance(gradient, tf.Tensor) for gradient, _ in pairs):
        return (), ROWS
    if not all(map(simple, pairs)) or sum(size_of(variable) for _, variable in pairs) > MOST:
        return (), LARGE
    ends = {v.op.name: nodes.tensor_name(gradient) for gradient, v in pairs}
    formulas = chain_rule.derivatives(graph, ends)
    if not formulas:
        return (), NONE
    feeds, loss = check_points.batch_of(program, batch_size), program.loss.name
    names = check_points.names(set().union(*map(ex.tensors, formulas.values())))
    gradients = {v.op.name: gradient for gradient, v in pairs if v.op.name in formulas}
    fetches = {name: gradient.name for name, gradient in gradients.items()}
    copy.assign(copy.initial)
    values, named = copy.run((fetches, names), feeds)
    named = {name: np.asarray(value, np.float64) for name, value in named.items()}
    elements = {name: np.arange(np.size(value)) for name, value in values.items()}
    slopes: Mapping[str, np.ndarray] = {}
    count = sum(map(len, elements.values()))
    if costs.seconds is not None and gradient_check.affordable(count, costs.seconds) == count:
        slopes = gradient_check.slopes(copy, loss, copy.initial, feeds, elements)
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


def simple(pair: tuple[Gradient, tf.Variable]) -> bool:
    """Return whether a gradient is one tensor, of a small floating-point variable."""
    gradient, variable = pair
    floats = graph_copies.dtype_of(variable) in FLOATS
    return isinstance(gradient, tf.Tensor) and floats and size_of(variable) <= LARGEST


def size_of(variable: tf.Variable) -> int:
    shape = variable.shape
    return prod(shape.as_list()) if shape.is_fully_defined() else LARGEST + 1


def difference(value: np.ndarray, slopes: np.ndarray | None) -> float | None:
    """Return the largest distance of a gradient's elements from the finite differences; None if
    there are none, or one is not finite."""
    if slopes is None:
        return None
    distance = float(np.abs(np.asarray(value, np.float64).ravel() - slopes).max(initial=0))
    return distance if isfinite(distance) else None
