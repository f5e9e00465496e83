"""Gradients: the calls of gradient functions as records, from which formulas are derived."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from tflab.analysis.gradient_graph import GradientGraph
from tflab.records.gradients import GradientCall
from tflab.records.graph import Node
from tflab.records.stages import Backward
from tflab.runtime import functions, nodes, private

SMALL = 64  # elements of a constant whose value may appear in a formula
# What affects a formula besides types and edges
ATTRIBUTES = ("transpose_a", "transpose_b", "adj_x", "adj_y", "keep_dims", "data_format")

Gradient: TypeAlias = Any  # tf.Tensor, tf.IndexedSlices if it has only some rows, or None
Pairs = Sequence[tuple[Gradient, tf.Variable]]
Calls = Sequence[tuple[tf.Operation, Sequence[Gradient], Sequence[Gradient]]]


def graph_of(stage: Backward, calls: Calls) -> GradientGraph:
    """Return a differentiated graph with TensorFlow's records of its gradient functions."""
    graph = stage.program.graph
    gradients = (gradient for _, given, returned in calls for gradient in (*given, *returned))
    rows = (name_of(g) for g in gradients if isinstance(g, tf.IndexedSlices))
    return GradientGraph(
        nodes=stage.nodes,
        gradients=stage.gradients,
        shared=stage.shared_nodes,
        calls=tuple(
            GradientCall(op.name, tuple(map(name_of, given)), tuple(map(name_of, returned)))
            for op, given, returned in calls
            if op.graph is graph
        ),
        attributes=attributes(graph, stage.nodes),
        rows=frozenset(filter(None, rows)),
    )


def name_of(gradient: Gradient) -> str | None:
    """Return the name of a gradient; one that is only some rows is named after the values of those
    rows."""
    if isinstance(gradient, tf.IndexedSlices):
        gradient = gradient.values
    return nodes.tensor_name(gradient) if isinstance(gradient, tf.Tensor) else None


def tensors_of(gradient: Gradient) -> list[str]:
    """Return the tensors of a gradient: a gradient that is only some rows also has the indices of
    these rows."""
    parts = (gradient.values, gradient.indices) if isinstance(gradient, tf.IndexedSlices) else ()
    tensors = (part for part in parts or (gradient,) if isinstance(part, tf.Tensor))
    return [nodes.tensor_name(tensor) for tensor in tensors]


def only_zeros(gradient: Gradient) -> bool:
    """Return whether the node that makes a gradient can only make zeros."""
    op = gradient.op if isinstance(gradient, tf.Tensor) else None
    while op is not None and op.type in ("Identity", "Fill"):
        op = op.inputs[-1].op  # of a Fill, the value
    if op is None or op.type != "Const":
        return op is not None and op.type == "ZerosLike"
    return not np.any(tf.get_static_value(op.outputs[0]))


def attributes(graph: tf.Graph, listed: Iterable[Node]) -> dict[str, dict[str, Any]]:
    """Return what affects a formula besides types and edges: small constants, and transposes."""
    by_node = {}
    for node in listed:
        op = graph.get_operation_by_name(node.name)
        if node.op == "Const":
            shape = node.outputs[0].shape
            if shape is not None and prod(dim or 0 for dim in shape) <= SMALL:
                by_node[node.name] = {"value": tf.make_ndarray(op.get_attr("value")).tolist()}
            continue
        attrs = op.node_def.attr
        known = {name: op.get_attr(name) for name in ATTRIBUTES if name in attrs}
        if known:
            text = {name: v.decode() for name, v in known.items() if isinstance(v, bytes)}
            by_node[node.name] = known | text
    return by_node


def of_loss(graph: GradientGraph, pairs: Pairs) -> Pairs:
    """Return (gradient of the loss, variable), also if the optimiser receives something else, such
    as clipped gradients; None if that gradient is not a tensor of its own."""
    gradients = {t for call in graph.calls for t in (*call.incoming, *call.returned)}
    gradients |= graph.names.keys()
    pairs_of_loss = []
    for gradient, variable in pairs:
        if gradient is not None and name_of(gradient) not in gradients:
            name = graph.whole.get(variable.op.name)
            dense = name is not None and name not in graph.all_rows
            gradient = (
                variable.graph.get_tensor_by_name(tensor_name(name)) if name and dense else None
            )
        pairs_of_loss.append((gradient, variable))
    return pairs_of_loss


def custom(graph: tf.Graph, gradient_graph: GradientGraph) -> Iterator[str]:
    """Yield the forward nodes with a gradient function of their own, instead of that of their
    type."""
    for name in dict.fromkeys(call.forward for call in gradient_graph.calls):
        op = graph.get_operation_by_name(name)
        if "_gradient_op_type" in op.node_def.attr and not functions.calling(op.type):
            yield name


def tensor_name(tensor: str) -> str:
    return tensor if ":" in tensor else f"{tensor}:0"


def registered(op: tf.Operation) -> tuple[str | None, bool]:
    """Return the registered gradient function as `_MulGrad (math_grad.py:1404)`, and whether the
    type has an entry in the registry; an entry may say "not differentiable"."""
    try:
        function = private.gradient_function(op)
    except LookupError:
        return None, False
    if function is None:
        return None, True
    code = inspect.unwrap(function).__code__
    return f"{code.co_name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})", True
