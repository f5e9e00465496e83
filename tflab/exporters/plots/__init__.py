"""Plots: pictures of trainings and measurements, for web pages, reports and print.

    figure = plots.curves.draw(history)
    plots.save(figure, "report/curves")  # curves.png and curves.svg
    plots.svg(figure)  # for an HTML page

Each picture has a module, whose `draw` takes records and returns a matplotlib `Figure`. No function
here opens a window or changes matplotlib's settings.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.figure import Figure

from tflab.cli import output_paths
from tflab.exporters.plots import (
    batch_sizes,
    curves,
    feature_maps,
    graph,
    memory,
    op_bars,
    style,
    timeline,
)

PICTURES: dict[str, Callable[..., Figure]] = {
    "curves": curves.draw,
    "op_bars": op_bars.draw,
    "batch_sizes": batch_sizes.draw,
    "timeline": timeline.draw,
    "memory": memory.draw,
    "feature_maps": feature_maps.draw,
    "graph": graph.draw,
}
PICTURE = "picture"  # its name in errors
DPI = 160  # of PNG: sharp on a page of 900 pixels on a screen of double density
SVG = "http://www.w3.org/2000/svg"
REFERRING = ("href", "clip-path", "style")  # attributes that name an id
REFERENCE = re.compile(r"(^|url\()#")
UNDATED = dict.fromkeys(("Creator", "Date", "Format", "Type"))


# A figure as PNG and SVG. The same figure always gives the same bytes.


def save(figure: Figure, path_without_suffix: str | Path) -> list[Path]:
    """Write the figure as `<path>.png` and `<path>.svg`; return these paths.

    Raises UsageError if one of them exists already (before anything is written), and if a file
    cannot be written.
    """
    contents = {
        Path(f"{path_without_suffix}.png"): png(figure),
        Path(f"{path_without_suffix}.svg"): svg(figure).encode(),
    }
    for path in contents:
        if os.path.lexists(path):
            raise output_paths.already_exists(path, PICTURE)
    for path, content in contents.items():
        output_paths.write(path, content, PICTURE)
    return list(contents)


def png(figure: Figure) -> bytes:
    return rendered(figure, "png", {"Software": None}, dpi=DPI)


def svg(figure: Figure) -> str:
    """The figure as an `<svg>` element, for a page or a separate file.

    Text stays text: it can be selected, searched and read aloud. Ids begin with a hash of the
    picture, so that two pictures in one page have different ids. The picture shrinks with the page.
    It has no prolog, no doctype, and only SVG's own namespace.
    """
    content = rendered(figure, "svg", UNDATED)
    mark = f"p{hashlib.sha256(content).hexdigest()[:10]}-"
    root = ElementTree.fromstring(content)
    for part in root.iter():
        part.tag = local_name(part.tag)
        part.attrib = {
            name: REFERENCE.sub(rf"\g<0>{mark}", value) if name in REFERRING else value
            for name, value in ((local_name(name), value) for name, value in part.attrib.items())
        }
        if "id" in part.attrib:
            part.attrib["id"] = mark + part.attrib["id"]
    for part in root.findall("defs"):
        for sheet in part.findall("style"):  # it would apply to the whole page
            part.remove(sheet)
    root.attrib |= {
        "xmlns": SVG,
        "stroke-linejoin": "round",  # these two were set by the style sheet
        "stroke-linecap": "butt",
        "role": "img",
        "aria-label": str(figure.get_label()),
        "style": "max-width: 100%; height: auto",
    }
    return ElementTree.tostring(root, encoding="unicode")


def local_name(name: str) -> str:
    """A tag or attribute without its namespace: `{http://www.w3.org/2000/svg}g` is `g`."""
    return name.rpartition("}")[2]


def rendered(figure: Figure, name: str, metadata: dict[str, None], dpi: int | None = None) -> bytes:
    out = io.BytesIO()
    with style.applied():
        figure.savefig(out, format=name, metadata=metadata, dpi=dpi or style.POINTS)
    return out.getvalue()
