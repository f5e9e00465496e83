"""Gradient check: gradients compared with central differences, which use no gradient functions.

The derivative of the loss with respect to one weight is about (loss(w + h) - loss(w - h)) / 2h. The
rounding of a float32 loss is larger than this difference, so gradients and losses are computed in a
float64 copy of the graph; in float32 if there is no such copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis.gradient_graph import GradientGraph
from tflab.errors import RefusedError
from tflab.lifecycle import check_points, graph_copies
from tflab.lifecycle.graph_copies import Copy, Values, dtype_of
from tflab.records.graph import Node, node_of, with_makers
from tflab.records.options import Options, Program
from tflab.records.stages import AGREES, GradientCheck

ROWS = range(2, 9)  # of the batch: enough to reach every layer, few enough to be quick
FLOATS = 2_000_000  # in all tensors of the loss: the batch gets fewer rows until there are no more
CHECKED = 80  # variables at most, spread over the model: each costs a few runs
ELEMENTS = 80  # in all: each costs two runs of the loss
SECONDS = 20  # for all of those runs: if the loss takes long, fewer elements are checked
MOST = 8  # elements of a variable: the largest gradients and a random choice
RUNS = 8  # of a loss that may be random: two are often the same if few numbers are random
NOISE = 0.01  # added to the weights: zero biases on black pixels are exactly at the kink of ReLU
# h: a large one crosses more kinks of ReLU and max pooling, a small one shows more of the rounding
STEPS = {tf.float64: 1e-6, tf.float32: 3e-4}
PRECISION = {tf.float64: AGREES, tf.float32: 1e-2}  # relative errors of right gradients
EPSILON = {tf.float64: 2.0**-52, tf.float32: 2.0**-23}  # from 1 to the next number
ROUNDINGS = 10  # how many roundings a sum of many numbers is worth
RANDOM = "the loss is random"
NO_FLOATS = "none of the tensors to differentiate with respect to is float32"

Pairs = Sequence[tuple[Any, Any]]  # (gradient, variable)


@dataclass(frozen=True)
class Checked:
    """The checks, or none and the reason."""

    checks: tuple[GradientCheck, ...]
    reason: str


def opened(
    program: Program, graph: GradientGraph, pairs: Pairs, options: Options
) -> AbstractContextManager[Copy]:
    """Open the copy of the graph in which gradients and formulas are checked."""
    batches = batches_of(program, graph.nodes, options)
    listed = check_points.nodes_of(graph)
    rows = max(check_points.rows_of(batch) for batch in batches)
    step = [
        program.loss.name,
        *(part for gradient, _ in pairs for part in parts_of(gradient)),
        *check_points.names(check_points.fetchable(listed, rows)).values(),
    ]
    ends = {*map(node_of, step), *graph.owners(), *(node.name for node in listed)}
    parameters = {tensor.op.name for tensor in program.model.parameters}

    def works(copy: Copy) -> None:
        first_that_runs(copy, step, batches)

    return graph_copies.opened(program, sorted(ends | parameters), options, works)


def check(
    copy: Copy, program: Program, nodes: Sequence[Node], pairs: Pairs, options: Options
) -> Checked:
    """Compare gradients of some elements of the variables; `nodes` are those of the graph.

    The error of an element is |analytic - numeric|, divided by the largest gradient examined in
    its variable. A variable has no error if both are 0 within rounding (see `compare`).
    A random loss has no derivative to compare with. Raises RefusedError if the loss cannot run.
    """
    pairs = [(g, v) for g, v in pairs if g is not None and dtype_of(v) == tf.float32]
    if not pairs:
        return Checked((), NO_FLOATS)
    gradients = {v.op.name: parts_of(g) for g, v in spread(pairs, CHECKED)}
    loss = program.loss.name
    feeds = first_that_runs(copy, [loss, gradients], batches_of(program, nodes, options))
    variables = noisy(copy.initial)
    copy.assign(variables)
    first, arrays = copy.run([loss, gradients], feeds)
    losses, seconds = losses_of(lambda: copy.run(loss, feeds))
    if reason := no_slope_reason([first, *losses]):
        return Checked((), reason)
    if copy.half:
        return Checked((), f"a part of the loss is computed in {copy.half}")
    most = affordable(ELEMENTS, seconds)
    analytic = {name: dense(arrays[name]) for name in spread([*arrays], most)}
    count = min(MOST, max(1, most // len(analytic)))
    rng = np.random.default_rng(0)
    elements = {name: chosen(gradient, count, rng) for name, gradient in analytic.items()}
    differences = slopes(copy, loss, Point(variables, feeds), elements)
    finite = (gradient[np.isfinite(gradient)] for gradient in analytic.values())
    largest = max(float(np.abs(values).max(initial=0)) for values in finite)
    size = abs(np.asarray(first).item())
    checks = (
        compare(name, gradient, elements[name], differences[name], copy.dtype, size, largest)
        for name, gradient in analytic.items()
    )
    return Checked(tuple(checks), "")


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[int(place)] for place in np.linspace(0, len(items) - 1, most)]


# The loss and its gradients as the copy computes them


def batches_of(program: Program, nodes: Sequence[Node], options: Options) -> list[Values]:
    """Return a batch of a few rows, and the usual one: the graph may accept no other."""
    needed = with_makers(nodes, [program.loss.op.name])
    floats = floats_of_a_row(node for node in nodes if node.name in needed)
    few = min(options.batch_size, max(ROWS[0], min(ROWS[-1], FLOATS // floats)))
    sizes = dict.fromkeys((program.model.fixed_batch or few, options.batch_size))
    return [check_points.batch_of(program, size) for size in sizes]


def floats_of_a_row(nodes: Iterable[Node]) -> int:
    """Return how many numbers these nodes compute for one row of the batch.

    In float64 a few in a million of them are on the other side of ReLU's kink, and there the two
    gradients differ: another reason to keep the batch of a large model small.
    """
    tensors = (tensor for node in nodes for tensor in node.outputs)
    shapes = (tensor.shape for tensor in tensors if tensor.shape and tensor.shape[0] is None)
    return sum(prod(dim or 0 for dim in dims) for _, *dims in shapes) or 1


def first_that_runs(copy: Copy, fetches: Any, batches: Sequence[Values]) -> Values:
    """Return the first batch with which these tensors can be computed. Raises for the last one."""
    for batch in batches[:-1]:
        try:
            copy.run(fetches, batch)
        except (tf.errors.OpError, RefusedError):
            continue
        return batch
    copy.run(fetches, batches[-1])
    return batches[-1]


def noisy(initial: Values) -> dict[str, np.ndarray]:
    """Return the values of variables with a little noise on the floating-point ones."""
    rng = np.random.default_rng(0)
    return {
        name: np.asarray(value + rng.normal(0, NOISE, np.shape(value)), np.float32)
        if np.asarray(value).dtype == np.float32
        else value
        for name, value in initial.items()
    }


def losses_of(loss: Callable[[], Any], runs: int = RUNS - 1) -> tuple[list[Any], float]:
    """Return a loss computed so many times, fewer if that takes long, and the seconds of the last
    run."""
    losses = []
    start = time.monotonic()
    while True:
        began = time.monotonic()
        losses.append(loss())
        ended = time.monotonic()
        if len(losses) == runs or ended - start > SECONDS / RUNS:
            return losses, ended - began


def no_slope_reason(losses: Sequence[Any]) -> str:
    """Return why a loss that was computed several times has no slope; "" if it has one."""
    first, *others = map(np.asarray, losses)
    if first.size != 1:
        return f"the loss has the shape {list(first.shape)}, so it is not a scalar"
    if first.dtype not in (np.float32, np.float64):
        return f"a loss of type {first.dtype} is too imprecise for finite differences"
    if not np.isfinite(first).all():
        return f"the loss is {float(first.item())}"
    return "" if all(first == other for other in others) else RANDOM


def affordable(elements: int, seconds: float) -> int:
    """Return the number of elements, at least one, that can be changed within SECONDS if a run of
    the loss takes this long: each costs two runs."""
    return max(1, min(elements, int(SECONDS / (2 * seconds)) if seconds else elements))


def chosen(gradient: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the indices of the largest gradients and of random others, `count` in total if there
    are so many."""
    order = np.argsort(-np.abs(gradient), axis=None)
    half = (count + 1) // 2
    largest, others = order[:half], order[half:]
    more = rng.choice(others, min(count - len(largest), len(others)), replace=False)
    return np.sort(np.concatenate([largest, more]))


