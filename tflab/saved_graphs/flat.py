"""Flat: the part of a graph that runs, with the bodies of functions inlined at their calls.

TensorFlow's shape functions do not look into functions, and neither does code that follows a tensor
from node to node. In the flat graph calls are replaced by the nodes of their functions, if
possible. It is only inspected and never run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.runtime import private
from tflab.saved_graphs import permissions
from tflab.saved_graphs.reach import PLAIN_CALLS, node_of

MOST = 50_000  # nodes, and inlined calls; further calls stay calls
DEEPEST = 100  # functions within functions; deeper calls stay calls
# Number of inputs that are not arguments
CHOICES = {"If": 1, "StatelessIf": 1, "Case": 1, "StatelessCase": 1}
LOOPS = ("While", "StatelessWhile")
LEFT_OUT = ("_class", "_output_shapes")  # attributes that name other nodes, or that are inferred


@dataclass(frozen=True)
class Flat:
    graph: tf.Graph
    graph_def: Any  # of the same nodes
    fed: Mapping[str, str]  # fed tensor -> the placeholder that replaces it

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(op.name for op in self.graph.get_operations())

    def tensor(self, fed: str) -> tf.Tensor:
        """The tensor that replaces a fed tensor."""
        return self.graph.get_tensor_by_name(f"{self.fed[fed]}:0")


def flatten(graph: tf.Graph, needed: Collection[str], fed: Collection[tf.Tensor]) -> Flat:
    """The needed nodes, with placeholders for fed tensors. If TensorFlow does not accept the graph
    with inlined functions, the functions stay."""
    graph_def = graph.as_graph_def()
    for functions in (graph_def.library.function, ()):
        layout = Layout(graph_def, {f.signature.name: f for f in functions})
        layout.lay_out(needed, fed)
        flat = tf.Graph()
        try:
            with flat.as_default():
                tf.import_graph_def(layout.result(), name="")
        except Exception:  # TensorFlow raises many types
            if not functions:
                raise
            continue
        return Flat(flat, layout.result(), layout.fed)
    raise AssertionError("without its functions it is a part of the graph")


class Layout:
    """The nodes of the flat graph as it grows. Tensors are `node:number`; some are aliases of
    others."""

    def __init__(self, graph_def: Any, functions: Mapping[str, Any]) -> None:
        self.graph_def = graph_def
        self.functions = functions
        self.nodes: dict[str, Any] = {}
        self.alias: dict[str, str] = {}
        self.fed: dict[str, str] = {}
        self.called = 0  # inlined calls; a few functions can call one another a billion times

    def lay_out(self, needed: Collection[str], fed: Collection[tf.Tensor]) -> None:
        names = {tensor.name for tensor in fed}
        cut = {
            tensor.op.name
            for tensor in fed
            if all(output.name in names for output in tensor.op.outputs)
            or any(source.op.name not in needed for source in tensor.op.inputs)
        }
        for tensor in fed:
            alone = tensor.op.name in cut and tensor.value_index == 0
            name = tensor.op.name if alone else f"{tensor.op.name}/fed_{tensor.value_index}"
            self.fed[tensor.name] = name
            self.nodes[name] = placeholder(name, tensor)
            if tensor.name != f"{name}:0":
                self.alias[tensor.name] = f"{name}:0"
        for node in self.graph_def.node:
            if node.name in needed and node.name not in cut:
                inputs = [full_name(name) for name in node.input if name[0] != "^"]
                self.add(node, node.name, inputs, {}, ())

    def add(
        self,
        node: Any,
        name: str,
        inputs: Sequence[str],
        attributes: Mapping[str, Any],
        within: tuple[str, ...],
    ) -> None:
        """Add a node under this name, or the nodes of the functions that it calls. `attributes` are
        those of the call that is inlined, `within` the functions around it."""
        function_calls = dict(calls_of(node, self.functions))
        recursive = any(function in within for function in function_calls)
        deep = recursive or len(within) >= DEEPEST
        calls = function_calls if max(len(self.nodes), self.called) < MOST and not deep else {}
        self.called += len(calls)
        for function, skipped in calls.items():
            body = self.functions[function]
            prefix = name if len(calls) == 1 else f"{name}/{function}"
            results = self.body(body, prefix, inputs[skipped:], node.attr, (*within, function))
            for number, result in enumerate(results):
                self.alias.setdefault(f"{name}:{number}", result)
        if node.op in LOOPS and calls:  # a loop returns its variables in the shapes of its inputs
            self.alias |= {f"{name}:{number}": tensor for number, tensor in enumerate(inputs)}
        if calls and node.op not in CHOICES:
            return
        copy = type(node).FromString(node.SerializeToString())
        copy.name = name
        del copy.input[:]
        copy.input.extend(inputs)
        for key in LEFT_OUT:
            copy.attr.pop(key, None)
        for value in copy.attr.values():
            if value.placeholder in attributes:
                value.CopyFrom(attributes[value.placeholder])
        self.nodes[name] = copy

    def body(
        self,
        function: Any,
        prefix: str,
        inputs: Sequence[str],
        attributes: Mapping[str, Any],
        within: tuple[str, ...],
    ) -> list[str]:
        """Add the nodes of a function that is called with these tensors; return its results."""
        arguments = dict(zip((a.name for a in function.signature.input_arg), inputs, strict=False))
        colliding = {f"{prefix}/{node.name}" for node in function.node_def} & self.nodes.keys()
        prefix = f"{prefix}/{function.signature.name}" if colliding else prefix
        within_it = {node.name: node for node in function.node_def}

        def outer(tensor: str) -> str:
            name, _, output = tensor.partition(":")
            if name not in within_it:
                return arguments[name]
            return f"{prefix}/{name}:{self.number(within_it[name], output)}"

        for node in function.node_def:
            data = [outer(name) for name in node.input if name[0] != "^"]
            self.add(node, f"{prefix}/{node.name}", data, attributes, within)
        return [outer(function.ret[result.name]) for result in function.signature.output_arg]

    def number(self, node: Any, output: str) -> int:
        """The number of the output `product:0` of a node in a function."""
        name, _, number = output.partition(":")
        called = self.functions.get(node.op)
        definition = called.signature if called is not None else private.op_def(node.op)
        before = 0
        for argument in definition.output_arg:
            if argument.name == name:
                break
            before += length(argument, node)
        return before + int(number or 0)

    def result(self) -> Any:
        """The GraphDef of all nodes, with every alias resolved."""
        made = tf1.GraphDef(versions=self.graph_def.versions, library=self.graph_def.library)
        for node in self.nodes.values():
            copy = made.node.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(map(self.resolved, node.input))
        return permissions.shut(made)

    def resolved(self, tensor: str) -> str:
        visited = {tensor}
        while self.alias.get(tensor, tensor) not in visited:
            tensor = self.alias[tensor]
            visited.add(tensor)
        return tensor


def placeholder(name: str, tensor: tf.Tensor) -> Any:
    node = tf1.NodeDef(name=name, op="Placeholder")
    node.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    return node


def calls_of(node: Any, functions: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The functions that a node calls with its inputs, and how many of the inputs are not
    arguments."""
    if node.op in functions:
        yield node.op, 0
    attributes = [key for key, value in node.attr.items() if value.WhichOneof("value") == "func"]
    if node.op in (*PLAIN_CALLS, *LOOPS, *CHOICES):
        names = [node.attr[key].func.name for key in sorted(attributes, reverse=True)]
        if "branches" in node.attr:
            names += [function.name for function in node.attr["branches"].list.func]
        yield from ((name, CHOICES.get(node.op, 0)) for name in names if name in functions)


def length(argument: Any, node: Any) -> int:
    """The number of tensors of an output argument."""
    if argument.number_attr:
        return int(node.attr[argument.number_attr].i)
    if argument.type_list_attr:
        return len(node.attr[argument.type_list_attr].list.type)
    return 1


def full_name(tensor: str) -> str:
    """`x` as `x:0`."""
    return tensor if ":" in tensor else f"{node_of(tensor)}:0"
