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


# Columns


def headers(columns, lengths, available):
    kept = fitting.kept_columns(columns, lengths, available)
    return [columns[place].header for place in kept]


@pytest.mark.parametrize(
    "available, kept",
    [
        (20 + 2 + 20 + 2 + 16, ["node", "output", "code"]),  # code can be cut to 16
        (20 + 2 + 20 + 2 + 15, ["node", "output"]),
        (20 + 2 + 19, ["node"]),
        (10, ["node"]),  # a column that is not spare stays, and is cut
    ],
)
def test_the_most_spare_column_is_left_out_first_before_a_name_is_cut(available, kept):
    assert headers((NAME, SPARE, MORE_SPARE), (20, 20, 50), available) == kept


def test_of_columns_alike_the_last_is_left_out_first():
    columns = [Column(header, str, spare=1) for header in ("a", "b", "c")]
    assert headers(columns, (10, 10, 10), 22) == ["a", "b"]


def test_a_very_long_name_is_cut_before_columns_are_left_out():
    assert headers((NAME, SPARE), (150, 20), 24 + 2 + 20) == ["node", "output"]
    assert headers((NAME, SPARE), (150, 20), 24 + 2 + 19) == ["node"]


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
    columns = (
        Column("node", lambda row: row[0], elastic=True, name=True),
        Column("time", lambda row: row[1], right=True),
        Column("code", lambda row: row[2], elastic=True, spare=1),
    )
    rows = (
        ("gradients/conv1/Conv2D_grad/Filter", "1.00 us", "x = a"),
        ("gradients/conv2/Conv2D_grad/Filter", "2.00 us", "y = b"),
    )
    fitted = fitting.fit(Table("t", columns, rows), rows, 25)
    assert fitted == fitting.Fitted(
        columns=columns[:2],
        widths=(16, 7),
        rows=(("…conv1/…/Filter", "1.00 us"), ("…conv2/…/Filter", "2.00 us")),
        left_out=("code",),
    )


# Names


GRADIENT = "gradients/conv1/Conv2D_grad/Conv2DBackpropFilter"


@pytest.mark.parametrize(
    "width, short",
    [
        (48, GRADIENT),
        (47, "…/conv1/Conv2D_grad/Conv2DBackpropFilter"),
        (39, "…/Conv2D_grad/Conv2DBackpropFilter"),
        (22, "…/Conv2DBackpropFilter"),
        (21, "…Conv2DBackpropFilter"),
        (15, "…BackpropFilter"),
    ],
)
def test_a_name_in_scopes_loses_the_first_of_them(width, short):
    assert fitting.short_name(GRADIENT, width) == short


def test_any_other_name_loses_its_middle_and_prose_its_end():
    assert fitting.short_name("_MklNativeConv2DBackpropFilter", 15) == "_MklNat…pFilter"
    assert fitting.cut("Conv2D, BiasAdd, Relu", 15, at_end=True) == "Conv2D, BiasAd…"


@pytest.mark.parametrize(
    "names, width, short",
    [
        (("a/c1/k/Filter", "a/c2/k/Filter"), 12, ["…c1/…/Filter", "…c2/…/Filter"]),
        (("a/c1/k/Filter", "a/c2/k/Filter"), 9, ["…c1/…lter", "…c2/…lter"]),
        (("scope/c1/Filter", "scope/c2/Filter"), 10, ["…c1/Filter", "…c2/Filter"]),
        (("a/c1/k/Filter", "b/c1/k/Filter"), 12, ["…a/…/Filter", "…b/…/Filter"]),
    ],
)
def test_names_that_would_look_alike_show_where_they_differ(names, width, short):
    assert list(fitting.short_names(names, width).values()) == short


def test_where_that_does_not_help_they_are_numbered():
    names = ["a" * 9 + "bb" + "c" * 9, "a" * 9 + "dd" + "c" * 9]
    assert list(fitting.short_names(names, 9).values()) == ["aaaaaa…#1", "aaaaaa…#2"]


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


def test_wide_letters_count_twice():
    assert fitting.cut("日本語日本語", 7, at_end=True) == "日本語…"
    assert fitting.cut("日本語日本語", 5, at_end=False) == "日…語"


