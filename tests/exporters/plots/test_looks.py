"""Looks: colours, widths, layers and places of what the plots of rows and of batch sizes draw."""

from dataclasses import replace
from math import atan2, cos, degrees, sin

import pytest
from matplotlib.colors import to_hex

from tests.pictures import caption, look, points, stroke, title, words
from tests.records_by_hand import op_at_size, op_stats, op_total
from tflab.exporters.plots import batch_sizes, label_placement, layers, roofline, style, top_ops
from tflab.records.measured import Compared, Comparison, OpStats, Peaks, StepTimes
from tflab.records.timed import Spread

ROW = op_stats(
    key="conv1",
    ops=("_FusedConv2D",),
    self_ns=900_000,
    share=0.36,
    gflops=40.0,
    intensity=16.0,
    roof_share=0.5,
    step_ns=300_000.0,
    step_std_ns=45_000.0,
)
PEAKS = Peaks(gflops=80.0, gigabytes_per_s=20.0)
INK, BLACK = style.INK, style.BLACK


# Top ops


def totals(count: int) -> list[OpStats]:
    """Ops of 1000, 999, ... ns; the shares are those of 10 us."""
    return [
        op_total(f"net/{n}", f"Op{n}", 7, 2_000, 1_000 - n, 2_000 / 7, (1_000 - n) / 10_000)
        for n in range(count)
    ]


def test_a_name_stands_above_its_bar_and_its_type_behind_it_smaller_and_fainter():
    (axes,) = top_ops.draw(totals(1)).axes
    behind = style.text_width("net/0", 10.5) + 8
    assert [look(text) for text in axes.texts] == [
        ("10.0 %, 1.00 us", (0.1, 0), (6, 0), "left", "center", 10.5, INK, "normal"),
        ("net/0", (0, -0.2), (0, 4), "left", "baseline", 10.5, INK, "normal"),
        ("Op0", (0, -0.2), (behind, 4), "left", "baseline", 8.5, style.FAINT, "normal"),
    ]
    assert {text.anncoords for text in axes.texts} == {"offset points"}


def test_names_and_types_of_bars_lose_their_middle():
    row = replace(ROW, key="k" * 30 + "l" * 23, ops=("O" * 20 + "P" * 15,))
    assert words(top_ops.draw([row]).axes[0])[1:] == [
        "k" * 25 + "…" + "k" * 3 + "l" * 23,
        "O" * 16 + "…" + "O" * 2 + "P" * 15,
    ]


def test_eleven_ops_have_ten_bars_and_one_for_the_other():
    drawn = top_ops.draw(totals(11))
    assert words(drawn.axes[0])[-3:] == ["9.9 %, 990 ns", "all others", "1 row"]
    assert [round(bar.get_width(), 6) for bar in drawn.axes[0].patches] == [
        round((1_000 - n) / 10_000, 6) for n in range(11)
    ]


def test_of_ops_that_ran_once_the_caption_says_one_call():
    once = top_ops.draw([replace(totals(1)[0], calls=1)])
    assert caption(once).startswith(
        "Self time in 1 call each, and its share of the self time of all ops."
    )


# Layers


def test_numbers_beside_a_marked_bar_are_bold_and_those_of_others_are_not():
    rows = [ROW, replace(ROW, key="tanh", share=0.05, step_std_ns=None)]
    (axes,) = layers.draw(rows).axes
    sides = ("right", "center", 9.5)
    assert [look(text) for text in axes.texts] == [
        ("300 us", (1, 0), (50, 0), *sides, INK, "bold"),
        ("", (1, 0), (102, 0), *sides, INK, "bold"),
        ("± 45.0 us", (1, 0), (168, 0), *sides, INK, "bold"),
        ("36.0 %", (1, 0), (212, 0), *sides, INK, "bold"),
        ("300 us", (1, 1), (50, 0), *sides, INK, "normal"),
        ("", (1, 1), (102, 0), *sides, INK, "normal"),
        ("", (1, 1), (168, 0), *sides, INK, "normal"),
        ("5.0 %", (1, 1), (212, 0), *sides, INK, "normal"),
        ("mean", (1, -1), (50, 0), *sides, style.FAINT, "normal"),
        ("median", (1, -1), (102, 0), *sides, style.FAINT, "normal"),
        ("± deviation", (1, -1), (168, 0), *sides, style.FAINT, "normal"),
        ("share", (1, -1), (212, 0), *sides, style.FAINT, "normal"),
    ]
    assert {(text.xycoords, text.anncoords) for text in axes.texts} == {
        (("axes fraction", "data"), "offset points")
    }
    assert {text.get_annotation_clip() for text in axes.texts} == {False}


