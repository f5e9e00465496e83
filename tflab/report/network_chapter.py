"""The chapter of what the network saw: one image through all layers, and the gradients of it."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.exporters import plots
from tflab.records import Maps
from tflab.report import pictures, recipes
from tflab.report.contents import Part, Recipe, Walked


def maps_of(walked: Walked) -> Maps | None:
    """What can be drawn of the recorded step; None where that is not even a layer."""
    maps = walked.execution.maps
    return maps if maps and len(maps.maps) > 1 else None


def parts(walked: Walked, maps: Maps) -> Iterator[Part]:
    yield (
        "From the top down the image becomes smaller and the channels become more; at the end "
        "there is a number for each class. On the right the same backwards: how the loss changes "
        "with each element. A pool hands its gradient to the largest of its pixels alone, and a "
        "ReLU to those above 0; what the label would have of the scores is the one long bar."
    )
    yield pictures.picture("feature_maps", plots.feature_maps.draw, maps)
    yield Recipe(
        "Every tensor is read from one step that the runtime's debugger recorded, and that is not "
        "among the timed ones. Where a line says softmax, tflab has taken it of the scores.",
        recipes.walking(walked),
    )
