"""Viewer data: a drawn graph as data for the page's script, with its nodes, boxes and states
numbered.

Names stay unchanged; html.py ensures that none becomes markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import sqrt
from pathlib import PurePath
from typing import Any

from tflab.analysis.passes import Version, Versions
from tflab.follow import view
from tflab.follow.view import Code, Part
from tflab.records.graph import node_of
from tflab.records.stages import NodeHistory
from tflab.report import graph_states
from tflab.report.contents import Annotated, Box, DrawnGraph, Lane, State
from tflab.units import short_device, size, time
from tflab.views import backward, words
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
HUES = 8  # lines that have a colour of their own, as in graph.js
HEADINGS = {"Forward": "Forward ↓", "Backward": "Backward ↑"}  # tracks whose edges have a direction
LARGE = 100  # nodes of a drawing in which the first layer is open at the start; in a
# smaller one each box shows its values
FLOWED = ("backward", "execution")  # stages whose states show the program's values
UNMARKED = ("executed", RUNTIME)  # whose boxes do not say why they have no values

Row = dict[str, Any]  # a node, a box or a state of the page
Index = Mapping[str, int]  # node -> its number


def graph_data(graph: DrawnGraph) -> Row:
    """Return the data of a drawing, as `data.d.ts` describes it, with nodes and boxes numbered."""
    drawing, histories = graph.drawing, graph.histories
    states = drawing.states
    versions = graph_states.versions(states)
    counts = graph_states.node_counts(states, versions)
    index = {name: number for number, name in enumerate(histories)}
    boxes: list[Row] = []
    tracks = [flat(track, None, boxes, index) for track in drawing.tracks]
    summarize(boxes, list(histories.values()), graph.ns)
    nodes = [node_data(history, graph, versions, index) for history in histories.values()]
    if len(nodes) <= LARGE and any(history.values for history in histories.values()):
        show_values(histories.values(), nodes, boxes)
    scopes = [number for number, box in enumerate(boxes) if box["rows"] and box["framed"]]
    file = graph.file or most_of(histories)
    sources = [history.source for history in histories.values() if history.source]
    placed = {short_device(node.device): None for state in states for node in state.defined}
    devices = list(filter(None, placed))
    longest = max(graph.ns.values(), default=0)
    numbers = lines(histories, file)
    return {
        "title": graph.name,
        "nodes": nodes,
        "boxes": boxes,
        "tracks": tracks,
        "headings": [HEADINGS.get(track.label, track.label) for track in drawing.tracks],
        "open": scopes[:1] if len(nodes) > LARGE else [],
        "states": [
            {
                **{key: getattr(state, key) for key in ("stage", "title", "about", "lines")},
                **{
                    key: [index[name] for name in getattr(state, key)]
                    for key in ("gone", "touched")
                },
                "cut": [[index[name] for name in pair] for pair in state.cut],
                "count": count,
                "flowed": state.stage in FLOWED,
            }
            for state, count in zip(states, counts, strict=True)
        ],
        "start": graph.start,
        # The last state before the runtime changes the graph
        "made": max(n for n, s in enumerate(states) if s.stage in ("frontend", "backward")),
        "stops": list(stops(states, counts, numbers, len(devices) > 1)),
        "transfers": [
            {
                "send": index[row.send],
                "recv": index[row.recv],
                "bytes": "? B" if row.bytes is None else size(row.bytes),
                "title": f"{row.tensor}, {short_device(row.from_device)} to "
                f"{short_device(row.to_device)}",
            }
            for row in drawing.transfers
        ],
        "file": "" if graph.file or not file else PurePath(file).name,
        "lines": numbers,
        # The lines of the file that made nodes, in order
        "program": sorted({(one.line, one.code) for one in sources if one.file == file}),
        "legend": {
            "kind": list(KINDS.items()),
            "fate": [fate for fate in FATES if fate in set(map(fate_of, histories.values()))],
            "device": devices,
            # Of each step of the scale, the time at which it begins
            "time": [
                f"{graph.statistic} time from 0",
                *(time((step / HEATS) ** 2 * longest) for step in range(1, HEATS)),
            ],
        },
    }


def flat(box: Box, parent: int | None, boxes: list[Row], index: Index) -> int:
    """Append a box and everything in it; return its number among the boxes."""
    number, node = len(boxes), None if box.rows else index[box.name]
    row: Row = {"label": box.label, "parent": parent, "node": node, "framed": box.framed}
    boxes.append(row)
    numbers = {
        entry.name: flat(entry, number, boxes, index)
        for entries in box.rows
        for entry in entries
        if isinstance(entry, Box)
    }
    row["rows"] = [
        [
            [numbers.get(entry.source, -1), numbers.get(entry.target, -1)]
            if isinstance(entry, Lane)
            else numbers[entry.name]
            for entry in entries
        ]
        for entries in box.rows
    ]
    return number


def summarize(
    boxes: Sequence[Row], histories: Sequence[NodeHistory], ns: Mapping[str, float]
) -> None:
    """Give each box what its colours show: the kind, the fates and the time of its nodes."""
    inside: list[list[NodeHistory]] = [[] for _ in boxes]
    for number, box in enumerate(boxes):
        around = number if box["node"] is not None else None
        while around is not None:
            inside[around].append(histories[box["node"]])
            around = boxes[around]["parent"]
    longest = max(ns.values(), default=0)
    for box, members in zip(boxes, inside, strict=True):
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
    """Return the step of the colour scale for a time, from 0; it grows with the time's root."""
    return min(HEATS - 1, int(sqrt(ns / longest) * HEATS))


