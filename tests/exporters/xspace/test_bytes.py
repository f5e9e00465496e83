"""The bytes of a message, worked out by hand from the description of the format."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflab.exporters.xspace import wire

VARINTS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "80 01",
    300: "ac 02",
    2**14 - 1: "ff 7f",
    2**14: "80 80 01",
    2**63 - 1: "ff ff ff ff ff ff ff ff 7f",
    -1: "ff ff ff ff ff ff ff ff ff 01",
    -(2**63): "80 80 80 80 80 80 80 80 80 01",
}


@pytest.mark.parametrize("value, encoded", VARINTS.items())
def test_a_varint_holds_seven_bits_in_each_byte(value, encoded):
    assert wire.varint(value).hex(" ") == encoded
    rows = wire.varints(np.array([value]))
    assert (rows.encoded().hex(" "), rows.lengths.tolist()) == (
        encoded,
        [encoded.count(" ") + 1],
    )


def test_a_column_of_varints_has_those_of_its_values():
    rows = wire.varints(np.array(list(VARINTS)))
    assert rows.encoded().hex(" ") == " ".join(VARINTS.values())
    assert rows.lengths.tolist() == [1, 1, 1, 2, 2, 2, 3, 9, 10, 10]
    assert wire.varints(np.array([], np.int64)).encoded() == b""


@pytest.mark.parametrize(
    "values, encoded",
    [
        ([255, 128, 127], "ff 01 80 01 7f"),  # fit into one byte without signs
        ([256, 65_535, 0], "80 02 ff ff 03 00"),
        ([65_536, 2**32 - 1, 5], "80 80 04 ff ff ff ff 0f 05"),
        ([2**32, 127], "80 80 80 80 10 7f"),
    ],
)
def test_columns_of_every_width(values, encoded):
    assert wire.varints(np.array(values)).encoded().hex(" ") == encoded


@pytest.mark.parametrize(
    "number, value, encoded",
    [
        (1, 150, "08 96 01"),
        (2, "testing", "12 07 74 65 73 74 69 6e 67"),
        (3, b"\x08\x96\x01", "1a 03 08 96 01"),
        (4, "é", "22 02 c3 a9"),
        (5, "\ud800", "2a 01 3f"),  # half of a pair is no text: a question mark
        (16, 0, "80 01 00"),
        (16, "", "82 01 00"),
    ],
)
def test_a_field_is_its_tag_and_its_value(number, value, encoded):
    assert wire.field(number, value).hex(" ") == encoded


def test_a_framed_message_has_the_length_of_all_its_parts():
    assert wire.framed(3, [b"ab", b"", b"cde"]) == [b"\x1a\x05", b"ab", b"", b"cde"]
    assert wire.framed(1, []) == [b"\x0a\x00"]


def test_rows_are_messages_one_after_another():
    inner = wire.nested(4, [wire.same(b"\x08\x07", 3), wire.numbers(2, np.array([0, 300, -1]))])
    rows = wire.nested(3, [wire.numbers(1, np.array([5, 128, 6])), inner])
    messages = [
        "1a 08 08 05 22 04 08 07 10 00",
        "1a 0a 08 80 01 22 05 08 07 10 ac 02",
        "1a 11 08 06 22 0d 08 07 10 ff ff ff ff ff ff ff ff ff 01",
    ]
    assert rows.encoded().hex(" ") == " ".join(messages)
    assert rows.lengths.tolist() == [10, 12, 19]
    assert inner.lengths.tolist() == [6, 7, 15]


def test_the_same_bytes_stand_in_every_row():
    rows = wire.same(b"xyz", 2)
    assert (rows.encoded(), rows.lengths.tolist()) == (b"xyzxyz", [3, 3])
    alone = wire.concatenated([rows])
    assert (alone.encoded(), alone.count) == (b"xyzxyz", 2)
    both = wire.concatenated([rows, wire.varints(np.array([1, 2]))])
    assert (both.encoded(), both.lengths.tolist()) == (b"xyz\x01xyz\x02", [4, 4])


@pytest.mark.parametrize("size", [3, 4, 5])
def test_many_bytes_stay_in_their_file_and_few_are_one_part(monkeypatch, size):
    monkeypatch.setattr(wire, "IN_MEMORY", 4)
    stored = wire.Stored()
    for byte in b"abcde"[:size]:
        stored.add(bytes([byte]))
    whole = stored.whole()
    assert (whole is stored, len(whole)) == (size > 4, size)
    assert list(wire.pieces([b"_", whole])) == [
        *{3: [b"_", b"abc"], 4: [b"_", b"abcd"], 5: [b"_", b"abcd", b"e"]}[size],
    ]


NUMBERS = st.one_of(
    st.integers(0, 300),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 63).map(lambda n: 2**n - 1),
)
TEXT = "a text that does not fit into a word"


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=5))
def test_rows_are_what_single_messages_are(values):
    table = np.array(values, np.int64).reshape(-1, 3)
    inner = wire.nested(4, [wire.numbers(2, table[:, 1])])
    text = wire.same(wire.field(9, TEXT), len(table))
    fields = [wire.numbers(1, table[:, 0]), text, inner, wire.numbers(300, table[:, 2])]
    rows = wire.nested(3, fields)
    messages = [
        wire.field(
            3,
            wire.field(1, first)
            + wire.field(9, TEXT)
            + wire.field(4, wire.field(2, second))
            + wire.field(300, third),
        )
        for first, second, third in values
    ]
    assert rows.encoded() == b"".join(messages)
    assert rows.lengths.tolist() == [len(message) for message in messages]
