"""Differences: gradients held against something that knows nothing of gradients.

The derivative of the loss by one weight is about (loss(w + h) - loss(w - h)) / 2h. In float32
the rounding of the loss drowns that difference, so it is taken in a copy of the forward graph in
which every float32 has become a float64. The gradients are those of the real graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import session
from tflab.records import GradientCheck, Options, Program, node_of

ROWS = range(2, 9)  # of the batch: enough to reach every layer, few enough to be quick
FLOATS = 2_000_000  # in all tensors of the loss: rows are left out until there are no more
VARIABLES = 80  # at most, spread over the model: each costs a few runs of its own
ELEMENTS = 80  # in all: each costs two runs of the loss
MOST = 8  # of them of one variable: the largest gradients and a random choice
NOISE = 0.01  # added to the weights: zero biases on black pixels sit exactly on the kink of ReLU
STEPS = {  # h in the formula above; its own error is about h^2, that of rounding epsilon / h
    tf.float64: 1e-6,
    tf.float32: 1e-2,
}


def check(program: Program, pairs: Sequence[Any], options: Options) -> tuple[GradientCheck, ...]:
    """Compare gradients of some elements of every variable; `pairs` are (gradient, variable).

    The error of an element is |analytic - numeric| over the largest gradient looked at in its
    variable. Returns nothing when the loss differs from run to run (as with `tf.nn.dropout`; masks
    that follow from a variable stay the same): then there is no derivative to compare with.
    """
    pairs = [(g, v) for g, v in pairs if g is not None and v.dtype.base_dtype == tf.float32]
    pairs = pairs[:: -(-len(pairs) // VARIABLES) or 1]
    rows = min(options.batch_size, max(ROWS[0], min(ROWS[-1], FLOATS // floats_of_a_row(program))))
    batch = next(session.feed_batches(program, rows))
    feeds = dict(zip(session.step_of(program, ()).feeds, batch, strict=True))
    rng = np.random.default_rng(0)
    # What the devices cannot do is not the question here: that comes with placement.
    config = session.config_of(replace(options, soft_placement=True))
    variables = program.graph.get_collection("variables")
    with session.opened(program.graph, config, session.start_of(program)) as live:
        values = {}
        for variable, value in zip(variables, live.run(variables), strict=True):
            noise = rng.normal(0, NOISE, value.shape) if value.dtype == np.float32 else 0
            values[variable.initializer.name] = np.asarray(value + noise, value.dtype)
        assign(live, values)
        gradients = [dense(gradient) for gradient in live.run([g for g, _ in pairs], feeds)]
        losses = {float(live.run(program.model.loss, feeds)) for _ in range(2)}
    if len(losses) > 1:
        return ()

    graph, dtype = forward_copy(program, list(values))
    count = min(MOST, max(1, ELEMENTS // (len(pairs) or 1)))
    checks = []
    with session.opened(graph, config) as live:
        assign(live, values)
        for gradient, (_, variable) in zip(gradients, pairs, strict=True):
            initializer = variable.initializer.name
            elements = chosen(gradient, count, rng)

            def loss(value: np.ndarray, initializer: str = initializer) -> float:
                assign(live, {initializer: value})
                return float(live.run(program.model.loss.name, feeds))

            numeric = [slope(loss, values[initializer], one, STEPS[dtype]) for one in elements]
            assign(live, {initializer: values[initializer]})
            analytic = gradient.flat[elements]
            scale = max(np.abs(analytic).max(), np.abs(numeric).max())
            error = np.abs(analytic - numeric).max() / scale if scale else 0.0
            found = (float(error), len(elements), gradient.size, dtype.name)
            checks.append(GradientCheck(variable.op.name, *found))
    return tuple(checks)


def floats_of_a_row(program: Program) -> int:
    """How many numbers are computed for one row of the batch on the way to the loss.

    A few in a million of them fall just on the other side of ReLU's kink in float64, and there the
    two gradients differ: another reason to keep the batch of a large model small.
    """
    graph = program.graph
    needed = pruned(graph.as_graph_def(), [program.model.loss.op.name]).node
    tensors = (t for node in needed for t in graph.get_operation_by_name(node.name).outputs)
    shapes = (t.shape.as_list() for t in tensors if t.shape.rank)
    return sum(prod(dims) for batch, *dims in shapes if batch is None and None not in dims) or 1


def slope(loss: Callable[[np.ndarray], float], value: np.ndarray, element: int, h: float) -> float:
    """The central difference of the loss by one element of one variable."""
    losses = []
    for shift in (h, -h):
        moved = np.array(value, np.float64)
        moved.flat[element] += shift
        losses.append(loss(moved))
    return (losses[0] - losses[1]) / (2 * h)


def chosen(gradient: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of the largest gradients and of random others, `count` in all if there are."""
    order = np.argsort(-np.abs(gradient), axis=None)
    half = (count + 1) // 2
    largest, others = order[:half], order[half:]
    more = rng.choice(others, min(count - len(largest), len(others)), replace=False)
    return np.sort(np.concatenate([largest, more]))


