"""Curves: means of blocks, worked out by hand."""

from dataclasses import replace

from tests.examples.plots import HISTORY
from tflab.exporters.plots import curves
from tflab.records.measured import TrainingStep


def test_a_block_is_its_mean_at_its_middle_and_the_remainder_joins_the_blocks():
    points = [(1, 1.0), (2, 3.0), (4, 11.0), (6, 21.0), (8, 31.0)]
    assert curves.means(points, 2) == [(7 / 3, 5.0), (7.0, 26.0)]
    assert curves.means(points, 9) == [(4.2, 13.4)]
    assert curves.means(points, 1) == points


def test_first_steps_that_would_hide_all_later_differences_are_cut_off():
    """The least after the first half is 93 % right, so the axis begins at 86 %."""
    rights = (0.1, 0.9, 0.93, 0.99)
    steps = tuple(TrainingStep(n, 1.0, right, 0.1, 1.0) for n, right in enumerate(rights, 1))
    figure = curves.draw(replace(HISTORY, steps=steps, epochs=()))
    assert figure.axes[1].get_ylim() == (0.86, 1)
    assert figure.get_label().endswith(" Accuracy below 86 % is not shown.")
