"""View of the frontend: the lines of the program, the whole graph or the tree of its scopes, and
the functions that its nodes call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tflab.records.blocks import Block, Column, Fact, Table, numbers, table
from tflab.records.graph import Function, Node, node_of
from tflab.records.stages import Frontend
from tflab.units import plural
from tflab.views import access_order, name_scopes, rails
from tflab.views.words import counted, graph_size, listed, place, tensor

TITLE = "Frontend: Python calls become nodes"
DRAWN_WHOLE = 40  # nodes; a larger graph is shown as a tree of scopes
SHORT = 7  # lines of a program that are shown in its order


def facts(stage: Frontend) -> list[Fact]:
    lined = any(node.source for node in stage.nodes)
    facts = [Fact("graph", graph_size(stage.nodes), "" if lined else "from a file without lines")]
    if stage.functions:
        inner = plural(sum(len(function.nodes) for function in stage.functions), "node")
        unused = sum(not function.called_by for function in stage.functions)
        note = f"{inner} of their own" + (f"; {unused:,} never called" if unused else "")
        facts.append(Fact("functions", f"{len(stage.functions):,}", note))
    return [
        *facts,
        *access_order.facts(stage.unordered),
        *access_order.always_run(stage.always_run),
    ]


def tables(stage: Frontend) -> list[Block]:
    """Return the lines or the types of the graph, the graph itself, and its functions."""
    blocks: list[Block] = [lines(stage.nodes) if by_line(stage.nodes) else types(stage.nodes)]
    if len(stage.nodes) <= DRAWN_WHOLE:
        ends = stage.program.ends if stage.program else ()
        blocks.append(drawing("The graph, data flowing down", stage.nodes, ends))
    else:
        blocks.append(scope_table("Name scopes (--full opens all)", stage.nodes))
    if stage.functions:
        blocks.append(function_table("Functions (--full shows their bodies)", stage.functions))
    return blocks


def by_line(nodes: Iterable[Node]) -> dict[tuple[str, int], list[Node]]:
    """Return the nodes that each line of the program made, in the order of the program."""
    groups: dict[tuple[str, int], list[Node]] = {}
    for node in nodes:
        if node.source:
            groups.setdefault((node.source.file, node.source.line), []).append(node)
    return groups


def lines(nodes: Sequence[Node]) -> Table:
    """Return the lines in the order of the program; if they are many, those that made the most
    nodes first."""
    groups = list(by_line(nodes).values())
    order = "in their order"
    if len(groups) > SHORT:
        groups.sort(key=len, reverse=True)
        order = "the most nodes first"
    count, made = plural(len(groups), "line"), sum(map(len, groups))
    return table(
        f"{count} of the program made {made:,} of {len(nodes):,} nodes, {order}",
        groups,
        Column("line", lambda nodes: place(nodes[0].source)),
        Column("code", lambda nodes: nodes[0].source.code, elastic=True, least=28),
        numbers("nodes", lambda nodes: f"{len(nodes):,}"),
        Column("ops", lambda nodes: counted(node.op for node in nodes), elastic=True, least=24),
    )


def types(nodes: Sequence[Node]) -> Table:
    """Return the types of the nodes of a graph without source lines."""
    return table(
        "The types of the nodes, the most frequent first",
        Counter(node.op for node in nodes).most_common(),
        Column("op", lambda row: row[0]),
        numbers("nodes", lambda row: f"{row[1]:,}"),
    )


def scope_table(title: str, nodes: Sequence[Node]) -> Table:
    """Return a table of the outermost scopes; in full, of all scopes and nodes."""
    tree = name_scopes.tree(nodes)
    rows = list(name_scopes.lines(tree))
    columns = (
        Column("scope", lambda row: row[0]),
        numbers("nodes", lambda row: f"{len(row[1]):,}"),
        Column("types", lambda row: name_scopes.kinds(row[1]), elastic=True),
        Column("first line", lambda row: place(row[1][0].source), spare=2),
    )
    shown = table(title, rows, *columns)
    fewer = len(rows) < len(nodes) or shown.more
    everything = (lambda: name_scopes.lines(tree, opened=True)) if fewer else None
    return replace(shown, drawing=True, everything=everything)


def drawing(title: str, nodes: Sequence[Node], ends: Sequence[str]) -> Table:
    """Return a whole graph, one node per line, with data flowing down the rails."""
    order = rails.ordered(nodes, ends)
    rows = zip(rails.draw(order), order, strict=True)
    return table(
        title,
        rows,
        Column("", lambda row: row[0]),
        Column("node", lambda row: row[1].name),
        Column("op", lambda row: row[1].op),
        Column("output", lambda row: ", ".join(map(tensor, row[1].outputs)), spare=1),
        Column("line", lambda row: place(row[1].source)),
        drawing=True,
    )


def function_table(title: str, functions: Sequence[Function]) -> Table:
    return table(
        title,
        functions,
        Column("function", lambda function: function.name, name=True),
        Column("called by", callers, elastic=True, least=34),
        numbers("nodes", lambda function: str(len(function.nodes))),
        Column("types", function_types, elastic=True, least=20, spare=1),
    )


def callers(function: Function) -> str:
    """Return `then_branch of cond`; of many callers the first, and the number of the others."""
    calls = (f"{call.attribute} of {call.node}".removeprefix(" of ") for call in function.called_by)
    return listed(list(calls), 1) or "nothing"


def function_types(function: Function) -> str:
    return name_scopes.kinds(function.nodes) or "(not in the graph's library)"


def bodies(stage: Frontend) -> Iterator[Block]:
    """Yield the bodies of all functions, drawn like graphs, for `--full`."""
    for function in stage.functions:
        results = ", ".join(function.returns) or "nothing"
        yield (f"'{function.name}' returns {results}; its arguments are nodes of the type _Arg.")
        if len(function.nodes) <= DRAWN_WHOLE:
            ends = list(map(node_of, function.returns))
            yield drawing(f"The function {function.name}", function.nodes, ends)
        else:
            yield scope_table(f"Name scopes of {function.name}", function.nodes)
