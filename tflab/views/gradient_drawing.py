"""The drawing of a gradient graph, and the text for what a node computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tflab.records.blocks import Column, Table
from tflab.records.gradients import GradientNode
from tflab.records.graph import Node, node_of
from tflab.records.stages import Backward
from tflab.views import rails

SCOPE = "gradients/"  # the scope of all nodes that tf.gradients adds


@dataclass(frozen=True)
class Drawn:
    """One line of the drawing."""

    rails: str
    name: str
    text: str
    dim: bool


def drawing(stage: Backward) -> Table:
    """The gradient graph, one node per line, from the loss to the updates; bookkeeping is dim.

    Nodes that only wait for others have no values and are not drawn.
    """
    by_name = {node.name: node for node in stage.gradient_nodes}
    computes = {link.forward: link.computes for link in stage.chain_rule}
    shown = list(flowing(stage.nodes, by_name))
    ends = [node.name for node in shown if node.name not in by_name and node.inputs]
    order = rails.ordered(leaves_last(shown), ends)
    rows = [
        drawn_row(drawn, node, by_name.get(node.name), computes)
        for drawn, node in zip(rails.draw(order), order, strict=True)
    ]
    return Table(
        "The gradient graph, from the loss down to the updates (-> a step towards that gradient, "
        "= that gradient; in brackets: bookkeeping)",
        (
            Column("", lambda row: row.rails),
            Column("node", lambda row: row.name, elastic=True, name=True),
            Column("computes", lambda row: row.text, elastic=True, least=46),
        ),
        tuple(rows),
        drawing=True,
        tone=lambda row: "less" if row.dim else "",
    )


def flowing(nodes: Sequence[Node], by_name: Mapping[str, GradientNode]) -> Iterator[Node]:
    """The gradient nodes that have values, the forward nodes that they take inputs from, and the
    updates that use them; of the latter two only these edges."""
    consumed = {node_of(t) for node in nodes if node.name in by_name for t in node.inputs}
    for node in nodes:
        gradients = tuple(t for t in node.inputs if node_of(t) in by_name)
        if node.name in by_name and node.outputs:
            yield replace(node, control_inputs=())
        elif node.name not in by_name and (gradients or node.name in consumed):
            yield replace(node, inputs=gradients, control_inputs=())


def leaves_last(nodes: Sequence[Node]) -> list[Node]:
    """A node's inputs in the order of the drawing: an input without inputs of its own comes
    right before the node, which keeps rails short."""
    leaves = {node.name for node in nodes if not node.inputs}
    return [
        replace(node, inputs=tuple(sorted(node.inputs, key=lambda t: node_of(t) in leaves)))
        for node in nodes
    ]


def drawn_row(
    drawn: str, node: Node, described: GradientNode | None, computes: Mapping[str, str]
) -> Drawn:
    if described is None and node.inputs:
        return Drawn(drawn, node.name, f"update: {node.op}", dim=False)
    if described is None:
        text = f"forward: {computes.get(node.name) or node.op}"
        text = "fed" if node.op == "Placeholder" else text
        return Drawn(drawn, node.name, text, dim=False)
    text = ("not used: " if unused(described) else "") + meaning(described)
    return Drawn(drawn, node.name.removeprefix(SCOPE), text, bool(described.bookkeeping))


def meaning(node: GradientNode) -> str:
    """`x * dL/d(mul) -> dL/dy`; for bookkeeping its kind."""
    content = f"[{node.bookkeeping}]" if node.bookkeeping else node.formula or "no formula"
    if not node.towards:
        return content
    return f"{content} {'=' if node.complete else '->'} {node.towards}"


def unused(node: GradientNode) -> bool:
    """Whether it leads to a gradient that no variable needs."""
    return node.towards is not None and not node.used
