"""The plot of the ops that cost most: every bar and word, worked out by hand."""

from dataclasses import replace

import pytest

from tests.pictures import bars, caption, title, words
from tests.records_by_hand import op_stats, op_total
from tflab.exporters.plots import style, top_ops
from tflab.records.measured import OpStats

# Self times in us, of 1000 us in all; they do not come in their order.
SPENT = {
    "a": 30, "b": 250, "c": 45, "d": 180, "e": 20, "f": 140, "g": 60,
    "h": 110, "i": 15, "j": 75, "k": 50, "l": 25,
}  # fmt: skip


def total(name, us, calls=7) -> OpStats:
    """An op that held others up: its total is more than its self time."""
    return op_total(
        name=f"net/{name}",
        op=f"Op{name.upper()}",
        calls=calls,
        total_ns=us * 1500,
        self_ns=us * 1000,
        mean_ns=us * 1500 / calls,
        share=us / 1000,
    )


OPS = tuple(total(name, us) for name, us in SPENT.items())


@pytest.fixture(scope="module")
def figure():
    return top_ops.draw(OPS)


def test_ten_bars_are_as_long_as_shares_and_the_last_is_the_rest(figure):
    (axes,) = figure.axes
    shares = [0.25, 0.18, 0.14, 0.11, 0.075, 0.06, 0.05, 0.045, 0.03, 0.025]
    assert bars(axes) == [
        *(
            (pytest.approx(place), 0, pytest.approx(share), style.BLUE, None)
            for place, share in enumerate(shares)
        ),
        (pytest.approx(10), 0, pytest.approx(0.035), style.PALE, "////"),
    ]
    assert axes.get_xlim() == (0, pytest.approx(1.3 * 0.25))


def test_beside_a_bar_stand_its_share_and_self_time_and_above_it_name_and_type(figure):
    assert words(figure.axes[0]) == [
        *("25.0 %, 250 us", "net/b", "OpB"),
        *("18.0 %, 180 us", "net/d", "OpD"),
        *("14.0 %, 140 us", "net/f", "OpF"),
        *("11.0 %, 110 us", "net/h", "OpH"),
        *("7.5 %, 75.0 us", "net/j", "OpJ"),
        *("6.0 %, 60.0 us", "net/g", "OpG"),
        *("5.0 %, 50.0 us", "net/k", "OpK"),
        *("4.5 %, 45.0 us", "net/c", "OpC"),
        *("3.0 %, 30.0 us", "net/a", "OpA"),
        *("2.5 %, 25.0 us", "net/l", "OpL"),
        *("3.5 %, 35.0 us", "all others", "2 rows"),
    ]


def test_words_stand_at_their_own_bar(figure):
    (axes,) = figure.axes
    beside, above = axes.texts[::3], axes.texts[1::3]
    assert [text.xy for text in beside] == [
        (bar.get_width(), place) for place, bar in enumerate(axes.patches)
    ]
    assert [text.xy for text in above] == [(0, pytest.approx(n - 0.2)) for n in range(11)]


def test_the_title_adds_up_the_ten_and_the_caption_says_how_often_each_ran(figure):
    assert title(figure) == "The 10 most expensive of 12 take 96.5 % of the time of all ops"
    assert caption(figure) == (
        "Self time in 7 calls each, and its share of the self time of all ops. Ops may run in "
        "parallel, so the sum may exceed the wall time."
    )


def test_ten_ops_have_no_rest_and_the_most_expensive_is_the_title():
    ten = top_ops.draw([*OPS[:9], total("m", 300, calls=3)])
    assert len(ten.axes[0].patches) == 10
    assert "all others" not in words(ten.axes[0])
    assert title(ten) == "net/m takes 30.0 % of the time of all ops"
    assert caption(ten) == (
        "Self time, and its share of the self time of all ops. Ops may run in parallel, so the "
        "sum may exceed the wall time."
    )


ROW = op_stats("conv1", ops=("ReadVariableOp", "conv1", "_FusedConv2D"), self_ns=6_000, share=0.75)


def test_a_row_shows_all_types_but_its_own_name_and_the_time_of_all_steps():
    drawn = top_ops.draw([replace(ROW, key="dense", ops=("MatMul",), self_ns=2_000), ROW])
    assert words(drawn.axes[0]) == [
        *("75.0 %, 6.00 us", "conv1", "ReadVariableOp, _FusedConv2D"),
        *("75.0 %, 2.00 us", "dense", "MatMul"),
    ]
