"""Functions: the library of a graph, whose functions its nodes call by name.

`If`, `While` and `PartitionedCall` name functions in attributes; these are FunctionDefs in a
library next to the nodes. They are read as they are written: nothing is imported or run, so a file
may contain anything. `origins` follows inlined nodes back into the functions that they come from.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

import tensorflow as tf

from tflab.records.graph import Call, Function, Lines, Node, Shape, Source, Tensor, output_name
from tflab.runtime import nodes, private

ARGUMENT = "_Arg"  # the type that the runtime gives to a function's argument when it is called

Calls = Iterable[tuple[str, Call]]  # (function, who calls it)


def of_graph(graph: tf.Graph, lines: Lines = nodes.NONE) -> tuple[Function, ...]:
    """The functions of a live graph. Those made in this process know the user's lines; for
    others, `lines` may have them."""
    traced = private.traced_graphs(graph)
    if not traced:
        return ()  # so the graph need not be serialised to find its library
    definitions = {d.signature.name: d for d in graph.as_graph_def().library.function}
    calls = (
        call
        for op in graph.get_operations()
        if op.type in definitions or calling(op.type)
        for call in calls_of(op.node_def, definitions)
    )
    return tuple(in_order(calls, definitions, traced, lines))


def of_graph_def(graph_def: Any, lines: Lines = nodes.NONE) -> tuple[Function, ...]:
    """The functions of a graph that need not be importable."""
    definitions = {d.signature.name: d for d in graph_def.library.function}
    calls = (call for node in graph_def.node for call in calls_of(node, definitions))
    return tuple(in_order(calls, definitions, {}, lines))


def in_order(
    calls: Calls, definitions: Mapping[str, Any], traced: Mapping[str, Any], lines: Lines
) -> Iterator[Function]:
    """The functions in the order in which the graph's calls lead to them, then the others.

    A function that is called but missing has no nodes. Functions may call each other in a circle.
    """
    called_by: dict[str, list[Call]] = {}
    callees: dict[str | None, list[str]] = {}
    inside = (
        call
        for name in sorted(definitions)  # a graph's library has no order of its own
        for node_def in definitions[name].node_def
        for call in calls_of(node_def, definitions, name)
    )
    for name, call in chain(calls, inside):
        called_by.setdefault(name, []).append(call)
        callees.setdefault(call.function, []).append(name)
    order: dict[str, None] = {}
    waiting: list[str | None] = [None]
    while waiting:
        new = dict.fromkeys(callee for name in waiting for callee in callees.get(name, ()))
        waiting = [name for name in new if name not in order]
        order |= new
    sources: defaultdict[str | None, dict[str, Source | None]] = defaultdict(dict)
    for (where, node), source in lines.items():
        sources[where][node] = source
    signatures = {name: definition.signature for name, definition in definitions.items()}
    for name in order | dict.fromkeys(definitions) | dict.fromkeys(called_by):
        callers = tuple(called_by.get(name, ()))
        if name in definitions:
            yield function(definitions[name], callers, traced.get(name), signatures, sources[name])
        else:
            yield Function(name, callers)


def calls_of(
    node_def: Any, definitions: Mapping[str, Any], inside: str | None = None
) -> Iterator[tuple[str, Call]]:
    """The functions that a node names: as its type, or in attributes of type func or list(func)."""
    if node_def.op in definitions:
        yield node_def.op, Call(node_def.name, "", inside)
    is_registered = nodes.op_def_of(node_def.op) is not None
    for attribute in calling(node_def.op) if is_registered else sorted(node_def.attr):
        if attribute not in node_def.attr:
            continue
        value = node_def.attr[attribute]
        if value.WhichOneof("value") == "func":
            if value.func.name:
                yield value.func.name, Call(node_def.name, attribute, inside)
        else:
            for index, func in enumerate(value.list.func):
                yield func.name, Call(node_def.name, f"{attribute}[{index}]", inside)


@functools.cache
def calling(op: str) -> tuple[str, ...]:
    """The attributes of a type in which it names functions: `then_branch`, `else_branch`."""
    op_def = nodes.op_def_of(op)
    attributes = op_def.attr if op_def else ()
    return tuple(a.name for a in attributes if a.type in ("func", "list(func)"))


def function(
    definition: Any,
    called_by: tuple[Call, ...],
    traced: Any,
    signatures: Mapping[str, Any],
    lines: Mapping[str, Source | None],
) -> Function:
    """One FunctionDef, with lines and shapes from the graph that it was traced in, if any."""
    makers = {name: Node(name, "", source=source) for name, source in lines.items()}
    shapes: dict[str, Shape] = {}
    if traced:
        makers, shapes = makers_and_shapes(definition, traced)
    by_name = {node_def.name: node_def for node_def in definition.node_def}
    arguments = zip_longest(definition.signature.input_arg, traced.inputs if traced else ())
    body = [argument(arg, tensor, lines.get(arg.name)) for arg, tensor in arguments if arg]
    for node_def in definition.node_def:
        node = nodes.from_node_def(node_def, makers, shapes, signatures)
        inputs = tuple(graph_name(tensor, by_name, signatures) for tensor in node.inputs)
        body.append(replace(node, inputs=inputs))
    results = (definition.ret.get(arg.name, "") for arg in definition.signature.output_arg)
    returns = tuple(graph_name(result, by_name, signatures) for result in results if result)
    ends = tuple(sorted({*definition.control_ret.values()}))  # a map of a proto has no order
    return Function(definition.signature.name, called_by, tuple(body), returns, ends)


def argument(arg: Any, tensor: Any, source: Source | None) -> Node:
    """An argument as a node; `tensor` represented it during tracing, if this process traced it."""
    shape: Shape = None
    if tensor is not None:
        shape, source = nodes.shape_of(tensor.shape), nodes.made_by(tensor.op)[0]
    outputs = (Tensor(nodes.dtype_name(arg.type), shape),) if arg.type else ()
    return Node(arg.name, ARGUMENT, outputs=outputs, source=source)


def makers_and_shapes(
    definition: Any, traced: tf.Graph
) -> tuple[dict[str, Node], dict[str, Shape]]:
    """The nodes with their lines and phases, and the shapes of their outputs, from the traced
    graph.

    That graph may have grown since, and the node of a result may be `mul_0` in the definition and
    `mul` in the graph.
    """
    ops = {op.name: op for op in traced.get_operations()}
    makers: dict[str, Node] = {}
    shapes: dict[str, Shape] = {}
    for node_def in definition.node_def:
        name = node_def.name
        op = ops.get(name) or ops.get(name.rpartition("_")[0])
        if op is None or op.type != node_def.op:
            continue
        makers[name] = nodes.from_operation(op)
        for index, out in enumerate(op.outputs):
            shapes[output_name(name, index)] = nodes.shape_of(out.shape)
    return makers, shapes


def graph_name(tensor: str, by_name: Mapping[str, Any], signatures: Mapping[str, Any]) -> str:
    """Return a tensor of a function, whose nodes are `by_name`, as a graph would name it.

    A FunctionDef writes `split:output:1`, naming the argument of the OpDef that the output is of;
    a GraphDef counts through all outputs and writes `split:1`. What does not fit is left alone.
    """
    node, *rest = tensor.split(":")
    if rest and node in by_name:
        start = first_output(by_name[node], rest[0], signatures)
        if start is None or not all(n.isdecimal() and len(n) < 10 for n in rest[1:]):
            return tensor
        rest = [str(start + sum(map(int, rest[1:2])))]
    return node if rest in ([], ["0"]) else ":".join([node, *rest])


def first_output(node_def: Any, argument: str, signatures: Mapping[str, Any]) -> int | None:
    total = 0
    for arg in nodes.output_args(node_def.op, signatures):
        if arg.name == argument:
            return total
        total += nodes.count_of(arg, node_def)
    return None


# Nodes that the runtime inlined. It replaces a call by the body of its function, and names each
# node after the call: `call/mul`. In a branch or a loop these are `cond/then/_3/mul` and
# `loop/body/_8/mul`. Nodes that pass values in and out (`loop/enter/_4`) have no counterpart in a
# body: they have the line of the call. (tensorflow/core/common_runtime: inline_function_utils.cc,
# lower_if_op.cc, lower_while_op.cc.)

PART = re.compile(r"(then|else|cond|body)/_\d+/")
ATTRIBUTES = {"then": "then_branch", "else": "else_branch", "cond": "cond", "body": "body"}
BESIDE = "Func/"  # prefix of nodes that keep the order around a body

Bodies = Mapping[str | None, Mapping[str, Node]]  # function (None: the graph itself) -> its nodes
Attributes = Mapping[tuple[str | None, str], Mapping[str, str]]


def origins(
    names: Iterable[str], nodes: Iterable[Node], functions: Iterable[Function]
) -> Iterator[tuple[str, Node]]:
    """The names of inlined nodes, each with the node that it was copied from.

    Without a line of its own, that node has the line of the innermost call; a node without a
    counterpart in a body gets the node of the call.
    """
    functions = tuple(functions)
    bodies: dict[str | None, dict[str, Node]] = {
        function.name: {node.name: node for node in function.nodes} for function in functions
    }
    bodies[None] = {node.name: node for node in nodes}
    calls: dict[tuple[str | None, str], dict[str, str]] = {}
    for function in functions:
        for call in function.called_by:
            calls.setdefault((call.function, call.node), {})[call.attribute] = function.name
    for name in names:
        node = origin(name.removeprefix(BESIDE), bodies, calls)
        if node:
            yield name, node


def origin(name: str, bodies: Bodies, calls: Attributes) -> Node | None:
    """Follow a name from call to call into the functions, as far as possible."""
    inside: str | None = None
    nearest: Node | None = None  # the innermost call on the way
    while True:
        body = bodies.get(inside, {})
        if name in body:
            return with_line_of(body[name], nearest)
        call = next((part for part in scopes(name) if (inside, part) in calls), None)
        if call is None:
            return nearest
        if call in body:
            nearest = with_line_of(body[call], nearest)
        called = calls[inside, call]
        name = name[len(call) + 1 :]
        part = PART.match(name)
        if part:
            inside, name = called.get(ATTRIBUTES[part[1]]), name[part.end() :]
        else:
            inside = next(iter(called.values())) if len(called) == 1 else None
        if inside is None:
            return nearest


def with_line_of(node: Node, call: Node | None) -> Node:
    """The node, with the line of the call if it has none."""
    return replace(node, source=call.line) if call and not node.line else node


def scopes(name: str) -> Iterator[str]:
    """The scopes that contain a name, the innermost first."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
