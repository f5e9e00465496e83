"""Gradient check: gradients, and the formulas that give them, compared with central differences,
which use no gradient functions: (loss(w + h) - loss(w - h)) / 2h for one weight.

The rounding of a float32 loss is larger than this difference, so gradients and losses are computed
in a float64 copy of the graph; in float32 if there is no such copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeVar

import numpy as np
import tensorflow as tf

from tflab.analysis import chain_rule
from tflab.analysis import expressions as ex
from tflab.analysis.gradient_graph import GradientGraph
from tflab.errors import RefusedError
from tflab.lifecycle import graph_copies
from tflab.lifecycle.gradients import Pairs, names_of, parts_of
from tflab.lifecycle.graph_copies import Copy, Values, dtype_of
from tflab.records.graph import Derivative, session_name
from tflab.records.options import Program
from tflab.records.stages import AGREES, GradientCheck

ELEMENTS = 80  # in all, spread over the model: each costs two runs of the loss
SECONDS = 10  # for all of those runs: if the loss takes long, fewer elements are checked
MOST = 8  # elements of a variable: the largest gradients and a random choice
POINTS = 3  # at most, at which a gradient is compared
RUNS = 8  # of a loss that may be random: two are often the same if few numbers are random
NOISE = 0.01  # added to the weights: zero biases on black pixels are exactly at the kink of ReLU
# h: a large one crosses more kinks of ReLU and max pooling, a small one shows more of the rounding
STEPS = {tf.float64: 1e-6, tf.float32: 3e-4}
PRECISION = {tf.float64: AGREES, tf.float32: 1e-2}  # relative errors of right gradients
EPSILON = {tf.float64: 2.0**-52, tf.float32: 2.0**-23}  # from 1 to the next number
ROUNDINGS = 10  # how many roundings a sum of many numbers is worth
RANDOM = "the loss is random"
NO_FLOATS = "none of the tensors to differentiate with respect to is float32"

LARGEST = 64  # elements of a variable with a formula: each costs two runs of the loss
MOST_OF_ALL = 256  # over all variables
ROUNDING = 1e-3  # of the largest element: the gradients may be computed in float32
ROWS = "the gradient of a variable has only some of its rows, or is not a separate tensor"
LARGE = f"tflab writes formulas only if no variable has more than {LARGEST} floats"
MANY = f"tflab writes formulas only if the variables have at most {MOST_OF_ALL} floats in all"
NO_FORMULA = f"no formula of at most {chain_rule.LONGEST} names and ops was confirmed by the values"

T = TypeVar("T")


@dataclass(frozen=True)
class Checked:
    """The checks and the formulas of derivatives, or why there are none."""

    checks: tuple[GradientCheck, ...]
    reason: str
    seconds: float | None = None  # that a run of the loss took; None if it has no slope
    derivatives: tuple[Derivative, ...] = ()
    no_formula: str = ""


def check(copy: Copy, program: Program, pairs: Pairs) -> Checked:
    """Compare gradients of some elements of the variables. A gradient that disagrees is compared at
    other weights, too: a difference may cross a kink, but a wrong gradient agrees nowhere."""
    found = check_at(copy, program, pairs, seed=0)
    for seed in range(1, POINTS):
        if all(one.agrees for one in found.checks):
            break
        again = {one.tensor: one for one in check_at(copy, program, pairs, seed).checks}
        better = (one if one.agrees else again.get(one.tensor, one) for one in found.checks)
        found = replace(found, checks=tuple(better))
    return found


def check_at(copy: Copy, program: Program, pairs: Pairs, seed: int) -> Checked:
    """Compare gradients of some elements of the variables, with noise of this seed added to all."""
    pairs = [(g, v) for g, v in pairs if g is not None and dtype_of(v) == tf.float32]
    loss, feeds = program.loss.name, copy.batch
    rng = np.random.default_rng(seed)
    variables = {
        name: graph_copies.perturbed(value, rng, 0, NOISE) for name, value in copy.initial.items()
    }
    copy.assign(variables)
    gradients = {v.op.name: parts_of(g) for g, v in spread(pairs, ELEMENTS)}
    first, arrays = copy.run([loss, gradients], feeds)
    losses, seconds = losses_of(lambda: copy.run(loss, feeds), RUNS - 1)
    reason = no_slope_reason([first, *losses])  # a random loss has none
    with suppress(tf.errors.OpError, RefusedError):  # a copy may run with few rows only
        reason = reason or no_slope_reason([copy.run(loss, copy.whole)])
    if reason:
        return Checked((), reason)
    if copy.half:
        return Checked((), f"a part of the loss is computed in {copy.half}", seconds)
    if not pairs:
        return Checked((), NO_FLOATS, seconds)
    most = affordable(ELEMENTS, seconds)
    analytic = {name: dense(arrays[name]) for name in spread([*arrays], most)}
    count = min(MOST, max(1, most // len(analytic)))
    elements = {name: chosen(gradient, count, rng) for name, gradient in analytic.items()}
    differences = slopes(copy, loss, variables, feeds, elements)
    finite = (gradient[np.isfinite(gradient)] for gradient in analytic.values())
    largest = max(float(np.abs(values).max(initial=0)) for values in finite)
    size = abs(np.asarray(first).item())
    checks = (
        compare(name, gradient, elements[name], differences[name], copy.dtype, size, largest)
        for name, gradient in analytic.items()
    )
    return Checked(tuple(checks), "", seconds)


def spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[int(place)] for place in np.linspace(0, len(items) - 1, most)]


def losses_of(loss: Callable[[], np.ndarray], runs: int) -> tuple[list[np.ndarray], float]:
    """Return a loss computed `runs` times, or fewer if that is slow, and the seconds of one run."""
    losses = []
    start = time.monotonic()
    while True:
        began = time.monotonic()
        losses.append(loss())
        ended = time.monotonic()
        if len(losses) == runs or ended - start > SECONDS / RUNS:
            return losses, ended - began


def no_slope_reason(losses: Sequence[np.ndarray]) -> str:
    """Return why a loss that was computed several times has no slope; "" if it has one."""
    first, *others = map(np.asarray, losses)
    if first.size != 1:
        return f"the loss has the shape {list(first.shape)}, so it is not a scalar"
    if not np.isfinite(first).all():
        return f"the loss is {float(first.item())}"
    return "" if all(first == other for other in others) else RANDOM


def affordable(elements: int, seconds: float) -> int:
    """Return for how many elements, at least one, SECONDS suffice, with two runs for each."""
    return max(1, min(elements, int(SECONDS / (2 * seconds)) if seconds else elements))


def chosen(gradient: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the indices of the largest gradients and of random others, `count` of them or all."""
    order = np.argsort(-np.abs(gradient), axis=None)
    half = (count + 1) // 2
    largest, others = order[:half], order[half:]
    more = rng.choice(others, min(count - len(largest), len(others)), replace=False)
    return np.sort(np.concatenate([largest, more]))


