"""Pictures: plots as they stand in a report, in both formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from tflab.exporters import plots
from tflab.exporters.plots import style
from tflab.report.contents import Picture


def picture(name: str, draw: Callable[..., Figure], *records: Any) -> Picture:
    """A plot of some records, drawn for a page and again for a phone."""
    figure = draw(*records)
    with style.narrow():
        narrow = draw(*records)
    words = str(figure.get_label())
    return Picture(name, words, plots.svg(figure), plots.svg(narrow), plots.png(figure))
