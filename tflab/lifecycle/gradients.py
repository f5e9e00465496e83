"""Gradients: what each gradient function received, made and returned, and where gradients stop."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from tflab.analysis import gradient_graph
from tflab.analysis.gradient_graph import RETURNED_NONE, ZEROS, GradientGraph, Stops
from tflab.records.graph import (
    GradientCall,
    GradientStop,
    Node,
    graph_def_name,
    grouped,
    reach,
    session_name,
    with_dependents,
    with_makers,
)
from tflab.records.options import Program
from tflab.records.stages import Backward, Gradient
from tflab.runtime import functions
from tflab.runtime.private import graphs
from tflab.views.words import place

SMALL = 64  # elements of a constant whose value may appear in a formula
# What affects a formula besides types and edges
ATTRIBUTES = ("transpose_a", "transpose_b", "adj_x", "adj_y", "keep_dims", "data_format")

NOT_NEEDED = "the loss does not depend on it"
NO_PATH = "no path of tensors leads from it to the loss"
NO_VARIABLE = "it does not depend on a trainable variable"
NO_FLOATS_TO_IT = "no floating-point numbers lead to it from a trainable variable"
NOT_REGISTERED = "no gradient function is registered for its op"
NO_INPUTS = "it has no inputs, so its gradient goes no further"
NOT_DIFFERENTIABLE = "its op is registered as not differentiable"
NO_FLOATS = "its result is not a floating-point number"
NOT_CALLED = "no gradient reaches it"
NONE_MADE = "its gradient function adds no node"
GRADIENT_TYPES = ("float", "bfloat", "complex", "resource", "variant")  # prefixes of types
STOPS_AT = "its gradient stops at"
MOST_ON_PATH = 100  # nodes of a path that are kept

GradientTensor: TypeAlias = tf.Tensor | tf.IndexedSlices | None  # all of it, some rows, or none
Pairs = Sequence[tuple[GradientTensor, tf.Variable]]
Call = tuple[tf.Operation, Sequence[GradientTensor], Sequence[GradientTensor]]
Calls = Sequence[Call]


def registered(op: tf.Operation) -> tuple[str | None, str]:
    """Return the gradient function, `_MulGrad (math_grad.py:1404)`, or why there is none."""
    try:
        function = graphs.gradient_function(op)
    except LookupError:
        return None, NOT_REGISTERED
    if function is None:
        return None, NOT_DIFFERENTIABLE
    code = inspect.unwrap(function).__code__
    return f"{code.co_name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})", ""


# Nodes that each function made, or why it made none


def rows_and_stops(
    program: Program,
    forward: tuple[Node, ...],
    gradient_ops: Iterable[tf.Operation],
    calls: Calls,
    pairs: Pairs,
) -> tuple[tuple[Gradient, ...], tuple[GradientStop, ...]]:
    """Return the gradient function and the gradient nodes of each forward node, or why it has none;
    and where the gradients of variables stop."""
    origins = ((graphs.original_op(op), op.name) for op in gradient_ops)
    derived = grouped((origin.name, name) for origin, name in origins if origin is not None)
    calls_of = grouped((call[0].name, call) for call in calls if call[0].graph is program.graph)
    by_name = {node.name: node for node in forward}
    functions_of = {}
    for node in forward:
        function, why = registered(program.graph.get_operation_by_name(node.name))
        functions_of[node.name] = function, why or ("" if differentiable(node) else NO_FLOATS)
    needed = with_makers(forward, [program.loss.op.name])
    variables = program.graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
    variables += program.model.parameters
    own = [variable.op.name for variable in variables]
    trained = with_dependents(forward, own)
    # `tf.gradients` calls the gradient functions of these alone
    ends = ((op, t) for op in map(program.graph.get_operation_by_name, by_name) for t in op.inputs)
    real = ((t.op.name, op.name) for op, t in ends if t.dtype.name.startswith(GRADIENT_TYPES))
    reached = reach(own, grouped(real))
    listed = [node for node in forward if node.name in needed and node.name in trained]
    without = {  # why an op has no gradient; functions that nodes call have one of their own
        node.name: why
        for node in listed
        if (why := functions_of[node.name][1])
        and not (node.name in calls_of or functions.calling(node.op))
    }
    stops = gradient_graph.stops(listed, program.loss.op.name, without, handed(calls_of))

    def reason(node: Node) -> str:
        """Return why a node has no gradient nodes."""
        if node.name not in needed:
            return NOT_NEEDED
        if node.name not in trained:
            return NO_VARIABLE
        if node.name not in reached:
            return NO_FLOATS_TO_IT
        if stops.at(node.name) and differentiable(node):
            ends = [(by_name[end], stops.reasons[end]) for end in stops.at(node.name)]
            places = [", ".join(filter(None, (end.op, place(end.line)))) for end, _ in ends]
            said = zip(ends, places, strict=True)
            return STOPS_AT + "; ".join(f" {end.name} ({at}): {why}" for (end, why), at in said)
        if not node.inputs:
            return NO_INPUTS
        return functions_of[node.name][1] or (NONE_MADE if node.name in calls_of else NOT_CALLED)

    rows = []
    for node in forward:
        made, function = tuple(derived.get(node.name, ())), functions_of[node.name][0]
        rows.append(Gradient(node.name, node.op, function, made, None if made else reason(node)))
    return tuple(rows), tuple(of_variables(by_name, pairs, stops, needed))


def handed(calls_of: Mapping[str, Calls]) -> dict[tuple[str, str], str]:
    """Return what is wrong with each gradient, by (op, node of its input); "" if nothing."""
    wrongs: dict[tuple[str, str], str] = {}
    for name, made in calls_of.items():
        for op, _, returned in made:
            for tensor, gradient in zip(op.inputs, returned, strict=False):
                wrong = RETURNED_NONE if gradient is None else ZEROS * only_zeros(gradient)
                wrongs[name, tensor.op.name] = wrongs.get((name, tensor.op.name), wrong) and wrong
    return wrongs


def only_zeros(gradient: GradientTensor) -> bool:
    """Return whether the node that makes a gradient can only make zeros."""
    op = gradient.op if isinstance(gradient, tf.Tensor) else None
    while op is not None and op.type in ("Identity", "Fill"):
        op = op.inputs[-1].op  # of a Fill, the value
    if op is None or op.type != "Const":
        return op is not None and op.type == "ZerosLike"
    return not np.any(tf.get_static_value(op.outputs[0]))


def of_variables(
    by_name: Mapping[str, Node], pairs: Pairs, stops: Stops, needed: Collection[str]
) -> Iterator[GradientStop]:
    """Yield where gradients stop, for the variables that get no gradient, or only zeros."""
    for gradient, variable in pairs:
        name = variable.op.name
        ends = stops.at(name)
        if gradient is None and name not in needed:
            yield GradientStop(name, "", "", None, NO_PATH, ())
        elif gradient is None or all(stops.reasons[end] == ZEROS for end in ends):
            for end in ends:
                node, path = by_name[end], tuple(islice(stops.path(name, end), MOST_ON_PATH))
                yield GradientStop(name, end, node.op, node.line, stops.reasons[end], path)


def differentiable(node: Node) -> bool:
    """Return whether a node has an output through which a gradient can come."""
    return any(output.dtype.startswith(GRADIENT_TYPES) for output in node.outputs)


# The calls as records, from which formulas are derived


def parts_of(gradient: GradientTensor) -> list[str]:
    """Return the tensors of a gradient; for only some rows, their values, indices and perhaps the
    shape; none if there is no gradient."""
    parts = tf.nest.flatten(gradient, expand_composites=True)
    return [part.name for part in parts if isinstance(part, tf.Tensor)]


def names_of(gradient: GradientTensor) -> list[str]:
    """Return the name of a gradient's tensor; of only some rows, those of values and indices."""
    return [graph_def_name(part) for part in parts_of(gradient)[:2]]


