"""Derivatives: the formula of the loss's derivative with respect to each variable, and its value in
the gradient graph.

The formula is read from the graph that `tf.gradients` has added, and kept if it gives what that
graph computes. The value is that of the first batch and the initial values of the variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from tflab.records.graph import node_of
from tflab.records.options import Options, Program
from tflab.runtime import nodes, session

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
        run = computed(program, dict(zip(ends, pairs, strict=True)), names, options)
    # a graph from a file can be differentiated even if it cannot run
    except RefusedError as error:
        return (), f"no step ran. {str(error).rstrip('.')}"
    known = (
        Derivative(
            variable=name,
            formula=ex.text(formula),
            value=run.values[name].tolist(),
            difference=difference(run.values[name], run.slopes.get(name)),
            checked=checked(formula, run.values[name], run.named),
        )
        for name, formula in formulas.items()
    )
    return tuple(row for row in known if row.checked <= ROUNDING * largest(row.value)), NONE


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


@dataclass(frozen=True)
class Gradients:
    """One run of the gradients, by the names of variables."""

    values: dict[str, np.ndarray]
    # None if the loss differs from run to run, is not finite, or takes too long
    slopes: dict[str, np.ndarray]
    named: dict[str, np.ndarray]  # tensor in a formula -> value


def computed(
    program: Program, pairs: Mapping[str, Any], names: Iterable[str], options: Options
) -> Gradients:
    """The gradients of the first batch by the graph, and by finite differences, with the values
    of the variables and of the tensors in the formulas."""
    batch = next(session.feed_batches(program, options.batch_size))
    feeds = gradient_check.feeds_of(program, [g for g, _ in pairs.values()], batch)
    options = replace(options, soft_placement=True)
    graph, variables = graph_copies.settable(program)
    rng = np.random.default_rng(0)
    with session.fresh(graph, options) as live:
        start = session.start_of(program)
        first = dict(gradient_check.first_values(live, start, variables, rng, noise=0))
        tensors = {name: graph_copies.gradient_in_copy(graph, g) for name, (g, _) in pairs.items()}
        # The output of a conditional cannot be fetched; a formula with it is not checked.
        fetches = {
            name: name if ":" in name else f"{name}:0"
            for name in names
            if graph.is_fetchable(graph.get_operation_by_name(node_of(name)))
        }
        step = (program.loss.name, tensors, fetches)
        loss, values, named = live.run(step, feeds)
        losses, seconds = gradient_check.losses_of(lambda: live.run(step, feeds)[0])
    run = Gradients(
        values={name: np.asarray(value) for name, value in values.items()},
        slopes={},
        named={name: np.asarray(value, np.float64) for name, value in named.items()},
    )
    elements = {name: np.arange(value.size) for name, value in run.values.items()}
    count = sum(map(len, elements.values()))
    no_slope = gradient_check.no_slope_reason([loss, *losses])
    if no_slope or gradient_check.affordable(count, seconds) < count:
        return run
    again = gradient_check.Loss(graph, program.loss.name, options, feeds, variables, first)
    return replace(run, slopes=gradient_check.differences(again, elements)[0])


def difference(value: np.ndarray, slopes: np.ndarray | None) -> float | None:
    """The largest distance of a gradient's elements from the finite differences."""
    if slopes is None:
        return None
    return float(np.abs(np.asarray(value, np.float64).ravel() - slopes).max(initial=0))
