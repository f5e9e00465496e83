"""HTML: a report as one page that needs nothing but itself.

Templates escape every name, the viewer sets names as text only, and the page's policy lets no
script, style or address in but its own: names of nodes come from files of strangers.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import resources
from itertools import count
from typing import Any

import jinja2

from tflab.analysis.passes import Version
from tflab.exporters.json import plain
from tflab.follow import view
from tflab.records import NodeHistory, node_of
from tflab.records.blocks import Strip, Table
from tflab.report import panel, pass_log
from tflab.report.contents import DrawnGraph, Picture, Recipe, Report
from tflab.report.drawn import Box, Lane, State
from tflab.units import short_device

KINDS = ("forward", "gradient", "update", "runtime")  # as the viewer numbers them
LARGE = 100  # nodes of a drawing that opens on its first layer, to have something to see
SCRIPTS = ("elements.js", "layout.js", "viewer.js")  # in an order in which each knows what it needs
FOLDER = resources.files("tflab.report") / "page"


def page(report: Report) -> str:
    """The whole page: markup, style, script, pictures and data."""
    style, script = read("style.css"), program()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"data_address": data_address, "anchor": anchor}
    environment.tests |= {
        name: lambda part, kind=kind: isinstance(part, kind) for name, kind in PARTS.items()
    }
    return environment.from_string(read("report.html.j2")).render(
        report=report,
        style=style,
        script=script,
        policy=policy(style, script),
        data=lambda graph: embedded(viewer_data(graph)),
        stages=landmarks,
        counter=partial(next, count(1)),
    )


PARTS: dict[str, type] = {
    "paragraph": str,
    "grid": Table,
    "strip": Strip,
    "picture": Picture,
    "recipe": Recipe,
    "graph": DrawnGraph,
}


def program() -> str:
    """The scripts as one, whose names stay within it."""
    return "(() => {\n'use strict';\n" + "\n".join(map(read, SCRIPTS)) + "})();\n"


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """A Content-Security-Policy that knows the page's one style, its one script and no address."""

    def hashed(content: str) -> str:
        digest = hashlib.sha256(content.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    return (
        f"default-src 'none'; script-src {hashed(script)}; style-src {hashed(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def embedded(value: Any) -> str:
    """JSON that may stand in a script element: no name can end it."""
    text = json.dumps(plain(value), ensure_ascii=True, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def data_address(picture: Picture) -> str:
    """As an image of its own: what a plot brings along in styles stays outside of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(picture.svg.encode()).decode()


def anchor(title: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def landmarks(graph: DrawnGraph) -> list[tuple[str, str]]:
    """(stage, title) for each stage that the drawing has states of."""
    titles = {"frontend": "Written", "backward": "With gradients", "placement": "Placed"}
    titles |= {"execution": "Ran"}
    known = {state.stage for state in graph.drawing.states}
    return [(stage, title) for stage, title in titles.items() if stage in known]


def viewer_data(graph: DrawnGraph) -> dict[str, Any]:
    """What viewer.js draws: boxes, states and nodes by number, the nodes with their versions."""
    drawing, histories = graph.drawing, graph.histories
    versions = pass_log.versions(drawing.states)
    counts = pass_log.node_counts(drawing.states, versions)
    index = {name: number for number, name in enumerate(histories)}
    boxes: list[dict[str, Any]] = []
    tracks = [flat(track, None, boxes, index) for track in drawing.tracks]
    nodes = [
        node_data(history, versions.get(history.name, ()), graph, index)
        for history in histories.values()
    ]
    devices = {short_device(n.device): None for state in drawing.states for n in state.defined}
    devices.pop("", None)
    return {
        "title": graph.name,
        "nodes": nodes,
        "boxes": boxes,
        "tracks": tracks,
        "open": opened(boxes, len(nodes)),
        "states": [
            state_data(state, count, index)
            for state, count in zip(drawing.states, counts, strict=True)
        ],
        "start": 0,
        "devices": list(devices),
    }


def flat(box: Box, parent: int | None, boxes: list[dict[str, Any]], index: dict[str, int]) -> int:
    """Append a box and all that is in it; its number among the boxes."""
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
    """The scope that is open at first; none in a small graph, whose nodes can be seen anyway."""
    framed = [number for number, box in enumerate(boxes) if box["rows"] and box["framed"]]
    return framed[:1] if nodes > LARGE else []


def node_data(
    history: NodeHistory, versions: Sequence[Version], graph: DrawnGraph, index: dict[str, int]
) -> dict[str, Any]:
    related = {history.carrier, *history.carries} - {None, history.name}
    table = view.times(history)
    heads = [column.header for column in table.columns]
    return {
        "name": history.name,
        "op": history.op,
        "kind": KINDS.index(history.kind),
        "fate": history.fate.fate if history.fate else "runtime",
        "ns": graph.ns.get(history.name),
        "related": sorted(index[name] for name in related if name in index),
        "versions": [version_data(version, index) for version in versions],
        "history": panel.sections(history, graph.drawing.states, index),
        "times": {
            "title": table.title,
            "rows": list(zip(heads, *table.cells(), strict=True)) if table.rows else [],
        },
    }


def state_data(state: State, count: int, index: dict[str, int]) -> dict[str, Any]:
    return {
        "stage": state.stage,
        "title": state.title,
        "about": state.about,
        "lines": state.lines,
        "gone": [index[name] for name in state.gone],
        "touched": [index[name] for name in state.touched],
        "count": count,
    }


def version_data(version: Version, index: dict[str, int]) -> list[Any]:
    """First state, last state, op, device, inputs, control inputs: as viewer.js reads them."""
    node = version.node

    def numbers(tensors: tuple[str, ...]) -> Iterator[int]:
        return (index[node_of(tensor)] for tensor in tensors if node_of(tensor) in index)

    return [
        version.first,
        version.last,
        node.op,
        short_device(node.device),
        list(numbers(node.inputs)),
        list(numbers(node.control_inputs)),
    ]
