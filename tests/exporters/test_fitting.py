"""Fitting: what is left out first, what is cut, and that names which differ still do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.exporters import fitting
from tflab.records.blocks import Column, Table

NAMES = st.text("abc_/.-0123456789", min_size=1, max_size=150)
ELASTIC, FIXED = Column("", str, elastic=True), Column("", str)
NAME = Column("node", str, elastic=True, name=True)
SPARE, MORE_SPARE = Column("output", str, spare=1), Column("code", str, elastic=True, spare=2)
NUMBER, WANTING = Column("n", str, right=True), Column("code", str, elastic=True, wanted=32)


def fitted(columns, rows, available, **table) -> fitting.Fitted:
    """A table whose cells are those of its rows."""
    return fitting.fit(Table("t", tuple(columns), tuple(rows), **table), rows, available)


# Columns


@pytest.mark.parametrize(
    "columns, lengths, available, kept",
    [
        # The most spare one is left out first, before a name is cut
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 20 + 2 + 20 + 2 + 16, [0, 1, 2]),
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 20 + 2 + 20 + 2 + 15, [0, 1]),
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 20 + 2 + 19, [0]),
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 10, [0]),  # one that is not spare stays
        ((SPARE, SPARE, SPARE), (10, 10, 10), 22, [0, 1]),  # of columns alike the last
        # A very long name is cut before columns are left out
        ((NAME, SPARE), (150, 20), 24 + 2 + 20, [0, 1]),
        ((NAME, SPARE), (150, 20), 24 + 2 + 19, [0]),
        # Columns are left out for the characters that another wants
        ((WANTING, SPARE), (40, 20), 32 + 2 + 20, [0, 1]),
        ((WANTING, SPARE), (40, 20), 32 + 2 + 19, [0]),
        ((WANTING, SPARE), (10, 20), 10 + 2 + 20, [0, 1]),
        # Where nothing is spare the last numbers are left out and the first stay whole
        ((NAME, NUMBER, NUMBER), (40, 8, 8), 16 + 2 * 10, [0, 1, 2]),
        ((NAME, NUMBER, NUMBER), (40, 8, 8), 16 + 2 * 10 - 1, [0, 1]),
        ((NUMBER, FIXED, NUMBER), (8, 8, 8), 4, [0, 1]),
    ],
)
def test_the_columns_that_stay(columns, lengths, available, kept):
    assert fitting.kept_columns(columns, lengths, available) == kept


@pytest.mark.parametrize(
    "columns, lengths, available, widths",
    [
        ((ELASTIC, ELASTIC), (20, 30), 60, [20, 30]),  # there is room for all
        ((ELASTIC, ELASTIC), (40, 60), 62, [40, 20]),  # the widest elastic one gives way first,
        ((ELASTIC, ELASTIC), (40, 60), 52, [34, 16]),  # down to its least, then the other,
        ((NAME, ELASTIC), (60, 40), 80, [60, 18]),  # names after all others,
        ((NAME, ELASTIC), (60, 40), 70, [52, 16]),
        ((ELASTIC, FIXED), (10, 60), 62, [10, 50]),  # and then whichever is the widest
        ((FIXED,), (10,), 7, [7]),
        ((FIXED, FIXED, FIXED), (5, 5, 5), 8, [1, 1, 2]),
        ((FIXED, FIXED, FIXED), (5, 5, 5), 5, [1, 1, 1]),  # nothing is left out altogether
    ],
)
def test_the_columns_that_give_way(columns, lengths, available, widths):
    assert fitting.fit_widths(columns, lengths, available) == widths


@settings(max_examples=30)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=8), st.integers(30, 100))
def test_columns_are_fitted_to_the_line(lengths, available):
    columns = [Column("", str, elastic=n % 2 == 0) for n in range(len(lengths))]
    widths = fitting.fit_widths(columns, lengths, available)
    room = available - fitting.GAP * (len(lengths) - 1)
    assert all(width <= length for width, length in zip(widths, lengths, strict=True))
    assert sum(widths) == min(sum(lengths), room)


def test_a_table_with_what_was_left_out():
    columns = (NAME, Column("time", str, right=True), Column("code", str, elastic=True, spare=1))
    rows = (
        ("gradients/conv1/Conv2D_grad/Filter", "1.00 us", "x = a"),
        ("gradients/conv2/Conv2D_grad/Filter", "2.00 us", "y = b"),
    )
    assert fitted(columns, rows, 25) == fitting.Fitted(
        columns=columns[:2],
        widths=(16, 7),
        rows=(("…conv1/…/Filter", "1.00 us"), ("…conv2/…/Filter", "2.00 us")),
        left_out=("code",),
    )


def test_a_long_header_is_wrapped_before_its_numbers_are_left_out_and_no_word_of_it_is_cut():
    span = Column("first start to last end", str, right=True)
    rows = [("1", "2.00 us")]
    columns = (Column("step", str, right=True), span)
    whole = fitted(columns, rows, 13)
    assert (whole.rows, whole.widths, whole.left_out) == ((("1", "2.00 us"),), (4, 7), ())
    assert fitted(columns, rows, 12).left_out == ("first start to last end",)
    columns = [Column(header, str, right=True) for header in ("GFLOP/s", "of step")]
    for width, widths in ((16, (7, 7)), (13, (7, 4)), (12, (7,))):
        assert fitted(columns, [("1", "1")], width).widths == widths


def test_rails_are_whole_or_left_out_and_never_cut():
    rails = "│ ├─●  "
    row = (rails, "gradients/mul_grad/Mul", "x * dL/d(mul)")
    columns = (FIXED, NAME, Column("computes", str, elastic=True))
    room = len(rails) + fitting.GAP + fitting.BESIDE
    whole = fitted(columns, [row], room, drawing=True)
    assert (whole.rows[0][0], whole.widths[0], whole.left_out) == (rails, len(rails), ())
    narrow = fitted(columns, [row], room - 1, drawing=True)
    assert (narrow.rows, narrow.left_out) == ((row[1:],), ("lines of the drawing",))


def test_words_that_can_be_wrapped_are_left_whole_and_others_are_cut():
    row = ("on the device of its resource", "Resource" * 5)
    first, second = fitted((FIXED, FIXED), [row], 30).rows[0]
    assert (first, "…" in second) == (row[0], True)
    assert "…" in fitted((Column("device", str), FIXED), [row], 30, drawing=True).rows[0][0]
    assert fitting.cut_all(["it is at /usr/bin/chromium"], 9, FIXED, wraps=True) == [
        "it is at /usr/bin/chromium"
    ]
    assert fitting.cut_all(["_MklNativeFusedConv2D"], 9, FIXED, wraps=True) == ["_Mkl…nv2D"]


# Names


GRADIENT = "gradients/conv1/Conv2D_grad/Conv2DBackpropFilter"


@pytest.mark.parametrize(
    "name, width, short",
    [
        (GRADIENT, 48, GRADIENT),  # one in scopes loses the first of them
        (GRADIENT, 47, "…/conv1/Conv2D_grad/Conv2DBackpropFilter"),
        (GRADIENT, 39, "…/Conv2D_grad/Conv2DBackpropFilter"),
        (GRADIENT, 22, "…/Conv2DBackpropFilter"),
        (GRADIENT, 21, "…Conv2DBackpropFilter"),
        (GRADIENT, 15, "…BackpropFilter"),
        ("_MklNativeConv2DBackpropFilter", 15, "_MklNat…pFilter"),  # any other its middle
        ("日本語日本語", 5, "日…語"),  # wide letters count twice
    ],
)
def test_a_name_within_a_width(name, width, short):
    assert fitting.short_name(name, width) == short


def test_prose_loses_its_end():
    assert fitting.cut("Conv2D, BiasAdd, Relu", 15, at_end=True) == "Conv2D, BiasAd…"
    assert fitting.cut("日本語日本語", 7, at_end=True) == "日本語…"


READ = [f"{scope}/ReadVariableOp" for scope in ("mul", "add", "y/Read", "z/Read")]


@pytest.mark.parametrize(
    "names, width, short",
    [
        # They show where they differ,
        (("a/c1/k/Filter", "a/c2/k/Filter"), 12, ["…c1/…/Filter", "…c2/…/Filter"]),
        (("a/c1/k/Filter", "a/c2/k/Filter"), 9, ["…c1/…lter", "…c2/…lter"]),
        (("scope/c1/Filter", "scope/c2/Filter"), 10, ["…c1/Filter", "…c2/Filter"]),
        (("a/c1/k/Filter", "b/c1/k/Filter"), 12, ["…a/…/Filter", "…b/…/Filter"]),
        (READ, 15, [f"…{mark}ariableOp" for mark in ("mul/…", "add/…", "y/…dV", "z/…dV")]),
        # and are numbered where that does not help
        (("a" * 9 + "bb" + "c" * 9, "a" * 9 + "dd" + "c" * 9), 9, ["aaaaaa…#1", "aaaaaa…#2"]),
        ([f"{'a' * 9}{one}{'b' * 9}/Relu" for one in "xy"], 9, ["…b/Relu#1", "…b/Relu#2"]),
    ],
)
def test_names_that_would_look_alike(names, width, short):
    assert list(fitting.short_names(names, width).values()) == short


@settings(max_examples=50)
@given(st.lists(NAMES, unique=True, max_size=6), st.integers(8, 60))
def test_no_two_names_are_cut_alike_and_all_stay_within_their_width(names, width):
    short = fitting.short_names(names, width)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert all(len(name) <= width for name in short.values())


@settings(max_examples=30)
@given(NAMES, st.integers(1, 160), st.booleans())
def test_cut_text_fills_its_width_and_short_text_stays(name, width, at_end):
    cut = fitting.cut(name, width, at_end)
    assert cut == name if len(name) <= width else len(cut) == width
