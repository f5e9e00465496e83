"""Markup of the live page: the editor, its switches, and next to them the stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tflab.explore import asked
from tflab.explore.sources import EXAMPLES
from tflab.life import pages
from tflab.records.codec import encoded
from tflab.records.options import SWITCHES
from tflab.report import html

FOLDER = resources.files("tflab.explore") / "page"
STYLES = ("explore.css", "editor.css")
# Of the live page and a saved one
SHARED = ("text.js", "editor.js", "lighting.js", "switches.js", "pinned.js")
LIVE = (*SHARED, "address.js", "answers.js", "file.js", "explore.js")
SAVED = (*SHARED, "saved.js")


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
        "defaults": encoded(asked.Asked("")),
    }
    whole, policy = rendered(
        LIVE,
        settings,
        start=start,
        saved=None,
        examples=EXAMPLES,
        optimisers=asked.OPTIMISERS,
        devices=range(1, asked.MOST_DEVICES + 1),
        most_rows=asked.MOST_ROWS,
        passes=list(SWITCHES),
    )
    return whole, f"{policy}; connect-src 'self'; frame-ancestors 'none'"


def saved(name: str, by: str, seen: Mapping[str, Any]) -> str:
    """What a live page shows, as a page that needs no server. `by` is what ran it."""
    return rendered(SAVED, seen, start=FirstContent(name, ""), saved=by)[0]


def rendered(scripts: Sequence[str], settings: Any, **about: Any) -> tuple[str, str]:
    """A page with its policy, which a saved page contains."""
    script = html.join_modules([*pages.modules(), *map(read, scripts)])
    style = "\n".join([pages.style(), *map(read, STYLES)])
    policy = html.policy(style, script)
    template = html.environment(read).from_string(read("explore.html.j2"))
    whole = template.render(
        style=style, script=script, policy=policy, settings=html.as_json(settings), **about
    )
    return whole, policy


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
