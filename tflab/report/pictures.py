"""Pictures: plots as they stand in a report, in both formats."""

from __future__ import annotations

from matplotlib.figure import Figure

from tflab.exporters import plots
from tflab.exporters.plots import files
from tflab.report.contents import Picture


def picture(name: str, figure: Figure) -> Picture:
    return Picture(name, str(figure.get_label()), plots.svg(figure), files.png(figure))
