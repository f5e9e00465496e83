"""Recursion: functions of a graph that call themselves, possibly through others.

TensorFlow cannot make such functions, but a file may contain them. The importer follows them until
the process crashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def circle(graph_def: Any) -> tuple[str, ...]:
    """Functions of which each calls the next and the last calls the first, if the graph calls them;
    empty if there is no such circle."""
    bodies = {function.signature.name: function.node_def for function in graph_def.library.function}
    done: set[str] = set()
    # From the graph to the current function
    path: dict[str, Iterator[str]] = {"": called(graph_def.node, bodies)}
    while path:
        name, calls = next(reversed(path.items()))
        following = next(calls, None)
        if following is None:
            done.add(name)
            del path[name]
        elif following in path:
            names = list(path)
            return tuple(names[names.index(following) :])
        elif following not in done:
            path[following] = called(bodies[following], bodies)
    return ()


def called(node_defs: Iterable[Any], bodies: Mapping[str, Any]) -> Iterator[str]:
    """The functions that these nodes call, through their type or an attribute."""
    for node in node_defs:
        values = list(node.attr.values())
        while values:
            value = values.pop()
            for function in (value.func, *value.list.func):
                if function.name in bodies:
                    yield function.name
                values += function.attr.values()
        if node.op in bodies:
            yield node.op
