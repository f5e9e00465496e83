"""Wire: the bytes are those of protobuf's own encoder, for one value and for a column of them."""

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, wrappers_pb2
from hypothesis import given
from hypothesis import strategies as st

from tflab.exporters.xspace import wire

INT64 = st.integers(-(2**63), 2**63 - 1)


def official(value: int) -> bytes:
    """The field 1 with this value."""
    return wrappers_pb2.Int64Value(value=value).SerializeToString()


@given(INT64.filter(bool))  # a 0 is left out of a message
def test_a_number_is_encoded_as_by_protobuf(value):
    assert wire.field(1, value) == official(value)


@given(st.lists(INT64.filter(bool)))
def test_a_column_is_encoded_as_its_numbers_one_after_another(values):
    rows = wire.numbers(1, np.array(values, np.int64))
    assert rows.encoded() == b"".join(map(official, values))
    assert rows.lengths.tolist() == [len(official(value)) for value in values]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**14 - 1, 2**14, 2**32, 2**63 - 1, -1])
def test_the_edges_of_a_varint(value):
    assert wire.varints(np.array([value])).encoded() == wire.varint(value)


def test_texts_and_messages_are_framed_by_their_lengths():
    named = descriptor_pb2.FileDescriptorProto(name="é" * 100, dependency=["a"])
    inner = [wire.field(1, "é" * 100), wire.field(3, b"a")]
    assert b"".join(inner) == named.SerializeToString()
    outer = descriptor_pb2.FileDescriptorSet(file=[named])
    assert b"".join(wire.framed(1, inner)) == outer.SerializeToString()


@pytest.mark.slow
@given(st.lists(st.tuples(INT64, INT64)))
def test_rows_are_encoded_as_their_messages_one_after_another(pairs):
    first, second = (np.array([pair[place] for pair in pairs], np.int64) for place in (0, 1))
    same = wire.field(3, "x" * 200)
    inner = wire.nested(4, [wire.same(same, len(pairs)), wire.numbers(5, second)])
    assert wire.nested(2, [wire.numbers(1, first), inner]).encoded() == b"".join(
        wire.field(2, wire.field(1, first) + wire.field(4, same + wire.field(5, second)))
        for first, second in pairs
    )
