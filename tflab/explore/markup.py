"""Markup of pages: a life with its drawing and tables, and the live page with its editor.

The drawing, its panel and the tables are those of the report, which also escapes names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import jinja2

from tflab.explore import request
from tflab.records.blocks import Block, Column, numbers, table
from tflab.records.codec import encoded
from tflab.records.options import SWITCHES
from tflab.report import html, storage
from tflab.views.words import listed

FOLDER = Path(__file__).resolve().parent / "page"


def for_page(life: storage.Life, before: Nodes | None = None) -> storage.Life:
    """Return a life for a page; with the nodes of an earlier life, also the differences."""
    kept = ("stage", "graph", "printed", "questions")
    shown: storage.Life = {key: life[key] for key in kept if key in life}
    shown["parts"] = {
        title: html.fragment(map(storage.read_block, blocks))
        for title, blocks in life["parts"].items()
    }
    if before is None:
        return shown
    since = differences(before, life["nodes"])
    return shown | {"since": html.fragment(since), "marks": marks(before, life["nodes"])}


def style() -> str:
    return "\n".join([*map(html.read, html.STYLES), read("life.css")])


def page_of(life: storage.Life) -> str:
    """Return a life as a self-contained page."""
    script, look = html.script(FOLDER / "alone.js"), style()
    return template("alone.html.j2").render(
        title=life["graph"]["title"],
        told=html.as_json(for_page(life)),
        script=script,
        style=look,
        policy=html.policy(look, script),
    )


# The live page


@dataclass(frozen=True)
class FirstContent:
    """The first content of the page; `mark` is the mark of the file that it follows, if any."""

    name: str
    text: str
    mark: str | None = None


def page(start: FirstContent) -> tuple[str, str]:
    """Return the live page, and the policy that allows its own style, script and server only."""
    settings = {"start": encoded(start), "defaults": encoded(request.ProgramRequest(""))}
    script = html.script(FOLDER / "explore.js")
    look = "\n".join([style(), read("explore.css"), read("editor.css")])
    whole = template("explore.html.j2").render(
        style=look,
        script=script,
        settings=html.as_json(settings),
        start=start,
        devices=range(1, request.MOST_DEVICES + 1),
        most_rows=request.MOST_ROWS,
        passes=list(SWITCHES),
    )
    return whole, f"{html.policy(look, script)}; connect-src 'self'; frame-ancestors 'none'"


def template(name: str) -> jinja2.Template:
    return html.environment(FOLDER).get_template(name)


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


# Changes

LISTED = 8  # names of nodes in a line

Nodes = Mapping[str, tuple[str, str]]  # node -> its kind, its signature


def marks(before: Nodes, now: Nodes) -> dict[str, str]:
    """Return `new` for each new node, `changed` for each with another op, inputs or outputs."""
    new = {name: "new" for name in now if name not in before}
    both = (name for name in now if name in before)
    return new | {name: "changed" for name in both if before[name][1] != now[name][1]}


def differences(before: Nodes, now: Nodes) -> Iterator[Block]:
    """Yield the changes for readers; a sentence if there are none."""
    marked = {name: "gone" for name in before if name not in now} | marks(before, now)
    known = {**before, **now}
    forward_first = sorted(marked, key=lambda name: known[name][0] != "forward")
    rows = [
        (word, len(names), listed(names, LISTED))
        for word in ("new", "gone", "changed")
        if (names := [name for name in forward_first if marked[name] == word])
    ]
    if rows:
        columns = (Column("", itemgetter(0)), numbers("nodes", lambda row: f"{row[1]:,}"))
        yield table("Nodes", rows, *columns, Column("which", itemgetter(2)))
    else:
        yield "No node is new, gone or changed."
