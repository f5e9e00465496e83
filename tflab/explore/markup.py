"""Markup: that of the live page, and what a stage adds to it.

The drawing, its panel and the tables are the report's own; names are escaped where the report
escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from operator import itemgetter
from typing import Any

from tflab.explore import asked, changes
from tflab.explore.programs import EXAMPLES
from tflab.explore.warm import Message
from tflab.records import SWITCHES
from tflab.records.blocks import Block, Column, Frame, Strip, Table
from tflab.report import html

FOLDER = resources.files("tflab.explore") / "page"
STYLES = ("explore.css", "editor.css")
SCRIPTS = ("text.js", "editor.js", "address.js", "answers.js", "seen.js", "explore.js")
OF_REPORTS = ("script.js", "prints.js", "still.js", "predict.js", "folded.js", "start.js")  # alone


@dataclass(frozen=True)
class Start:
    """What the page opens with. `mark` is that of the file it follows; a model has a `name`."""

    name: str
    text: str
    mark: str | None = None
    is_file: bool = False
    seconds: float = 10.0


def page(start: Start) -> tuple[str, str]:
    """The whole page, and its Content-Security-Policy: its own style and script, and requests to
    its own server."""
    shared = [html.read(name) for name in html.SCRIPTS if name not in OF_REPORTS]
    script = html.joined([*shared, *map(read, SCRIPTS)])
    style = "\n".join([*map(html.read, html.STYLES), *map(read, STYLES)])
    settings = {
        "start": asdict(start),
        "examples": [asdict(example) for example in EXAMPLES],
        "defaults": asdict(asked.Asked("")),
    }
    markup = (
        html.environment(read)
        .from_string(read("explore.html.j2"))
        .render(
            start=start,
            style=style,
            script=script,
            settings=html.as_json(settings),
            examples=EXAMPLES,
            optimisers=asked.OPTIMISERS,
            devices=range(1, asked.MOST_DEVICES + 1),
            most_rows=asked.MOST_ROWS,
            passes=list(SWITCHES),
        )
    )
    policy = html.policy(style, script)
    return markup, f"{policy}; connect-src 'self'; frame-ancestors 'none'"


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def told(message: Message, before: Mapping[str, Any] | None) -> Message:
    """A stage as the page shows it: its drawing as data, the rest as markup. `before` is the same
    stage of the page's last life."""
    parts = {title: html.fragment(map(block, blocks)) for title, blocks in message["parts"].items()}
    shown: Message = {"stage": message["stage"], "graph": message["graph"], "parts": parts}
    if "printed" in message:
        shown["printed"] = str(message["printed"])
    if before is None:
        return shown
    nodes = message["nodes"]
    found = changes.compare(before["nodes"], nodes, before["numbers"], message["numbers"])
    since = changes.blocks(found, nodes, before["nodes"])
    marks = dict.fromkeys(found.new, "new") | dict.fromkeys(found.changed, "changed")
    return shown | {"since": html.fragment(since), "marks": marks}


def block(part: Any) -> Block:
    """A block from data, as `life.block` makes them."""
    if isinstance(part, str):
        return part
    if "strip" in part:
        frames = (
            Frame(str(head), str(about), texts(lines)) for head, about, lines in part["frames"]
        )
        return Strip(str(part["strip"]), tuple(frames))
    columns = tuple(
        Column(str(header), itemgetter(place), right=bool(right))
        for place, (header, right) in enumerate(part["columns"])
    )
    return Table(
        str(part["table"]), columns, tuple(map(texts, part["rows"])), more=int(part["more"])
    )


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))
