"""Line notes: the fates of the nodes of a line, in a few words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tflab.records.graph import Node, Source
from tflab.records.placed import Fate
from tflab.records.watched import Recorded, WatchedLine

CARRIED = {"fused": "into", "merged": "with"}  # fates of nodes whose work another node does
NOT_NEEDED = "not needed by this group"

Line = tuple[str, int]


def nodes_by_line(graph: Recorded | None) -> dict[Line, list[str]]:
    made: dict[Line, list[str]] = {}
    for node in graph.nodes if graph else ():
        if node.source:
            made.setdefault(line_of(node.source), []).append(node.name)
    return made


def by_line(graph: Recorded | None, lines: Sequence[WatchedLine]) -> dict[Line, str]:
    """The fates of the nodes of each line, unless all were executed."""
    if graph is None:
        return {}
    by_name = {node.name: node for node in graph.nodes}
    fates = {fate.name: fate for fate in graph.ledger}
    spent = {
        (line.file, line.line): line.forward_ns + line.backward_ns + line.update_ns
        for line in lines
    }
    return {
        line: "; ".join(
            notes(
                line, [fates[name] for name in names if name in fates], by_name, spent.get(line, 0)
            )
        )
        for line, names in nodes_by_line(graph).items()
    }


def notes(line: Line, fates: Sequence[Fate], by_name: Mapping[str, Node], ns: int) -> Iterator[str]:
    """`fused into line 41`, `folded: free`."""
    reached = [fate for fate in fates if fate.fate != "unreached"]
    if fates and not reached:
        yield NOT_NEEDED
        return
    for how, word in CARRIED.items():
        into = [by_name.get(fate.into or "") for fate in reached if fate.fate == how]
        places = Counter(line_of(node.source) for node in into if node and node.source)
        for (file, number), count in places.items():
            if (file, number) != line:
                other = "" if file == line[0] else f"{os.path.basename(file)} "
                yield f"{some_of(count, len(reached))}{how} {word} {other}line {number}"
    folded = Counter(fate.fate for fate in reached)["folded"]
    if folded:
        free = ": free" if folded == len(reached) and not ns else ""
        yield f"{some_of(folded, len(reached))}folded{free}"


def line_of(source: Source) -> Line:
    return source.file, source.line


def some_of(count: int, total: int) -> str:
    return "" if count == total else f"{count} of {total} nodes "
