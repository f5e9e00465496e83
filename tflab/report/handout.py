"""Handout: a report as Markdown, with its pictures as files next to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tflab.analysis import passes
from tflab.escaping import visible
from tflab.exporters import plots
from tflab.exporters.markdown import escape, fenced, paragraph, rendered
from tflab.exporters.plots import style
from tflab.records.graph import Node, node_of
from tflab.report import graph_states, stops
from tflab.report.contents import (
    DIRECTIONS,
    Annotated,
    Beside,
    Box,
    DrawnGraph,
    Method,
    Part,
    Picture,
    Report,
    nodes_of,
)
from tflab.units import plural

FOLDER = "report_files"


def page(report: Report) -> str:
    """The report as one Markdown page; a drawing is a picture and a table of its states."""
    parts = [f"# {escape(report.title)}", escape(report.about), code(report.command)]
    names = graph_names(report)
    for chapter in report.chapters:
        parts.append(f"## {escape(chapter.title)}")
        parts += (markdown(part, names) for part in chapter.parts)
    return "\n\n".join(parts) + "\n"


def graph_names(report: Report) -> dict[int, str]:
    """The names of each drawn graph's files, which do not contain the graph's own name."""
    graphs = [
        part
        for chapter in report.chapters
        for part in chapter.parts
        if isinstance(part, DrawnGraph)
    ]
    return {id(graph): f"graph-{number}" for number, graph in enumerate(graphs, 1)}


def markdown(part: Part, names: Mapping[int, str]) -> str:
    """A part of the report; `names` are those of the files of drawn graphs."""
    if isinstance(part, Picture):
        return f"![{escape(part.caption)}]({FOLDER}/{part.name}.png)"
    if isinstance(part, Method):
        return f"{paragraph(part.how)}\n\n{code(part.command)}"
    if isinstance(part, DrawnGraph):
        return (
            f"![{escape(part.name)}]({FOLDER}/{names[id(part)]}.png)\n\n"
            "In [report.html](report.html) you can click its nodes; its states are listed here.\n\n"
            + rendered(graph_states.changes(part.drawing.states))
            + idle(part)
        )
    if isinstance(part, Beside):
        graphs = "; ".join(graph.name for graph in part.graphs)
        return f"[report.html](report.html) has the drawings of: {escape(graphs)}."
    if isinstance(part, Annotated):
        return "[report.html](report.html) has the program line by line."
    return rendered(part)


def idle(graph: DrawnGraph) -> str:
    """The passes that changed nothing, as a paragraph."""
    frame = graph.drawing.idle
    if frame is None:
        return ""
    names = " and ".join(frame.lines)
    return "\n\n" + paragraph(f"{frame.heading} {frame.about}: {names}.")


def code(text: str) -> str:
    """Commands, each on lines of its own."""
    return fenced("\n".join(map(visible, text.split("\n"))))


def write_pictures(report: Report, folder: Path) -> None:
    """Every picture as PNG and SVG, into a new folder."""
    folder.mkdir()
    names = graph_names(report)
    for part in (part for chapter in report.chapters for part in chapter.parts):
        if isinstance(part, Picture):
            name, png, svg = part.name, part.png, part.svg
        elif isinstance(part, DrawnGraph):
            figure = draw(part)
            name, png, svg = names[id(part)], plots.png(figure), plots.svg(figure)
        else:
            continue
        (folder / f"{name}.png").write_bytes(png)
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")


# A drawn graph as a picture: the user's graph, with closed scopes, in the rows and tracks of the
# drawing. Nodes that the runtime removed are dashed.

LETTERS = 6.8  # points
LONGEST = 40  # characters of a label
PITCH = 0.4  # inches from row to row
HEIGHT = 0.24  # inches of a box
GAP, BETWEEN = 7.0, 30.0  # points between boxes of a row, and between tracks
MANY = 4  # boxes of a row that belong to no layer; more of them are combined
FILLS = ("#dceaf7", "#fbe7cf", "#d8eedf")  # of forward, gradient, update
LINES = ("#4f81b3", "#bf7a2c", "#3d8d62")


@dataclass(frozen=True)
class Placed:
    label: str
    nodes: tuple[str, ...]
    track: int
    row: int
    x: float  # of its middle, in points
    width: float


@style.applied()
def draw(graph: DrawnGraph) -> Figure:
    """The graph before the runtime changes it, with the nodes that remain in the end."""
    states = graph.drawing.states
    versions = graph_states.versions(states)
    nodes = passes.graph_at(versions, stops.last_made(states))
    remaining = passes.graph_at(versions, len(states) - 1)
    boxes, across = arranged(graph.drawing.tracks, nodes)
    rows = sorted({box.row for box in boxes})
    places = {row: float(number) for number, row in enumerate(rows)}
    figure, (axes,) = style.canvas(
        f"{graph.name}: {plural(len(nodes), 'node')} and their fates",
        caption(len(nodes.keys() - remaining.keys())),
        PITCH * (len(rows) + 1),
    )
    room = (style.width() - 2 * style.MARGIN) * style.POINTS
    axes.set_xlim(-2, max(across, room) + 2)
    axes.set_ylim(len(rows) - 0.4, -1)
    axes.set_axis_off()
    letters = LETTERS * min(1, room / across)
    for track, column in enumerate(graph.drawing.tracks):
        track_boxes = [box for box in boxes if box.track == track]
        if track_boxes:
            middle = (min(map(west, track_boxes)) + max(map(east, track_boxes))) / 2
            direction = DIRECTIONS.get(column.label)
            heading = f"{column.label}, {direction}" if direction else column.label
            axes.text(middle, -0.75, heading, size=letters + 1, color=style.FAINT, ha="center")
    for source, target in edges(boxes, nodes.values()):
        draw_edge(axes, source, target, places)
    for box in boxes:
        draw_box(axes, box, places[box.row], remaining, letters)
    style.settle(figure)
    return figure


def caption(gone: int) -> str:
    words = "Scopes are closed and show their number of nodes."
    if not gone:
        return words
    verb = "is" if gone == 1 else "are"
    return (
        f"{words} {plural(gone, 'node')} {verb} not in the graph that runs: a box with no node "
        "left is dashed."
    )


def arranged(tracks: Sequence[Box], nodes: Collection[str]) -> tuple[list[Placed], float]:
    """The boxes of all tracks at their places, and the width of all tracks."""
    placed: list[Placed] = []
    start = 0.0
    for track, box in enumerate(tracks):
        rows = [list(boxes_with(row, nodes)) for row in box.rows]
        widths = [
            [style.text_width(label, LETTERS) + 10 for label, _ in row] for row in rows if row
        ]
        if not widths:
            continue
        widest = max(sum(row) + GAP * (len(row) - 1) for row in widths)
        filled = [number for number, row in enumerate(rows) if row]
        for number, row_widths in zip(filled, widths, strict=True):
            x = start + (widest - sum(row_widths) - GAP * (len(row_widths) - 1)) / 2
            for (label, names), width in zip(rows[number], row_widths, strict=True):
                placed.append(Placed(label, names, track, number, x + width / 2, width))
                x += width + GAP
        start += widest + BETWEEN
    return placed, start - BETWEEN


def boxes_with(
    row: Sequence[object], nodes: Collection[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(label, nodes) of each box in a row that has any of these nodes."""
    for box in row:
        if not isinstance(box, Box):
            continue
        names = tuple(name for name in nodes_of(box) if name in nodes)
        inner = [entry for inside in box.rows for entry in inside if isinstance(entry, Box)]
        if not box.framed and len(inner) <= MANY:
            yield from boxes_with(inner, nodes)
        elif names:
            label = style.short_name(box.label, LONGEST) or plural(len(names), "node")
            yield (f"{label} ({len(names)})" if box.rows and box.label else label), names


