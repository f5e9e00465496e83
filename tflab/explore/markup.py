"""Markup of pages: a life with its drawing and tables, and the live page with its editor.

The drawing, its panel and the tables are those of the report, which also escapes names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tflab.explore import changes, request
from tflab.explore.sources import EXAMPLES
from tflab.records.codec import encoded
from tflab.records.options import SWITCHES
from tflab.report import html, storage

FOLDER = resources.files("tflab.explore") / "page"
STYLE = "life.css"
SCRIPTS = ("seen.js", "life.js")
OF_REPORTS = ("script.js", "still.js", "folded.js", "start.js")  # alone
STYLES = ("explore.css", "editor.css")
LIVE = (
    *("text.js", "editor.js", "lighting.js", "switches.js"),
    *("address.js", "answers.js", "file.js", "explore.js"),
)


def for_page(
    life: storage.Life,
    before: Mapping[str, Any] | None = None,
    heads: tuple[str, str] = changes.EDIT,
) -> storage.Life:
    """A life for a page; with another life, also the differences. `heads` name the other life and
    this one."""
    parts = {
        title: html.fragment(map(storage.read_block, blocks))
        for title, blocks in life["parts"].items()
    }
    shown: storage.Life = {"stage": life["stage"], "graph": life["graph"], "parts": parts}
    if "printed" in life:
        shown["printed"] = str(life["printed"])
    if "questions" in life:
        shown["questions"] = life["questions"]
    if before is None:
        return shown
    nodes = life["nodes"]
    changed = changes.compare(before["nodes"], nodes, before["numbers"], life["numbers"])
    since = changes.blocks(changed, nodes, before["nodes"], heads)
    marks = dict.fromkeys(changed.new, "new") | dict.fromkeys(changed.changed, "changed")
    return shown | {"since": html.fragment(since), "marks": marks}


def style() -> str:
    return "\n".join([*map(html.read, html.STYLES), read(STYLE)])


def modules() -> list[str]:
    """The scripts of a drawing, in the order in which they are joined."""
    shared = (html.read(name) for name in html.SCRIPTS if name not in OF_REPORTS)
    return [*shared, *map(read, SCRIPTS)]


def page_of(life: storage.Life) -> str:
    """A life as a self-contained page."""
    script, look = html.join_modules([*modules(), read("alone.js")]), style()
    return (
        html.environment(read)
        .from_string(read("alone.html.j2"))
        .render(
            title=life["graph"]["title"],
            told=html.as_json(for_page(life)),
            script=script,
            style=look,
            policy=html.policy(look, script),
        )
    )


# The live page


@dataclass(frozen=True)
class FirstContent:
    """The first content of the page. `mark` is that of the file it follows; a model has a
    `name`."""

    name: str
    text: str
    mark: str | None = None
    is_file: bool = False


def page(start: FirstContent) -> tuple[str, str]:
    """The whole page, and its Content-Security-Policy: only its own style and script, and requests
    to its own server."""
    settings = {
        "start": encoded(start),
        "examples": encoded(EXAMPLES),
        "defaults": encoded(request.ProgramRequest("")),
    }
    script = html.join_modules([*modules(), *map(read, LIVE)])
    look = "\n".join([style(), *map(read, STYLES)])
    policy = html.policy(look, script)
    template = html.environment(read).from_string(read("explore.html.j2"))
    whole = template.render(
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
    return whole, f"{policy}; connect-src 'self'; frame-ancestors 'none'"


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
