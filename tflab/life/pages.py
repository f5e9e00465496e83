"""Pages: a life as pages show it, with its drawing as data and its tables as markup.

The drawing, its panel and the tables are those of the report, which also escapes names.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from tflab.life import changes, storage
from tflab.report import html

FOLDER = resources.files("tflab.life") / "page"
STYLE = "life.css"
SCRIPTS = ("seen.js", "life.js")
OF_REPORTS = ("script.js", "still.js", "folded.js", "start.js")  # alone


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


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


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
