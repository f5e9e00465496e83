"""HTML: a report as one self-contained page.

Templates escape every name, the viewer sets names as text only, and the page's policy allows no
script, style or address but its own: names of nodes come from untrusted files.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import jinja2
from markupsafe import Markup, escape

from tflab.escaping import visible
from tflab.exporters.json import plain
from tflab.records.blocks import Block
from tflab.report import viewer_data
from tflab.report.contents import PAGE, Report, chinese

# The last one overrides the others, for narrow windows and for paper.
STYLES = ("page.css", "viewer.css", "drawing.css", "script.css", "present.css", "media.css")
IMPORT = re.compile(r'^import \{[^}]*\} from "(.*)";\n', re.MULTILINE)
LARGE = 2**20  # characters of JSON that are compressed in a page
GZIP = "application/gzip"  # the type of an element with compressed data


def page(report: Report) -> str:
    """Return the whole page: markup, style, script, pictures and data."""
    style, program = "\n".join(map(read, STYLES)), script(PAGE / "start.js")
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            style=style,
            script=program,
            policy=policy(style, program),
            element=element,
            graph_data=viewer_data.graph_data,
            nodes_of_lines=viewer_data.nodes_of_lines,
            heat=lambda share: None if share is None else viewer_data.heat(share, 1),
            counter=partial(next, count(1)),
        )
    )


def fragment(blocks: Iterable[Block]) -> str:
    """Return blocks as markup, for a page that is open already."""
    template = environment().get_template("block.html.j2")
    return "".join(template.render(part=part, counter=uuid4) for part in blocks)


@cache
def environment(*folders: Path) -> jinja2.Environment:
    """Return jinja2's environment for templates of the report and of these folders."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([PAGE, *folders]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Text is made visible, and markup stays as it is
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    made.filters |= {
        "inline": inline,
        "anchor": anchor,
        "breakable": breakable,
        "kind": lambda part: type(part).__name__,
        "words": lambda text, chosen: chinese(text) if chosen == "zh" else text,
    }
    return made


def script(entry: Path) -> str:
    """Return a module and all that it imports as one script, whose names stay within it."""
    modules: dict[Path, str] = {}

    def add(path: Path) -> None:
        text = path.read_text("utf-8")
        for name in IMPORT.findall(text):
            if (needed := (path.parent / name).resolve()) not in modules:
                add(needed)
        modules[path] = re.sub(r"^export ", "", IMPORT.sub("", text), flags=re.MULTILINE)

    add(entry)
    return "(() => {\n'use strict';\n" + "\n".join(modules.values()) + "})();\n"


def read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows only the page's one style and one script."""
    digests = (hashlib.sha256(content.encode()).digest() for content in (script, style))
    of_script, of_style = (f"'sha256-{base64.b64encode(one).decode()}'" for one in digests)
    return (
        f"default-src 'none'; script-src {of_script}; style-src {of_style}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def element(id: str, value: object) -> Markup:
    """Return a script element with data: as JSON, or compressed if they are large."""
    text, kind = as_json(readable(value)), "application/json"
    if len(text) > LARGE:
        text, kind = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(), GZIP
    return Markup('<script type="{}" id="{}">{}</script>').format(kind, id, Markup(text))


def as_json(value: object) -> str:
    """Return JSON that a script element may contain: no name can end it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def readable(value: object) -> Any:
    """Return records or plain data as plain data, with all of their text made visible."""
    return plain(value, text=visible)


def inline(svg: str) -> Markup:
    """Return a plot as an element of the page. Styles become attributes, as its policy demands."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        declarations = (part.split(":", 1) for part in element.attrib.pop("style", "").split(";"))
        for declaration in declarations:
            if len(declaration) == 2 and declaration[0].strip() not in ("max-width", "height"):
                element.set(declaration[0].strip(), declaration[1].strip())
    root.attrib.pop("width", None)  # it takes the width of the page
    root.attrib.pop("height", None)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def breakable(text: str) -> Markup:
    """Return a text whose lines may end after a name scope, but not in a name or `Mbit/s`."""
    pieces = re.split(r"(?<=/)(?=\w)(?!s\b)", visible(text))
    return Markup("<wbr>").join(map(escape, pieces))


def anchor(title: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
