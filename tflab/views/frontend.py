"""View of the frontend: the lines of the program, the whole graph or the tree of its scopes, and
the functions that its nodes call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tflab.records.blocks import Block, Column, Fact, Table, numbers, table
from tflab.records.graph import BranchInput, Function, Node, Source, Unordered, grouped, in_order
from tflab.records.stages import Frontend
from tflab.units import plural
from tflab.views.words import counted, graph_size, place, tensor

TITLE = "Frontend: Python calls become nodes"
DRAWN_WHOLE = 40  # nodes; a larger graph is shown as a tree of scopes
SHORT = 7  # lines of a program that are shown in its order


def facts(stage: Frontend) -> Iterator[Fact]:
    lined = any(node.source for node in stage.nodes)
    yield Fact("graph", graph_size(stage.nodes), "" if lined else "from a file without lines")
    if stage.functions:
        inner = plural(sum(len(function.nodes) for function in stage.functions), "node")
        unused = sum(not function.called_by for function in stage.functions)
        note = f"{inner} of their own" + (f"; {unused:,} never called" if unused else "")
        yield Fact("functions", f"{len(stage.functions):,}", note)
    yield from unordered(stage.unordered)
    yield from always_run(stage.always_run)


def tables(stage: Frontend) -> Iterator[Block]:
    """Yield the lines or the types of the graph, the graph itself, and its functions."""
    if any(node.source for node in stage.nodes):
        yield lines(stage.nodes)
    else:
        yield table(
            "The op types of the nodes, the most frequent first",
            Counter(node.op for node in stage.nodes).most_common(),
            Column("op type", lambda row: row[0]),
            numbers("nodes", lambda row: f"{row[1]:,}"),
        )
    ends = stage.program.ends if stage.program else ()
    yield whole(stage.nodes, ends)
    if stage.functions:
        yield function_table("Functions", stage.functions)


def lines(nodes: Sequence[Node]) -> Table:
    """Return a table of the lines in program order; of many, those with most nodes first."""
    sources = ((node.source, node) for node in nodes if node.source)
    groups = list(grouped(((at.file, at.line), node) for at, node in sources).values())
    order = ""
    if len(groups) > SHORT:
        groups.sort(key=len, reverse=True)
        order = ", the most nodes first"
    made, count = sum(map(len, groups)), plural(len(nodes), "node")
    some = f" that made {made:,} of {count}" * (made < len(nodes))
    return table(
        f"Lines of the program{some}{order}",
        groups,
        Column("line", lambda nodes: place(nodes[0].source)),
        Column("code", lambda nodes: nodes[0].source.code, elastic=True, least=28),
        numbers("nodes", lambda nodes: f"{len(nodes):,}"),
        Column("op types", lambda nodes: counted(n.op for n in nodes), elastic=True, least=30),
    )


def whole(nodes: Sequence[Node], ends: Sequence[str]) -> Table:
    """Return a graph, one node per line, with data flowing down the rails. For a large one, return
    the outermost scopes; in full, all scopes and nodes."""
    if len(nodes) <= DRAWN_WHOLE:
        order = ordered(nodes, ends)
        return table(
            "The graph, data flowing down",
            zip(draw(order), order, strict=True),
            Column("", lambda row: row[0]),
            Column("node", lambda row: row[1].name),
            Column("op type", lambda row: row[1].op),
            Column("output", lambda row: ", ".join(map(tensor, row[1].outputs)), spare=1),
            Column("line", lambda row: place(row[1].source)),
            drawing=True,
        )
    paths = [(node.name.split("/"), node) for node in nodes]
    shown = table(
        "Name scopes",
        scopes(paths),
        Column("scope", lambda row: row[0]),
        numbers("nodes", lambda row: f"{len(row[1]):,}"),
        Column("op types", lambda row: counted(node.op for node in row[1]), elastic=True),
        Column("first line", lambda row: place(row[1][0].source), spare=2),
        drawing=True,
    )
    fewer = len(shown.rows) < len(nodes)
    return replace(shown, everything=(lambda: scopes(paths, opened=True)) if fewer else None)


def scopes(
    paths: Iterable[tuple[Sequence[str], Node]], opened: bool = False, branches: str = ""
) -> Iterator[tuple[str, list[Node]]]:
    """Yield the outermost scopes of names as lines of a drawn tree, each with all nodes in it; if
    `opened`, the inner ones, too. `y` is both a scope and a node if there is a `y/Assign`."""
    groups = grouped((path[0], (path[1:], node)) for path, node in paths if path)
    for number, (label, inside) in enumerate(groups.items(), 1):
        last = number == len(groups)
        yield branches + ("╰─ " if last else "├─ ") + label, [node for _, node in inside]
        if opened:
            yield from scopes(inside, True, branches + ("   " if last else "│  "))


def function_table(title: str, functions: Sequence[Function]) -> Table:
    return table(
        title,
        functions,
        Column("function", lambda function: function.name, name=True),
        Column("called by", callers, elastic=True, least=34),
        numbers("nodes", lambda function: str(len(function.nodes))),
        Column(
            "op types",
            lambda function: counted(node.op for node in function.nodes) or "(not in the library)",
            elastic=True,
            least=20,
            spare=1,
        ),
    )


def callers(function: Function) -> str:
    """Return `then_branch of cond`: the callers."""
    calls = (f"{call.attribute} of {call.node}".removeprefix(" of ") for call in function.called_by)
    return ", ".join(calls) or "nothing"


# The order of reads and writes

UNDEFINED = {  # what the order decides, by what the first of two accesses does
    "reads": "no path between them: it finds the old or the new value",
    "writes": "no path between them: either value may be the one that stays",
    "takes": "no path between them: either may get the first element",
    "puts": "no path between them: either element may be the first",
}


def unordered(rows: Sequence[Unordered]) -> Iterator[Fact]:
    """Yield the accesses without order; all but the first are details."""
    for number, row in enumerate(rows):
        first, second = row.first, row.second
        # The fetch that is computed from what is read; without or with several, the node
        who = row.fetches[0] if len(row.fetches) == 1 else first.node
        does = f"{who} {first.does} {row.resource}{at(first.source)}"
        both = f"{does}, {second.node} {second.does} it{at(second.source)}"
        yield Fact("order undefined", both, UNDEFINED[first.does], detail=number > 0)


def at(source: Source | None) -> str:
    return f" ({place(source)})" if source else ""


def always_run(inputs: Sequence[BranchInput]) -> Iterator[Fact]:
    """Yield the nodes that run in every step although only one branch uses them; all but the first
    are details."""
    for number, row in enumerate(inputs):
        why = f"only the {row.branch} uses it; it was made outside of that branch"
        about = ", ".join(filter(None, (row.op, place(row.source))))
        yield Fact("always runs", f"{row.node} ({about})", why, detail=number > 0)


# Rails
#
# Rails are like the graph beside a version history. A rail starts at the node that makes a value,
# runs down past the nodes that do not need it, and ends at the node that uses it last.
#
#     ●     x
#     │ ●   y
#     ●─╯   mul


def ordered(nodes: Sequence[Node], ends: Iterable[str]) -> list[Node]:
    """Return producers before consumers, those of `ends` first, so that rails are short."""
    by_name = {node.name: node for node in nodes}
    roots = dict.fromkeys([*(name for name in ends if name in by_name), *by_name])
    edges = {name: [end for end in by_name[name].waits_for if end in by_name] for name in roots}
    return [by_name[name] for name in in_order(edges)]


def draw(nodes: Sequence[Node]) -> list[str]:
    """Return the rails of nodes that `ordered` has sorted. All strings are equally long."""
    takes: dict[str, list[str]] = {}  # from above it; the back edge of a loop is not drawn
    for node in nodes:
        takes[node.name] = [p for p in dict.fromkeys(node.waits_for) if p in takes]
    uses = Counter(parent for taken in takes.values() for parent in taken)
    rails: list[str | None] = []  # what each rail carries now
    resting = None  # the rail of an unused value, which the next node must not seem to use
    rows = []
    for node in nodes:
        taken = [rails.index(parent) for parent in takes[node.name]]
        uses.subtract(takes[node.name])
        ending = [rail for rail in taken if not uses[rails[rail] or ""]]
        free = (n for n, carried in enumerate(rails) if carried is None and n != resting)
        own = min(ending, default=next(free, len(rails)))
        if own == len(rails):
            rails.append(None)
        rows.append(row(rails, own, taken, ending))
        for rail in ending:
            rails[rail] = None
        rails[own] = node.name if uses[node.name] else None
        resting = None if uses[node.name] else own
    width = max(map(len, rows), default=0)
    return [line.ljust(width) for line in rows]


def row(rails: Sequence[str | None], own: int, taken: Sequence[int], ending: Sequence[int]) -> str:
    left, right = min([own, *taken]), max([own, *taken])
    text = ""
    for rail, carried in enumerate(rails):
        within = left <= rail <= right
        if rail == own:
            char = "●"
        elif rail in taken:
            signs = "╰├" if rail == left else "╯┤" if rail == right else "┴┼"
            char = signs[rail not in ending]
        elif carried is not None:
            char = "│"
        else:
            char = "─" if within else " "
        text += char + ("─" if left <= rail < right else " ")
    return text.rstrip()
