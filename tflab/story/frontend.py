"""The frontend's story: the graph drawn whole, or the tree of its scopes, with source lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tflab import rails, scopes
from tflab.records import Frontend, Node, edge_count
from tflab.story.words import place, tensor
from tflab.table import Block, Column, Table, plural

DRAWN_WHOLE = 40  # nodes; a larger graph is shown as a tree of scopes


def tell(stage: Frontend, expanded: Sequence[str]) -> Iterable[Block]:
    made_by = {(node.source.file, node.source.line) for node in stage.nodes if node.source}
    counts = f"{plural(len(stage.nodes), 'node')}, {plural(edge_count(stage.nodes), 'edge')}"
    lines = plural(len(made_by), "line")
    made = f"made by {lines} of the program" if made_by else "read from a file without lines"
    yield f"{counts}, {made}. Nothing is computed yet."
    yield from stage.notes
    if len(stage.nodes) <= DRAWN_WHOLE and not expanded:
        yield drawing(stage.nodes, stage.program.ends if stage.program else ())
        return
    tree = scopes.tree(stage.nodes)
    yield Table(
        "Name scopes (open one with --expand SCOPE)",
        (
            Column("scope", lambda line: line.branches + line.label),
            Column("nodes", lambda line: str(line.count), right=True),
            Column("types", lambda line: line.what, elastic=True),
            Column("first line", lambda line: place(line.node.source)),
        ),
        tuple(scopes.lines(tree, expanded)),
        drawing=True,
    )


def drawing(nodes: Sequence[Node], ends: Sequence[str]) -> Table:
    """The whole graph, a node a line, data flowing down the rails."""
    order = rails.ordered(nodes, ends)
    drawn = zip(rails.draw(order), order, strict=True)

    def code(row: tuple[str, Node]) -> str:
        return row[1].source.code if row[1].source else ""

    return Table(
        "The graph, data flowing down",
        (
            Column("", lambda row: row[0]),
            Column("node", lambda row: row[1].name),
            Column("op", lambda row: row[1].op),
            Column("output", lambda row: ", ".join(map(tensor, row[1].outputs))),
            Column("line", lambda row: place(row[1].source)),
            Column("code", code, elastic=True, least=34),
        ),
        tuple(drawn),
        drawing=True,
    )
