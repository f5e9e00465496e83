"""Derivatives: the formula of the loss's derivative with respect to each variable, and its value in
the gradient graph.

The formula is read from the graph that `tf.gradients` has added, and kept if it gives what that
graph computes. The value is that of the first batch and the initial values of the variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import chain_rule, evaluation
from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Expression
from tflab.analysis.gradient_graph import GradientGraph
from tflab.errors import RefusedError
from tflab.lifecycle import gradient_check, graph_copies
from tflab.records.gradients import Derivative
from tflab.records.options import Options, Program
from tflab.runtime import nodes

LARGEST = 64  # elements of a variable: each costs two runs of the loss
MOST = 256  # over all variables
ROUNDING = 1e-3  # of the largest element: the gradients are computed in float32
ROWS = "the gradient of a variable has only some of its rows, or is not a separate tensor"
LARGE = f"tflab writes formulas for at most {LARGEST} floats in a variable, and {MOST} in all"
NONE = (
    f"tflab has none with at most {chain_rule.LONGEST} names and ops that was seen to give the "
    "values"
)
FLOATS = (tf.float32, tf.float64)


def read(
    program: Program, pairs: Sequence[Any], options: Options, graph: GradientGraph
) -> tuple[tuple[Derivative, ...], str]:
    """A derivative for each variable for which a formula gives it, and why others have none; none
    if a variable is too large."""
    pairs = [(g, v) for g, v in pairs if g is not None]
    if not all(isinstance(gradient, tf.Tensor) for gradient, _ in pairs):
        return (), ROWS
    if not all(map(simple, pairs)) or sum(size_of(variable) for _, variable in pairs) > MOST:
        return (), LARGE
    ends = {v.op.name: nodes.tensor_name(gradient) for gradient, v in pairs}
    formulas = chain_rule.derivatives(graph, ends)
    if not formulas:
        return (), NONE
    names = set().union(*map(ex.tensors, formulas.values()))
    try:
        run = gradient_check.run_loss(
            program, graph.nodes, pairs, options, options.batch_size, others=names
        )
        slopes = differences(run)
    # a graph from a file can be differentiated even if it cannot run
    except RefusedError as error:
        return (), f"no step ran. {str(error).rstrip('.')}"
    values = {name: np.asarray(run.gradients[name]) for name in formulas}
    named = {name: np.asarray(value, np.float64) for name, value in run.others.items()}
    known = (
        Derivative(
            variable=name,
            formula=ex.text(formula),
            value=values[name].tolist(),
            difference=difference(values[name], slopes.get(name)),
            checked=checked(formula, values[name], named),
        )
        for name, formula in formulas.items()
    )
    return tuple(row for row in known if row.checked <= ROUNDING * largest(row.value)), NONE


def differences(run: gradient_check.Run) -> Mapping[str, np.ndarray]:
    """The central differences of the loss; none if it has no slope, or takes too long."""
    elements = {name: np.arange(np.size(value)) for name, value in run.gradients.items()}
    count = sum(map(len, elements.values()))
    if run.no_slope or gradient_check.affordable(count, run.seconds) < count:
        return {}
    return gradient_check.differences(run, elements)[0]


def checked(formula: Expression, value: np.ndarray, values: Mapping[str, np.ndarray]) -> float:
    """The largest difference between a gradient's elements and the values of its formula."""
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
    """Whether a gradient is one tensor, of a small floating-point variable."""
    gradient, variable = pair
    floats = graph_copies.dtype_of(variable) in FLOATS
    return isinstance(gradient, tf.Tensor) and floats and size_of(variable) <= LARGEST


def size_of(variable: Any) -> int:
    shape = variable.shape
    return prod(shape.as_list()) if shape.is_fully_defined() else LARGEST + 1


def difference(value: np.ndarray, slopes: np.ndarray | None) -> float | None:
    """The largest distance of a gradient's elements from the finite differences."""
    if slopes is None:
        return None
    return float(np.abs(np.asarray(value, np.float64).ravel() - slopes).max(initial=0))
