"""Gradient check: gradients compared with central differences, which use no gradient functions.

The derivative of the loss with respect to one weight is about (loss(w + h) - loss(w - h)) / 2h. The
rounding of a float32 loss is larger than this difference, so the losses are computed in a float64
copy of the forward graph. If it cannot be imported or run, they are computed in float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.errors import RefusedError
from tflab.lifecycle import graph_copies
from tflab.lifecycle.graph_copies import Settable, dtype_of
from tflab.records.graph import VARIABLES, Node, makers, node_of, reach
from tflab.records.options import Options, Program, Start
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
TOGETHER = 20_000  # numbers in all checked variables: if there are no more, one step sets them
# h: a large one crosses more kinks of ReLU and max pooling, a small one shows more of the rounding
STEPS = {tf.float64: 1e-6, tf.float32: 3e-4}
PRECISION = {tf.float64: AGREES, tf.float32: 1e-2}  # relative errors of right gradients
EPSILON = {  # the distance from 1 to the next number
    tf.float64: 2.0**-52,
    tf.float32: 2.0**-23,
    tf.float16: 2.0**-10,
    tf.bfloat16: 2.0**-7,
}
ROUNDINGS = 10  # how many roundings a sum of many numbers is worth
HALF = 20  # roundings of half precision that a right gradient may differ by
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
    its variable. A variable has no error if both are 0 within rounding (see `rounding_of`).
    A random loss has no derivative to compare with. Raises RefusedError if the loss cannot run.
    """
    pairs = [(g, v) for g, v in pairs if g is not None and dtype_of(v) == tf.float32]
    if not pairs:
        return Checked((), NO_FLOATS)
    pairs = spread(pairs, CHECKED)
    needed = reach([program.loss.op.name], makers(nodes))
    used = [node for node in nodes if node.name in needed]
    few = min(options.batch_size, max(ROWS[0], min(ROWS[-1], FLOATS // floats_of_a_row(used))))
    # Grappler changes no gradient, and optimising each of these steps would take longer than to run
    # them.
    plain = replace(options, without=(*options.without, "grappler"))
    try:
        return check_batch(program, used, pairs, plain, program.model.fixed_batch or few)
    except RefusedError as error:
        if type(error) is not RefusedError:
            raise
    # The graph may accept no other batch, or need Grappler.
    return check_batch(program, used, pairs, options, options.batch_size)


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[int(place)] for place in np.linspace(0, len(items) - 1, most)]


def check_batch(
    program: Program, used: Sequence[Node], pairs: Sequence[Any], options: Options, rows: int
) -> Checked:
    """Check the gradients on a batch of this many rows. The loss needs the nodes `used`."""
    batch = next(session.feed_batches(program, rows))
    feeds = feeds_of(program, [gradient for gradient, _ in pairs], batch)
    # Ops that devices cannot run are a matter for placement.
    options = replace(options, soft_placement=True)
    graph, variables = graph_copies.settable(program, variables_of(program.graph, used))
    rng = np.random.default_rng(0)
    with session.fresh(graph, options, unoptimised(options)) as live:
        values = dict(first_values(live, session.start_of(program), variables, rng, NOISE))
        graph_copies.assign(live, values)
        # One step for both, because a session prepares each, which takes long in a large graph
        step = (program.loss.name, [graph_copies.gradient_in_copy(graph, g) for g, _ in pairs])
        loss, gradients = live.run(step, feeds)
        more = RUNS - 1 if may_be_random(program.graph, used) else 1
        again, seconds = losses_of(lambda: live.run(step, feeds)[0], more)
    if reason := no_slope_reason([loss, *again]):
        return Checked((), reason)

    most = affordable(ELEMENTS, seconds)
    checked = spread(list(zip(pairs, map(dense, gradients), strict=True)), most)
    count = min(MOST, max(1, most // len(checked)))
    by_name = {variable.op.name: gradient for (_, variable), gradient in checked}
    elements = {name: chosen(gradient, count, rng) for name, gradient in by_name.items()}
    run = Loss(graph, program.loss.name, options, feeds, variables, values)
    slopes, dtype = differences(run, elements)
    coarsest = graph_copies.coarsest_type(graph, program.loss.op.name)
    rounding = rounding_of(loss, by_name.values(), dtype, coarsest)
    checks = (
        compare(name, gradient, elements[name], slopes[name], rounding)
        for name, gradient in by_name.items()
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


def feeds_of(
    program: Program, gradients: Sequence[Any], batch: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the feeds of a step that computes the loss and these gradients."""
    parts = tf.nest.flatten(gradients, expand_composites=True)
    step = session.step_of(program, [program.loss.name, *(part.name for part in parts)])
    return dict(zip(step.feeds, batch, strict=True))


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
    live: Any,
    start: Start,
    variables: Mapping[str, Settable],
    rng: np.random.Generator,
    noise: float,
) -> Iterator[tuple[str, np.ndarray]]:
    """Initialise the variables; yield a value for the setter of each: the initial one, and a little
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


# Whether the loss has a derivative, and how many differences can be afforded


def may_be_random(graph: tf.Graph, nodes: Iterable[Node]) -> bool:
    """Return True if one of these nodes is stateful, other than variables and their reads."""
    deterministic = {"ReadVariableOp", *VARIABLES}
    return any(
        graph.get_operation_by_name(node.name).op_def.is_stateful
        for node in nodes
        if node.op not in deterministic
    )


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


@dataclass(frozen=True)
class Loss:
    """A loss that can be computed: its graph, its feeds, and the values of variables."""

    graph: tf.Graph
    loss: str  # a tensor
    options: Options
    feeds: Mapping[str, np.ndarray]
    variables: Mapping[str, Settable]
    values: Mapping[str, np.ndarray]  # setter of a variable -> value


def differences(
    run: Loss, elements: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], tf.DType]:
    """Return the central differences of a loss with respect to these elements of each variable,
    or fed array, and the type in which they were computed."""
    refused: RefusedError
    for copy, dtype in graph_copies.copies(run.graph, [node_of(run.loss), *run.values]):
        if dtype == tf.float64 and graph_copies.draws_doubles(copy, node_of(run.loss)):
            continue
        try:
            with session.opened(copy, run.options, config=unoptimised(run.options)) as live:
                graph_copies.assign(live, run.values)
                loss = Changed(live, run, elements)
                return {name: loss.slopes(name, elements[name], dtype) for name in elements}, dtype
        except RefusedError as error:
            refused = error
    raise refused


class Changed:
    """The loss, with one element of one variable, or of one fed array, changed a little.

    Small variables are always set together: a session prepares every new step, which takes long in
    a large graph.
    """

    def __init__(self, live: Any, run: Loss, names: Iterable[str]) -> None:
        inside = {op.name for op in live.graph.get_operations()}
        self.live, self.run = live, run
        self.feeds = {name: fed for name, fed in run.feeds.items() if node_of(name) in inside}
        self.loss = graph_copies.fed_step(live, tuple(self.feeds), (run.loss,))
        setters = [run.variables[name].setter for name in names if name in run.variables]
        together = sum(run.values[setter].size for setter in setters) <= TOGETHER
        self.setters = [setters] if together else [[setter] for setter in setters]

    def slopes(self, name: str, elements: np.ndarray, dtype: tf.DType) -> np.ndarray:
        """Return the central differences of the loss with respect to these elements."""
        if name not in self.run.variables:
            tensor = f"{name}:0"
            return differences_at(
                lambda value: self.value({**self.feeds, tensor: value}),
                self.feeds[tensor],
                elements,
                STEPS[dtype],
            )
        setter = self.run.variables[name].setter
        group = next(group for group in self.setters if setter in group)
        assign = graph_copies.setting(self.live, tuple(group))
        initial = {name: self.run.values[name] for name in group}

        def loss(value: np.ndarray) -> float:
            assign(*{**initial, setter: value}.values())
            return self.value(self.feeds)

        slopes = differences_at(loss, initial[setter], elements, STEPS[dtype])
        assign(*initial.values())
        return slopes

    def value(self, feeds: Mapping[str, np.ndarray]) -> float:
        return self.loss(*feeds.values())[0].item()


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


# Comparing them with gradients


@dataclass(frozen=True)
class Rounding:
    """What rounding alone can make of numbers that are 0."""

    gradient: float  # of an element of a gradient
    slope: float  # of a finite difference
    dtype: tf.DType  # of the differences
    tolerance: float  # relative error of a right gradient, apart from that of `slope`


def rounding_of(
    loss: Any, gradients: Iterable[np.ndarray], dtype: tf.DType, coarsest: tf.DType
) -> Rounding:
    """Return the rounding of a check whose differences are in `dtype`, of gradients of a graph
    whose coarsest type is `coarsest`.

    A finite difference is off by ROUNDINGS * eps * |loss| / h, where eps is that of its dtype. A
    gradient adds up numbers as large as the other gradients, so it is off by ROUNDINGS * eps *
    max(|loss|, the largest gradient of all variables). A wrong gradient is taken for 0 only if the
    loss does not show either that the gradient is not 0.
    """
    size = abs(float(np.asarray(loss).item()))
    finite = (np.abs(gradient[np.isfinite(gradient)]) for gradient in gradients)
    largest = max((float(values.max(initial=0)) for values in finite), default=0.0)
    of_loss = EPSILON[tf.float64 if dtype == tf.float64 else coarsest]
    half = coarsest != tf.float32
    return Rounding(
        gradient=ROUNDINGS * EPSILON[coarsest] * max(size, largest),
        slope=ROUNDINGS * of_loss * size / STEPS[dtype],
        dtype=dtype,
        tolerance=max(PRECISION[dtype], HALF * EPSILON[coarsest] if half else 0),
    )


def compare(
    name: str, gradient: np.ndarray, elements: np.ndarray, slopes: np.ndarray, rounding: Rounding
) -> GradientCheck:
    """Compare a gradient with its differences. If both are 0 within rounding, no relative error is
    computed."""
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
