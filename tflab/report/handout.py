"""Handout: a report as Markdown, with its pictures as files next to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tflab.escaping import visible
from tflab.exporters import plots
from tflab.exporters.markdown import escape, fenced, paragraph, rendered
from tflab.report import graph_picture
from tflab.report.contents import Annotated, Beside, DrawnGraph, Method, Part, Picture, Report
from tflab.report.pass_log import changes

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
            + rendered(changes(part.drawing.states))
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


def pictures(report: Report) -> Iterator[Picture]:
    for chapter in report.chapters:
        yield from (part for part in chapter.parts if isinstance(part, Picture))


def write_pictures(report: Report, folder: Path) -> None:
    """Every picture as PNG and SVG, into a new folder."""
    folder.mkdir()
    for picture in pictures(report):
        (folder / f"{picture.name}.png").write_bytes(picture.png)
        (folder / f"{picture.name}.svg").write_text(picture.svg, encoding="utf-8")
    names = graph_names(report)
    for chapter in report.chapters:
        for part in chapter.parts:
            if isinstance(part, DrawnGraph):
                figure = graph_picture.draw(part)
                (folder / f"{names[id(part)]}.png").write_bytes(plots.png(figure))
                (folder / f"{names[id(part)]}.svg").write_text(plots.svg(figure), "utf-8")
