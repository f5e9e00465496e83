"""Curves: means of blocks and the scale of the losses, worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.plots import HISTORY
from tflab.exporters.plots import curves
from tflab.records.measured import TrainingStep


def test_a_block_is_its_mean_at_its_middle_and_the_remainder_joins_the_blocks():
    points = [(1, 1.0), (2, 3.0), (4, 11.0), (6, 21.0), (8, 31.0)]
    assert curves.means(points, 2) == [(7 / 3, 5.0), (7.0, 26.0)]
    assert curves.means(points, 9) == [(4.2, 13.4)]
    assert curves.means(points, 1) == points


@pytest.mark.parametrize(
    ("losses", "scale"),
    [((1, 20), "linear"), ((1, 20.1), "log"), ((0, 30), "linear"), ((float("nan"),), "linear")],
)
def test_the_axis_of_losses_is_logarithmic_above_a_ratio_of_twenty(losses, scale):
    steps = tuple(TrainingStep(n, loss, 0.5, 0.1, 1.0) for n, loss in enumerate(losses, 1))
    figure = curves.draw(replace(HISTORY, steps=steps, epochs=()))
    assert figure.axes[0].get_yscale() == scale
