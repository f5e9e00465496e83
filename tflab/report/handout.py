"""Handout: a report as Markdown, with its pictures as files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tflab.exporters.markdown import escape, rendered
from tflab.report.contents import Beside, DrawnGraph, Part, Picture, Recipe, Report
from tflab.report.pass_log import changes

FOLDER = "report_files"


def page(report: Report) -> str:
    """The report as one Markdown page; its drawings are a table of their states."""
    parts = [f"# {escape(report.title)}", escape(report.about), code(report.command)]
    for chapter in report.chapters:
        parts.append(f"## {escape(chapter.title)}")
        parts += map(markdown, chapter.parts)
    return "\n\n".join(parts) + "\n"


def markdown(part: Part) -> str:
    if isinstance(part, Picture):
        return f"![{escape(part.caption)}]({FOLDER}/{part.name}.png)"
    if isinstance(part, Recipe):
        return f"{escape(part.how)}\n\n{code(part.command)}"
    if isinstance(part, DrawnGraph):
        return (
            "The drawing of this graph is in [report.html](report.html); these are its states.\n\n"
            + rendered(changes(part.drawing.states))
            + idle(part)
        )
    if isinstance(part, Beside):
        names = "; ".join(graph.name for graph in part.graphs)
        return f"The drawings of these are in [report.html](report.html): {escape(names)}."
    return rendered(part)


def idle(graph: DrawnGraph) -> str:
    """The passes that changed nothing, as a paragraph."""
    frame = graph.drawing.idle
    if frame is None:
        return ""
    names = " and ".join(frame.lines)
    return "\n\n" + escape(f"{frame.heading} {frame.about}: {names}.")


def code(text: str) -> str:
    return f"```text\n{text}\n```"


def pictures(report: Report) -> Iterator[Picture]:
    for chapter in report.chapters:
        yield from (part for part in chapter.parts if isinstance(part, Picture))


def write_pictures(report: Report, folder: Path) -> None:
    """Every picture as PNG and SVG, into a new folder."""
    folder.mkdir()
    for picture in pictures(report):
        (folder / f"{picture.name}.png").write_bytes(picture.png)
        (folder / f"{picture.name}.svg").write_text(picture.svg, encoding="utf-8")