def test_bars_of_layers_have_no_edge_and_lie_below_their_deviations():
    (axes,) = layers.draw([ROW, replace(ROW, share=0.01)]).axes
    assert [
        (bar.get_height(), to_hex(bar.get_edgecolor()), bar.get_linewidth(), bar.get_zorder())
        for bar in axes.patches
    ] == 2 * [(pytest.approx(0.7), "#ffffff", 0, 2)]
    deviation, *_, threshold = axes.lines
    assert deviation.get_zorder() > 2 > threshold.get_zorder()
    caps = [line for line in axes.lines if line.get_marker() == "|"]
    assert [(cap.get_markersize(), cap.get_color()) for cap in caps] == 4 * [(5, INK)]
    assert [(line.get_linewidth(), to_hex(line.get_color()[0])) for line in axes.collections] == (
        2 * [([1], INK)]
    )
    assert [line.get_segments()[0].tolist() for line in axes.collections] == [
        [[255_000, place], [345_000, place]] for place in (0, 1)
    ]


def kind_row(op: str, share: float) -> OpStats:
    return replace(ROW, key=op, ops=("ReadVariableOp", op), share=share)


CONVOLUTIONS = [kind_row("_FusedConv2D", share) for share in (0.1, 0.2, 0.3)]
POOL, NORM = kind_row("MaxPool", 0.25), kind_row("FusedBatchNormV3", 0.15)
BORDER = "5 % of the time of all ops"


@pytest.mark.parametrize(
    ("rows", "threshold", "sentence"),
    [
        (CONVOLUTIONS, 0.05, f"All 3 bars above {BORDER} are convolutions"),
        (
            [CONVOLUTIONS[2], POOL],
            0.05,
            f"Of the 2 bars above {BORDER}, 1 is a convolution and 1 is a pooling layer",
        ),
        (
            [POOL, *CONVOLUTIONS[:2], NORM],
            0.05,
            f"Of the 4 bars above {BORDER}, 2 are convolutions, 1 is a pooling layer and 1 is a "
            "normalisation",
        ),
        ([NORM], 0.05, f"The one bar above {BORDER} is a normalisation"),
        ([kind_row("Tanh", 1)], 0.05, f"The one bar above {BORDER} is a layer of another kind"),
        ([kind_row("Tanh", 0.05)], 0.05, f"No layer takes more than {BORDER}"),
        (
            [*CONVOLUTIONS, POOL],
            0.25,
            "The one bar above 25 % of the time of all ops is a convolution; 2 more lie below",
        ),
        (
            CONVOLUTIONS,
            0.125,
            "All 2 bars above 12.5 % of the time of all ops are convolutions; 1 more lies below",
        ),
    ],
)
def test_the_sentence_says_which_kind_of_layer_the_marked_bars_are(rows, threshold, sentence):
    assert layers.sentence(rows, threshold) == sentence
    if threshold == 0.05:
        assert layers.sentence(rows) == sentence


@pytest.mark.parametrize(
    ("ops", "kind"),
    [
        (("_MklNativeFusedConv2D",), ("convolution", "convolutions")),
        (("Add", "FusedBatchNormV3", "Conv2D"), ("convolution", "convolutions")),
        (("DepthwiseConv2dNative",), ("convolution", "convolutions")),
        (("_MklNativeFusedMatMul",), ("matrix product", "matrix products")),
        (("BatchMatMulV2",), ("matrix product", "matrix products")),
        (("FusedBatchNormV3", "Relu"), ("normalisation", "normalisations")),
        (("_MklNativeMaxPoolGrad",), ("pooling layer", "pooling layers")),
        (("AvgPool",), ("pooling layer", "pooling layers")),
        (("ResourceApplyGradientDescent",), ("weight update", "weight updates")),
        (("_Arg", "_Retval"), ("feed or fetch", "feeds and fetches")),
        (("Relu", "Reshape"), ("layer of another kind", "layers of other kinds")),
        ((), ("layer of another kind", "layers of other kinds")),
    ],
)
def test_the_kind_of_a_layer_is_that_of_the_first_kind_whose_types_it_has(ops, kind):
    assert layers.kind(replace(ROW, ops=ops)) == kind


def test_a_deviation_as_large_as_the_mean_is_not_called_larger():
    same = layers.draw([replace(ROW, step_std_ns=300_000.0)])
    larger = layers.draw(2 * [replace(ROW, step_std_ns=300_001.0)])
    assert "larger than the mean" not in caption(same)
    assert caption(larger) == (
        "Layers in the order of execution: mean time in a step, and share of all ops. Red and "
        "hatched: above 5 % (broken line). Kinds follow from the ops that ran. Thin line and ±: "
        "standard deviation over the steps. In 2, it is larger than the mean: a few steps were "
        "far slower than the others."
    )


# Roofline


def on_page(axes, x, y) -> tuple:
    return tuple(axes.transData.transform((x, y)) * 72 / axes.figure.dpi)


