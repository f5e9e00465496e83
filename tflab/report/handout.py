"""Handout: a report as Markdown, with its pictures as files next to it."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

from tflab.escaping import visible
from tflab.exporters.markdown import escape, fenced, rendered
from tflab.records.blocks import Column, Table, table
from tflab.report.contents import Annotated, DrawnGraph, Part, Picture, Report

FOLDER = "report_files"


def page(report: Report) -> str:
    """Return the report as one Markdown page; what only a browser can show is a link."""
    parts = [f"# {escape(report.title)}", escape(report.about), fenced(visible(report.command))]
    if report.numbers:
        parts.append(rendered(numbers(report)))
    for chapter in report.chapters:
        parts.append(f"## {escape(chapter.title)}")
        parts += (markdown(part) for part in chapter.parts)
    return "\n\n".join(parts) + "\n"


def numbers(report: Report) -> Table:
    """Return the results on the first screen as a table."""
    cells = (attrgetter(name) for name in ("label", "value", "note"))
    return table("", report.numbers, *(Column("", cell) for cell in cells))


def markdown(part: Part) -> str:
    """Return a part of the report as Markdown."""
    if isinstance(part, Picture):
        return f"![{escape(part.caption)}]({FOLDER}/{part.name}.png)"
    if isinstance(part, DrawnGraph | Annotated):
        return "[report.html](report.html) has the drawing of the graph, pass by pass."
    return rendered(part)


def write_pictures(report: Report, folder: Path) -> None:
    """Write every picture as PNG and SVG into a new folder."""
    folder.mkdir()
    for part in (part for chapter in report.chapters for part in chapter.parts):
        if isinstance(part, Picture):
            (folder / f"{part.name}.png").write_bytes(part.png)
            (folder / f"{part.name}.svg").write_text(part.svg, encoding="utf-8")
