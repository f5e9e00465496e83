"""Inlined: lines and phases of nodes that the runtime inlined from functions.

It replaces a call by the body of its function, and names each node after the call: `call/mul`. In a
branch or a loop these are `cond/then/_3/mul` and `loop/body/_8/mul`. Nodes that pass values in and
out (`loop/enter/_4`) have no counterpart in a body: they have the line of the call.
(tensorflow/core/common_runtime: inline_function_utils.cc, lower_if_op.cc, lower_while_op.cc.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tflab.records.graph import Function, Node

PART = re.compile(r"(then|else|cond|body)/_\d+/")
ATTRIBUTES = {"then": "then_branch", "else": "else_branch", "cond": "cond", "body": "body"}
BESIDE = "Func/"  # prefix of nodes that keep the order around a body

Bodies = Mapping[str | None, Mapping[str, Node]]  # function (None: the graph itself) -> its nodes
Calls = Mapping[tuple[str | None, str], Mapping[str, str]]


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


def origin(name: str, bodies: Bodies, calls: Calls) -> Node | None:
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