def test_where_nothing_is_spare_the_last_numbers_are_left_out_and_the_first_stay_whole():
    number = Column("n", str, right=True)
    assert fitting.kept_columns((NAME, number, number), (40, 8, 8), 16 + 2 * 10) == [0, 1, 2]
    assert fitting.kept_columns((NAME, number, number), (40, 8, 8), 16 + 2 * 10 - 1) == [0, 1]
    assert fitting.kept_columns((number, FIXED, number), (8, 8, 8), 4) == [0, 1]


def test_a_long_header_is_wrapped_before_its_numbers_are_left_out():
    number = Column("first start to last end", lambda row: row[1], right=True)
    rows = [("1", "2.00 us")]
    table = Table("t", (Column("step", lambda row: row[0], right=True), number), tuple(rows))
    whole = fitting.fit(table, rows, 13)
    assert (whole.rows, whole.widths, whole.left_out) == ((("1", "2.00 us"),), (4, 7), ())
    assert fitting.fit(table, rows, 12).left_out == ("first start to last end",)


def test_no_word_of_a_header_is_cut():
    columns = tuple(
        Column(header, lambda row: row, right=True) for header in ("GFLOP/s", "of step")
    )
    table = Table("t", columns, ("1",))
    for width, widths in ((16, (7, 7)), (13, (7, 4)), (12, (7,))):
        assert fitting.fit(table, [("1", "1")], width).widths == widths


def test_columns_are_spared_for_the_characters_that_another_wants():
    code = Column("code", str, elastic=True, wanted=32)
    assert headers((code, SPARE), (40, 20), 32 + 2 + 20) == ["code", SPARE.header]
    assert headers((code, SPARE), (40, 20), 32 + 2 + 19) == ["code"]
    assert headers((code, SPARE), (10, 20), 10 + 2 + 20) == ["code", SPARE.header]


def test_sentences_are_wrapped_and_names_without_spaces_cut():
    found = Column("found", str)
    assert fitting.cut_all(["it is at /usr/bin/chromium"], 9, found, wraps=True) == [
        "it is at /usr/bin/chromium"
    ]
    assert fitting.cut_all(["_MklNativeFusedConv2D"], 9, found, wraps=True) == ["_Mkl…nv2D"]


# Drawings, and names in a small room

RAILS = (Column("", lambda row: row[0]), NAME, Column("computes", str, elastic=True))


def test_rails_are_whole_or_left_out_and_never_cut():
    rails = "│ ├─●  "
    row = (rails, "gradients/mul_grad/Mul", "x * dL/d(mul)")
    table = Table("t", RAILS, (row,), drawing=True)
    room = len(rails) + fitting.GAP + fitting.BESIDE
    whole = fitting.fit(table, [row], room)
    assert (whole.rows[0][0], whole.widths[0], whole.left_out) == (rails, len(rails), ())
    narrow = fitting.fit(table, [row], room - 1)
    assert (narrow.rows, narrow.left_out) == ((row[1:],), ("lines of the drawing",))


def test_names_that_end_alike_differ_in_a_scope_where_there_is_room_for_one():
    names = [f"{scope}/ReadVariableOp" for scope in ("mul", "add", "y/Read", "z/Read")]
    assert fitting.short_names(names, 15) == {
        "mul/ReadVariableOp": "…mul/…ariableOp",
        "add/ReadVariableOp": "…add/…ariableOp",
        "y/Read/ReadVariableOp": "…y/…dVariableOp",
        "z/Read/ReadVariableOp": "…z/…dVariableOp",
    }


def test_a_name_that_is_numbered_keeps_its_end():
    names = [f"{'a' * 9}{letter}{'b' * 9}/Relu" for letter in "xy"]
    assert [*fitting.short_names(names, 9).values()] == ["…b/Relu#1", "…b/Relu#2"]


def test_words_that_can_be_wrapped_are_left_whole_and_others_are_cut():
    row = ("on the device of its resource", "Resource" * 5)
    fitted = fitting.fit(Table("t", (FIXED, FIXED), (row,)), [row], 30)
    assert fitted.rows[0][0] == row[0]
    assert "…" in fitted.rows[0][1]
    drawn = fitting.fit(Table("t", (FIXED, FIXED), (row,), drawing=True), [row], 30)
    assert "…" in drawn.rows[0][0]