def dense(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return a gradient as one array."""
    if len(parts) == 1:
        return np.asarray(parts[0])
    values, indices, shape = parts
    array = np.zeros(shape, values.dtype)
    np.add.at(array, indices, values)
    return array


# Central differences


def slopes(
    copy: Copy, loss: str, variables: Values, feeds: Values, elements: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the central differences of the loss with respect to these elements of each variable,
    fed array or computed tensor. The variables of the copy have these values before and after."""
    h = STEPS[copy.dtype]

    def loss_at(name: str, value: np.ndarray) -> float:
        if name not in copy.setters:
            return copy.run(loss, {**feeds, f"{name}:0": value}).item()
        copy.assign({name: value})
        return copy.run(loss, feeds).item()

    def slope(name: str, value: np.ndarray, element: int) -> float:
        above, below = np.array(value, np.float64), np.array(value, np.float64)
        above.flat[element] += h
        below.flat[element] -= h
        return (loss_at(name, above) - loss_at(name, below)) / (2 * h)

    differences = {}
    for name, chosen_elements in elements.items():
        known, tensor = {**feeds, **variables}, f"{name}:0"
        value = known.get(name, known.get(tensor))
        if value is None:
            value = copy.run(tensor, feeds)
        differences[name] = np.array([slope(name, value, at) for at in chosen_elements])
        copy.assign({name: value} if name in copy.setters else {})
    return differences


def compare(
    name: str,
    gradient: np.ndarray,
    elements: np.ndarray,
    slopes: np.ndarray,
    dtype: tf.DType,
    loss: float,
    largest_of_all: float,
) -> GradientCheck:
    """Compare a gradient with its differences. The error is the largest |gradient - difference|,
    divided by the largest of these numbers; 0 if both are 0 within rounding.

    A difference is off by ROUNDINGS * eps * |loss| / h, where eps belongs to the dtype. A gradient
    adds up numbers as large as the other gradients, so it is off by ROUNDINGS * eps * max(|loss|,
    the largest gradient of all variables). A wrong gradient passes for 0 only if the differences of
    the loss are 0 within rounding, too.
    """
    analytic = gradient.flat[elements]
    of_slope = ROUNDINGS * EPSILON[dtype] * loss / STEPS[dtype]
    of_gradient = ROUNDINGS * EPSILON[dtype] * max(loss, largest_of_all)
    largest, steepest = np.abs(analytic).max(initial=0), np.abs(slopes).max(initial=0)
    scale = float(max(largest, steepest))
    zero = bool(largest <= of_gradient and steepest <= of_slope)
    error = 0.0 if zero else float(np.abs(analytic - slopes).max(initial=0) / scale)
    return GradientCheck(
        tensor=name,
        max_relative_error=error,
        elements=len(elements),
        size=gradient.size,
        precision=dtype.name,
        zero=zero,
        tolerance=PRECISION[dtype] + (of_slope / scale if scale else 0.0),
    )


# Formulas of the derivatives


def with_derivatives(
    checked: Checked, copy: Copy, program: Program, pairs: Pairs, graph: GradientGraph, size: int
) -> Checked:
    """Return the checks with the derivatives that a formula gives, or with the reason for none. The
    values are those of the first batch of this size and the initial variables, compared with
    central differences if the loss has a slope and there is time."""
    gradients = {v.op.name: gradient for gradient, v in pairs if gradient is not None}
    variables = [variable for _, variable in pairs if variable.op.name in gradients]
    if not all(isinstance(gradient, tf.Tensor) for gradient in gradients.values()):
        return replace(checked, no_formula=ROWS)
    known = (variable.shape.num_elements() for variable in variables)
    sizes = [LARGEST + 1 if size is None else size for size in known]
    floats = all(dtype_of(variable) in STEPS for variable in variables)
    if not floats or max(sizes, default=0) > LARGEST:
        return replace(checked, no_formula=LARGE)
    if sum(sizes) > MOST_OF_ALL:
        return replace(checked, no_formula=MANY)
    formulas = chain_rule.derivatives(graph, {v: names_of(g)[0] for v, g in gradients.items()})
    if not formulas:
        return replace(checked, no_formula=NO_FORMULA)
    feeds = graph_copies.batch_of(program, size)
    names = {name: session_name(name) for name in set().union(*map(ex.tensors, formulas.values()))}
    copy.assign(copy.initial)
    values, named = copy.run(({name: gradients[name].name for name in formulas}, names), feeds)
    named = {name: np.asarray(value, np.float64) for name, value in named.items()}
    elements = {name: np.arange(np.size(value)) for name, value in values.items()}
    differences: Mapping[str, np.ndarray] = {}
    count = sum(map(len, elements.values()))
    if checked.seconds is not None and affordable(count, checked.seconds) == count:
        differences = slopes(copy, program.loss.name, copy.initial, feeds, elements)
    rows = []
    for name, formula in formulas.items():
        value = np.asarray(values[name], np.float64)
        try:
            result = ex.fitted(ex.evaluated(formula, named), value.shape)
        except (ex.UnknownError, ValueError):
            continue
        unequal = ~((result == value) | (np.isnan(result) & np.isnan(value)))
        error = float(np.abs(result[unequal] - value[unequal]).max(initial=0))
        if error <= ROUNDING * np.abs(value[np.isfinite(value)]).max(initial=0):  # it may be NaN
            apart = np.abs(value.ravel() - differences.get(name, np.inf)).max(initial=0)
            rows.append(
                Derivative(
                    variable=name,
                    formula=ex.text(formula),
                    value=value.astype(gradients[name].dtype.as_numpy_dtype).tolist(),
                    difference=float(apart) if isfinite(apart) else None,
                    checked=error,
                )
            )
    return replace(checked, derivatives=tuple(rows), no_formula=NO_FORMULA)
