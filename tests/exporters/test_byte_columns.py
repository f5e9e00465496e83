"""JSON lines: compared with what Python's own formatting makes of the same rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflab.exporters import byte_columns
from tflab.exporters.byte_columns import Lines, TextColumn, Texts

HEADS = ("head of 8", "exactly8", "größer als acht", "sixteen bytes ...", "x" * 50)
EDGES = sorted({10**n + more for n in range(19) for more in (-1, 0, 1)} | {2**63 - 1})


def written(fields, count: int) -> str:
    """Each row between two texts, so that each row keeps to its place."""
    begin, end = byte_columns.text("<<<<<<<<"), byte_columns.text(">>>>>>>>")
    content = byte_columns.merged([Lines(count, [begin, *fields, end])], np.arange(count))
    assert content[:8] == "<<<<<<<<" and content[-8:] == ">>>>>>>>"
    return content[8:-8]


def between(rows) -> str:
    return ">>>>>>>><<<<<<<<".join(rows)


@pytest.mark.parametrize("numbers", [EDGES, [-number for number in EDGES], [5], [0, -1]])
def test_numbers_have_their_digits(numbers):
    fields = byte_columns.digits(np.array(numbers, np.int64))
    assert written(fields, len(numbers)) == between(map(str, numbers))


def test_thousands_have_three_decimals():
    numbers = [0, 1, 999, 1_000, 12_345_678_901, -1]
    fields = byte_columns.thousands(np.array(numbers))
    texts = ["0.000", "0.001", "0.999", "1.000", "12345678.901", "-1.999"]
    assert written(fields, len(numbers)) == between(texts)


@pytest.mark.parametrize("places", [[0, 1, 2, 3, 4, 1, 0], [2], []])
def test_a_row_has_one_of_the_texts(places):
    column = TextColumn(Texts(HEADS), np.array(places, np.int32))
    lines = Lines(len(places), [column, *byte_columns.digits(np.array(places, np.int64))])
    content = byte_columns.merged([lines], np.arange(len(places)))
    assert content == "".join(f"{HEADS[place]}{place}" for place in places)


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**62), 2**62)), max_size=9)


@given(ROWS, ROWS, st.randoms())
def test_lines_of_several_forms_are_in_the_order_that_is_given(first, second, random):
    expected = [f"{HEADS[place]}{number}, {number // 1000}.{number % 1000:03d}}}}}"
                for place, number in first]  # fmt: skip
    expected += [f"a constant: {number}{HEADS[place]}" for place, number in second]
    groups = []
    for rows in (first, second):
        table = np.array(rows, np.int64).reshape(-1, 2)
        name = TextColumn(Texts(HEADS), table[:, 0])
        digits, short = byte_columns.digits(table[:, 1]), byte_columns.short
        fields = [byte_columns.text("a constant: "), *digits, name]
        if rows is first:
            thousands = byte_columns.thousands(table[:, 1])
            fields = [name, *digits, *short(", "), *thousands, *short("}}")]
        groups.append(Lines(len(rows), fields))
    order = list(range(len(expected)))
    random.shuffle(order)
    content = byte_columns.merged(groups, np.array(order, np.int64))
    assert content == "".join(expected[place] for place in order)
