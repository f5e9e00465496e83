"""Reach: all that a run of a graph would come to, functions at any depth. No TensorFlow in here.

A GraphDef is read as it is written. Where it is not clear whether a function would be called, it
counts as called; what nothing leads to, such as the function that saved a SavedModel, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# Calls whose inputs are the arguments of the function, in their order, and that call it once
PLAIN_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
VARIABLE_USERS = ("AssignVariableOp", "ReadVariableOp", "VarIsInitializedOp")
RESOURCE = 20  # DT_RESOURCE in tensorflow/core/framework/types.proto
# What is not known before something is fed or called
OPEN = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Variable", "VariableV2")


@dataclass(frozen=True)
class Body:
    """The nodes of a graph, or of a function."""

    name: str  # "" for the graph itself
    nodes: Mapping[str, Any]  # by their names
    fed: Collection[str] = ()  # tensors whose values do not come from their nodes
    functions: Mapping[str, Any] = field(default_factory=dict)  # the graph's library

    def assigned(self, handle: str) -> list[str]:
        """The tensors of which one is the value of a variable; none where others could be."""
        variable = self.nodes.get(node_of(handle))
        if self.name or variable is None or variable.op != "VarHandleOp":
            return []
        takers = [n for n in self.nodes.values() if plain(handle) in map(plain, n.input)]
        inside = [n for function in self.functions.values() for n in function.node_def]
        name = text(variable, "shared_name") or variable.name
        aliases = [
            n for n in (*self.nodes.values(), *inside) if n is not variable and may_name(n, name)
        ]
        if aliases or any(taker.op not in VARIABLE_USERS for taker in takers):
            return []
        return [taker.input[1] for taker in takers if taker.op == "AssignVariableOp"]


@dataclass(frozen=True)
class Reached:
    """A node that would run, in the graph or in a function."""

    node_def: Any
    body: Body
    given: frozenset[str] = frozenset()  # tensors of the body that hold a path of tflab's own

    @property
    def name(self) -> str:
        """`function/node` where it stands in a function."""
        return f"{self.body.name}/{self.node_def.name}" if self.body.name else self.node_def.name

    @property
    def calls_itself(self) -> bool:
        """Whether its type is the name of a function, which is then looked at by itself."""
        return self.node_def.op in self.body.functions

    def is_given(self, tensor: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether this input holds a path that tflab feeds, handed on as it is, be it through a
        variable that never holds anything else."""
        tensor = plain(tensor)
        if tensor in self.given:
            return True
        maker = self.body.nodes.get(node_of(tensor))
        if maker is None or not maker.input or tensor in seen or tensor in self.body.fed:
            return False
        if maker.op == "ReadVariableOp":
            sources = self.body.assigned(maker.input[0])
        else:
            sources = list(maker.input[:1]) if maker.op == "Identity" else []
        return bool(sources) and all(self.is_given(s, seen | {tensor}) for s in sources)

    def is_empty(self, tensor: str) -> bool:
        """Whether this input is a constant that holds one empty string."""
        maker = self.body.nodes.get(node_of(tensor))
        if maker is None or maker.op != "Const" or plain(tensor) in self.body.fed:
            return False
        value = maker.attr["value"].tensor
        return not any(value.string_val) and not value.tensor_content


def reached(
    graph_def: Any,
    targets: Iterable[str],
    fed: Collection[str] = (),
    given: Collection[str] = (),
) -> Iterator[Reached]:
    """What a run of these tensors or nodes comes to. `fed` are the tensors that it is fed, `given`
    those of them that hold a path which tflab itself has chosen."""
    library = Library(graph_def)
    graph = library.body_of(graph_def, frozenset(map(plain, fed)))
    waiting = [node_of(target) for target in targets if plain(target) not in graph.fed]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in graph.nodes:
            continue
        seen.add(name)
        waiting += [node_of(i) for i in graph.nodes[name].input if plain(i) not in graph.fed]
    paths = frozenset(map(plain, given))
    nodes = [Reached(node, graph, paths) for name, node in graph.nodes.items() if name in seen]
    yield from nodes
    yield from library.called([call for node in nodes for call in library.calls(node)])


