"""Curves: means of blocks, scales and ticks of the axes, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from tests.examples.plots import HISTORY
from tests.exporters.plots.pictures import ticks
from tflab.exporters.plots import curves
from tflab.records.trained import Epoch, TrainingStep


def test_a_block_is_its_mean_at_its_middle_step_and_the_last_has_the_rest():
    points = [(1, 1.0), (2, 3.0), (4, 11.0), (6, 21.0), (8, 31.0)]
    assert curves.means(points, 2) == [(1.5, 2.0), (6, 21.0)]
    assert curves.means(points, 9) == [(4.2, 13.4)]
    assert curves.means(points, 1) == points


@pytest.mark.parametrize(
    ("losses", "logarithmic"),
    [((1, 20), False), ((1, 20.1), True), ((0, 30), False), ((-1, 30), False), ((), False)],
)
def test_the_axis_of_losses_is_logarithmic_above_a_ratio_of_twenty(losses, logarithmic):
    assert curves.is_logarithmic(list(enumerate(losses))) is logarithmic


def axis(steps: int, epochs: int, every: int = 1) -> list[tuple[float, str]]:
    history = replace(
        HISTORY,
        steps=tuple(TrainingStep(n, 1.0, 0.5, 0.1) for n in range(1, steps + 1)),
        epochs=tuple(Epoch(n, every * n, 1, 0.5, 1, 0.5, 1, 48) for n in range(1, epochs + 1)),
        batch_size=1,
    )
    axes = Figure().subplots()
    curves.epochs_axis(axes, history)
    assert axes.get_xlim() == (0, steps)
    words = f"epoch (the first is {every} step{'s' if every > 1 else ''} of 1 row)"
    assert axes.get_xlabel() == (words if epochs else "step (of 1 row)")
    return ticks(axes.xaxis)


def test_twelve_epochs_have_a_tick_each_and_of_more_some():
    assert axis(12, 12) == [(n, str(n)) for n in range(1, 13)]
    assert axis(13, 13) == [(n, str(n)) for n in range(2, 13, 2)]
    assert axis(75, 25, every=3) == [(9 * n, str(3 * n)) for n in range(1, 9)]


def test_before_the_first_epoch_the_axis_counts_whole_steps():
    assert [place for place, _ in axis(1, 0)] == [0, 1]
    assert [place for place, _ in axis(17, 0)] == [0, 3, 6, 9, 12, 15]


def test_numbers_have_three_digits_and_shares_two_decimals_without_zeros_at_the_end():
    assert [curves.plain(value) for value in (2.3456, 0.5, 100.0)] == ["2.35", "0.5", "100"]
    assert [curves.percent(share) for share in (0.9905, 0.905, 1.0, 0.12345, 0.0)] == [
        *("99.05 %", "90.5 %", "100 %", "12.35 %", "0 %")
    ]
    assert curves.headline(replace(HISTORY, epochs=HISTORY.epochs[:1])) == (
        "lenet is right on 40 % of the test rows after 1 epoch"
    )
