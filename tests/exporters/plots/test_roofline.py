"""The plot of the roofline: every point, the roof, ticks and words, worked out by hand."""

from dataclasses import replace

import pytest

from tests.pictures import caption, points, ticks, title, words
from tests.records_by_hand import op_stats
from tflab.exporters.plots import roofline
from tflab.records.measured import Level, OpStats, Peaks

PEAKS = Peaks(gflops=80.0, gigabytes_per_s=20.0)  # they meet at 4 FLOPs a byte


def row(key, us, share, gflops, intensity) -> OpStats:
    rates = {"gflops": gflops, "intensity": intensity, "roof_share": 0.011}
    return op_stats(key, self_ns=us * 1_000, share=share, **rates)


ROWS = (
    row("pool", 90, 0.09, 3.0, 0.25),
    row("conv", 640, 0.64, 48.0, 16.0),
    row("shapes", 20, 0.02, None, None),
    row("dense", 250, 0.25, 10.0, 1.0),
    row("zeros", 10, 0.01, 0.0, 0.5),
)


@pytest.fixture(scope="module")
def figure():
    return roofline.draw(ROWS, PEAKS)


def test_points_lie_at_intensity_and_speed_and_their_areas_are_shares(figure):
    (dots,) = figure.axes[0].collections
    assert dots.get_offsets().tolist() == [[16, 48], [1, 10], [0.25, 3]]
    assert dots.get_sizes() == pytest.approx([22**2 * 0.64, 22**2 * 0.25, 22**2 * 0.09])


def test_a_point_is_never_too_small_to_be_seen():
    (dots,) = roofline.draw([row("tiny", 1, 0.0001, 3.0, 0.25)], PEAKS).axes[0].collections
    assert dots.get_sizes() == pytest.approx([25])


def test_the_roof_rises_with_memory_until_the_processor_sets_the_limit(figure):
    (axes,) = figure.axes
    (line,) = axes.lines
    low, ridge, high = points(line)
    assert low == pytest.approx((0.25 / 3, 20 * 0.25 / 3))
    assert ridge == (4, 80)
    assert high == (64, 80)


def test_both_axes_are_logarithmic_with_room_around_points_and_roof(figure):
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlim() == pytest.approx((0.25 / 3, 16 * 4))
    assert axes.get_ylim() == pytest.approx((3 / 3, 80 * 2))
    assert ticks(axes.xaxis) == [(0.1, "0.1"), (1, "1"), (10, "10")]
    assert ticks(axes.yaxis) == [(1, "1"), (10, "10"), (100, "100")]
    assert axes.get_xlabel() == "intensity: FLOPs per byte of inputs and outputs"
    assert axes.get_ylabel() == "GFLOP/s"


def test_each_name_belongs_to_its_point_and_both_parts_of_the_roof_to_their_peak(figure):
    (axes,) = figure.axes
    assert words(axes) == [
        "memory delivers 20 GB/s",
        "the processor does 80 GFLOP/s",
        "conv",
        "dense",
        "pool",
    ]
    slope, level, *names = axes.texts
    assert slope.xy[0] < 4 < level.xy[0]
    assert slope.xy[1] == pytest.approx(20 * slope.xy[0])
    assert level.xy[1] == 80
    assert [name.xy for name in names] == [(16, 48), (1, 10), (0.25, 3)]


def test_the_title_holds_the_most_expensive_row_against_its_roof(figure):
    assert title(figure) == "conv computes at 1.1 % of the roof measured here at its intensity"


def test_a_row_without_a_roof_of_its_own_is_held_against_that_of_memory():
    on_the_level, on_the_slope = (replace(ROWS[at], roof_share=None) for at in (1, 3))
    assert title(roofline.draw([on_the_level], PEAKS)) == (
        "conv computes at 60.0 % of the roof measured here at its intensity"
    )
    assert title(roofline.draw([on_the_slope], PEAKS)) == (
        "dense computes at 50.0 % of the roof measured here at its intensity"
    )


def test_a_row_above_the_roof_is_said_to_be_there_and_not_how_far():
    drawn = roofline.draw([replace(ROWS[1], roof_share=7.83)], PEAKS)
    assert title(drawn) == "conv computes above the roof measured here"


# Caches


