"""Viewer data: a drawn graph as data for the page's script, with its nodes, boxes and states
numbered.

Names stay unchanged; html.py ensures that none becomes markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import PurePath
from typing import Any

from tflab.analysis.gradient_graph import gradient_name
from tflab.analysis.passes import Version, Versions
from tflab.follow import view
from tflab.follow.view import Aside, Code, NodeLink, Part, PassLink
from tflab.records.codec import encoded
from tflab.records.graph import node_of
from tflab.records.node_history import NodeHistory
from tflab.records.placed import Transfer
from tflab.records.values import VARIABLE
from tflab.report import graph_states
from tflab.report.contents import DIRECTIONS, Annotated, Box, DrawnGraph, Lane, State
from tflab.units import short_device, size, time
from tflab.views import chain_rule, words
from tflab.views.values import brief

RUNTIME = "runtime"  # the kind of a node that the runtime made, used in place of a fate
KINDS = {  # their names in the legend; a scope has the first of these kinds that it contains
    "forward": "forward",
    "gradient": "gradient",
    "update": "update",
    RUNTIME: "made by the runtime",
}
FATES = (*words.FATES, RUNTIME)
HEATS = 7  # steps of the colour scale of times, each with a colour in drawing.css
ARROWS = {"down": " ↓", "up": " ↑"}
LARGE = 100  # nodes of a drawing in which the first layer is open at the start; in a
# smaller one each box shows its values
FLOWED = ("backward", "execution")  # stages whose states show the values of the recorded step
OUTPUTS = 2  # of a node that fit into its box


def graph_data(graph: DrawnGraph) -> dict[str, Any]:
    """The data that the script draws: boxes, states and nodes by number, nodes with their
    versions."""
    drawing, histories = graph.drawing, graph.histories
    versions = graph_states.versions(drawing.states)
    counts = graph_states.node_counts(drawing.states, versions)
    index = {name: number for number, name in enumerate(histories)}
    boxes: list[dict[str, Any]] = []
    tracks = [flat(track, None, boxes, index) for track in drawing.tracks]
    shapes = Shapes(versions, histories, len(drawing.states) - 1)
    file = graph.file or most_of(histories)
    nodes = [
        node_data(history, versions.get(history.name, ()), graph, index, shapes)
        for history in histories.values()
    ]
    summarize(boxes, list(histories.values()), graph.ns)
    if len(nodes) <= LARGE and any(history.values for history in histories.values()):
        show_values(histories, nodes, boxes, index)
    devices = {short_device(n.device): None for state in drawing.states for n in state.defined}
    devices.pop("", None)
    return {
        "title": graph.name,
        "nodes": nodes,
        "boxes": boxes,
        "tracks": tracks,
        "headings": [
            track.label + ARROWS.get(DIRECTIONS.get(track.label, ""), "")
            for track in drawing.tracks
        ],
        "open": opened(boxes, len(nodes)),
        "states": [
            state_data(state, count, index)
            for state, count in zip(drawing.states, counts, strict=True)
        ],
        "start": graph.start,
        "made": graph_states.last_made(drawing.states),
        "stops": list(stops_data(drawing.states)),
        "idle": encoded(drawing.idle),
        "transfers": [transfer_data(row, index) for row in drawing.transfers],
        "shapes": list(shapes.numbers),
        "file": "" if graph.file or not file else PurePath(file).name,
        "lines": lines(histories, file),
        "legend": {
            "kind": list(KINDS.items()),
            "fate": [
                (fate, fate) for fate in FATES if fate in set(map(fate_of, histories.values()))
            ],
            "device": list(devices),
            "time": heat_words(graph.ns, graph.statistic),
        },
    }


def most_of(histories: Mapping[str, NodeHistory]) -> str | None:
    """The file whose lines made most nodes, if any did."""
    files = Counter(history.source.file for history in histories.values() if history.source)
    return max(files, key=files.__getitem__, default=None)


def lines(histories: Mapping[str, NodeHistory], file: str | None) -> list[list[int]]:
    """For each node, in order, the lines of the file whose work it does."""
    own = {
        name: {history.source.line}
        for name, history in histories.items()
        if history.source and history.source.file == file
    }
    none: set[int] = set()
    return [
        sorted(own.get(name, none).union(*(own.get(other, none) for other in history.carries)))
        for name, history in histories.items()
    ]


def nodes_of_lines(part: Annotated) -> list[list[int]]:
    """The nodes of the graph, by number, that each line made, over all scripts."""
    histories = part.graph.histories if part.graph else {}
    index = {name: number for number, name in enumerate(histories)}
    return [
        [index[name] for name in line.nodes if name in index]
        for script in part.scripts
        for line in script.lines
    ]


def summarize(
    boxes: Sequence[dict[str, Any]], histories: Sequence[NodeHistory], ns: Mapping[str, float]
) -> None:
    """Give each box the properties that colours show: kind, fates and time of its nodes."""
    histories_of: list[list[NodeHistory]] = [[] for _ in boxes]
    for number, box in enumerate(boxes):
        around = number if box["node"] is not None else None
        while around is not None:
            histories_of[around].append(histories[box["node"]])
            around = boxes[around]["parent"]
    longest = max(ns.values(), default=0)
    for box, members in zip(boxes, histories_of, strict=True):
        kinds = {history.kind for history in members}
        fates = Counter(map(fate_of, members))
        took = sum(ns.get(history.name, 0) for history in members)
        box["kind"] = next((kind for kind in KINDS if kind in kinds), RUNTIME)
        box["fates"] = [(fate, fates[fate]) for fate in FATES if fates[fate]]
        box["time"] = time(took) if took else None
        box["heat"] = heat(took, longest) if took else None


def fate_of(history: NodeHistory) -> str:
    return history.fate.fate if history.fate else RUNTIME


def heat(ns: float, longest: float) -> int:
    """The step on the colour scale of times, from 0: four times as long is twice as high."""
    return min(HEATS - 1, int(sqrt(ns / longest) * HEATS))


def heat_words(ns: Mapping[str, float], statistic: str) -> list[str]:
    """What the legend says of each step of the scale: the time at which it begins."""
    longest = max(ns.values(), default=0)
    return [
        f"from 0 ({statistic})",
        *(time((step / HEATS) ** 2 * longest) for step in range(1, HEATS)),
    ]


def show_values(
    histories: Mapping[str, NodeHistory],
    nodes: Sequence[dict[str, Any]],
    boxes: Sequence[dict[str, Any]],
    index: Mapping[str, int],
) -> None:
    """Give each node its values, and each scope the values that it shows while it is closed."""
    for node, history in zip(nodes, histories.values(), strict=True):
        node |= flowed(history)
    for history in histories.values():
        is_variable = any(value.kind == VARIABLE for value in history.values)
        if is_variable and history.gradient and history.gradient.node in index:
            amount = brief(history.gradient, history.gradient.shape)
            computing = nodes[index[history.gradient.node]]
            computing["result"] = f"{gradient_name(history.name)} = {amount}"
    for box in boxes:
        if box["node"] is not None:
            hand_on(box, boxes, nodes[box["node"]])


def flowed(history: NodeHistory) -> dict[str, str]:
    """Return what a box shows of the program's values: data and gradient, or why there are none."""
    shown = {}
    texts = [
        brief(value, value.shape) + (f" → {brief(value.after, value.shape)}" if value.after else "")
        for value in history.values[:OUTPUTS]
    ]
    if texts:
        shown["data"] = ", ".join(texts)
    if history.gradient:
        shown["grad"] = brief(history.gradient, history.gradient.shape)
    if missing := view.missing(history):
        shown["missing"] = missing
    return shown


