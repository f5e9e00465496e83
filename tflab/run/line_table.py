"""Line table: the most expensive lines of a watched program, the fates of their nodes, and the time
that no line has."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tflab import units
from tflab.records.blocks import Block, Column, Table, shortened
from tflab.records.graph import Node, Source
from tflab.records.placed import Fate
from tflab.records.watched import Group, Recorded, Watched, WatchedLine
from tflab.run import summary

MOST = 15
ENOUGH = 10  # traced runs of a group, for times without a warning
NAMED = 3  # groups in a sentence
CARRIED = {"fused": "into", "merged": "with"}  # fates of nodes whose work another node does
NOT_NEEDED = "not needed by this group"

Line = tuple[str, int]


def blocks(seen: Watched) -> Iterator[Block]:
    lines = table(seen)
    if lines.rows:
        yield lines
        yield from few_traced(seen)
    yield from without_line(seen)


def table(seen: Watched) -> Table:
    """The most expensive lines, then lines whose nodes took no time, with the reason."""
    notes = by_line(seen.graph, seen.lines)

    def note(line: WatchedLine) -> str:
        return notes.get((line.file, line.line), "")

    known = [
        line for line in seen.lines if summary.total_ns(line) or note(line) not in ("", NOT_NEEDED)
    ]
    columns: tuple[Column, ...] = (
        Column("line", lambda line: f"{os.path.basename(line.file)}:{line.line}"),
        Column("forward", lambda line: time(line.forward_ns), right=True),
        Column("backward", lambda line: time(line.backward_ns), right=True),
        Column("updates", lambda line: time(line.update_ns), right=True),
        Column("waiting", lambda line: time(line.waiting_ns), right=True),
        Column("Python", lambda line: time(line.python_ns), right=True),
        Column("TensorFlow", lambda line: time(line.tensorflow_ns), right=True),
        Column("its nodes", note, elastic=True, least=22, spare=1),
        Column("code", lambda line: line.code, elastic=True),
    )
    columns = tuple(column for column in columns if any(map(column.cell, known[:MOST])))
    return shortened("The costliest lines, over all runs", columns, known, MOST)


def time(ns: int) -> str:
    return units.time(ns) if ns else ""


def few_traced(seen: Watched) -> Iterator[str]:
    """`The times of ops are estimates from few traced runs: 2 of the 199 of group 2.`"""
    total_ns = sum(group.total_ns for group in seen.groups)
    few = [
        f"{group.traced:,} of the {group.calls - 1:,} of group {at}"
        for at, group in enumerate(seen.groups, 1)
        if 0 < group.traced < min(ENOUGH, group.calls - 1)
        and group.on_lines_ns
        and 100 * group.total_ns >= total_ns
    ]
    if few:
        more = f" and of {units.plural(len(few) - NAMED, 'more group')}" if few[NAMED:] else ""
        listed = ", ".join(few[:NAMED])
        yield f"The times of ops are estimates from few traced runs: {listed}{more}."


def without_line(seen: Watched) -> Iterator[str]:
    """`No line has 1.90 s of the 3.00 s of all runs: first runs (1.20 s) and 1 group that was not
    traced (700 ms).`"""
    missing = reasons(seen.groups)
    missing_ns = sum(missing.values())
    total_ns = sum(group.cold_ns + group.total_ns for group in seen.groups)
    if 100 * missing_ns >= total_ns > 0:
        parts = [f"{why} ({units.time(ns)})" for why, ns in missing.items() if 100 * ns >= total_ns]
        listed = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
        because = f": {listed}" if listed else ""
        yield (
            f"No line has {units.time(missing_ns)} of the {units.time(total_ns)} of all runs"
            f"{because}."
        )


def reasons(groups: Sequence[Group]) -> dict[str, int]:
    """Why time of runs is on no line, and its ns."""
    late = [group for group in groups if group.total_ns]
    untraced = [group for group in late if not group.traced]
    unnamed = [group for group in late if group.traced and not group.on_lines_ns]
    was = "was" if len(untraced) == 1 else "were"
    return {
        "first runs": sum(group.cold_ns for group in groups),
        f"{units.plural(len(untraced), 'group')} that {was} not traced": whole(untraced),
        f"{units.plural(len(unnamed), 'group')} whose traces have no op of a line": whole(unnamed),
        "time in which no op of a line ran": sum(
            group.total_ns - group.on_lines_ns for group in late if group.on_lines_ns
        ),
    }


def whole(groups: Sequence[Group]) -> int:
    return sum(group.total_ns for group in groups)


# The fates of the nodes of a line, in a few words


def nodes_by_line(graph: Recorded | None) -> dict[Line, list[str]]:
    made: dict[Line, list[str]] = {}
    for node in graph.nodes if graph else ():
        if node.line:
            made.setdefault(line_of(node.line), []).append(node.name)
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
        places = Counter(line_of(node.line) for node in into if node and node.line)
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
