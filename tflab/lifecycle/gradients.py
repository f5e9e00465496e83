"""Gradients: the calls of gradient functions as records, from which formulas are derived."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import chain_rule, gradient_nodes, op_rules
from tflab.analysis.gradient_graph import GradientGraph
from tflab.records.gradients import GradientCall
from tflab.records.graph import Node, Source
from tflab.records.stages import Backward
from tflab.runtime import functions, libraries, nodes, private

SMALL = 64  # elements of a constant whose value may appear in a formula
FLAGS = ("transpose_a", "transpose_b", "adj_x", "adj_y")

Calls = Sequence[tuple[Any, Sequence[Any], Sequence[Any]]]


def graph_of(stage: Backward, calls: Calls) -> GradientGraph:
    """Return a differentiated graph with TensorFlow's records of its gradient functions."""
    graph = stage.program.graph
    gradients = (gradient for _, given, returned in calls for gradient in (*given, *returned))
    rows = (name_of(g) for g in gradients if isinstance(g, tf.IndexedSlices))
    return GradientGraph(
        nodes=stage.nodes,
        gradients=stage.gradients,
        shared=stage.shared_nodes,
        calls=tuple(call_record(*call) for call in calls if call[0].graph is graph),
        attributes=attributes(graph, stage.nodes),
        rows=frozenset(filter(None, rows)),
    )


def call_record(op: Any, given: Iterable[Any], returned: Iterable[Any]) -> GradientCall:
    return GradientCall(op.name, tuple(map(name_of, given)), tuple(map(name_of, returned)))


def name_of(gradient: Any) -> str | None:
    """Return the name of a gradient; one that is only some rows is named after the values of those
    rows."""
    if isinstance(gradient, tf.IndexedSlices):
        gradient = gradient.values
    return nodes.tensor_name(gradient) if isinstance(gradient, tf.Tensor) else None


def tensors_of(gradient: Any) -> list[str]:
    """Return the tensors of a gradient: a gradient that is only some rows also has the indices of
    these rows."""
    parts = (gradient.values, gradient.indices) if isinstance(gradient, tf.IndexedSlices) else ()
    tensors = (part for part in parts or (gradient,) if isinstance(part, tf.Tensor))
    return [nodes.tensor_name(tensor) for tensor in tensors]


def only_zeros(gradient: Any) -> bool:
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
        elif node.op in ("MatMul", "BatchMatMulV2"):
            flags = [name for name in FLAGS if name in op.node_def.attr]
            by_node[node.name] = {name: op.get_attr(name) for name in flags}
        elif node.op in op_rules.REDUCTIONS:
            by_node[node.name] = {"keep_dims": op.get_attr("keep_dims")}
        elif node.op == "BiasAddGrad":
            by_node[node.name] = {"data_format": op.get_attr("data_format").decode()}
    return by_node


def with_purposes_and_steps(
    stage: Backward, graph: GradientGraph, pairs: Sequence[Any]
) -> Backward:
    """Return the stage with the purpose of each gradient node and the steps of the chain rule.
    `pairs` are the gradients of the loss, and what the optimiser receives, with the variables."""
    ends = list(dict.fromkeys(tensor for gradient, _ in pairs for tensor in tensors_of(gradient)))
    return replace(
        stage,
        gradient_nodes=gradient_nodes.described(graph, ends, lines(stage, graph)),
        chain_rule=chain_rule.links(graph, ends),
    )


def of_loss(graph: GradientGraph, pairs: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return (gradient of the loss, variable), also if the optimiser receives something else, such
    as clipped gradients; None if that gradient is not a tensor of its own."""
    reader = graph.reader
    gradients = {t for call in graph.calls for t in (*call.incoming, *call.returned)}
    gradients |= reader.names.keys()
    pairs_of_loss = []
    for gradient, variable in pairs:
        if gradient is not None and name_of(gradient) not in gradients:
            name = reader.whole.get(variable.op.name)
            dense = name is not None and name not in reader.rows
            gradient = (
                variable.graph.get_tensor_by_name(tensor_name(name)) if name and dense else None
            )
        pairs_of_loss.append((gradient, variable))
    return pairs_of_loss


def processed(
    graph: GradientGraph, pairs: Sequence[Any], pairs_of_loss: Sequence[Any]
) -> Iterator[str]:
    """Yield the variables whose optimiser receives other numbers than the gradient of the loss."""
    for (gradient, variable), (unchanged, _) in zip(pairs, pairs_of_loss, strict=True):
        got, loss = name_of(gradient), name_of(unchanged)
        if got and loss and graph.points.differ(got, loss):
            yield variable.op.name


def custom(graph: tf.Graph, gradient_graph: GradientGraph) -> Iterator[str]:
    """Yield the forward nodes with a gradient function of their own, instead of that of their
    type."""
    for name in dict.fromkeys(call.forward for call in gradient_graph.calls):
        op = graph.get_operation_by_name(name)
        if "_gradient_op_type" in op.node_def.attr and not functions.calling(op.type):
            yield name


def tensor_name(tensor: str) -> str:
    return tensor if ":" in tensor else f"{tensor}:0"


def lines(stage: Backward, graph: GradientGraph) -> Mapping[str, Source | None]:
    """Return for each gradient node the line of TensorFlow that made it: in the file of the
    gradient function, or at the call in that file."""
    operation = stage.program.graph.get_operation_by_name
    files = {
        gradient.forward: file_of(operation(gradient.forward))
        for gradient in stage.gradients
        if gradient.nodes
    }
    caller = private.gradients_file()
    by_node = {}
    for name, owner in graph.owners().items():
        op = operation(name)
        candidates = (file for file in (files.get(owner), caller) if file)
        frames = (private.frame_within(op, file) for file in candidates)
        frame = next(filter(None, frames), None) or private.making(op, libraries.includes)[0]
        by_node[name] = Source(*frame) if frame else None
    return by_node


# Gradient functions: the functions that TensorFlow has registered for ops, and their files.


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


def file_of(op: tf.Operation) -> str | None:
    """Return where the gradient function of an op is written."""
    try:
        function = private.gradient_function(op)
    except LookupError:
        return None
    return inspect.unwrap(function).__code__.co_filename if function else None