def hand_on(box: dict[str, Any], boxes: Sequence[dict[str, Any]], node: Mapping[str, Any]) -> None:
    """Give the scopes around a node the values that they show while closed: those of the node
    whose name they have, and the gradients of variables that are computed in them."""
    inner = box
    while inner["parent"] is not None:
        scope = boxes[inner["parent"]]
        if inner is box and scope["label"] == box["label"]:
            scope |= {key: node[key] for key in ("data", "grad") if key in node}
        if "result" in node and node["result"] not in scope.get("results", ()):
            scope["results"] = [*scope.get("results", ()), node["result"]]
        inner = scope


def stops_data(states: Sequence[State]) -> Iterator[dict[str, Any]]:
    """The stages at which the drawing halts, each with the passes on its way."""
    for stop in graph_states.stops(states):
        passes = [encoded(tick) for tick in graph_states.ticks(states, stop)]
        yield {**encoded(stop), "ticks": passes}


def transfer_data(row: Transfer, index: Mapping[str, int]) -> dict[str, Any]:
    """A tensor that is sent from one node to another on another device."""
    words = f"{row.tensor}, {short_device(row.from_device)} to {short_device(row.to_device)}"
    return {
        "send": index[row.send],
        "recv": index[row.recv],
        "bytes": "? B" if row.bytes is None else size(row.bytes),
        "title": words,
    }


def flat(box: Box, parent: int | None, boxes: list[dict[str, Any]], index: dict[str, int]) -> int:
    """Append a box and everything in it; returns its number among the boxes."""
    number = len(boxes)
    boxes.append(
        {
            "label": box.label,
            "parent": parent,
            "node": None if box.rows else index[box.name],
            "framed": box.framed,
        }
    )
    numbers = {
        entry.name: flat(entry, number, boxes, index)
        for row in box.rows
        for entry in row
        if isinstance(entry, Box)
    }
    boxes[number]["rows"] = [
        [
            [numbers.get(entry.source, -1), numbers.get(entry.target, -1)]
            if isinstance(entry, Lane)
            else numbers[entry.name]
            for entry in row
        ]
        for row in box.rows
    ]
    return number


