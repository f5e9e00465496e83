"""Gradient check: gradients compared with finite differences, which use no gradient functions.

The gradients are those of the real graph; `finite_differences` computes the others.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.errors import RefusedError
from tflab.lifecycle import finite_differences, graph_copies
from tflab.lifecycle.graph_copies import Settable, assign, dtype_of, gradient_in_copy, settable
from tflab.records.graph import (
    Node,
    makers,
    node_of,
    reach,
    with_dependents,
)
from tflab.records.options import Options, Program, Start
from tflab.records.stages import AGREES, GradientCheck
from tflab.runtime import session
from tflab.saved_graphs import permissions
from tflab.saved_graphs.starting import VARIABLES

ROWS = range(2, 9)  # of the batch: enough to reach every layer, few enough to be quick
FLOATS = 2_000_000  # in all tensors of the loss: the batch gets fewer rows until there are no more
CHECKED = 80  # variables at most, spread over the model: each costs a few runs
ELEMENTS = 80  # in all: each costs two runs of the loss
SECONDS = 20  # for all of those runs: if the loss takes long, fewer elements are checked
MOST = 8  # per variable: the largest gradients and a random choice
RUNS = 8  # of a loss that may be random
NOISE = 0.01  # added to the weights: zero biases on black pixels are exactly at the kink of ReLU
# tensorflow/core/ops/random_ops.cc and candidate_sampling_ops.cc; stateless ops need no help
RANDOM_OPS = re.compile(
    r"Random(Uniform|UniformInt|StandardNormal|Gamma|Poisson|PoissonV2|Shuffle)|TruncatedNormal|"
    r"ParameterizedTruncatedNormal|Multinomial|\w+CandidateSampler"
)
ROUNDINGS = 10  # how many roundings a sum of many numbers is worth
PRECISION = {  # relative errors of right gradients, by the type of the differences
    tf.float64: AGREES,
    tf.float32: 1e-2,
    tf.float16: 1e-1,
    tf.bfloat16: 3e-1,
}
EPSILON = {  # the distance from 1 to the next number
    tf.float64: 2.0**-52,
    tf.float32: 2.0**-23,
    tf.float16: 2.0**-10,
    tf.bfloat16: 2.0**-7,
}
HALF = 20  # roundings of half precision that a right gradient may differ by
RANDOM = "the loss differs from run to run"
NO_FLOATS = "none of the tensors to differentiate with respect to is float32"


@dataclass(frozen=True)
class Checked:
    """The checks, or none and the reason."""

    checks: tuple[GradientCheck, ...]
    reason: str
    drawn_once: tuple[str, ...] = ()  # random nodes that had the same numbers in all runs
    no_float64: str = ""  # why the differences are not in float64
    halves: tuple[str, ...] = ()  # the half precisions in which parts of it compute, coarsest first


def check(
    program: Program, nodes: Sequence[Node], pairs: Sequence[Any], options: Options
) -> Checked:
    """Compare gradients of some elements of every variable; `nodes` are those of the graph, and
    `pairs` are (gradient, variable).

    The error of an element is |analytic - numeric|, divided by the largest gradient examined in
    its variable. A variable has no error if both are 0 within rounding (see `rounding_of`).
    Nodes that draw random numbers, as for `tf.nn.dropout`, draw once, and all runs are fed what
    they drew. A loss that still differs from run to run has no derivative to compare with.
    Raises RefusedError if the loss cannot run, EffectsError if it may not.
    """
    pairs = [(g, v) for g, v in pairs if g is not None and dtype_of(v) == tf.float32]
    if not pairs:
        return Checked((), NO_FLOATS)
    pairs = pairs[:: -(-len(pairs) // CHECKED) or 1]
    needed = reach([program.loss.op.name], makers(nodes))
    used = [node for node in nodes if node.name in needed]
    floats = floats_of_a_row(used)
    few = min(options.batch_size, max(ROWS[0], min(ROWS[-1], FLOATS // floats)))
    rows = program.model.fixed_batch or few
    # Grappler changes no gradient, and optimising each of these steps would take longer than to run
    # them.
    plain = replace(options, without=(*options.without, "grappler"))
    try:
        return of_batch(program, used, pairs, plain, rows)
    except RefusedError as error:
        if type(error) is not RefusedError:
            raise
    # The graph may accept no other batch, or need Grappler.
    return of_batch(program, used, pairs, options, options.batch_size)


def of_batch(
    program: Program, used: Sequence[Node], pairs: Sequence[Any], options: Options, rows: int
) -> Checked:
    """The same for a batch of this many rows. The loss uses these nodes."""
    batch = next(session.feed_batches(program, rows))
    feeds = feeds_of(program, [gradient for gradient, _ in pairs], batch)
    # Ops that devices cannot run are a matter for placement.
    options = replace(options, soft_placement=True)
    graph, variables = settable(program, variables_of(program.graph, used))
    rng = np.random.default_rng(0)
    with session.fresh(graph, options, finite_differences.unoptimised(options)) as live:
        values = dict(first_values(live, session.start_of(program), variables, rng, NOISE))
        assign(live, values)
        drawn = draws(graph, used)
        if drawn:
            feeds |= dict(zip(drawn, live.run(drawn, feeds), strict=True))
        # One step for both, because a session prepares each, which takes long in a large graph
        step = (program.loss.name, [gradient_in_copy(graph, g) for g, _ in pairs])
        loss, gradients = live.run(step, feeds)
        more = RUNS - 1 if may_be_random(used) else 1
        again, seconds = losses_of(lambda: live.run(step, feeds)[0], more)
    if reason := no_slope_reason([loss, *again]):
        return Checked((), reason)
    gradients = [dense(gradient) for gradient in gradients]

    most = affordable(ELEMENTS, seconds)
    apart = -(-len(pairs) // most)  # if not every variable can be checked, these are spread
    pairs, gradients = pairs[::apart], gradients[::apart]
    count = min(MOST, max(1, most // len(pairs)))
    names = [variable.op.name for _, variable in pairs]
    elements = {
        name: chosen(gradient, count, rng) for name, gradient in zip(names, gradients, strict=True)
    }
    run = finite_differences.Loss(graph, program.loss.name, options, feeds, variables, values)
    slopes = finite_differences.differences(run, elements)
    pruned = graph_copies.prune(graph.as_graph_def(), [program.loss.op.name])
    halves = graph_copies.halves_of(pruned)
    rounding = rounding_of(loss, gradients, slopes.dtype, next(iter(halves), None))
    checks = tuple(
        compare(name, gradient, elements[name], slopes.values[name], rounding)
        for name, gradient in zip(names, gradients, strict=True)
    )
    once = tuple(dict.fromkeys(map(node_of, drawn)))
    return Checked(checks, "", once, slopes.no_float64, tuple(half.name for half in halves))


def losses_of(loss: Callable[[], Any], runs: int = RUNS - 1) -> tuple[list[Any], float]:
    """A loss, computed so many times, fewer if that takes long, and the seconds of the last run.
    Two runs of a random loss are often the same if few numbers are random."""
    losses = []
    start = time.monotonic()
    while True:
        began = time.monotonic()
        losses.append(loss())
        ended = time.monotonic()
        if len(losses) == runs or ended - start > SECONDS / RUNS:
            return losses, ended - began


def may_be_random(nodes: Iterable[Node]) -> bool:
    """Whether one of these nodes is stateful, other than variables and their reads."""
    types = {node.op for node in nodes} - {"ReadVariableOp", *VARIABLES}
    return any(map(permissions.is_stateful, types))


def draws(graph: tf.Graph, nodes: Sequence[Node]) -> list[str]:
    """The tensors of random numbers that runs can be fed: not those that depend on a variable."""
    by_value = [node for node in nodes if node.op not in ("Shape", "ShapeN", "Size", "Rank")]
    variables = (node.name for node in nodes if node.op in VARIABLES)
    fixed = with_dependents(by_value, variables) | within_frames(nodes)
    tensors = (
        f"{node.name}:{index}"
        for node in nodes
        if RANDOM_OPS.fullmatch(node.op) and node.name not in fixed
        for index in range(len(node.outputs))
    )
    return [tensor for tensor in tensors if graph.is_feedable(graph.get_tensor_by_name(tensor))]


def within_frames(nodes: Iterable[Node]) -> set[str]:
    """The nodes whose values cannot be fetched: inside loops, or in branches that are not taken."""
    framed: set[str] = set()
    dead: set[str] = set()
    for node in nodes:
        before = {*map(node_of, node.inputs), *node.control_inputs}
        if node.op.endswith("Enter") or (before & framed and not node.op.endswith("Exit")):
            framed.add(node.name)
        if node.op.endswith("Switch") or (before & dead and not node.op.endswith("Merge")):
            dead.add(node.name)
    return framed | dead


def variables_of(graph: tf.Graph, nodes: Iterable[Node]) -> list[str]:
    """The nodes that are variables, one for each resource: parameters, moving averages, states of
    random numbers."""
    variables: dict[tuple[str, str], str] = {}
    for node in nodes:
        if node.op in VARIABLES:
            attr = graph.get_operation_by_name(node.name).node_def.attr
            shared = attr["shared_name"].s.decode()
            own = "" if node.op == "VarHandleOp" else node.name
            variables.setdefault((attr["container"].s.decode(), shared or own), node.name)
    return [*variables.values()]


def affordable(elements: int, seconds: float) -> int:
    """The number of elements, at least one, that can be changed within SECONDS if a run of the
    loss and its gradients takes this long: each costs two runs of the loss in float64."""
    return max(1, min(elements, int(SECONDS / (2 * seconds)) if seconds else elements))


def feeds_of(
    program: Program, gradients: Sequence[Any], batch: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """The feeds of a step that computes the loss and these gradients."""
    parts = tf.nest.flatten(gradients, expand_composites=True)
    step = session.step_of(program, [program.loss.name, *(part.name for part in parts)])
    return dict(zip(step.feeds, batch, strict=True))


def first_values(
    live: Any,
    start: Start,
    variables: Mapping[str, Settable],
    rng: np.random.Generator,
    noise: float,
) -> Iterator[tuple[str, np.ndarray]]:
    """Initialise the variables; a value for each setter of one: the initial one, and a little
    noise."""
    setters = [variable.setter for variable in variables.values()]
    if {*setters} <= {*start.targets}:  # they assign what can be read in the same run
        operation = live.graph.get_operation_by_name
        initial = [operation(setter).inputs[1] for setter in setters]
        fetched, _ = live.run((initial, list(start.targets)), dict(start.feeds))
    else:
        session.begin(live, start)
        fetched = live.run([variable.value for variable in variables.values()])
    for variable, value in zip(variables.values(), fetched, strict=True):
        if dtype_of(variable.value) == tf.float32:  # text arrives as bytes
            value = np.asarray(value + rng.normal(0, noise, value.shape), np.float32)
        yield variable.setter, value


@dataclass(frozen=True)
class Rounding:
    """What rounding alone can make of numbers that are 0."""

    gradient: float  # of an element of a gradient
    slope: float  # of a finite difference
    dtype: tf.DType  # of the differences
    tolerance: float  # relative error of a right gradient, apart from that of `slope`


def rounding_of(
    loss: Any, gradients: Iterable[np.ndarray], dtype: tf.DType, half: tf.DType | None
) -> Rounding:
    """The rounding of a check whose differences are in this dtype.

    A finite difference is off by ROUNDINGS * eps * |loss| / h, where eps is that of its dtype. A
    gradient adds up numbers as large as the other gradients, so it is off by ROUNDINGS * eps *
    max(|loss|, the largest gradient of all variables), where eps is that of float32, or of the half
    precision in which parts of the graph compute. A wrong gradient is taken for 0 only if the loss
    does not show either that the gradient is not 0.
    """
    size = abs(float(np.asarray(loss).item()))
    finite = (np.abs(gradient[np.isfinite(gradient)]) for gradient in gradients)
    largest = max((float(values.max(initial=0)) for values in finite), default=0.0)
    coarsest = EPSILON[half or tf.float32]
    return Rounding(
        gradient=ROUNDINGS * coarsest * max(size, largest),
        slope=ROUNDINGS * EPSILON[dtype] * size / finite_differences.STEPS[dtype],
        dtype=dtype,
        tolerance=max(PRECISION[dtype], HALF * coarsest if half else 0),
    )


def compare(
    name: str, gradient: np.ndarray, elements: np.ndarray, slopes: np.ndarray, rounding: Rounding
) -> GradientCheck:
    """One gradient and its differences. If both are 0 within rounding, an error relative to them
    would be that of rounding divided by rounding."""
    analytic = gradient.flat[elements]
    largest, steepest = np.abs(analytic).max(initial=0), np.abs(slopes).max(initial=0)
    scale = float(max(largest, steepest))
    zero = bool(largest <= rounding.gradient and steepest <= rounding.slope)
    error = 0.0 if zero else float(np.abs(analytic - slopes).max(initial=0) / scale)
    return GradientCheck(
        tensor=name,
        max_relative_error=error,
        elements=len(elements),
        size=gradient.size,
        precision=rounding.dtype.name,
        zero=zero,
        tolerance=rounding.tolerance + (rounding.slope / scale if scale else 0.0),
    )


def no_slope_reason(losses: Sequence[Any]) -> str:
    """Why a loss that was computed several times has no slope; "" if it has one."""
    first, *others = map(np.asarray, losses)
    if first.size != 1:
        return f"the loss has the shape {list(first.shape)}, so it is not a scalar"
    if first.dtype not in (np.float32, np.float64):
        return f"a loss of type {first.dtype} is too imprecise for finite differences"
    if not np.isfinite(first).all():
        return f"the loss is {float(first.item())}"
    return "" if all(first == other for other in others) else RANDOM


def floats_of_a_row(nodes: Iterable[Node]) -> int:
    """How many numbers these nodes compute for one row of the batch.

    In float64 a few in a million of them are on the other side of ReLU's kink, and there the two
    gradients differ: another reason to keep the batch of a large model small.
    """
    tensors = (tensor for node in nodes for tensor in node.outputs)
    shapes = (tensor.shape for tensor in tensors if tensor.shape and tensor.shape[0] is None)
    return sum(prod(dim or 0 for dim in dims) for _, *dims in shapes) or 1


def chosen(gradient: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of the largest gradients and of random others, `count` in total if there are so
    many."""
    order = np.argsort(-np.abs(gradient), axis=None)
    half = (count + 1) // 2
    largest, others = order[:half], order[half:]
    more = rng.choice(others, min(count - len(largest), len(others)), replace=False)
    return np.sort(np.concatenate([largest, more]))


def dense(gradient: Any) -> np.ndarray:
    """A gradient as an array, even if it is only some rows (tf.IndexedSlices)."""
    if not hasattr(gradient, "dense_shape"):
        return np.asarray(gradient)
    array = np.zeros(gradient.dense_shape, gradient.values.dtype)
    np.add.at(array, gradient.indices, gradient.values)
    return array
