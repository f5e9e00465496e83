"""Differences: gradients held against something that knows nothing of gradients.

The derivative of the loss by one weight is about (loss(w + h) - loss(w - h)) / 2h. In float32
the rounding of the loss drowns that difference, so it is taken in a copy of the forward graph in
which every float32 has become a float64. The gradients are those of the real graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import session
from tflab.records import GradientCheck, Options, Program, node_of

ROWS = 8  # of the batch: enough to reach every layer, few enough to be quick
VARIABLES = 40  # at most, spread over the model: each costs a few runs of its own
ELEMENTS = 8  # of each variable: the largest gradients and a random choice
NOISE = 0.01  # added to the weights: zero biases on black pixels sit exactly on the kink of ReLU
STEPS = {  # h in the formula above; its own error is about h^2, that of rounding epsilon / h
    tf.float64: 1e-6,
    tf.float32: 1e-2,
}


def check(program: Program, pairs: Sequence[Any], options: Options) -> tuple[GradientCheck, ...]:
    """Compare gradients of some elements of every variable; `pairs` are (gradient, variable).

    The error of an element is |analytic - numeric| over the largest gradient looked at in its
    variable. Returns nothing when the loss differs from run to run (dropout, say): then there is
    no derivative to compare with.
    """
    pairs = [(g, v) for g, v in pairs if g is not None and v.dtype.base_dtype == tf.float32]
    pairs = pairs[:: -(-len(pairs) // VARIABLES) or 1]
    batch = next(session.feed_batches(program, min(options.batch_size, ROWS)))
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
    checks = []
    with session.opened(graph, config) as live:
        assign(live, values)
        for gradient, (_, variable) in zip(gradients, pairs, strict=True):
            initializer = variable.initializer.name
            elements = chosen(gradient, rng)

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


def slope(loss: Callable[[np.ndarray], float], value: np.ndarray, element: int, h: float) -> float:
    """The central difference of the loss by one element of one variable."""
    losses = []
    for shift in (h, -h):
        moved = np.array(value, np.float64)
        moved.flat[element] += shift
        losses.append(loss(moved))
    return (losses[0] - losses[1]) / (2 * h)


def chosen(gradient: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Indices of the largest gradients and of random others, ELEMENTS in all if there are."""
    order = np.argsort(-np.abs(gradient), axis=None)
    largest, others = order[: ELEMENTS // 2], order[ELEMENTS // 2 :]
    more = rng.choice(others, min(ELEMENTS - len(largest), len(others)), replace=False)
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
    """The same GraphDef with float64 wherever float32 stood: types, lists of types, constants."""
    wide = type(graph_def)()
    wide.CopyFrom(graph_def)
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
    return wide