def edges(boxes: Sequence[Placed], nodes: Collection[Node]) -> list[tuple[Placed, Placed]]:
    """The boxes that an edge joins, each pair once."""
    around = {name: box for box in boxes for name in box.nodes}
    pairs = {
        (around[source], around[node.name]): None
        for node in nodes
        for source in (*map(node_of, node.inputs), *node.control_inputs)
        if source in around and node.name in around
    }
    return [(source, target) for source, target in pairs if source != target]


def west(box: Placed) -> float:
    return box.x - box.width / 2


def east(box: Placed) -> float:
    return box.x + box.width / 2


def draw_edge(axes: Axes, source: Placed, target: Placed, places: Mapping[int, float]) -> None:
    """From box to box: down or up inside a track, or from side to side between tracks."""
    upper, lower = places[source.row], places[target.row]
    half = HEIGHT / PITCH / 2
    bend = 0.0
    if source.track != target.track:
        right = target.track > source.track
        start = (east(source) if right else west(source), upper)
        end = (west(target) if right else east(target), lower)
    elif upper == lower:
        right = target.x > source.x
        start = (east(source) if right else west(source), upper)
        end = (west(target) if right else east(target), lower)
    else:
        down = 1 if lower > upper else -1
        start, end = (source.x, upper + down * half), (target.x, lower - down * half)
        bend = 0.25 if abs(lower - upper) > 1 else 0.0
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=5,
            shrinkA=0,
            shrinkB=0,
            linewidth=0.5,
            color="#9aa3ad",
            connectionstyle=f"arc3,rad={bend}",
            zorder=1,
        )
    )


def draw_box(
    axes: Axes, box: Placed, row: float, remaining: Collection[str], letters: float
) -> None:
    gone = not any(name in remaining for name in box.nodes)
    axes.add_patch(
        FancyBboxPatch(
            (west(box), row - HEIGHT / PITCH / 2),
            box.width,
            HEIGHT / PITCH,
            boxstyle="square,pad=0",
            facecolor="white" if gone else FILLS[box.track],
            edgecolor=style.FAINT if gone else LINES[box.track],
            linestyle=(0, (3, 2)) if gone else "solid",
            linewidth=0.8,
            zorder=2,
        )
    )
    axes.text(
        box.x, row, box.label, size=letters, color=style.INK, ha="center", va="center", zorder=3
    )