def test_words_of_the_roof_stand_five_points_above_the_middle_of_their_part():
    (axes,) = roofline.draw([ROW], PEAKS).axes
    left, right = axes.get_xlim()
    slope, level, name = axes.texts
    foot, ridge = on_page(axes, left, 20 * left), on_page(axes, 4, 80)
    turn = atan2(ridge[1] - foot[1], ridge[0] - foot[0])
    middle = (left * 4) ** 0.5
    style_of_words = ("center", "baseline", 9.5, INK, "normal")
    assert look(slope) == (
        "memory delivers 20 GB/s",
        pytest.approx((middle, 20 * middle)),
        pytest.approx((-5 * sin(turn), 5 * cos(turn))),
        *style_of_words,
    )
    assert look(level) == (
        "the processor does 80 GFLOP/s",
        pytest.approx(((4 * right) ** 0.5, 80)),
        pytest.approx((0, 5)),
        *style_of_words,
    )
    assert slope.get_rotation() == pytest.approx(degrees(turn))
    assert (level.get_rotation(), level.get_rotation_mode()) == (0, "anchor")
    assert (slope.get_rotation_mode(), slope.anncoords) == ("anchor", "offset points")
    assert name.get_position() == (pytest.approx(22 * 0.6 / 2 + 4), 0)


@pytest.mark.parametrize(
    ("intensities", "share", "part", "above"),
    [
        ((16.0,), 0.36, 0.25, 5),  # the middle is taken
        ((6.0, 16.0, 40.0), 0.36, 0.5, 17),  # so is every place at this height
        (tuple(4 * 2 ** (n / 4) for n in range(17)), 0.01, 0.5, 5),  # no place is free
    ],
)
def test_words_of_the_roof_give_way_to_points_on_it(intensities, share, part, above):
    rows = [replace(ROW, intensity=x, gflops=80.0, share=share) for x in intensities]
    if share == 0.01:
        rows += [replace(row, gflops=gflops) for row in rows for gflops in (99.0, 120.0)]
    (axes,) = roofline.draw(rows, PEAKS).axes
    level = axes.texts[1]
    _, right = axes.get_xlim()
    assert level.get_text() == "the processor does 80 GFLOP/s"
    assert level.get_position() == (pytest.approx(0), above)
    assert level.xy == (pytest.approx(4 * (right / 4) ** part), 80)


def test_under_words_lie_small_squares_from_their_beginning_to_their_end():
    squares = roofline.sloping_boxes((100, 200), 0, 5, 19)
    middle = 200 + 5 + 9.5 / 3
    assert squares == [
        pytest.approx((100 + step - 4.75, middle - 4.75, 100 + step + 4.75, middle + 4.75))
        for step in (-9.5, -5.7, -1.9, 1.9, 5.7, 9.5)
    ]


def test_under_words_that_rise_the_squares_rise_with_them():
    turn = atan2(3, 4)
    up = 5 + 9.5 / 3
    center = (100 - up * 0.6, 200 + up * 0.8)
    assert roofline.sloping_boxes((100, 200), turn, 5, 4) == [
        pytest.approx(label_placement.square((center[0] + x, center[1] + y), 4.75))
        for x, y in ((-1.6, -1.2), (1.6, 1.2))
    ]


def test_names_of_points_are_the_essential_ones_unless_two_would_look_the_same():
    def drawn_names(*keys):
        rows = [
            replace(ROW, key=key, self_ns=9 - n, intensity=2.0**n, gflops=3.0**n)
            for n, key in enumerate(keys)
        ]
        return words(roofline.draw(rows, PEAKS).axes[0])[2:]

    assert drawn_names("conv1/a/Relu", "conv1/Add") == ["conv1/Relu", "conv1/Add"]
    assert drawn_names("conv1/a/Relu", "conv1/b/Relu") == ["conv1/a/Relu", "conv1/b/Relu"]


def test_the_frame_gives_both_parts_of_the_roof_room():
    (axes,) = roofline.draw([replace(ROW, intensity=0.004, gflops=0.5)], PEAKS).axes
    left = 0.004 / 3
    assert axes.get_xlim() == pytest.approx((left, 4 * (4 / left) ** (3 / 7)))
    (axes,) = roofline.draw([replace(ROW, intensity=4_000.0, gflops=5.0)], PEAKS).axes
    assert axes.get_xlim() == pytest.approx((4 / 4_000 ** (3 / 7), 16_000))


def test_points_are_blue_rings_above_the_roof():
    (axes,) = roofline.draw([ROW], PEAKS).axes
    (line,), (dots,) = axes.lines, axes.collections
    assert stroke(line)[:4] == (INK, 1.8, "-", "None")
    assert (dots.get_linewidth(), dots.get_zorder()) == ([1.2], 3)
    colors = (dots.get_facecolor()[0], dots.get_edgecolor()[0])
    assert [to_hex(color).upper() for color in colors] == [style.SKY, style.BLUE]


