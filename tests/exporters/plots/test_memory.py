"""The plot of the memory alive: its curve, its peak and every word, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.pictures import caption, look, points, stroke, ticks, title, words
from tflab.exporters.plots import memory, style
from tflab.records.timed import Holder, LiveBytes

KB = 1024
CURVE = LiveBytes(
    step=6,
    points=((-20, KB), (3_000, 5 * KB), (9_000, 12 * KB), (14_000, 7 * KB), (20_000, 512)),
    peak_bytes=12 * KB,
    peak_ns=9_000,
    holders=(
        Holder("conv1/Relu", "_FusedConv2D", 6 * KB, True),
        Holder("pool1", "MaxPool", 3 * KB, False),
        Holder("dense", "MatMul", 2 * KB, False),
        Holder("loss", "Sum", KB, False),
    ),
)


@pytest.fixture(scope="module")
def figure():
    return memory.draw(CURVE)


def test_the_curve_holds_each_number_of_bytes_until_the_next(figure):
    (axes,) = figure.axes
    line, _ = axes.lines
    assert line.get_drawstyle() == "steps-post"
    assert points(line) == [
        (0, 0),
        (0, KB),
        (3_000, 5 * KB),
        (9_000, 12 * KB),
        (14_000, 7 * KB),
        (20_000, 512),
    ]
    (filled,) = axes.collections
    corners = {tuple(corner) for corner in filled.get_paths()[0].vertices.tolist()}
    assert {(3_000, 5 * KB), (9_000, 5 * KB), (14_000, 12 * KB), (20_000, 7 * KB)} <= corners


def test_the_peak_is_a_point_with_its_height_and_time(figure):
    (axes,) = figure.axes
    _, peak = axes.lines
    assert points(peak) == [(9_000, 12 * KB)]
    assert to_hex(peak.get_color()).upper() == style.VERMILION
    assert words(axes) == ["12.0 KiB after 9.00 us"]
    assert (axes.texts[0].xy, axes.texts[0].get_ha()) == ((9_000, 12 * KB), "left")


def test_a_late_peak_has_its_label_on_the_left():
    late = replace(CURVE, points=CURVE.points[:4], peak_ns=9_000)
    (label,) = memory.draw(late).axes[0].texts
    assert (label.get_text(), label.get_ha()) == ("12.0 KiB after 9.00 us", "right")


def test_the_axes_are_times_and_bytes(figure):
    (axes,) = figure.axes
    assert axes.get_xlim() == (0, 20_000)
    assert axes.get_ylim() == (0, pytest.approx(1.22 * 12 * KB))
    assert ticks(axes.xaxis) == [
        (0, "0 us"),
        (5_000, "5 us"),
        (10_000, "10 us"),
        (15_000, "15 us"),
        (20_000, "20 us"),
    ]
    assert ticks(axes.yaxis) == [(0, "0 KiB"), (5 * KB, "5 KiB"), (10 * KB, "10 KiB")]
    assert axes.get_xlabel() == "time since the step's start"
    assert axes.get_ylabel() == "memory alive"


def test_the_title_is_the_peak_and_the_number_of_its_holders(figure):
    assert title(figure) == "At most 12.0 KiB are alive at once, requested by 4 ops"


def test_the_caption_names_the_three_largest_holders(figure):
    assert caption(figure) == (
        "Step 6: bytes that its ops had requested and not yet released. Variables and feeds are "
        "not included. The largest at the peak: conv1/Relu (6.00 KiB), pool1 (3.00 KiB), dense "
        "(2.00 KiB)."
    )


def test_a_step_without_allocations_says_which_one():
    drawn = memory.draw(LiveBytes(8, (), 0, 0, ()))
    assert (drawn.axes, title(drawn)) == ([], "No op requested memory")
    assert caption(drawn) == "Step 8 has no allocations."


def panel():
    axes = Figure().subplots()
    axes.set_xlim(0, 20_000)
    return axes


def test_the_peak_is_a_large_point_and_its_words_are_bold():
    axes = panel()
    memory.mark_peak(axes, CURVE)
    (peak,), (words_of_peak,) = axes.lines, axes.texts
    assert points(peak) == [(9_000, 12 * KB)]
    assert stroke(peak) == (style.VERMILION, 1.5, "None", "o", 8, style.VERMILION, False, 2)
    assert look(words_of_peak) == (
        *("12.0 KiB after 9.00 us", (9_000, 12 * KB), (4, 10)),
        *("left", "baseline", 10, "black", "bold"),
    )
    assert words_of_peak.anncoords == "offset points"


def test_the_words_of_a_peak_in_the_second_half_stand_on_its_left():
    places = []
    for ns in (10_000, 10_001):
        axes = panel()
        memory.mark_peak(axes, replace(CURVE, peak_ns=ns))
        (label,) = axes.texts
        places.append((label.get_ha(), label.get_position()))
    assert places == [("left", (4, 10)), ("right", (-4, 10))]


def test_without_holders_the_caption_ends_with_what_is_not_counted():
    assert memory.caption(replace(CURVE, holders=())) == (
        "Step 6: bytes that its ops had requested and not yet released. Variables and feeds are "
        "not included."
    )


def test_a_holder_of_a_long_name_loses_its_middle():
    long = Holder("a" * 30 + "b" * 30, "Relu", 2 * KB, True)
    assert memory.headline(replace(CURVE, holders=(long,))) == (
        "At most 12.0 KiB are alive at once, requested by 1 op"
    )
    assert memory.caption(replace(CURVE, holders=(long,))).endswith(
        "at the peak: " + "a" * 24 + "…" + "b" * 25 + " (2.00 KiB)."
    )


def test_holders_are_named_up_to_the_third():
    assert memory.caption(CURVE).endswith(
        "The largest at the peak: conv1/Relu (6.00 KiB), pool1 (3.00 KiB), dense (2.00 KiB)."
    )
