"""Lines: the nodes of the program's graphs, and the lines of code that made them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from tflab.records.graph import Node

LARGE = 1_000  # graphs with more nodes are read only once, at the end
MOST_CODES = 10_000  # pieces of code that are kept
MOST_CODE = 200  # characters of a source line


class Lines:
    """What is known of the graphs so far. `note` receives a sentence about what cannot be known."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.nodes: dict[int, tuple[Node, ...]] = {}  # by the graph's id
        # With the numbers of nodes and names that they were found for
        self.inlined: dict[int, tuple[tuple[int, int] | None, tuple[Node, ...]]] = {}
        self.codes: dict[int, object] = {}  # code that makes ops, by its id

    def keep_stack(self) -> None:
        """An op is made. TensorFlow stores the code on its stack but lets Python free it, and the
        line of the op is read later."""
        codes = self.codes
        if len(codes) < MOST_CODES:
            frame: FrameType | None = sys._getframe(1)
            while frame:
                code = frame.f_code
                codes[id(code)] = code
                frame = frame.f_back

    def nodes_of(self, graph: Any, final: bool = True) -> tuple[Node, ...]:
        """The nodes of a graph with their lines; before the end those known before, if the graph is
        large or the program is changing it."""
        known = self.nodes.get(id(graph), ())
        count = len(graph.get_operations())
        if count == len(known) or (known and not count) or (not final and count > LARGE):
            return known
        if len(self.codes) >= MOST_CODES:
            self.note("Too many pieces of code make nodes; their lines were not recorded.")
            return known
        from tflab.runtime import nodes

        try:
            self.nodes[id(graph)] = nodes.from_graph(graph)
        except Exception:
            if final:
                raise
            return known
        return self.nodes[id(graph)]

    def with_inlined(self, graph: Any, final: bool, names: Collection[str]) -> tuple[Node, ...]:
        """The nodes of a graph, and those of its functions that ran under these names."""
        nodes = self.nodes_of(graph, final)
        key = len(nodes), len(names)
        known, inlined = self.inlined.get(id(graph), (None, ()))
        if known != key:
            inlined = tuple(inlined_in(graph, nodes, names)) if nodes and names else ()
            self.inlined[id(graph)] = key, inlined
        return (*nodes, *inlined)


def inlined_in(graph: Any, nodes: Sequence[Node], names: Iterable[str]) -> Iterator[Node]:
    """The nodes of the functions, branches and loops of a graph, by the names under which they
    ran."""
    from tflab.runtime import functions, inlined

    known = {node.name for node in nodes}
    if bodies := functions.of_graph(graph):
        for name, node in inlined.origins(names, nodes, bodies):
            if name not in known:
                yield replace(node, name=name)


def line_of(node: Node) -> tuple[str, str, tuple[str, int, str] | None, str]:
    """Name, phase, the line that made it, and its op."""
    made = node.source
    line = (made.file, made.line, made.code[:MOST_CODE]) if made else None
    return node.name, node.phase, line, node.op
