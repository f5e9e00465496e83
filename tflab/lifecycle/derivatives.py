"""Derivatives: where a loss is a formula, the formula of its derivative by each variable, and what
the gradient graph computes for it.

The formula is read off the graph that `tf.gradients` has added. Its value is that of the graph as
it is, for the first batch and the first values of the variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import chain_rule
from tflab.analysis.gradient_graph import GradientGraph
from tflab.errors import EffectsError, RefusedError
from tflab.lifecycle import gradient_check, variable_values
from tflab.records import Derivative, Options, Program
from tflab.runtime import nodes, session

LARGEST = 64  # elements of a variable: each costs two runs of the loss
MOST = 256  # in all variables
FLOATS = (tf.float32, tf.float64)


def read(
    program: Program, pairs: Sequence[Any], options: Options, graph: GradientGraph
) -> tuple[Derivative, ...]:
    """A derivative for each variable; none where the loss is no formula, or a variable is large."""
    pairs = [(g, v) for g, v in pairs if g is not None]
    if not (all(map(simple, pairs)) and chain_rule.is_formula(graph)):
        return ()
    if sum(size_of(variable) for _, variable in pairs) > MOST:
        return ()
    ends = {v.op.name: nodes.tensor_name(gradient) for gradient, v in pairs}
    formulas = chain_rule.derivatives(graph, ends)
    if not formulas:
        return ()
    try:
        values, slopes, starts = computed(program, dict(zip(ends, pairs, strict=True)), options)
    except (EffectsError, RefusedError):  # a graph from a file need not run to be differentiated
        return ()
    return tuple(
        Derivative(
            variable=name,
            formula=formula,
            value=values[name].tolist(),
            difference=difference(values[name], slopes.get(name)),
            tensor=ends[name],
            start=starts[name].tolist() if name in starts else None,
        )
        for name, formula in formulas.items()
    )


def simple(pair: tuple[Any, Any]) -> bool:
    """Whether a gradient is one tensor, of a small variable of floating-point numbers."""
    gradient, variable = pair
    floats = variable_values.dtype_of(variable) in FLOATS
    return isinstance(gradient, tf.Tensor) and floats and size_of(variable) <= LARGEST


def size_of(variable: Any) -> int:
    shape = variable.shape
    return prod(shape.as_list()) if shape.is_fully_defined() else LARGEST + 1


def computed(
    program: Program, pairs: Mapping[str, Any], options: Options
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The gradients of the first batch by the graph, and by finite differences, and the variables
    then; no differences where the loss comes out otherwise each time, or not finite."""
    batch = next(session.feed_batches(program, options.batch_size))
    feeds = gradient_check.feeds_of(program, [g for g, _ in pairs.values()], batch)
    options = replace(options, soft_placement=True)
    graph, variables = variable_values.settable(program)
    rng = np.random.default_rng(0)
    with session.opened(graph, options, session.start_of(program)) as live:
        first = dict(gradient_check.first_values(live, variables, rng, noise=0))
        tensors = {name: variable_values.within(graph, g) for name, (g, _) in pairs.items()}
        values = {name: np.asarray(g) for name, g in live.run(tensors, feeds).items()}
        unfit = gradient_check.unfit([live.run(program.loss.name, feeds) for _ in range(2)])
    setters = {name: variable.setter for name, variable in variables.items()}
    starts = {name: first[setters[name]] for name in pairs if name in setters}
    if unfit:
        return values, {}, starts
    run = gradient_check.Run(graph, program.loss.name, options, feeds, variables, first)
    elements = {name: np.arange(value.size) for name, value in values.items()}
    return values, gradient_check.differences(run, elements)[0], starts


def difference(value: np.ndarray, slopes: np.ndarray | None) -> float | None:
    """The largest distance of a gradient's elements from the finite differences."""
    if slopes is None:
        return None
    return float(np.abs(np.asarray(value, np.float64).ravel() - slopes).max(initial=0))
