"""The plot of the memory alive: its curve, its peak and every word, worked out by hand."""

from dataclasses import replace

import pytest

from tests.pictures import caption, points, ticks, title, words
from tflab.exporters.plots import memory
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


def test_the_curve_holds_each_number_of_bytes_until_the_next_and_its_peak_is_a_point():
    (axes,) = memory.draw(CURVE).axes
    line, peak = axes.lines
    assert line.get_drawstyle() == "steps-post"
    assert points(line) == [
        (0, 0),
        (0, KB),
        (3_000, 5 * KB),
        (9_000, 12 * KB),
        (14_000, 7 * KB),
        (20_000, 512),
    ]
    assert points(peak) == [(9_000, 12 * KB)]
    assert words(axes) == ["12.0 KiB after 9.00 us"]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 20_000), (0, pytest.approx(1.2 * 12 * KB)))
    assert ticks(axes.yaxis) == [(0, "0 KiB"), (5 * KB, "5 KiB"), (10 * KB, "10 KiB")]


def test_the_label_of_a_late_peak_is_on_its_left():
    sides = [memory.draw(replace(CURVE, peak_ns=ns)).axes[0].texts[0] for ns in (10_000, 10_001)]
    assert [label.get_ha() for label in sides] == ["left", "right"]


def test_title_and_caption_say_the_peak_and_its_three_largest_holders():
    figure = memory.draw(CURVE)
    assert title(figure) == "At most 12.0 KiB are alive at once, requested by 4 ops"
    assert caption(figure) == (
        "Step 6: bytes that its ops had requested and not yet released. Variables and feeds are "
        "not included. The largest at the peak: conv1/Relu (6.00 KiB), pool1 (3.00 KiB), dense "
        "(2.00 KiB)."
    )
    nothing = memory.draw(LiveBytes(8, (), 0, 0, ()))
    assert (nothing.axes, caption(nothing)) == ([], "Step 8 has no allocations.")
