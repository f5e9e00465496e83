"""Fitting: what is left out first, what is cut, and that names stay whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.exporters import fitting
from tflab.records.blocks import Column, Table

NAMES = st.text("abc_/.-0123456789", min_size=1, max_size=150)
ELASTIC, FIXED = Column("", str, elastic=True), Column("", str)
NAME = Column("node", str, elastic=True, name=True)
SPARE, MORE_SPARE = Column("output", str, spare=1), Column("code", str, elastic=True, spare=2)
NUMBER, WANTING = Column("n", str, right=True), Column("code", str, elastic=True, least=32)


def fitted(columns, rows, available, **table):
    """A table whose cells are those of its rows: its widths, rows and omitted columns."""
    kept, left_out = fitting.fit(Table("t", tuple(columns), tuple(rows), **table), rows, available)
    widths = tuple(one.width for one in kept)
    return widths, [*zip(*(one.cells for one in kept), strict=True)], left_out


def sized(columns, lengths) -> list[fitting.Sized]:
    """Columns with one cell of this length each, and numbers whose header is no longer."""
    pairs = zip(columns, lengths, strict=True)
    return [fitting.sized(column, ("x" * length,)) for column, length in pairs]


@pytest.mark.parametrize(
    "columns, lengths, available, kept",
    [
        # The most spare one is left out first, before a name is cut, and its equals with it
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 20 + 2 + 20 + 2 + 16, [0, 1, 2]),
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 20 + 2 + 20 + 2 + 15, [0, 1]),
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 20 + 2 + 19, [0]),
        ((NAME, SPARE, SPARE), (10, 10, 10), 33, [0]),
        ((NAME, SPARE, MORE_SPARE), (20, 20, 50), 10, [0]),  # one that is not spare stays
        # A very long name is cut before columns are left out, and so is an elastic one
        ((NAME, SPARE), (150, 20), 36 + 2 + 20, [0, 1]),
        ((NAME, SPARE), (150, 20), 36 + 2 + 19, [0]),
        ((WANTING, SPARE), (40, 20), 32 + 2 + 20, [0, 1]),
        ((WANTING, SPARE), (40, 20), 32 + 2 + 19, [0]),
        # Where nothing is spare the last numbers are left out and the first stay whole
        ((NAME, NUMBER, NUMBER), (40, 8, 8), 36 + 2 * 10, [0, 1, 2]),
        ((NAME, NUMBER, NUMBER), (40, 8, 8), 36 + 2 * 10 - 1, [0, 1]),
        ((NUMBER, FIXED, NUMBER), (8, 8, 8), 4, [0, 1]),
    ],
)
def test_the_columns_that_stay(columns, lengths, available, kept):
    every = sized(columns, lengths)
    assert [every.index(one) for one in fitting.kept_columns(every, available)] == kept


@pytest.mark.parametrize(
    "columns, lengths, available, widths",
    [
        ((ELASTIC, ELASTIC), (20, 30), 58, [20, 30]),  # there is room for all
        ((ELASTIC, ELASTIC), (40, 60), 60, [40, 20]),  # the widest elastic one gives way first,
        ((ELASTIC, ELASTIC), (40, 60), 50, [34, 16]),  # down to its least, then the other,
        ((NAME, ELASTIC), (60, 40), 68, [52, 16]),  # names after all others,
        ((ELASTIC, FIXED), (10, 60), 60, [10, 50]),  # and then whichever is the widest
        ((FIXED, FIXED, FIXED), (5, 5, 5), 1, [1, 1, 1]),  # nothing is left out altogether
    ],
)
def test_the_columns_that_give_way(columns, lengths, available, widths):
    every = sized(columns, lengths)
    fitting.fit_widths(every, available)
    assert [one.width for one in every] == widths


def test_a_table_with_what_was_left_out():
    columns = (NAME, Column("time", str, right=True), Column("code", str, elastic=True, spare=1))
    rows = (
        ("gradients/conv1/Conv2D_grad/Filter", "1.00 us", "x = a"),
        ("gradients/conv2/Conv2D_grad/Filter", "2.00 us", "y = b"),
    )
    names = [f"gradients/{name}/\n  Conv2D_grad/\n  Filter" for name in ("conv1", "conv2")]
    whole = [(name, row[1]) for name, row in zip(names, rows, strict=True)]
    assert fitted(columns, rows, 25) == ((16, 7), whole, ["code"])
    assert fitted(columns, (), 25)[1] == []


def test_a_long_header_is_wrapped_before_its_numbers_are_left_out_and_no_word_of_it_is_cut():
    columns = [Column(header, str, right=True) for header in ("GFLOP/s", "of step")]
    for width, widths in ((16, (7, 7)), (15, (7, 4)), (13, (7, 4)), (12, (7,))):
        assert fitted(columns, [("1", "1")], width)[0] == widths


def test_rails_are_whole_or_left_out_and_never_cut():
    rails = "│ ├─●  "
    row = (rails, "gradients/mul_grad/Mul", "x * dL/d(mul)")
    columns = (FIXED, NAME, Column("computes", str, elastic=True))
    room = len(rails) + fitting.GAP + fitting.BESIDE
    widths, rows, left_out = fitted(columns, [row], room, drawing=True)
    assert (rows[0][0], widths[0], left_out) == (rails, len(rails), [])
    _, rows, left_out = fitted(columns, [row], room - 1, drawing=True)
    assert (rows, left_out) == ([row[1:]], ["lines of the drawing"])


def test_words_that_can_be_wrapped_are_left_whole_with_their_units_and_others_are_cut():
    row = ("on the device in 14.1 % of 20 us", "Resource" * 5)
    first, second = fitted((FIXED, FIXED), [row], 30)[1][0]
    assert (first, "…" in second) == ("on the device\nin 14.1 % of\n20 us", True)
    assert "…" in fitted((Column("device", str), FIXED), [row], 30, drawing=True)[1][0][0]


def test_a_name_on_one_line_loses_its_middle():
    assert fitting.middle_cut("_MklNativeConv2DBackpropFilter", 15) == "_MklNat…pFilter"
    assert fitting.middle_cut("日本語日本語", 5) == "日…語"  # wide letters count twice
    assert fitting.middle_cut("conv1/Relu", 10) == "conv1/Relu"


@settings(max_examples=50)
@given(st.lists(NAMES, unique=True, min_size=1, max_size=6), st.integers(8, 60))
def test_names_in_a_table_stay_whole_within_their_width(names, width):
    _, rows, _ = fitted([NAME], [(name,) for name in names], width)
    assert [cell.replace("\n  ", "") for (cell,) in rows] == names
    assert all(len(line) <= width for (cell,) in rows for line in cell.split("\n"))


def test_a_word_longer_than_a_line_breaks_where_its_parts_meet():
    text = "folded into conv1/Conv2D_grad/ShapeN and a/short/one"
    lines = ["folded into conv1/", "  Conv2D_grad/ShapeN", "  and a/short/one"]
    assert fitting.wrapped(text, 20).split("\n") == lines


def test_a_hanging_column_may_be_empty():
    widths, *_ = fitted([FIXED, Column("", str, hanging=True)], [("a", "")], 20)
    assert widths[1] == 0


def test_prose_loses_its_end():
    assert fitting.cut("Conv2D, BiasAdd, Relu", 15) == "Conv2D, BiasAd…"
    assert fitting.cut("日本語日本語", 7) == "日本語…"
