"""Told: every text and every table of a written report, each with the chapter that it stands in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

BLOCKS = {"p", "li", "h1", "h2", "td", "th", "legend"}


@dataclass(frozen=True)
class Grid:
    chapter: str
    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Page(HTMLParser):
    """report.html: its texts and tables, and the data that its script draws."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = self.chapter = ""
        self.texts: list[tuple[str, str]] = []
        self.grids: list[Grid] = []
        self.data: list[tuple[str, Any]] = []
        self.words: list[str] | None = None
        self.rows: list[tuple[str, ...]] = []
        self.cells: list[str] = []
        self.script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.script = ("type", "application/json") in attrs
        if tag == "table":
            self.rows = []
        if tag == "tr":
            self.cells = []
        if tag in BLOCKS:
            self.words = []

    def handle_data(self, data: str) -> None:
        if self.script:
            self.data.append((self.chapter, json.loads(data)))
        elif self.words is not None:
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.script = False
        if tag in BLOCKS and self.words is not None:
            text, self.words = " ".join("".join(self.words).split()), None
            self.end(tag, text)
        if tag == "tr":
            self.rows.append(tuple(self.cells))
        if tag == "table" and self.rows:
            headers, *rows = self.rows
            self.grids.append(Grid(self.chapter, self.texts[-1][1], headers, tuple(rows)))

    def end(self, tag: str, text: str) -> None:
        if tag in ("td", "th"):
            self.cells.append(text)
        elif tag == "h1":
            self.title = text
        elif tag == "h2":
            self.chapter = text
        elif text:
            self.texts.append((self.chapter, text))


def handout(text: str) -> tuple[list[tuple[str, str]], list[Grid]]:
    """The texts and tables of report.md."""
    chapter = ""
    texts: list[tuple[str, str]] = []
    grids: list[Grid] = []
    for block in text.split("\n\n"):
        lines = [re.sub(r"\\(.)", r"\1", line) for line in block.split("\n")]
        if lines[0].startswith("## "):
            chapter = lines[0].removeprefix("## ")
        elif lines[0].startswith("|"):
            headers, _, *rows = (
                tuple(cell.strip() for cell in line[1:-1].split(" | ")) for line in lines
            )
            grids.append(Grid(chapter, texts[-1][1], headers, tuple(rows)))
        else:
            for line in lines:
                plain = re.sub(r"^- |^!\[|\]\(report_files/\S+\)$", "", line).strip("*")
                texts.append((chapter, plain))
    return texts, grids


def drawn_texts(data: Any) -> Iterator[str]:
    """Every text of a drawing's data; a line of a node's history is one."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, list) and any(isinstance(part, str) for part in data):
        yield "".join(p if isinstance(p, str) else p.get("text", p.get("code", "")) for p in data)
    elif isinstance(data, list):
        for part in data:
            yield from drawn_texts(part)
    elif isinstance(data, dict):
        for key in data.keys() & {"nodes", "history", "states", "lines", "about"}:
            yield from drawn_texts(data[key])
