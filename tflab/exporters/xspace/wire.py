"""Wire: protocol buffers written by hand, many messages of one form at once.

A message is a sequence of fields: the field's number and kind as a varint (its tag), then the
value; a nested message is its length and then its own fields. A varint holds seven bits per byte,
the lowest first, and the highest bit of each byte says that another byte follows. That is the whole
format (https://protobuf.dev/programming-guides/encoding).

A trace is a million messages that differ only in numbers. Such `Rows` are built by columns: for
every value the bytes it might need, and a mask of those it does need. The bytes that the mask
keeps, row by row, are the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True)
class Rows:
    """Messages of one form, or parts of them: a row each, in blocks that lie side by side."""

    blocks: tuple[tuple[np.ndarray, np.ndarray], ...]  # bytes, and a mask of those needed
    lengths: np.ndarray  # of the rows, in bytes

    def encoded(self) -> bytes:
        """All rows, one after another."""
        content, needed = zip(*self.blocks, strict=True)
        return np.hstack(content)[np.hstack(needed)].tobytes()


def varints(values: np.ndarray) -> Rows:
    """A varint in each row."""
    bits: np.ndarray = values.astype(np.int64, copy=False).view(np.uint64)
    most = int(bits.max(initial=0))
    left = bits.astype(np.min_scalar_type(most))
    width = max(1, -(-most.bit_length() // GROUP))
    content: np.ndarray = np.empty((len(left), width), np.uint8)
    needed: np.ndarray = np.ones((len(left), width), bool)
    lengths: np.ndarray = np.ones(len(left), np.int64)
    for byte in range(width):
        if byte:
            left >>= GROUP  # the bits that this byte and those after it have to hold
            np.greater(left, 0, out=needed[:, byte])
            lengths += needed[:, byte]
        content[:, byte] = left & (MORE - 1)
    content[:, :-1] |= needed[:, 1:].view(np.uint8) << GROUP
    return Rows(((content, needed),), lengths)


def numbers(number: int, values: np.ndarray) -> Rows:
    """A field that holds a whole number, in each row."""
    return concatenated([same(varint(number << 3 | VARINT), len(values)), varints(values)])


def nested(number: int, fields: Sequence[Rows]) -> Rows:
    """A field that holds a message of these fields, in each row."""
    body = concatenated(fields)
    tag = same(varint(number << 3 | LENGTH), len(body.lengths))
    return concatenated([tag, varints(body.lengths), body])


def same(content: bytes, rows: int) -> Rows:
    """The same bytes in each row."""
    shape = (rows, len(content))
    line = np.frombuffer(content, np.uint8)
    block = (np.broadcast_to(line, shape), np.broadcast_to(np.True_, shape))
    return Rows((block,), np.full(rows, len(content)))


def concatenated(fields: Sequence[Rows]) -> Rows:
    """Fields that follow one another in the message."""
    blocks = tuple(block for rows in fields for block in rows.blocks)
    return Rows(blocks, np.sum([rows.lengths for rows in fields], axis=0))