def opened(boxes: list[dict[str, Any]], nodes: int) -> list[int]:
    """The scope that is open at first; none in a small graph."""
    framed = [number for number, box in enumerate(boxes) if box["rows"] and box["framed"]]
    return framed[:1] if nodes > LARGE else []


def node_data(
    history: NodeHistory,
    versions: Sequence[Version],
    graph: DrawnGraph,
    index: dict[str, int],
    shapes: Shapes,
) -> dict[str, Any]:
    related = {history.carrier, *history.carries} - {None, history.name}
    table = view.times(history)
    heads = [column.header for column in table.columns]
    meant = history.meaning
    return {
        "name": history.name,
        "op": history.op,
        "related": sorted(index[name] for name in related if name in index),
        "versions": [version_data(version, index, shapes) for version in versions],
        "history": sections(history, graph.drawing.states, index),
        "times": {
            "title": table.title,
            "rows": list(zip(heads, *table.cells(), strict=True)) if table.rows else [],
        },
        **({"meaning": chain_rule.meaning(meant)} if meant else {}),
        **({"bookkeeping": True} if meant and meant.bookkeeping else {}),
        **({"code": True} if history.code else {}),
    }


def state_data(state: State, count: int, index: dict[str, int]) -> dict[str, Any]:
    return {
        "stage": state.stage,
        "title": state.title,
        "about": state.about,
        "lines": state.lines,
        "gone": [index[name] for name in state.gone],
        "touched": [index[name] for name in state.touched],
        "cut": [[index[name] for name in pair] for pair in state.cut],
        "count": count,
        "flowed": state.stage in FLOWED,
    }


def version_data(version: Version, index: dict[str, int], shapes: Shapes) -> list[Any]:
    """First state, last state, op, device, inputs, control inputs, and the shapes of the inputs: as
    the script reads them."""
    node = version.node
    inputs = [tensor for tensor in node.inputs if node_of(tensor) in index]
    return [
        version.first,
        version.last,
        node.op,
        short_device(node.device),
        [index[node_of(tensor)] for tensor in inputs],
        [index[name] for name in map(node_of, node.control_inputs) if name in index],
        [shapes.number(tensor, version) for tensor in inputs],
    ]


class Shapes:
    """The shapes of tensors as they stand beside edges, each with a number."""

    def __init__(self, versions: Versions, histories: Mapping[str, NodeHistory], last: int) -> None:
        self.versions, self.histories, self.last = versions, histories, last
        self.numbers: dict[str, int] = {}

    def number(self, tensor: str, user: Version) -> int | None:
        """The number of a tensor's shape as its user takes it: that of the traced step if both ran,
        else as the last version of its maker said that knew it. None of a scalar, and where nobody
        knew it."""
        name, _, digits = tensor.partition(":")
        slot = int(digits) if digits.isdecimal() else 0
        made = [v.node.outputs for v in self.versions.get(name, ()) if v.first <= user.last]
        maker = self.histories[name]
        ran = [maker.ran_outputs] if user.last == self.last and maker.carrier == name else []
        for outputs in (*ran, *reversed(made)):
            if slot < len(outputs) and (known := outputs[slot].shape) is not None:
                shape = "x".join("?" if size is None else str(size) for size in known)
                return self.numbers.setdefault(shape, len(self.numbers)) if shape else None
        return None


# Panel: the history of one node beside a drawing, with every name as a link
#
# `follow.view` has the text; here nodes become their numbers in the page, and stages and passes
# the numbers of their states in the drawing.


def sections(
    history: NodeHistory, states: Sequence[State], index: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The sections of a history for viewer.js; `index` numbers the nodes."""
    first = {state.stage: number for number, state in reversed(list(enumerate(states)))}
    of_pass = {state.place: number for number, state in enumerate(states)}

    def linked(part: Part) -> Any:
        """A part of a line, as a link where there is something to go to."""
        if isinstance(part, Code):
            return {"code": part.text}
        if isinstance(part, Aside):
            return {"aside": part.text}
        if isinstance(part, NodeLink) and part.node in index:
            return {"node": index[part.node], "text": part.text}
        if isinstance(part, PassLink) and part.place in of_pass:
            return {"state": of_pass[part.place], "text": part.text}
        return part if isinstance(part, str) else part.text

    return [
        {
            "title": section.title,
            "about": section.about,
            "state": first.get(section.stage),
            "lines": [[linked(part) for part in line] for line in section.lines],
        }
        for section in view.sections(history)
    ]
