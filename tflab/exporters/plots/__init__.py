"""Plots: pictures of trainings and measurements, for web pages, reports and print.

    figure = plots.curves.draw(history)
    plots.save(figure, "report/curves")  # curves.png and curves.svg
    plots.svg(figure)  # for an HTML page

Each picture has a module, whose `draw` takes records and returns a matplotlib `Figure`. No function
here opens a window or changes matplotlib's settings.
"""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from tflab.exporters.plots import (
    batch_sizes,
    buffers,
    curves,
    feature_maps,
    layers,
    memory,
    over_time,
    roofline,
    tasks,
    timeline,
    top_ops,
)
from tflab.exporters.plots.files import save, svg

PICTURES: dict[str, Callable[..., Figure]] = {
    "curves": curves.draw,
    "top_ops": top_ops.draw,
    "batch_sizes": batch_sizes.draw,
    "timeline": timeline.draw,
    "tasks": tasks.draw,
    "memory": memory.draw,
    "buffers": buffers.draw,
    "roofline": roofline.draw,
    "layers": layers.draw,
    "feature_maps": feature_maps.draw,
    "over_time": over_time.draw,
}
