"""Markup of pages: a life with its drawing and tables, and the live page with its editor.

The drawing, its panel and the tables are those of the report, which also escapes names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jinja2

from tflab.explore import changes, request
from tflab.explore.sources import EXAMPLES
from tflab.records.codec import encoded
from tflab.records.options import SWITCHES
from tflab.report import html, storage

FOLDER = Path(__file__).resolve().parent / "page"


def for_page(life: storage.Life, before: storage.Life | None = None) -> storage.Life:
    """Return a life for a page; with an earlier life, also the differences."""
    parts = {
        title: html.fragment(map(storage.read_block, blocks))
        for title, blocks in life["parts"].items()
    }
    shown: storage.Life = {
        key: life[key] for key in ("stage", "graph", "printed", "questions") if key in life
    }
    shown["parts"] = parts
    if before is None:
        return shown
    nodes = before["nodes"], life["nodes"]
    since = changes.blocks(*nodes, before["numbers"], life["numbers"])
    return shown | {"since": html.fragment(since), "marks": changes.marks(*nodes)}


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
    """The first content of the page; `mark` is that of the file it follows, if any."""

    name: str
    text: str
    mark: str | None = None


def page(start: FirstContent) -> tuple[str, str]:
    """Return the whole page, and its Content-Security-Policy, which allows only the page's own
    style and script, and requests to its own server."""
    settings = {
        "start": encoded(start),
        "examples": encoded(EXAMPLES),
        "defaults": encoded(request.ProgramRequest("")),
    }
    script = html.script(FOLDER / "explore.js")
    look = "\n".join([style(), read("explore.css"), read("editor.css")])
    whole = template("explore.html.j2").render(
        style=look,
        script=script,
        settings=html.as_json(settings),
        start=start,
        examples=EXAMPLES,
        optimisers=request.OPTIMISERS,
        devices=range(1, request.MOST_DEVICES + 1),
        most_rows=request.MOST_ROWS,
        passes=list(SWITCHES),
    )
    return whole, f"{html.policy(look, script)}; connect-src 'self'; frame-ancestors 'none'"


def template(name: str) -> jinja2.Template:
    return html.environment(FOLDER).get_template(name)


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
