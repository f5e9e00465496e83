"""The plot of batch sizes: every line, tick and word, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from tests.pictures import caption, points, ticks, title
from tests.records_by_hand import op_at_size
from tflab.exporters.plots import batch_sizes, style
from tflab.records.measured import Compared, Comparison, StepTimes
from tflab.records.timed import Spread

# 3 traced steps of 4 images, and 5 of 16
SHAPES = {4: (3, 12), 16: (5, 80)}


def row(key, **cells) -> Compared:
    """`b4=(total ns, share)`, and the same of batch 16: a call is neither a step nor an image."""
    sizes = {int(name[1:]): values for name, values in cells.items()}
    by_size = {
        size: op_at_size(
            calls=2 * SHAPES[size][0],
            total_ns=total,
            mean_ns=total / (2 * SHAPES[size][0]),
            image_ns=total / SHAPES[size][1],
            share=share,
            requested_bytes=77,
            gflops=None,
        )
        for size, (total, share) in sizes.items()
    }
    return Compared(key, (f"Op{key}",), (), by_size, None)


def measured(size, untraced, traced) -> StepTimes:
    steps, images = SHAPES[size]
    return StepTimes(
        steps=steps,
        images=images,
        untraced_ns=untraced,
        traced_ns=traced,
        mean_images_per_second=size / untraced.median * 1e9,
        ops_ns=123_000.0,
        untraced_steps=7,
        peak_bytes=99,
        curve=None,
    )


COMPARISON = Comparison(
    model="lenet",
    phase="training",
    by="layer",
    data="MNIST",
    warmup=2,
    batch_sizes=(4, 16),
    rows=(
        row("pool", b4=(150_000, 0.12), b16=(600_000, 0.11)),
        row("conv", b4=(900_000, 0.30), b16=(4_000_000, 0.40)),
        row("never", b4=(0, 0.0), b16=(0, 0.0)),
        row("tanh", b4=(75_000, 0.05), b16=(300_000, 0.06)),
        row("late", b16=(2_000_000, 0.35)),
        row("dense", b4=(600_000, 0.20), b16=(1_200_000, 0.14)),
        row("seventh", b4=(60_000, 0.04), b16=(250_000, 0.03)),
        row("loss", b4=(300_000, 0.10), b16=(800_000, 0.09)),
    ),
    steps={
        4: measured(4, Spread(600_000, 500_000, 900_000), Spread(720_000, 650_000, 990_000)),
        16: measured(
            16, Spread(1_600_000, 1_500_000, 2_500_000), Spread(1_900_000, 1_700_000, 3_000_000)
        ),
    },
    configs=(),
    findings=(),
    cold=(),
    cold_step_ns=0,
    uncovered={},
)
NAMES = ["whole step", "conv", "late", "dense", "pool", "loss", "tanh"]


@pytest.fixture(scope="module")
def figure():
    return batch_sizes.draw(COMPARISON)


def test_the_upper_panel_shows_the_untraced_step_and_self_times_of_a_traced_one(figure):
    above, _ = figure.axes
    assert [points(line) for line in above.lines] == [
        [(4, 600_000), (16, 1_600_000)],
        [(4, 300_000), (16, 800_000)],
        [(16, 400_000)],
        [(4, 200_000), (16, 240_000)],
        [(4, 50_000), (16, 120_000)],
        [(4, 100_000), (16, 160_000)],
        [(4, 25_000), (16, 60_000)],
    ]
    assert (above.get_ylabel(), above.get_xlabel()) == ("time per step", "")


def test_the_lower_panel_shows_the_same_for_an_image(figure):
    _, below = figure.axes
    assert [points(line) for line in below.lines] == [
        [(4, 150_000), (16, 100_000)],
        [(4, 75_000), (16, 50_000)],
        [(16, 25_000)],
        [(4, 50_000), (16, 15_000)],
        [(4, 12_500), (16, 7_500)],
        [(4, 25_000), (16, 10_000)],
        [(4, 6_250), (16, 3_750)],
    ]
    assert (below.get_ylabel(), below.get_xlabel()) == ("time per image", "batch size")


def test_of_data_that_are_no_images_the_lower_panel_is_of_a_row():
    drawn = batch_sizes.draw(replace(COMPARISON, unit="row"))
    assert [axes.get_ylabel() for axes in drawn.axes] == ["time per step", "time per row"]
    assert points(drawn.axes[1].lines[0]) == [(4, 150_000), (16, 100_000)]
    assert title(drawn) == "From batch 4 to 16, a step takes 2.7 x as long, one row 0.67 x"


def test_both_axes_are_logarithmic_and_have_the_batch_sizes_and_round_times(figure):
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert ticks(axes.xaxis) == [(4, "4"), (16, "16")]
    above, below = (ticks(axes.yaxis) for axes in figure.axes)
    assert above == [
        (pytest.approx(50_000), "50 us"),
        (pytest.approx(100_000), "100 us"),
        (pytest.approx(200_000), "200 us"),
        (pytest.approx(500_000), "500 us"),
        (pytest.approx(1_000_000), "1 ms"),
    ]
    assert below == [
        (pytest.approx(5_000), "5 us"),
        (pytest.approx(10_000), "10 us"),
        (pytest.approx(20_000), "20 us"),
        (pytest.approx(50_000), "50 us"),
        (pytest.approx(100_000), "100 us"),
    ]


def test_each_line_has_a_marker_and_its_name_in_the_legend(figure):
    markers = ["X", "o", "s", "^", "D", "v", "P"]
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == NAMES
        assert [line.get_marker() for line in axes.lines] == markers
    assert [text.get_text() for text in figure.axes[1].get_legend().get_texts()] == NAMES
    assert to_hex(figure.axes[0].lines[0].get_color()) == style.BLACK


def test_the_title_compares_the_untraced_steps(figure):
    assert title(figure) == "From batch 4 to 16, a step takes 2.7 x as long, one image 0.67 x"


def test_the_caption_says_what_was_measured_and_how_many_rows_are_left_out(figure):
    assert caption(figure) == (
        "lenet, training, MNIST. Whole step: untraced, median. Others: self time of the 6 rows by "
        "layer with the largest share. A level line in the lower panel means that a larger batch "
        "saves nothing."
    )


def test_a_single_batch_size_is_named_in_the_title():
    single = replace(
        COMPARISON,
        batch_sizes=(16,),
        rows=(row("late", b16=(2_000_000, 0.35)),),
        steps={16: COMPARISON.steps[16]},
        interrupted=True,
    )
    drawn = batch_sizes.draw(single)
    above, below = drawn.axes
    assert [points(line) for line in above.lines] == [[(16, 1_600_000)], [(16, 400_000)]]
    assert [points(line) for line in below.lines] == [[(16, 100_000)], [(16, 25_000)]]
    assert title(drawn) == "lenet at batch 16, the only one measured"
    assert caption(drawn) == (
        "lenet, training, MNIST. Whole step: untraced, median. Others: self time of the 1 row by "
        "layer with the largest share. A level line in the lower panel means that a larger batch "
        "saves nothing. The measurement did not finish."
    )