def dense(gradient: Any) -> np.ndarray:
    """A gradient as an array, also when only some rows of it came (tf.IndexedSlices)."""
    if not hasattr(gradient, "dense_shape"):
        return np.asarray(gradient)
    array = np.zeros(gradient.dense_shape, gradient.values.dtype)
    np.add.at(array, gradient.indices, gradient.values)
    return array


def assign(live: Any, values: Mapping[str, np.ndarray]) -> None:
    """Set variables, by the names of their initializers, by feeding their initial values: that
    takes no new node in the graph."""
    feeds = {live.graph.get_operation_by_name(name).inputs[1]: v for name, v in values.items()}
    live.run(list(values), feeds)


def forward_copy(program: Program, initializers: Sequence[str]) -> tuple[tf.Graph, tf.DType]:
    """The part of the graph that computes the loss, in float64 where its ops allow it."""
    ends = [program.model.loss.op.name, *initializers]
    graph_def = pruned(program.graph.as_graph_def(), ends)
    if not graph_def.library.function:
        try:
            return imported(widened(graph_def)), tf.float64
        except ValueError:  # an op that has no float64 version
            pass
    return imported(graph_def), tf.float32


def pruned(graph_def: Any, ends: Sequence[str]) -> Any:
    """Only what these nodes depend on; the function library stays."""
    inputs = {node.name: node.input for node in graph_def.node}
    needed, waiting = set(ends), list(ends)
    while waiting:
        for tensor in inputs[waiting.pop()]:
            name = node_of(tensor.removeprefix("^"))
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    kept = [node for node in graph_def.node if node.name in needed]
    return tf1.GraphDef(node=kept, library=graph_def.library, versions=graph_def.versions)


def imported(graph_def: Any) -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    return graph


def widened(graph_def: Any) -> Any:
    """The same GraphDef with float64 wherever float32 stood: types, lists of types, constants.

    Fused batch norm, which has no such version, becomes a call of its formula.
    """
    wide = type(graph_def)()
    wide.CopyFrom(graph_def)
    formulas: dict[str, Any] = {}
    float32, float64 = tf.float32.as_datatype_enum, tf.float64.as_datatype_enum
    for node in wide.node:
        for attr in node.attr.values():
            if attr.type == float32:
                attr.type = float64
            for index, dtype in enumerate(attr.list.type):
                if dtype == float32:
                    attr.list.type[index] = float64
            if attr.tensor.dtype == float32:
                value = tf.make_ndarray(attr.tensor).astype(np.float64)
                attr.tensor.CopyFrom(tf.make_tensor_proto(value, tf.float64))
        if node.op == "FusedBatchNormV3" and node.attr["data_format"].s == b"NHWC":
            formula = batch_norm(node.attr["epsilon"].f, node.attr["is_training"].b)
            node.op = formula.signature.name
            node.attr.clear()
            formulas[node.op] = formula
    wide.library.function.extend(formulas.values())
    return wide


@functools.cache
def batch_norm(epsilon: float, training: bool) -> Any:
    """Batch norm in plain float64 ops, as a FunctionDef; of its outputs only the first."""
    images, vector = (tf.TensorSpec([None] * rank, tf.float64) for rank in (4, 1))

    @tf.function(input_signature=[images, vector, vector, vector, vector])
    def formula(
        x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
    ) -> tf.Tensor:
        if training:
            mean, variance = tf.nn.moments(x, axes=[0, 1, 2])
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)

    return formula.get_concrete_function().function_def
