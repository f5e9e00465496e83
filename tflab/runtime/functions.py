"""Functions: the library of a graph, whose functions its nodes call by name.

`If`, `While` and `PartitionedCall` name functions in attributes; these are FunctionDefs in a
library next to the nodes. They are read as they are written: nothing is imported or run, so a file
may contain anything.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, zip_longest

import tensorflow as tf
from tensorflow.compat.v1 import GraphDef, NodeDef
from tensorflow.core.framework.function_pb2 import FunctionDef

from tflab.records.graph import Call, Function, Node, Shape, Source, Tensor, output_name
from tflab.runtime import nodes
from tflab.runtime.private import graphs, source_lines

ARGUMENT = "_Arg"  # the type that the runtime gives to a function's argument when it is called

Traced = Mapping[str, tf.Graph | None]  # function -> the graph that this process traced it in


def of_graph(graph: tf.Graph) -> tuple[Function, ...]:
    """Return the functions of a live graph. Those made in this process know the user's lines."""
    traced = graphs.traced_graphs(graph)
    if not traced:
        return ()  # so the graph need not be serialised to find its library
    library = Library(graph.as_graph_def().library.function, traced)
    ops = graph.get_operations()
    return library.read(
        op.node_def for op in ops if op.type in library.definitions or calling(op.type)
    )


def of_graph_def(graph_def: GraphDef) -> tuple[Function, ...]:
    """Return the functions of a graph that need not be importable."""
    return Library(graph_def.library.function, {}).read(graph_def.node)


@functools.cache
def calling(op: str) -> tuple[str, ...]:
    """Return the attributes of a type in which it names functions: `then_branch`, `else_branch`."""
    op_def = nodes.op_def_of(op)
    attributes = op_def.attr if op_def else ()
    return tuple(a.name for a in attributes if a.type in ("func", "list(func)"))