LEVELS = (  # the rates that count are 200, 200, 100, 70 and 21 GB/s
    Level(16 * 2**10, 60.0, 190.0),
    Level(64 * 2**10, 200.0, 150.0),
    Level(2**20, 100.0, 70.0),
    Level(4 * 2**20, 50.0, 70.0),
    Level(128 * 2**20, 10.0, 21.0),
)
CACHED = replace(PEAKS, levels=LEVELS)


def test_each_level_is_a_thin_line_with_its_size_and_rate_up_to_where_it_meets_the_peak():
    (axes,) = roofline.draw(ROWS, CACHED).axes
    roof, *levels = axes.lines
    assert [points(line)[1:] for line in levels] == [
        [(pytest.approx(80 / 70), 80), (4, 80)],
        [(0.4, 80), (4, 80)],
    ]
    left = 0.25 / 3
    assert [points(line)[0] for line in levels] == [
        (pytest.approx(left), pytest.approx(70 * left)),
        (pytest.approx(left), pytest.approx(200 * left)),
    ]
    assert all(line.get_linewidth() < roof.get_linewidth() for line in levels)
    assert words(axes)[:4] == [
        "memory delivers 20 GB/s",
        "the processor does 80 GFLOP/s",
        "up to 4 MiB: 70 GB/s",
        "up to 64 KiB: 200 GB/s",
    ]
    for text, rate in ((axes.texts[2], 70), (axes.texts[3], 200)):
        assert text.xy[1] == pytest.approx(rate * text.xy[0])


def test_levels_without_room_for_words_between_them_are_not_drawn():
    """A very slow row makes 70 GB/s lie close to the 20 of memory, and 200 close to 100."""
    (axes,) = roofline.draw([ROWS[1], row("slow", 1, 0.1, 1e-7, 0.1)], CACHED).axes
    assert [word for word in words(axes) if word.startswith("up to")] == ["up to 1 MiB: 100 GB/s"]
    assert len(axes.lines) == 2


def test_no_words_of_a_slope_lie_on_another():
    drawn = roofline.draw(ROWS, CACHED)
    (axes,) = drawn.axes
    pixels = drawn.dpi / 72
    for text in axes.texts[:4]:
        x, y = axes.transData.transform(text.xy)
        for line in axes.lines:
            (left, low), (ridge, high) = points(line)[:2]
            ends = axes.transData.transform([(left, low), (ridge, high)])
            slope = (ends[1][1] - ends[0][1]) / (ends[1][0] - ends[0][0])
            above = (ends[0][1] + slope * (x - ends[0][0]) - y) / (1 + slope**2) ** 0.5 / pixels
            assert abs(above) < 0.1 or not -4 < above < 5 + 8, (text.get_text(), above)


def test_the_caption_says_what_the_thin_lines_are():
    thin = (
        " Thin lines: the bandwidth of caches, for ops whose inputs and outputs have that size or "
        "less."
    )
    assert thin in caption(roofline.draw(ROWS, CACHED))


def test_the_picture_reaches_to_where_the_fastest_cache_meets_the_peak():
    fast = replace(PEAKS, levels=(Level(2**14, 8000.0, 0.1),))
    (axes,) = roofline.draw([ROWS[1]], fast).axes
    assert axes.get_xlim()[0] < 80 / 8000


def test_the_caption_counts_the_rows_that_have_no_place(figure):
    how = (
        "The larger a point, the larger its share of the time. The roof is a model: below the "
        "slope, memory is the limit; below the level part, the processor."
    )
    left_out = " 2 rows without known FLOPs or bytes are omitted."
    assert caption(figure) == how + left_out
    assert caption(roofline.draw([ROWS[1]], PEAKS)) == how


def test_only_the_twelve_most_expensive_have_names():
    rows = [row(f"op{n}", 100 - n, 0.01, 2.0**n / 100, 2.0**n / 50) for n in range(13)]
    (axes,) = roofline.draw(rows, PEAKS).axes
    assert len(axes.collections[0].get_offsets()) == 13
    assert [word for word in words(axes) if word.startswith("op")] == [f"op{n}" for n in range(12)]


def test_without_a_point_the_rows_are_counted():
    drawn = roofline.draw([ROWS[2], ROWS[4]], PEAKS)
    assert (drawn.axes, title(drawn)) == ([], "No op can be drawn below the roof")
    assert caption(drawn) == "Of 2 rows none has known FLOPs and bytes."
