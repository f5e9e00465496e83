"""Data: a drawn graph with its tables as plain data, for pages, logdirs and other processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from tflab.exporters.json import plain
from tflab.follow import view
from tflab.records.blocks import Block, Column, Frame, Strip, Table
from tflab.records.node_history import NodeHistory
from tflab.records.placed import Fate
from tflab.report import html, viewer_data
from tflab.report.contents import DrawnGraph

Life = dict[str, Any]
Numbers = Mapping[str, float | None]  # of the whole graph, by the names in `changes`


def life(
    stage: str, graph: DrawnGraph, parts: Iterable[tuple[str, Iterable[Block]]], numbers: Numbers
) -> Life:
    """A graph up to a stage: its drawing, its blocks by title, and data for comparisons."""
    message = {
        "stage": stage,
        "graph": viewer_data.graph_data(graph),
        "parts": {title: list(map(block, blocks)) for title, blocks in parts},
        "nodes": {name: signature(history) for name, history in graph.histories.items()},
        "numbers": dict(numbers),
    }
    readable: Life = html.readable(plain(message))
    return readable


def signature(history: NodeHistory) -> list[Any]:
    """The properties of a node to compare with the previous life: its op, inputs and outputs, and
    its fate."""
    inputs = (*history.inputs, *(f"^{name}" for name in history.control_inputs))
    outputs = [f"{out.dtype} {list(out.shape or ())}" for out in history.outputs]
    fate = history.fate
    return [
        history.kind,
        f"{history.op}({', '.join(inputs)}) -> {', '.join(outputs)}",
        fate and with_heir(fate),
    ]


def with_heir(fate: Fate) -> str:
    """`merged with Const`: the fate, and the node that took over, if it is another one."""
    if fate.into in (None, fate.name):
        return fate.fate
    return f"{fate.fate} {view.PREPOSITIONS[fate.fate]} {fate.into}"


def block(part: Block) -> Any:
    """A block as data, from which `read_block` makes it again."""
    if isinstance(part, Table):
        return {
            "table": part.title,
            "columns": [[column.header, column.right] for column in part.columns],
            "rows": [list(cells) for cells in part.cells()],
            "more": part.more,
        }
    if isinstance(part, Strip):
        frames = [[frame.heading, frame.about, list(frame.lines)] for frame in part.frames]
        return {"strip": part.title, "frames": frames}
    return part


def read_block(part: Any) -> Block:
    """A block from the data of `block`. Raises the usual exceptions for wrong types."""
    if isinstance(part, str):
        return part
    if "strip" in part:
        frames = (
            Frame(str(head), str(about), texts(lines)) for head, about, lines in part["frames"]
        )
        return Strip(str(part["strip"]), tuple(frames))
    columns = tuple(
        Column(str(header), itemgetter(place), right=bool(right))
        for place, (header, right) in enumerate(part["columns"])
    )
    return Table(
        str(part["table"]), columns, tuple(map(texts, part["rows"])), more=int(part["more"])
    )


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))