def graph_of(stage: Backward, calls: Calls) -> GradientGraph:
    """Return a differentiated graph with TensorFlow's records of its gradient functions."""
    graph = stage.program.graph

    def named(gradients: Sequence[GradientTensor]) -> tuple[str | None, ...]:
        return tuple(next(iter(names_of(gradient)), None) for gradient in gradients)

    every = (gradient for _, *ends in calls for gradients in ends for gradient in gradients)
    slices = (gradient for gradient in every if isinstance(gradient, tf.IndexedSlices))
    owned = {*stage.update_nodes, *(name for row in stage.gradients for name in row.nodes)}
    return GradientGraph(
        nodes=stage.nodes,
        gradients=stage.gradients,
        shared=tuple(name for name in stage.added_nodes if name not in owned),
        calls=tuple(
            GradientCall(op.name, named(given), named(returned))
            for op, given, returned in calls
            if op.graph is graph
        ),
        attributes=attributes(graph, stage.nodes),
        rows=frozenset(names_of(gradient)[0] for gradient in slices),
    )


def attributes(graph: tf.Graph, listed: Iterable[Node]) -> dict[str, dict[str, object]]:
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
    """Return (gradient of the loss, variable) for each pair, also if the optimiser receives another
    one, such as a clipped gradient. It is None if that gradient is not a tensor of its own."""
    gradients = {t for call in graph.calls for t in (*call.incoming, *call.returned)}
    gradients |= graph.names.keys()
    pairs_of_loss = []
    for gradient, variable in pairs:
        if gradient is not None and names_of(gradient)[0] not in gradients:
            name = graph.whole.get(variable.op.name)
            dense = session_name(name) if name and name not in graph.all_rows else None
            gradient = variable.graph.get_tensor_by_name(dense) if dense else None
        pairs_of_loss.append((gradient, variable))
    return pairs_of_loss
