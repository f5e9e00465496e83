"""Wire: protocol buffers written by hand, many messages of one form at once.

A message is a sequence of fields: the field's number and kind as a varint (its tag), then the
value; a nested message is its length and then its own fields. A varint holds seven bits per byte,
the lowest first, and the highest bit of each byte says that another byte follows. That is the whole
format (https://protobuf.dev/programming-guides/encoding).

A trace is a million messages that differ only in numbers. Such `Rows` are built by columns of
`byte_columns`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tflab.exporters import byte_columns
from tflab.exporters.byte_columns import WORD, Column, space

VARINT, LENGTH = 0, 2  # kinds of fields
GROUP = 7  # bits of a number in each byte
MORE = 0x80  # another byte follows
IN_MEMORY = 1 << 22  # bytes of a part


# One message


def varint(value: int) -> bytes:
    """A whole number; a negative one as the 64 bits of its two's complement."""
    value &= 2**64 - 1
    encoded = bytearray()
    while value >= MORE:
        encoded.append(value % MORE | MORE)
        value >>= GROUP
    encoded.append(value)
    return bytes(encoded)


def field(number: int, value: int | str | bytes) -> bytes:
    """A field with its value: a number, a text, or a message that is encoded already."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    content = value.encode(errors="replace") if isinstance(value, str) else value
    return varint(number << 3 | LENGTH) + varint(len(content)) + content


class Stored:
    """Bytes that are put together piece by piece, in a temporary file if they are many."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._size = 0

    def add(self, content: bytes) -> None:
        self._size += self._file.write(content)

    def __len__(self) -> int:
        return self._size

    def whole(self) -> Part:
        """Its bytes, if they are few."""
        return self if self._size > IN_MEMORY else b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(IN_MEMORY):
            yield piece


Part = bytes | Stored


def pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """The bytes of all parts."""
    for part in parts:
        if isinstance(part, Stored):
            yield from part.pieces()
        else:
            yield part


def framed(number: int, parts: Sequence[Part]) -> list[Part]:
    """A field that holds the message of these parts, which are not joined, to save a copy."""
    return [varint(number << 3 | LENGTH) + varint(sum(map(len, parts))), *parts]


# Many messages

IN_WORD = GROUP * WORD  # bits of a number whose varint fits into a word
ONE: np.ndarray = np.array([1])
LIMITS: np.ndarray = np.uint64(1) << np.arange(GROUP, 64, GROUP, dtype=np.uint64)
# For each length of a varint, a word with the bits that say which of its bytes are followed by more
FOLLOWED: np.ndarray = np.array(
    [sum(MORE << 8 * byte for byte in range(length - 1)) for length in range(WORD + 2)], np.uint64
)
# How the groups of a number move apart: the bits that stay, and how far the others move
STAY: tuple[tuple[int, int], ...] = (
    (0x000000000FFFFFFF, 4),
    (0x00003FFF00003FFF, 2),
    (0x007F007F007F007F, 1),
)


@dataclass(frozen=True)
class Rows:
    """Messages of one form, or parts of them: a row each, in columns that lie side by side."""

    count: int
    columns: tuple[Column, ...]

    @property
    def lengths(self) -> np.ndarray:
        """The bytes of each row."""
        own: np.ndarray = np.zeros(1, np.int64)
        for column in self.columns:
            own = own + column.lengths
        return np.broadcast_to(own, self.count)

    def encoded(self) -> bytes:
        """All rows, one after another."""
        content: np.ndarray = np.empty((self.count, len(self.columns)), np.uint64)
        lengths: np.ndarray = np.empty(content.shape, np.int64)
        for place, column in enumerate(self.columns):
            content[:, place], lengths[:, place] = column.words, column.lengths
        ends = lengths.cumsum()
        size = int(ends[-1]) if self.count else 0
        encoded, from_byte = space(size)
        from_byte[ends - lengths.ravel()] = content.ravel()  # in this order
        return encoded[:size].tobytes()


def varints(values: np.ndarray) -> Rows:
    """A varint in each row."""
    bits: np.ndarray = values.astype(np.int64, copy=False).view(np.uint64)
    if len(bits) and (bits == bits[0]).all():
        return same(varint(int(bits[0])), len(bits))
    if bits.max(initial=0) < MORE:
        return Rows(len(bits), (Column(bits, ONE, 1),))
    lengths = LIMITS.searchsorted(bits, "right") + 1
    columns = []
    for word in range(-(-int(lengths.max(initial=1)) // WORD)):
        left = np.clip(lengths - word * WORD, 0, WORD + 1)
        content = spread(bits >> word * IN_WORD) | FOLLOWED[left]
        left = np.minimum(left, WORD)
        columns.append(Column(content, left, int(left.max(initial=0))))
    return Rows(len(bits), tuple(columns))


def spread(bits: np.ndarray) -> np.ndarray:
    """The lowest groups of numbers, one in each byte of a word."""
    bits = bits & (1 << IN_WORD) - 1
    for stay, further in STAY:
        bits = bits & stay | (bits & ~np.uint64(stay)) << further
    return bits


def numbers(number: int, values: np.ndarray) -> Rows:
    """A field that holds a whole number, in each row."""
    return concatenated([same(varint(number << 3 | VARINT), len(values)), varints(values)])


def nested(number: int, fields: Sequence[Rows]) -> Rows:
    """A field that holds a message of these fields, in each row."""
    body = concatenated(fields)
    tag = same(varint(number << 3 | LENGTH), body.count)
    return concatenated([tag, varints(body.lengths), body])


def same(content: bytes, rows: int) -> Rows:
    """The same bytes in each row."""
    return Rows(rows, tuple(byte_columns.same(content)))


def concatenated(fields: Sequence[Rows]) -> Rows:
    """Fields that follow one another in the message, in as few columns as possible."""
    columns = byte_columns.fewest(column for rows in fields for column in rows.columns)
    return Rows(fields[0].count, tuple(columns))
