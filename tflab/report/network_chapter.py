"""The chapter of what the network saw: one image through all layers, and the gradients of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflab.exporters import plots
from tflab.records import Maps, Probabilities
from tflab.report import pictures, recipes
from tflab.report.contents import Part, Recipe, Walked


def maps_of(walked: Walked) -> Maps | None:
    """What can be drawn of the recorded step; None where that is not even a layer."""
    maps = walked.execution.maps
    return maps if maps and len(maps.maps) > 1 else None


def parts(walked: Walked, maps: Maps) -> Iterator[Part]:
    yield (
        "From the top down the image goes through the layers: what each of them handed to the "
        "next, a tile for each channel. On the right, from the bottom up, how the loss changes "
        "with each of these numbers. A max-pool hands its gradient to the largest of its elements "
        "alone, and a ReLU to those above 0: the rest is white."
    )
    record = maps.probabilities
    if record and is_softmax_less_label(record, walked.execution.batch_size):
        yield (
            "The last row is where it begins: the gradient by a score is its probability, less 1 "
            f"for the label ({record.label}), over the images of the batch. Against it, the score "
            "of the label goes up and every other goes down."
        )
    yield pictures.picture("feature_maps", plots.feature_maps.draw, maps)
    yield Recipe(
        "Every tensor is read from one step that the runtime's debugger recorded, and that is not "
        "among the timed ones. Where a line says softmax, tflab has taken it of the scores.",
        recipes.walking(walked),
    )


def is_softmax_less_label(record: Probabilities, batch: int) -> bool:
    """Whether the gradient by the scores is that of a mean cross entropy over the batch."""
    if record.gradient is None or record.label is None or record.computed:
        return False
    expected = (record.array - np.eye(len(record.array))[record.label]) / batch
    return bool(np.allclose(record.gradient, expected, rtol=1e-3, atol=1e-6))