class Library:
    """The functions of a graph, with the lines of their nodes if this process traced them."""

    def __init__(self, definitions: Iterable[FunctionDef], traced: Traced) -> None:
        self.definitions = {one.signature.name: one for one in definitions}
        self.signatures = {name: one.signature for name, one in self.definitions.items()}
        self.traced = traced

    def read(self, graph_nodes: Iterable[NodeDef]) -> tuple[Function, ...]:
        """Return all functions: those that the graph calls in the order of the calls, then others.
        A called function that is missing has no nodes."""
        called_by: dict[str, list[Call]] = {}
        callees: dict[str | None, dict[str, None]] = {}
        inside = (  # a graph's library has no order of its own
            (node, name)
            for name in sorted(self.definitions)
            for node in self.definitions[name].node_def
        )
        for node, function in chain(((node, None) for node in graph_nodes), inside):
            for name, attribute in self.named(node):
                called_by.setdefault(name, []).append(Call(node.name, attribute, function))
                callees.setdefault(function, {})[name] = None
        order: dict[str, None] = {}
        reached: list[str | None] = [None]
        for caller in reached:  # which grows
            new = [name for name in callees.get(caller, ()) if name not in order]
            reached += new
            order |= dict.fromkeys(new)
        names = order | dict.fromkeys((*self.definitions, *called_by))
        return tuple(self.function(name, tuple(called_by.get(name, ()))) for name in names)

    def named(self, node: NodeDef) -> Iterator[tuple[str, str]]:
        """Yield the functions that a node names, with the attribute, or "" for the node's type."""
        if node.op in self.definitions:
            yield node.op, ""
        is_registered = nodes.op_def_of(node.op) is not None
        for attribute in calling(node.op) if is_registered else sorted(node.attr):
            if attribute not in node.attr:
                continue
            value = node.attr[attribute]
            if value.WhichOneof("value") == "func":
                if value.func.name:
                    yield value.func.name, attribute
            else:
                for index, func in enumerate(value.list.func):
                    yield func.name, f"{attribute}[{index}]"

    def function(self, name: str, called_by: tuple[Call, ...]) -> Function:
        """Return a function, with lines and shapes from the graph that it was traced in, if any."""
        if name not in self.definitions:
            return Function(name, called_by)
        definition, traced = self.definitions[name], self.traced.get(name)
        by_name = {node.name: node for node in definition.node_def}
        makers: dict[str, Node] = {}
        shapes: dict[str, Shape] = {}
        # The traced graph may have grown since, and the node of a result may be `mul_0` in the
        # definition and `mul` in the graph
        ops = {op.name: op for op in traced.get_operations()} if traced else {}
        for node_def in definition.node_def:
            op = ops.get(node_def.name) or ops.get(node_def.name.rpartition("_")[0])
            if op is not None and op.type == node_def.op:
                makers[node_def.name] = nodes.from_operation(op)
                for index, out in enumerate(op.outputs):
                    shapes[output_name(node_def.name, index)] = nodes.shape_of(out.shape)
        body = []
        known = traced.inputs if traced else ()  # the tensors of the arguments
        for arg, tensor in zip_longest(definition.signature.input_arg, known):
            if arg:
                shape = nodes.shape_of(tensor.shape) if tensor is not None else None
                line = source_lines.making(tensor.op)[0] if tensor is not None else None
                outputs = (Tensor(nodes.dtype_name(arg.type), shape),) if arg.type else ()
                body.append(Node(arg.name, ARGUMENT, outputs=outputs, source=line))
        for node_def in definition.node_def:
            node = nodes.from_node_def(node_def, makers, shapes, self.signatures)
            inputs = tuple(self.graph_name(tensor, by_name) for tensor in node.inputs)
            body.append(replace(node, inputs=inputs))
        results = (definition.ret.get(arg.name, "") for arg in definition.signature.output_arg)
        returns = tuple(self.graph_name(result, by_name) for result in results if result)
        ends = tuple(sorted({*definition.control_ret.values()}))  # a map of a proto has no order
        return Function(name, called_by, tuple(body), returns, ends)

    def graph_name(self, tensor: str, by_name: Mapping[str, NodeDef]) -> str:
        """Return the name that a graph would give to a tensor of a function. A FunctionDef writes
        `split:output:1`, where `output` is an argument of the OpDef; a GraphDef counts through all
        outputs and writes `split:1`. A name that does not fit is returned unchanged."""
        node, *rest = tensor.split(":")
        if rest and node in by_name:
            first = 0
            for arg in nodes.output_args(by_name[node].op, self.signatures):
                if arg.name == rest[0]:
                    break
                first += nodes.count_of(arg, by_name[node])
            else:
                return tensor
            if not all(number.isdecimal() and len(number) < 10 for number in rest[1:]):
                return tensor
            rest = [str(first + sum(map(int, rest[1:2])))]
        return node if rest in ([], ["0"]) else ":".join([node, *rest])


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
    """Yield the names of inlined nodes, each with the node that it was copied from; without such a
    node, with the node of the call. If that has no line, it gets the line of the innermost call."""
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
        if node := origin(name.removeprefix(BESIDE), bodies, calls):
            yield name, node


def origin(name: str, bodies: Bodies, calls: Attributes) -> Node | None:
    """Return the node that an inlined node was copied from, or the nearest call on the way to it,
    by following the name from call to call; None if there is none."""
    inside: str | None = None
    line: Source | None = None  # of the innermost call on the way
    nearest: Node | None = None
    while True:
        body = bodies.get(inside, {})
        scopes = [name[: slash.start()] for slash in re.finditer("/", name)]
        call = next((scope for scope in reversed(scopes) if (inside, scope) in calls), None)
        if node := body.get(name if name in body else call or ""):
            nearest = node if node.line or line is None else replace(node, source=line)
            line = nearest.line
        if name in body or call is None:
            return nearest
        called = calls[inside, call]
        name = name[len(call) + 1 :]
        if part := PART.match(name):
            inside, name = called.get(ATTRIBUTES[part[1]]), name[part.end() :]
        else:
            inside = next(iter(called.values())) if len(called) == 1 else None
        if inside is None:
            return nearest
