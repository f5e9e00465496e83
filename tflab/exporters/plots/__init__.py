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
import re
from pathlib import Path
from xml.sax.saxutils import quoteattr

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

DPI = 160  # of PNG: sharp on a page of 900 pixels on a screen of double density
UNDATED = dict.fromkeys(("Creator", "Date", "Format", "Type"))
XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
# What the element of a picture has instead; the strokes were set by a sheet for a whole page
ROOT = (
    'stroke-linejoin="round" stroke-linecap="butt" style="max-width: 100%; height: auto" role="img"'
)


def save(figure: Figure, path_without_suffix: str | Path) -> list[Path]:
    """Write the figure as `<path>.png` and `<path>.svg`; return these paths. Raises UsageError if
    one exists (before anything is written) or cannot be written."""
    contents = {
        Path(f"{path_without_suffix}.png"): png(figure),
        Path(f"{path_without_suffix}.svg"): svg(figure).encode(),
    }
    for path in contents:
        output_paths.check(path, "picture")
    for path, content in contents.items():
        output_paths.write(path, content, "picture")
    return list(contents)


def png(figure: Figure) -> bytes:
    return rendered(figure, "png", {"Software": None}, DPI)


def svg(figure: Figure) -> str:
    """Return the figure as an `<svg>` element, whose text stays text. Ids begin with a hash of the
    picture, so that two pictures in one page have different ids."""
    content = rendered(figure, "svg", UNDATED, style.POINTS)
    mark = f"p{hashlib.sha256(content).hexdigest()[:10]}-"

    def marked(tag: re.Match[str]) -> str:
        own = re.sub(r'\bid="|href="#|url\(#', rf"\g<0>{mark}", tag[0])
        return own.replace("xlink:href", "href")

    text = content.decode()
    text = re.sub("<style.*?</style>", "", text[text.index("<svg") :], flags=re.DOTALL)
    about = f"{ROOT} aria-label={quoteattr(str(figure.get_label()))}"
    return re.sub("<[^>]*>", marked, text).replace(XLINK, about, 1)


def rendered(figure: Figure, name: str, metadata: dict[str, None], dpi: int) -> bytes:
    out = io.BytesIO()
    with style.applied():
        figure.savefig(out, format=name, metadata=metadata, dpi=dpi)
    return out.getvalue()