class Library:
    """The functions of a graph, and which of them stand for one another."""

    def __init__(self, graph_def: Any) -> None:
        self.functions = {f.signature.name: f for f in graph_def.library.function}
        self.gradients = {g.function_name: g.gradient_func for g in graph_def.library.gradient}
        self.alike: dict[str, list[str]] = {}
        for name, function in self.functions.items():
            self.alike.setdefault(text(function, "api_implements"), []).append(name)

    def body_of(self, graph_def: Any, fed: Collection[str] = ()) -> Body:
        """The graph itself."""
        return Body("", {node.name: node for node in graph_def.node}, fed, self.functions)

    def calls(self, node: Reached) -> Iterator[tuple[str, frozenset[str]]]:
        """The functions that a node names, as its type or in any attribute, each with those of its
        arguments that are paths of tflab's own."""
        node_def = node.node_def
        names = [node_def.op, *(n for value in node_def.attr.values() for n in named(value))]
        for name in dict.fromkeys(names):
            if name not in self.functions:
                continue
            arguments = [argument.name for argument in self.functions[name].signature.input_arg]
            once = node_def.op in PLAIN_CALLS or node_def.op == name
            given = zip(arguments, node_def.input, strict=False) if once else ()
            yield name, frozenset(argument for argument, i in given if node.is_given(i))

    def called(self, calls: Iterable[tuple[str, frozenset[str]]]) -> Iterator[Reached]:
        """The nodes of these functions and of all that they lead to."""
        waiting = list(calls)
        seen: set[tuple[str, frozenset[str]]] = set()
        while waiting:
            call = waiting.pop()
            if call in seen or call[0] not in self.functions:
                continue
            seen.add(call)
            name, given = call
            function = self.functions[name]
            nodes = {node.name: node for node in function.node_def}
            body = Body(name, nodes, functions=self.functions)
            for node_def in function.node_def:
                node = Reached(node_def, body, given)
                yield node
                waiting += self.calls(node)
            implements = text(function, "api_implements")  # of several, the runtime chooses one
            instead = self.alike[implements] if implements else []
            others = [n for value in function.attr.values() for n in named(value)]
            gradient = self.gradients.get(name, "")
            waiting += [(other, frozenset()) for other in (*instead, *others, gradient)]


def may_name(node: Any, resource: str) -> bool:
    """Whether a node may hand out the handle of this resource."""
    if node.op == "Const":
        return "dtype" in node.attr and node.attr["dtype"].type == RESOURCE
    if "VarHandle" not in node.op:
        return False
    shared = node.attr["shared_names"].list.s if "shared_names" in node.attr else []
    return resource in (node.name, text(node, "shared_name")) or resource.encode() in shared


def text(node: Any, attribute: str) -> str:
    """A string attribute. Asking a proto's map for what it does not have would add it."""
    held = node.attr[attribute].s if attribute in node.attr else b""
    return held.decode(errors="replace")


def named(value: Any) -> Iterator[str]:
    """What an attribute may name: functions, and strings that may be the names of some."""
    yield from (function.name for function in (value.func, *value.list.func) if function.name)
    for function in (value.func, *value.list.func):
        yield from (name for inner in function.attr.values() for name in named(inner))
    yield from (s.decode(errors="replace") for s in (value.s, *value.list.s) if s)


def early(graph_def: Any, is_stateful: Callable[[str], bool]) -> Iterator[Reached]:
    """What TensorFlow may evaluate without being asked to: nodes that are not stateful and follow
    from constants alone, and the functions that such nodes call.

    It does so at the import, where a shape depends on them, and in the passes before a run.
    """
    library = Library(graph_def)
    graph = library.body_of(graph_def)
    constant = [Reached(node, graph) for node in fixed(graph, is_stateful)]
    yield from constant
    yield from library.called([call for node in constant for call in library.calls(node)])
    everywhere = [Reached(node, graph) for node in graph_def.node]
    calls = [call for node in everywhere for call in library.calls(node)]
    for body in {node.body.name: node.body for node in library.called(calls)}.values():
        yield from (Reached(node, body) for node in fixed(body, is_stateful))


def fixed(body: Body, is_stateful: Callable[[str], bool]) -> Iterator[Any]:
    """The nodes that follow from constants alone, each after those that it takes from."""
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


def plain(tensor: str) -> str:
    """`x:0` as `x`, which is the same tensor, and a control input as its node."""
    return tensor.removesuffix(":0") if tensor[:1] != "^" else tensor


def node_of(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]