def node_data(history: NodeHistory, graph: DrawnGraph, versions: Versions, index: Index) -> Row:
    related = {history.carrier or "", *history.carries} - {history.name}
    table, meant = view.times(history), history.meaning
    heads = [column.header for column in table.columns]
    last = len(graph.drawing.states) - 1

    def version_data(version: Version) -> list[object]:
        """Return the version as `data.d.ts` describes it."""
        node = version.node
        inputs = [tensor for tensor in node.inputs if node_of(tensor) in index]
        return [
            version.first,
            version.last,
            node.op,
            short_device(node.device),
            [index[node_of(tensor)] for tensor in inputs],
            [index[name] for name in map(node_of, node.control_inputs) if name in index],
            [shape_of(tensor, version.last, last, versions, graph.histories) for tensor in inputs],
            [tensor.partition(":")[2] for tensor in inputs],
        ]

    return {
        "name": history.name,
        "op": history.op,
        "related": sorted(index[name] for name in related if name in index),
        "versions": [version_data(version) for version in versions.get(history.name, ())],
        "history": sections(history, graph.drawing.states, index),
        "times": {
            "title": table.title,
            "rows": list(zip(heads, *table.cells(), strict=True)) if table.rows else [],
        },
        **({"meaning": backward.meaning(meant)} if meant else {}),
        **({"bookkeeping": True} if meant and meant.bookkeeping else {}),
        **({"code": True} if history.code else {}),
    }


def shape_of(
    tensor: str, used: int, last: int, versions: Versions, histories: Mapping[str, NodeHistory]
) -> str:
    """Return the shape of a tensor beside an edge whose user is last in state `used`: the shape in
    the traced step if both ran, otherwise that of its maker's last version with a shape. It is ""
    for a scalar, and if no version has one."""
    name, _, digits = tensor.partition(":")
    slot = int(digits) if digits.isdecimal() else 0
    made = [v.node.outputs for v in versions.get(name, ()) if v.first <= used]
    maker = histories[name]
    ran = [maker.ran_outputs] if used == last and maker.carrier == name else []
    for outputs in (*ran, *reversed(made)):
        if slot < len(outputs) and (known := outputs[slot].shape) is not None:
            return "x".join("?" if extent is None else str(extent) for extent in known)
    return ""


