"""View of the frontend: the whole graph, or the tree of its scopes, with source lines; then the
functions that its nodes call, in full with their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tflab.records.blocks import Block, Column, Table, shortened
from tflab.records.graph import Call, Function, Node, edge_count, node_of
from tflab.records.stages import Frontend
from tflab.units import plural
from tflab.views import ascii_graph, name_scopes
from tflab.views.words import LONGEST, place, tensor

DRAWN_WHOLE = 40  # nodes; a larger graph is shown as a tree of scopes


def blocks(stage: Frontend, full: bool) -> Iterable[Block]:
    """Yield the graph and its functions; if `full`, with all nodes of both."""
    made_by = {(node.source.file, node.source.line) for node in stage.nodes if node.source}
    counts = f"{plural(len(stage.nodes), 'node')}, {plural(edge_count(stage.nodes), 'edge')}"
    lines = plural(len(made_by), "line")
    origin = f"made by {lines} of the program" if made_by else "read from a file without lines"
    yield f"{counts}, {origin}. Nothing is computed yet."
    yield from stage.notes
    if len(stage.nodes) <= DRAWN_WHOLE:
        ends = stage.program.ends if stage.program else ()
        yield drawing("The graph, data flowing down", stage.nodes, ends)
    else:
        yield scope_table("Name scopes (--full opens all)", stage.nodes)
    yield from functions(stage, full)


def scope_table(title: str, nodes: Sequence[Node]) -> Table:
    """Return a table of the outermost scopes; in full, of all scopes and nodes."""
    tree = name_scopes.tree(nodes)
    rows = tuple(name_scopes.lines(tree, most=LONGEST))
    closed = any(scope.children for scope in tree.children.values())
    fewer = closed or any(line.alike > 1 or line.omitted for line in rows)
    return Table(
        title,
        (
            Column("scope", lambda line: line.branches + line.label),
            Column("nodes", lambda line: line.counted, right=True),
            Column("types", lambda line: line.what, elastic=True),
            Column("first line", lambda line: place(line.node.source), spare=2),
        ),
        rows,
        drawing=True,
        everything=(lambda: name_scopes.lines(tree, opened=True)) if fewer else None,
    )


def drawing(title: str, nodes: Sequence[Node], ends: Sequence[str]) -> Table:
    """A whole graph, one node per line, with data flowing down the rails."""
    order = ascii_graph.ordered(nodes, ends)
    rows = zip(ascii_graph.draw(order), order, strict=True)

    def code(row: tuple[str, Node]) -> str:
        return row[1].source.code if row[1].source else ""

    return Table(
        title,
        (
            Column("", lambda row: row[0]),
            Column("node", lambda row: row[1].name),
            Column("op", lambda row: row[1].op),
            Column("output", lambda row: ", ".join(map(tensor, row[1].outputs)), spare=1),
            Column("line", lambda row: place(row[1].source)),
            Column("code", code, elastic=True, least=34, spare=2),
        ),
        tuple(rows),
        drawing=True,
    )


def functions(stage: Frontend, full: bool) -> Iterable[Block]:
    if not stage.functions:
        return
    node_count = sum(len(function.nodes) for function in stage.functions)
    unused = sum(not function.called_by for function in stage.functions)
    if len(stage.functions) == 1:
        owner, rest = "its", "; it is never called."
    else:
        owner, rest = "their", f"; {unused:,} of them are never called."
    yield (
        f"{plural(len(stage.functions), 'function')} with {plural(node_count, 'node')} of {owner} "
        "own" + (rest if unused else ".")
    )
    yield function_table("Functions (--full shows their bodies)", stage.functions)
    for function in stage.functions if full else ():
        yield from body(function)


def function_table(title: str, functions: Sequence[Function]) -> Table:
    have_lines = any(map(first_line, functions))  # functions in files have no lines
    return shortened(
        title,
        (
            Column("function", lambda function: function.name, name=True),
            Column("called by", callers, elastic=True, least=34),
            Column("nodes", lambda function: str(len(function.nodes)), right=True),
            Column("types", types, elastic=True, least=20, spare=1),
            *([Column("first line", first_line, spare=2)] if have_lines else []),
        ),
        functions,
        LONGEST,
    )


def callers(function: Function) -> str:
    """`then_branch of cond`; of many callers the first, and the number of the others."""
    if not function.called_by:
        return "nothing"
    first, *others = map(caller, function.called_by)
    return first + (f" and {len(others):,} more" if others else "")


def caller(call: Call) -> str:
    inside = f" in {call.function}" if call.function else ""
    return (f"{call.attribute} of {call.node}" if call.attribute else call.node) + inside


def types(function: Function) -> str:
    return name_scopes.kinds(function.nodes) or "(not in the graph's library)"


def first_line(function: Function) -> str:
    """The first line of its body: an argument has the line from which the function was traced."""
    lines = [place(node.source) for node in function.nodes if node.source and node.op != "_Arg"]
    return lines[0] if lines else ""


def body(function: Function) -> Iterable[Block]:
    """The body of one function, drawn like a graph."""
    results = f"returns {', '.join(function.returns)}" if function.returns else "returns nothing"
    yield f"'{function.name}' {results}; its arguments are nodes of the type _Arg."
    if len(function.nodes) <= DRAWN_WHOLE:
        ends = list(map(node_of, function.returns))
        yield drawing(f"The function {function.name}", function.nodes, ends)
    else:
        yield scope_table(f"Name scopes of {function.name}", function.nodes)