def parts_of(gradient: Any) -> list[str]:
    """Return the tensors of a gradient: three if it is only some rows (tf.IndexedSlices)."""
    return [
        part.name for part in tf.nest.flatten(gradient, expand_composites=True) if part is not None
    ]


def dense(parts: Sequence[Any]) -> np.ndarray:
    """Return a gradient as one array."""
    if len(parts) == 1:
        return np.asarray(parts[0])
    values, indices, shape = parts
    array = np.zeros(shape, values.dtype)
    np.add.at(array, indices, values)
    return array


# Central differences


@dataclass(frozen=True)
class Point:
    """The values at which a loss is computed."""

    variables: Values
    feeds: Values


def slopes(
    copy: Copy, loss: str, point: Point, elements: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the central differences of the loss with respect to these elements of each variable,
    or fed array. The variables of the copy have the values of the point before and after."""

    def loss_of(name: str) -> Callable[[np.ndarray], float]:
        def moved(value: np.ndarray) -> float:
            if name in copy.setters:
                copy.assign({name: value})
                return copy.run(loss, point.feeds).item()
            return copy.run(loss, {**point.feeds, f"{name}:0": value}).item()

        return moved

    differences = {}
    for name, chosen_elements in elements.items():
        value = point.variables[name] if name in copy.setters else point.feeds[f"{name}:0"]
        h = STEPS[copy.dtype]
        differences[name] = differences_at(loss_of(name), value, chosen_elements, h)
        copy.assign({name: value} if name in copy.setters else {})
    return differences


def differences_at(
    loss: Callable[[np.ndarray], float], value: np.ndarray, elements: np.ndarray, h: float
) -> np.ndarray:
    """Return the central difference of a loss of an array with respect to each of these
    elements."""

    def shifted(element: int, shift: float) -> float:
        moved = np.array(value, np.float64)
        moved.flat[element] += shift
        return loss(moved)

    return np.array([(shifted(at, h) - shifted(at, -h)) / (2 * h) for at in elements])


def compare(
    name: str,
    gradient: np.ndarray,
    elements: np.ndarray,
    slopes: np.ndarray,
    dtype: tf.DType,
    loss: float,
    largest_of_all: float,
) -> GradientCheck:
    """Compare a gradient with its differences, both computed in `dtype`. If both are 0 within
    rounding, no relative error is computed.

    A difference is off by ROUNDINGS * eps * |loss| / h, where eps is that of the dtype. A gradient
    adds up numbers as large as the other gradients, so it is off by ROUNDINGS * eps * max(|loss|,
    the largest gradient of all variables). A wrong gradient is taken for 0 only if the loss does
    not show either that the gradient is not 0.
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
