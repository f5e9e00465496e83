"""The plot of ops and layers: every bar, deviation, number and word, worked out by hand."""

import pytest

from tests.pictures import bars, caption, ticks, title, words
from tests.records_by_hand import op_stats
from tflab.exporters.plots import op_bars, style


def row(key, us, share, std_us=None):
    """A row of two steps; all times but those of a step are -1."""
    return op_stats(
        key=key,
        share=share,
        self_ns=us * 2_000,
        step_ns=us * 1_000,
        step_std_ns=None if std_us is None else std_us * 1_000,
        step_median_ns=None if std_us is None else us * 900,
    )


LAYERS = (
    row("(runtime)", 20, 0.02, 30),
    row("conv1", 300, 0.30, 45),
    row("pool1", 80, 0.08, 8),
    row("conv2", 550, 0.55, 60),
    row("dense", 50, 0.05),
)


@pytest.fixture(scope="module")
def figure():
    return op_bars.draw(LAYERS, "layer")


def test_layers_stand_in_order_and_those_above_five_percent_are_red_and_hatched(figure):
    (axes,) = figure.axes
    usual, marked = (style.PALE, None), (style.VERMILION, "////")
    assert bars(axes) == [
        (pytest.approx(0), 0, 20_000, *usual),
        (pytest.approx(1), 0, 300_000, *marked),
        (pytest.approx(2), 0, 80_000, *marked),
        (pytest.approx(3), 0, 550_000, *marked),
        (pytest.approx(4), 0, 50_000, *usual),
    ]
    names = [(0, "(runtime)"), (1, "conv1"), (2, "pool1"), (3, "conv2"), (4, "dense")]
    assert ticks(axes.yaxis) == names
    border = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert border.get_xdata() == pytest.approx([50_000, 50_000])  # 5 % of 1 ms


def test_beside_each_bar_stand_its_mean_its_median_its_deviation_and_its_share(figure):
    (axes,) = figure.axes
    assert {(t.xy[1], t.get_text()) for t in axes.texts} == {
        *((0, words) for words in ("20.0 us", "18.0 us", "± 30.0 us", "2.0 %")),
        *((1, words) for words in ("300 us", "270 us", "± 45.0 us", "30.0 %")),
        *((2, words) for words in ("80.0 us", "72.0 us", "± 8.00 us", "8.0 %")),
        *((3, words) for words in ("550 us", "495 us", "± 60.0 us", "55.0 %")),
        *((4, words) for words in ("50.0 us", "5.0 %")),
        *((-1, words) for words in ("mean", "median", "± deviation", "share")),
    }
    marks = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "d"]
    assert marks == [[[18_000, 0]], [[270_000, 1]], [[72_000, 2]], [[495_000, 3]]]


def test_deviations_are_lines_from_no_less_than_0(figure):
    lines = [
        container.lines[2][0].get_segments()[0].tolist()
        for container in figure.axes[0].containers
        if hasattr(container, "lines")
    ]
    assert lines == [
        [[0, 0], [50_000, 0]],
        [[255_000, 1], [345_000, 1]],
        [[72_000, 2], [88_000, 2]],
        [[490_000, 3], [610_000, 3]],
    ]


def test_title_and_caption_say_what_is_marked(figure):
    assert title(figure) == "3 of 5 layers take 93.0 % of the time of all ops"
    assert caption(figure) == (
        "Layers in the order of execution: mean time in a step, and share of the time of all ops. "
        "Red and hatched: more than 5.0 % (broken line). Mark: the median over the steps. Thin "
        "line and ±: standard deviation over the steps."
    )
    assert title(op_bars.draw(LAYERS[4:], "layer")) == (
        "No layer takes more than 5.0 % of the time of all ops"
    )


def test_of_twelve_ops_the_ten_most_expensive_have_a_bar_and_the_others_share_one():
    rows = [row(f"op{n}", n, n / 100) for n in range(1, 13)]
    (axes,) = op_bars.draw(rows, "op").axes
    assert [label for _, label in ticks(axes.yaxis)] == [
        *(f"op{n}" for n in range(12, 2, -1)),
        "all others (2)",
    ]
    *_, others = bars(axes)
    assert others == (pytest.approx(10), 0, 3_000, style.PALE, None)  # of any share
    assert "25.0 %" in words(axes)  # 1 - (3 + ... + 12) %
