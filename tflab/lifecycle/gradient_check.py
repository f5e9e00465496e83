"""Gradient check: gradients compared with central differences, which use no gradient functions.

The derivative of the loss with respect to one weight is about (loss(w + h) - loss(w - h)) / 2h. The
rounding of a float32 loss is larger than this difference, so the losses are computed in a float64
copy of the forward graph. If it cannot be imported or run, or gives another loss, they are computed
in float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.errors import RefusedError
from tflab.lifecycle import graph_copies
from tflab.lifecycle.graph_copies import Settable, dtype_of
from tflab.records.graph import VARIABLES, Node, makers, node_of, reach
from tflab.records.options import Options, Program
from tflab.records.stages import AGREES, GradientCheck
from tflab.runtime import session

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
SAME_LOSS = (
    1e-5  # relative difference of a loss in float32 and in float64; a mask makes a larger one
)
RANDOM = "the loss is random"
NO_FLOATS = "none of the tensors to differentiate with respect to is float32"


@dataclass(frozen=True)
class Checked:
    """The checks, or none and the reason."""

    checks: tuple[GradientCheck, ...]
    reason: str


def check(
    program: Program, nodes: Sequence[Node], pairs: Sequence[Any], options: Options
) -> Checked:
    """Compare gradients of some elements of the variables; `nodes` are those of the graph, and
    `pairs` are (gradient, variable).

    The error of an element is |analytic - numeric|, divided by the largest gradient examined in
    its variable. A variable has no error if both are 0 within rounding (see `compare`).
    A random loss has no derivative to compare with. Raises RefusedError if the loss cannot run.
    """
    pairs = [(g, v) for g, v in pairs if g is not None and dtype_of(v) == tf.float32]
    if not pairs:
        return Checked((), NO_FLOATS)
    pairs = spread(pairs, CHECKED)
    needed = reach([program.loss.op.name], makers(nodes))
    floats = floats_of_a_row(node for node in nodes if node.name in needed)
    few = min(options.batch_size, max(ROWS[0], min(ROWS[-1], FLOATS // floats)))
    # Grappler changes no gradient, and optimising each of these steps would take longer than to run
    # them.
    plain = replace(options, without=(*options.without, "grappler"))
    try:
        return check_batch(program, nodes, pairs, plain, program.model.fixed_batch or few)
    except RefusedError as error:
        if type(error) is not RefusedError:
            raise
    # The graph may accept no other batch, or need Grappler.
    return check_batch(program, nodes, pairs, options, options.batch_size)


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[int(place)] for place in np.linspace(0, len(items) - 1, most)]


def check_batch(
    program: Program, nodes: Sequence[Node], pairs: Sequence[Any], options: Options, rows: int
) -> Checked:
    """Check the gradients on a batch of this many rows."""
    run = run_loss(program, nodes, pairs, options, rows, NOISE)
    half = graph_copies.half_precision(run.graph, program.loss.op.name)
    if run.no_slope or half:
        return Checked((), run.no_slope or f"a part of the loss is computed in {half}")
    most = affordable(ELEMENTS, run.seconds)
    gradients = {v.op.name: dense(run.gradients[v.op.name]) for _, v in spread(pairs, most)}
    count = min(MOST, max(1, most // len(gradients)))
    rng = np.random.default_rng(0)
    elements = {name: chosen(gradient, count, rng) for name, gradient in gradients.items()}
    slopes, dtype = differences(run, elements)
    finite = (gradient[np.isfinite(gradient)] for gradient in gradients.values())
    largest = max(float(np.abs(values).max(initial=0)) for values in finite)
    checks = (
        compare(name, gradient, elements[name], slopes[name], dtype, abs(run.loss), largest)
        for name, gradient in gradients.items()
    )
    return Checked(tuple(checks), "")


def floats_of_a_row(nodes: Iterable[Node]) -> int:
    """Return how many numbers these nodes compute for one row of the batch.

    In float64 a few in a million of them are on the other side of ReLU's kink, and there the two
    gradients differ: another reason to keep the batch of a large model small.
    """
    tensors = (tensor for node in nodes for tensor in node.outputs)
    shapes = (tensor.shape for tensor in tensors if tensor.shape and tensor.shape[0] is None)
    return sum(prod(dim or 0 for dim in dims) for _, *dims in shapes) or 1


# The loss and its gradients as TensorFlow computes them


@dataclass(frozen=True)
class Run:
    """A loss that was computed several times, and can be computed for other variables."""

    graph: tf.Graph
    tensor: str
    options: Options
    feeds: Mapping[str, np.ndarray]
    variables: Mapping[str, Settable]
    values: Mapping[str, np.ndarray]  # setter of a variable -> value
    loss: float
    no_slope: str  # why the loss has none; "" if it has one
    gradients: Mapping[str, Any]  # by the names of variables
    others: Mapping[str, np.ndarray]
    seconds: float  # of the last run


def run_loss(
    program: Program,
    nodes: Sequence[Node],
    pairs: Sequence[Any],
    options: Options,
    rows: int,
    noise: float = 0,
    others: Iterable[str] = (),
) -> Run:
    """Compute the loss and gradients of a batch several times, as long as that is quick, and these
    other tensors. `nodes` are those of the graph; the variables have their initial values and some
    noise.
    """
    batch = next(session.feed_batches(program, rows))
    parts = tf.nest.flatten([gradient for gradient, _ in pairs], expand_composites=True)
    fetched = session.step_of(program, [program.loss.name, *(part.name for part in parts)])
    feeds = dict(zip(fetched.feeds, batch, strict=True))
    # Ops that devices cannot run are a matter for placement.
    options = replace(options, soft_placement=True)
    needed = reach([program.loss.op.name], makers(nodes))
    stateful = variables_of(program.graph, (node for node in nodes if node.name in needed))
    graph, variables = graph_copies.settable(program, stateful)
    # The output of a conditional cannot be fetched; a formula with it is not checked.
    operation = graph.get_operation_by_name
    fetchable = [name for name in others if graph.is_fetchable(operation(node_of(name)))]
    step = (
        program.loss.name,
        {v.op.name: graph_copies.gradient_in_copy(graph, g) for g, v in pairs},
        {name: name if ":" in name else f"{name}:0" for name in fetchable},
    )
    with session.fresh(graph, options, unoptimised(options)) as live:
        values = first_values(live, program, variables, noise)
        graph_copies.assign(live, values)
        loss, gradients, named = live.run(step, feeds)
        losses, seconds = losses_of(lambda: live.run(step, feeds)[0])
    return Run(
        graph=graph,
        tensor=program.loss.name,
        options=options,
        feeds=feeds,
        variables=variables,
        values=values,
        loss=float(np.ravel(loss)[0]) if np.size(loss) else 0.0,
        no_slope=no_slope_reason([loss, *losses]),
        gradients=gradients,
        others=named,
        seconds=seconds,
    )


def variables_of(graph: tf.Graph, nodes: Iterable[Node]) -> list[str]:
    """Return the nodes that are variables, one for each resource: parameters, moving averages,
    states of random numbers."""
    variables: dict[tuple[str, str], str] = {}
    for node in nodes:
        if node.op in VARIABLES:
            attr = graph.get_operation_by_name(node.name).node_def.attr
            shared = attr["shared_name"].s.decode()
            own = "" if node.op == "VarHandleOp" else node.name
            variables.setdefault((attr["container"].s.decode(), shared or own), node.name)
    return [*variables.values()]


def first_values(
    live: Any, program: Program, variables: Mapping[str, Settable], noise: float = 0
) -> dict[str, np.ndarray]:
    """Initialise the variables. Return a value for the setter of each: the initial one, and a
    little noise."""
    rng = np.random.default_rng(0)
    session.begin(live, session.start_of(program))
    values = {}
    read = live.run([variable.value for variable in variables.values()])
    for variable, value in zip(variables.values(), read, strict=True):
        if dtype_of(variable.value) == tf.float32:  # text arrives as bytes
            value = np.asarray(value + rng.normal(0, noise, value.shape), np.float32)
        values[variable.setter] = value
    return values


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
    the loss and its gradients takes this long: each costs two runs of the loss in float64."""
    return max(1, min(elements, int(SECONDS / (2 * seconds)) if seconds else elements))


