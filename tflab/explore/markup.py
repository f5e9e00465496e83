"""Markup of the live page: the editor, its switches, and next to them the stages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import resources

from tflab.explore import asked
from tflab.explore.programs import EXAMPLES
from tflab.life import markup
from tflab.records import SWITCHES
from tflab.report import html

FOLDER = resources.files("tflab.explore") / "page"
STYLES = ("explore.css", "editor.css")
SCRIPTS = ("text.js", "editor.js", "address.js", "answers.js", "pinned.js", "explore.js")


@dataclass(frozen=True)
class Start:
    """The first content of the page. `mark` is that of the file it follows; a model has a
    `name`."""

    name: str
    text: str
    mark: str | None = None
    is_file: bool = False
    seconds: float = 10.0


def page(start: Start) -> tuple[str, str]:
    """The whole page, and its Content-Security-Policy: only its own style and script, and requests
    to its own server."""
    script = html.joined([*markup.modules(), *map(read, SCRIPTS)])
    style = "\n".join([markup.style(), *map(read, STYLES)])
    settings = {
        "start": asdict(start),
        "examples": [asdict(example) for example in EXAMPLES],
        "defaults": asdict(asked.Asked("")),
    }
    whole = (
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
    return whole, f"{policy}; connect-src 'self'; frame-ancestors 'none'"


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