def show_values(
    histories: Iterable[NodeHistory], nodes: Sequence[Row], boxes: Sequence[Row]
) -> None:
    """Add the values and gradients that boxes show; a scope shows those of its namesake."""
    for node, history in zip(nodes, histories, strict=True):
        if texts := [
            brief(value, value.shape)
            + (f" → {brief(value.after, value.shape)}" if value.after else "")
            for value in history.values[:2]
        ]:
            node["data"] = ", ".join(texts)
        if history.gradient:
            node["grad"] = brief(history.gradient, history.gradient.shape)
        if history.outputs and not history.values and fate_of(history) not in UNMARKED:
            node["missing"] = fate_of(history)
    for box in boxes:
        if box["node"] is not None and boxes[box["parent"]]["label"] == box["label"]:
            node = nodes[box["node"]]
            boxes[box["parent"]] |= {key: node[key] for key in ("data", "grad") if key in node}


def most_of(histories: Mapping[str, NodeHistory]) -> str | None:
    """Return the file whose lines made most nodes, if any did."""
    files = Counter(history.source.file for history in histories.values() if history.source)
    return max(files, key=files.__getitem__, default=None)


def lines(histories: Mapping[str, NodeHistory], file: str | None) -> list[list[int]]:
    """Return, for each node, the numbers of the file's lines whose work it does, in order. A
    gradient that the program made does the work of the forward node's line."""
    own = {
        name: history.source.line
        for name, history in histories.items()
        if history.source and history.source.file == file
    }
    own |= {name: own.get(histories[name].derived_from or "", line) for name, line in own.items()}
    return [
        sorted({own[done] for done in (name, *history.carries) if done in own})
        for name, history in histories.items()
    ]


def nodes_of_lines(part: Annotated) -> list[list[int]]:
    """Return, for each line of all scripts, the numbers of the nodes that it made."""
    histories = part.graph.histories if part.graph else {}
    index = {name: number for number, name in enumerate(histories)}
    return [
        [index[name] for name in line.nodes if name in index]
        for script in part.scripts
        for line in script.lines
    ]


# States, and what is sent between devices


def stops(
    states: Sequence[State], counts: Sequence[int], lines: Sequence[list[int]], many_devices: bool
) -> Iterator[Row]:
    """Yield the stages at which a drawing pauses, each with its default colour and its states."""
    few_lines = 0 < len({line for own in lines for line in own}) <= HUES
    colours = {
        "frontend": "line" if few_lines else "kind",
        "placement": "device" if many_devices else "kind",
        "execution": "time",
    }
    for name, members in groupby(enumerate(states), key=lambda pair: pair[1].stage):
        ticks = [
            {"state": number, "title": state.title, "change": change.replace("-", "\N{MINUS SIGN}")}
            for number, state in members
            for change in [f"{counts[number] - counts[number - 1]:+,}".replace("+0", "")]
        ]
        yield {
            "title": name.capitalize(),
            "colour": colours.get(name, "kind"),
            "first": ticks[0]["state"],
            "last": ticks[-1]["state"],
            "ticks": ticks if len(ticks) > 1 else [],
        }


# The history of one node, for the panel beside a drawing


def sections(history: NodeHistory, states: Sequence[State], index: Index) -> list[Row]:
    """Return the sections of `follow.view`, with numbers for nodes and states."""
    first = {state.stage: number for number, state in reversed(list(enumerate(states)))}
    of_pass = {state.place: number for number, state in enumerate(states)}

    def linked(part: Part) -> Row | str:
        """Return a part of a line, as a link if it names a drawn node or state."""
        if isinstance(part, str):
            return part
        if isinstance(part, Code):
            return {"code": part.text}
        kind, number = "state", of_pass.get(part.to) if isinstance(part.to, int) else None
        if isinstance(part.to, str):
            kind, number = "node", index.get(part.to)
        return part.text if number is None else {kind: number, "text": part.text}

    return [
        {
            "title": section.stage.title(),
            "about": section.about,
            "state": first.get(section.stage),
            "lines": [[linked(part) for part in line] for line in section.lines],
        }
        for section in view.sections(history)
    ]