def test_a_long_name_in_the_title_loses_its_middle():
    drawn = roofline.draw([replace(ROW, key="a" * 25 + "b" * 26)], PEAKS)
    assert title(drawn).startswith("a" * 24 + "…" + "b" * 25 + " computes at 50.0 %")


# Batch sizes


def spread(ns: int) -> Spread:
    return Spread(ns, ns - 1, ns + 1)


def steps(size: int, ns: int) -> StepTimes:
    return StepTimes(10, 10 * size, spread(ns), spread(2 * ns), 1e4, ns, 7, 99, None)


def cell(size: int, ns: int, share: float) -> OpStats:
    return op_at_size(10, 10 * ns, ns, ns / size, share, 0, None)


COMPARISON = Comparison(
    model="lenet",
    phase="inference",
    by="op",
    data="MNIST",
    warmup=3,
    batch_sizes=(1, 1024),
    rows=(
        Compared(
            "Conv",
            ("Conv",),
            (),
            {1: cell(1, 400, 0.8), 1024: cell(1024, 1600, 0.8)},
            None,
        ),
    ),
    steps={1: steps(1, 600), 1024: steps(1024, 2400)},
    configs=(),
    findings=(),
    cold=(),
    cold_step_ns=0,
    uncovered={},
)


def test_lines_of_batch_sizes_differ_in_colour_marker_and_dashes():
    rows = tuple(replace(COMPARISON.rows[0], key=f"op{n}") for n in range(7))
    for axes in batch_sizes.draw(replace(COMPARISON, rows=rows)).axes:
        looks = [stroke(line) for line in axes.lines]
        assert [(color, marker) for color, _, _, marker, *_ in looks] == [
            *((BLACK, "X"), (style.BLUE, "o"), (style.VERMILION, "s"), (style.GREEN, "^")),
            *((style.PURPLE, "D"), (style.ORANGE, "v"), (style.SKY, "P")),
        ]
        assert [dashes for _, _, dashes, *_ in looks] == ["-", "-", "--", "-.", "--", "--", ":"]
        assert {(width, size, edge) for _, width, _, _, size, edge, *_ in looks} == {
            (1.6, 6, "white")
        }


def test_sizes_above_a_thousand_have_a_comma():
    drawn = batch_sizes.draw(COMPARISON)
    assert title(drawn) == "From batch 1 to 1,024, a step takes 4 x as long, one image 0.0039 x"
    single = replace(COMPARISON, model="m" * 15 + "n" * 16, steps={1024: steps(1024, 2400)})
    single = replace(single, rows=())
    assert title(batch_sizes.draw(single)) == (
        "m" * 14 + "…" + "n" * 15 + " at batch 1,024, the only one measured"
    )


def test_a_measurement_that_failed_is_not_finished():
    for cut in ({"interrupted": True}, {"failure": "No memory."}):
        drawn = batch_sizes.draw(replace(COMPARISON, **cut))
        assert caption(drawn).endswith(
            "means that a larger batch saves nothing. The measurement did not finish."
        )
    assert caption(batch_sizes.draw(COMPARISON)).endswith("a larger batch saves nothing.")


def test_rows_without_any_time_have_no_line_and_long_keys_lose_their_middle():
    never = Compared("Never", ("Never",), (), {1: cell(1, 0, 0.0)}, None)
    empty = Compared("Empty", ("Empty",), (), {}, None)
    long = replace(COMPARISON.rows[0], key="k" * 12 + "l" * 13)
    drawn = batch_sizes.draw(replace(COMPARISON, rows=(never, empty, long)))
    for axes, step, row in zip(drawn.axes, (2400, 2400 / 1024), (1600, 1600 / 1024), strict=True):
        assert words(axes) == ["✖", "whole step", "●", "k" * 11 + "…" + "l" * 12]
        assert [points(line)[-1] for line in axes.lines] == [(1024, step), (1024, row)]
    assert "self time of 1 row of the 3 by op" in caption(drawn)


def test_titles_and_captions_of_rows_are_whole_sentences():
    ops = totals(12)
    assert top_ops.headline(ops[:2], ops[2:]) == (
        "The 2 most expensive of 12 take 20.0 % of the time of all ops"
    )
    assert top_ops.headline(ops[:1], []) == "net/0 takes 10.0 % of the time of all ops"
    assert roofline.headline([ROW], PEAKS) == (
        "conv1 computes at 50.0 % of the roof measured here at its intensity"
    )
    assert roofline.caption([ROW, ROW, ROW], [ROW], has_levels=False) == (
        "The larger a point, the larger its share of the time. The roof is a model: below the "
        "slope, memory is the limit; below the level part, the processor. 2 rows without known "
        "FLOPs or bytes are omitted."
    )