def chosen(gradient: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the indices of the largest gradients and of random others, `count` in total if there
    are so many."""
    order = np.argsort(-np.abs(gradient), axis=None)
    half = (count + 1) // 2
    largest, others = order[:half], order[half:]
    more = rng.choice(others, min(count - len(largest), len(others)), replace=False)
    return np.sort(np.concatenate([largest, more]))


def dense(gradient: Any) -> np.ndarray:
    """Return a gradient as an array, even if it is only some rows (tf.IndexedSlices)."""
    if not hasattr(gradient, "dense_shape"):
        return np.asarray(gradient)
    array = np.zeros(gradient.dense_shape, gradient.values.dtype)
    np.add.at(array, gradient.indices, gradient.values)
    return array


# Central differences


def differences(
    run: Run, elements: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], tf.DType]:
    """Return the central differences of a loss with respect to these elements of each variable,
    or fed array, and the type in which they were computed.

    A copy in float64 may draw other random numbers from the same seed: its loss shows that.
    """
    refused: RefusedError
    for copy, dtype in graph_copies.copies(run.graph, [node_of(run.tensor), *run.values]):
        try:
            with session.opened(copy, run.options, config=unoptimised(run.options)) as live:
                graph_copies.assign(live, run.values)
                loss = Changed(live, run)
                distance = abs(loss.value(loss.feeds) - run.loss)
                if dtype == tf.float32 or distance <= SAME_LOSS * abs(run.loss):
                    h = STEPS[dtype]
                    return {name: loss.slopes(name, elements[name], h) for name in elements}, dtype
        except RefusedError as error:
            refused = error
    raise refused


class Changed:
    """The loss, with one element of one variable, or of one fed array, changed a little."""

    def __init__(self, live: Any, run: Run) -> None:
        inside = {op.name for op in live.graph.get_operations()}
        self.live, self.run = live, run
        self.feeds = {name: fed for name, fed in run.feeds.items() if node_of(name) in inside}
        self.step = graph_copies.fed_step(live, tuple(self.feeds), (run.tensor,))

    def slopes(self, name: str, elements: np.ndarray, h: float) -> np.ndarray:
        """Return the central differences of the loss with respect to these elements."""
        if name not in self.run.variables:
            tensor = f"{name}:0"
            fed = self.feeds[tensor]
            return differences_at(
                lambda value: self.value({**self.feeds, tensor: value}), fed, elements, h
            )
        setter = self.run.variables[name].setter
        assign = graph_copies.setting(self.live, (setter,))

        def loss(value: np.ndarray) -> float:
            assign(value)
            return self.value(self.feeds)

        slopes = differences_at(loss, self.run.values[setter], elements, h)
        assign(self.run.values[setter])
        return slopes

    def value(self, feeds: Mapping[str, np.ndarray]) -> float:
        return self.step(*feeds.values())[0].item()


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


def unoptimised(options: Options) -> tf.compat.v1.ConfigProto:
    """Return the configuration of a session that neither folds nor merges nodes: it runs each of
    its steps a few times."""
    config = session.config_of(options)
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    return config


def compare(
    name: str,
    gradient: np.ndarray,
    elements: np.ndarray,
    slopes: np.ndarray,
    dtype: tf.DType,
    loss: float,
    largest_of_all: float,
) -> GradientCheck:
    """Compare a gradient with its differences, computed in `dtype`. If both are 0 within rounding,
    no relative error is computed.

    A difference is off by ROUNDINGS * eps * |loss| / h, where eps is that of its dtype. A gradient
    adds up numbers as large as the other gradients, so it is off by ROUNDINGS * eps * max(|loss|,
    the largest gradient of all variables). A wrong gradient is taken for 0 only if the loss does
    not show either that the gradient is not 0.
    """
    analytic = gradient.flat[elements]
    of_slope = ROUNDINGS * EPSILON[dtype] * loss / STEPS[dtype]
    of_gradient = ROUNDINGS * EPSILON[tf.float32] * max(loss, largest_of_all)
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
