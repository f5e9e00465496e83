"""Reach: all nodes that a run of a graph would reach, in functions at any depth.

A GraphDef is read as it is written. If it is unclear whether a function would be called, it counts
as called. Nodes that nothing leads to, such as the function that saved a SavedModel, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# Nodes that call their function once, with their inputs as its arguments
PLAIN_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
VARIABLE_USERS = ("AssignVariableOp", "ReadVariableOp", "VarIsInitializedOp")
RESOURCE = 20  # DT_RESOURCE in tensorflow/core/framework/types.proto
# Types whose values are unknown before a feed or a call
OPEN = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Variable", "VariableV2")


@dataclass(frozen=True)
class Body:
    """The nodes of a graph, or of a function."""

    name: str  # "" for the graph itself
    nodes: Mapping[str, Any]  # by their names
    fed: Collection[str] = ()  # tensors that are fed
    functions: Mapping[str, Any] = field(default_factory=dict)  # the graph's library

    def assigned(self, handle: str) -> list[str]:
        """The tensors that may be the value of a variable; empty if there may be others."""
        variable = self.nodes.get(node_of(handle))
        if self.name or variable is None or variable.op != "VarHandleOp":
            return []
        takers = [n for n in self.nodes.values() if short_name(handle) in map(short_name, n.input)]
        inner_nodes = [n for function in self.functions.values() for n in function.node_def]
        aliases = [
            node
            for node in (*self.nodes.values(), *inner_nodes)
            if node is not variable and may_be_same(node, variable)
        ]
        if aliases or any(taker.op not in VARIABLE_USERS for taker in takers):
            return []
        return [taker.input[1] for taker in takers if taker.op == "AssignVariableOp"]


@dataclass(frozen=True)
class Reached:
    """A node that would run, in the graph or in a function."""

    node_def: Any
    body: Body
    given: frozenset[str] = frozenset()  # tensors of the body that contain a path from tflab

    @property
    def name(self) -> str:
        """The name for readers: `function/node` for a node in a function."""
        return f"{self.body.name}/{self.node_def.name}" if self.body.name else self.node_def.name

    @property
    def calls_itself(self) -> bool:
        """Whether its type is the name of a function, which is then checked itself."""
        return self.node_def.op in self.body.functions

    def is_given(self, tensor: str) -> bool:
        """Whether this input is an unchanged path from tflab, possibly through a variable that
        never has another value."""
        waiting, visited = [short_name(tensor)], set()
        while waiting:
            current = waiting.pop()
            if current in self.given:
                continue
            sources = self.sources(current)
            if current in visited or not sources:
                return False
            visited.add(current)
            waiting += map(short_name, sources)
        return True

    def sources(self, tensor: str) -> list[str]:
        """The tensors that may be the value of this tensor; empty if there may be others."""
        maker = self.body.nodes.get(tensor.partition(":")[0])
        if maker is None or not maker.input or tensor in self.body.fed:
            return []
        if maker.op == "ReadVariableOp":
            return self.body.assigned(maker.input[0])
        return list(maker.input[:1]) if maker.op == "Identity" else []

    def is_empty(self, tensor: str) -> bool:
        """Whether this input is a constant with one empty string."""
        maker = self.body.nodes.get(node_of(tensor))
        if maker is None or maker.op != "Const" or short_name(tensor) in self.body.fed:
            return False
        value = maker.attr["value"].tensor
        return not any(value.string_val) and not value.tensor_content


def nodes_reached(
    graph_def: Any,
    targets: Iterable[str],
    fed: Collection[str] = (),
    given: Collection[str] = (),
) -> Iterator[Reached]:
    """The nodes that a run of these tensors or nodes reaches. `fed` are the tensors that it is fed,
    `given` those of them that contain a path from tflab."""
    library = Library(graph_def)
    graph = library.body_of(graph_def, frozenset(map(short_name, fed)))
    waiting = [node_of(target) for target in targets if short_name(target) not in graph.fed]
    visited: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in visited or name not in graph.nodes:
            continue
        visited.add(name)
        waiting += [node_of(i) for i in graph.nodes[name].input if short_name(i) not in graph.fed]
    paths = frozenset(map(short_name, given))
    nodes = [Reached(node, graph, paths) for name, node in graph.nodes.items() if name in visited]
    yield from nodes
    yield from library.called([call for node in nodes for call in library.calls(node)])


class Library:
    """The functions of a graph, and which of them can replace one another."""

    def __init__(self, graph_def: Any) -> None:
        self.functions = {f.signature.name: f for f in graph_def.library.function}
        self.gradients = {g.function_name: g.gradient_func for g in graph_def.library.gradient}
        self.alike: dict[str, list[str]] = {}
        for name, function in self.functions.items():
            self.alike.setdefault(text(function, "api_implements"), []).append(name)

    def body_of(self, graph_def: Any, fed: Collection[str] = ()) -> Body:
        """The body of the graph itself."""
        return Body("", {node.name: node for node in graph_def.node}, fed, self.functions)

    def calls(self, node: Reached) -> Iterator[tuple[str, frozenset[str]]]:
        """The functions that a node names, as its type or in any attribute, each with those of its
        arguments that are paths from tflab."""
        node_def = node.node_def
        names = [node_def.op, *(n for value in node_def.attr.values() for n in names_in(value))]
        for name in dict.fromkeys(names):
            if name not in self.functions:
                continue
            called = function_of(node_def) if node_def.op in PLAIN_CALLS else node_def.op
            arguments = single_arguments(self.functions[name]) if called == name else ()
            given = zip(arguments, node_def.input, strict=False)
            yield name, frozenset(argument for argument, i in given if node.is_given(i))

    def called(self, calls: Iterable[tuple[str, frozenset[str]]]) -> Iterator[Reached]:
        """The nodes of these functions and of all functions that they lead to."""
        waiting = list(calls)
        visited: set[tuple[str, frozenset[str]]] = set()
        while waiting:
            call = waiting.pop()
            if call in visited or call[0] not in self.functions:
                continue
            visited.add(call)
            name, given = call
            function = self.functions[name]
            nodes = {node.name: node for node in function.node_def}
            body = Body(name, nodes, functions=self.functions)
            for node_def in function.node_def:
                node = Reached(node_def, body, given)
                yield node
                waiting += self.calls(node)
            implements = text(function, "api_implements")  # the runtime chooses one of several
            instead = self.alike[implements] if implements else []
            others = [n for value in function.attr.values() for n in names_in(value)]
            gradient = self.gradients.get(name, "")
            waiting += [(other, frozenset()) for other in (*instead, *others, gradient)]


def may_be_same(node: Any, variable: Any) -> bool:
    """Whether a node may output the handle of this variable. All variables without a shared name
    are the same one, whatever the names of their nodes and functions."""
    if node.op == "Const":
        return "dtype" in node.attr and node.attr["dtype"].type == RESOURCE
    if "VarHandle" not in node.op:
        return False
    return not names_of(node).isdisjoint(names_of(variable))


def names_of(variable: Any) -> set[str]:
    """The names by which the runtime may know the resource of this node."""
    several = variable.attr["shared_names"].list.s if "shared_names" in variable.attr else ()
    shared = text(variable, "shared_name")
    return {shared or variable.name, shared, *(name.decode(errors="replace") for name in several)}


def function_of(node_def: Any) -> str:
    """The function that a plain call calls."""
    return node_def.attr["f"].func.name if "f" in node_def.attr else ""


def single_arguments(function: Any) -> Iterator[str]:
    """The arguments of a function before the first that consists of several tensors: only these
    have the same index as the inputs of a call."""
    for argument in function.signature.input_arg:
        if argument.number_attr or argument.type_list_attr:
            return
        yield argument.name


def text(node: Any, attribute: str) -> str:
    """A string attribute. Plain indexing would add a missing key to the map of a proto."""
    held = node.attr[attribute].s if attribute in node.attr else b""
    return held.decode(errors="replace")


def names_in(value: Any) -> Iterator[str]:
    """The names in an attribute: functions, and strings that may be names of functions."""
    yield from (function.name for function in (value.func, *value.list.func) if function.name)
    for function in (value.func, *value.list.func):
        yield from (name for inner in function.attr.values() for name in names_in(inner))
    yield from (s.decode(errors="replace") for s in (value.s, *value.list.s) if s)


def evaluated_early(
    graph_def: Any, is_stateful: Callable[[str], bool], given: Collection[str] = ()
) -> Iterator[Reached]:
    """The nodes that TensorFlow may evaluate without a run: those that are not stateful and depend
    only on constants, and the functions that they call.

    This happens during the import, if a shape depends on them, and in the passes before a run.
    `given` are constants that contain a path from tflab.
    """
    library = Library(graph_def)
    graph = library.body_of(graph_def)
    paths = frozenset(map(short_name, given))
    constant = [Reached(node, graph, paths) for node in fixed(graph, is_stateful)]
    yield from constant
    yield from library.called([call for node in constant for call in library.calls(node)])
    everywhere = [Reached(node, graph) for node in graph_def.node]
    calls = [call for node in everywhere for call in library.calls(node)]
    for body in {node.body.name: node.body for node in library.called(calls)}.values():
        yield from (Reached(node, body) for node in fixed(body, is_stateful))


def fixed(body: Body, is_stateful: Callable[[str], bool]) -> Iterator[Any]:
    """The nodes that depend only on constants, each after its inputs."""
    takers: dict[str, list[str]] = {}
    open_inputs: dict[str, int] = {}
    for name, node in body.nodes.items():
        makers = [node_of(tensor) for tensor in node.input if tensor[:1] != "^"]
        open_inputs[name] = len(makers)
        for maker in makers:
            takers.setdefault(maker, []).append(name)
    waiting = [name for name, count in open_inputs.items() if not count]
    while waiting:
        name = waiting.pop()
        node = body.nodes[name]
        if node.op in OPEN or is_stateful(node.op):
            continue
        yield node
        for taker in takers.get(name, ()):
            open_inputs[taker] -= 1
            if not open_inputs[taker]:
                waiting.append(taker)


def short_name(tensor: str) -> str:
    """`x:0` as `x`, which is the same tensor; a control input as its node."""
    return tensor.removesuffix(":0") if tensor[:1] != "^" else tensor


def node_of(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]
