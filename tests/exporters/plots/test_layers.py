"""The plot of layers: every bar, deviation, number and word, worked out by hand."""

from dataclasses import replace

import pytest

from tests.pictures import bars, caption, ticks, title, words
from tests.records_by_hand import BUSY, BUSY_LINE, op_stats
from tflab.exporters.plots import layers, style
from tflab.records.measured import OpStats


def row(key, ops, step_us, std_us, share) -> OpStats:
    """A layer; all times but those of a step are -1."""
    return op_stats(
        key=key,
        ops=ops,
        share=share,
        step_ns=step_us * 1_000,
        step_std_ns=None if std_us is None else std_us * 1_000,
        step_median_ns=None if std_us is None else step_us * 900,
    )


ROWS = (
    row("(runtime)", ("_Arg", "_Retval"), 20, 30, 0.02),
    row("conv1", ("ReadVariableOp", "_FusedConv2D"), 300, 45, 0.30),
    row("pool1", ("MaxPool",), 80, 8, 0.08),
    row("conv2", ("_MklNativeFusedConv2D",), 550, 60, 0.55),
    row("dense", ("MatMul",), 50, None, 0.05),
)


@pytest.fixture(scope="module")
def figure():
    return layers.draw(ROWS)


def test_bars_are_the_mean_times_of_a_step_and_those_above_the_threshold_are_hatched(figure):
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


def test_deviations_are_lines_from_no_less_than_0_where_they_are_known(figure):
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


def test_beside_each_bar_stand_its_mean_its_median_its_deviation_and_its_share(figure):
    (axes,) = figure.axes
    assert words(axes) == [
        *("20.0 us", "18.0 us", "± 30.0 us", "2.0 %"),
        *("300 us", "270 us", "± 45.0 us", "30.0 %"),
        *("80.0 us", "72.0 us", "± 8.00 us", "8.0 %"),
        *("550 us", "495 us", "± 60.0 us", "55.0 %"),
        *("50.0 us", "5.0 %"),
        *("mean", "median", "± deviation", "share"),
    ]
    rows = [text.xy for text in axes.texts]
    assert rows == [(1, place) for place in (0, 1, 2, 3, 4, -1) for _ in range(4)]
    columns = [text.get_position()[0] for text in axes.texts]
    assert columns == 6 * [50, 102, 168, 212]


def test_the_threshold_is_a_line_at_its_share_of_the_time_of_all_layers(figure):
    (axes,) = figure.axes
    assert axes.lines[-1].get_xdata() == pytest.approx([50_000, 50_000])


def test_the_axis_reaches_as_far_as_the_longest_deviation(figure):
    (axes,) = figure.axes
    assert axes.get_xlim() == (0, pytest.approx(1.03 * 610_000))
    assert ticks(axes.xaxis) == [
        (0, "0 us"),
        (200_000, "200 us"),
        (400_000, "400 us"),
        (600_000, "600 us"),
    ]
    assert axes.get_xlabel() == "time in a step"


def test_title_and_caption_say_what_is_marked_and_what_is_not_known(figure):
    assert title(figure) == (
        "Of the 3 bars above 5 % of the time of all ops, 2 are convolutions and 1 is a pooling "
        "layer"
    )
    assert caption(figure) == (
        "Layers in the order of execution: mean time in a step, and share of all ops. Red and "
        "hatched: above 5 % (broken line). Kinds follow from the ops that ran. Mark: the median "
        "over the steps. Thin line and ±: standard deviation over the steps. Without a line, it "
        "is not known. In 1, it is larger than the mean: a few steps were far slower than the "
        "others."
    )


def test_without_deviations_the_caption_does_not_speak_of_them():
    drawn = layers.draw(ROWS[4:], 0.1)
    assert title(drawn) == "No layer takes more than 10 % of the time of all ops"
    assert caption(drawn) == (
        "Layers in the order of execution: mean time in a step, and share of all ops. Red and "
        "hatched: above 10 % (broken line). Kinds follow from the ops that ran. Without a line, "
        "it is not known."
    )


def test_medians_are_marks_where_they_are_known(figure):
    (axes,) = figure.axes
    marks = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "d"]
    assert marks == [[[18_000, 0]], [[270_000, 1]], [[72_000, 2]], [[495_000, 3]]]


def test_for_a_phone_the_deviation_is_only_a_line():
    with style.narrow():
        (axes,) = layers.draw(ROWS).axes
    assert words(axes)[:3] == ["20.0 us", "18.0 us", "2.0 %"]
    assert words(axes)[-3:] == ["mean", "median", "share"]


def test_a_long_name_is_whole_in_a_wide_picture():
    name = "group2/block1/projection + projection_bn"
    (axes,) = layers.draw([*ROWS, row(name, ("Conv2D",), 20, 30, 0.5)]).axes
    assert ticks(axes.yaxis)[-1] == (5, name)


def test_the_caption_ends_with_whether_the_machine_was_quiet():
    quiet = replace(BUSY, quiet=True, reasons=())
    assert caption(layers.draw(ROWS, judgement=quiet)).endswith(
        " This machine was quiet enough: the load average before was 2.50 on 2 cores; the host "
        "took 12.5 % of the processor time; p90 of untraced steps is 3.8 x p10."
    )
    assert caption(layers.draw(ROWS, judgement=BUSY)).endswith(f" {BUSY_LINE}")


def test_numbers_of_a_narrow_panel_do_not_run_into_one_another():
    (axes,) = layers.draw([row("conv1", ("Conv2D",), 2_400, 1, 1.0)] * 3).axes
    assert ticks(axes.xaxis) == [(0, "0 ms"), (1_000_000, "1 ms"), (2_000_000, "2 ms")]
