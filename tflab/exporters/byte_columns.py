"""Byte columns: many rows of bytes at once, in columns of up to eight bytes.

Eight bytes are one number of 64 bits, so NumPy puts together the bytes of all rows with a few
operations on numbers. A column is written as whole words; what a word has too much is overwritten
by what follows it in the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

WORD = 8  # bytes
TEN: np.ndarray = 10 ** np.arange(1, 19, dtype=np.int64)
IN_WORD = 10**WORD  # the digits of smaller numbers fit into a word
HALF = 10**4


@dataclass(frozen=True)
class Column:
    """Up to eight bytes in each row. Arrays of one element are for the same bytes in all rows."""

    words: np.ndarray  # uint64, the first byte lowest, unused bytes 0
    lengths: np.ndarray  # of each, in bytes
    most: int  # the greatest length

    def write(self, from_byte: np.ndarray, at: np.ndarray) -> None:
        """Write whole words from these bytes on, in this order."""
        from_byte[at] = self.words

    def joined(self, other: Column) -> Column:
        """These bytes and those of the other column, which together fit into a word."""
        words = self.words | other.words << (8 * self.lengths).astype(np.uint64)
        return Column(words, self.lengths + other.lengths, self.most + other.most)


def same(content: bytes) -> list[Column]:
    """The same bytes in each row."""
    return [
        Column(
            np.array([int.from_bytes(piece, "little")], np.uint64),
            np.array([len(piece)]),
            len(piece),
        )
        for piece in (content[begin : begin + WORD] for begin in range(0, len(content), WORD))
    ]


def fewest(columns: Iterable[Column]) -> list[Column]:
    """The same bytes in fewer columns: neighbours are joined where they fit into a word."""
    joined: list[Column] = []
    for column in columns:
        if joined and joined[-1].most + column.most <= WORD:
            joined[-1] = joined[-1].joined(column)
        else:
            joined.append(column)
    return joined


def space(size: int) -> tuple[np.ndarray, np.ndarray]:
    """So many bytes and a word more, and the words that begin at each of these bytes."""
    content: np.ndarray = np.empty(size + WORD, np.uint8)
    return content, np.ndarray(size + 1, "<u8", content, strides=(1,))


# Lines of a few forms, such as those of JSON, many at once
#
# A trace is a million lines that differ in numbers and names. The form of a line is a list of
# fields: columns of up to eight bytes, such as digits, and columns of longer texts. All the
# others are written before the texts. What their words have too much then lies in a text, or in a
# field that is written later. So a line begins with a text, and a text has at least eight bytes.


def words_of(texts: Sequence[str]) -> np.ndarray:
    return np.array([int.from_bytes(text.encode(), "little") for text in texts], np.uint64)


FOUR_DIGITS = words_of([f"{number:04d}" for number in range(HALF)])
THOUSANDTHS = words_of([f".{number:03d}" for number in range(1000)])


class Texts:
    """A few texts of at least eight bytes each."""

    def __init__(self, texts: Sequence[str]) -> None:
        encoded = [text.encode() for text in texts]
        # The last word of a text ends where the text ends, so it may repeat bytes of the one before
        offsets = [[*range(0, len(text) - WORD, WORD), len(text) - WORD] for text in encoded]
        pieces = [
            text[offset : offset + WORD]
            for text, own in zip(encoded, offsets, strict=True)
            for offset in own
        ]
        self.lengths: np.ndarray = np.array([len(text) for text in encoded], np.int64)
        self.words: np.ndarray = np.frombuffer(b"".join(pieces), "<u8")
        self.offsets: np.ndarray = np.array([place for own in offsets for place in own], np.int64)
        self.counts: np.ndarray = np.array([len(own) for own in offsets], np.int64)
        self.first: np.ndarray = np.cumsum(self.counts) - self.counts


@dataclass(frozen=True)
class TextColumn:
    """In each row one of the texts. An array of one element is for the same text in all rows."""

    texts: Texts
    places: np.ndarray  # of the texts of the rows

    @property
    def lengths(self) -> np.ndarray:
        return np.asarray(self.texts.lengths[self.places])

    def write(self, from_byte: np.ndarray, at: np.ndarray) -> None:
        """Write the texts from these bytes on."""
        texts, counts, first = self.texts, self.texts.counts[self.places], self.texts.first
        if len(self.places) == 1:
            begin = int(first[self.places[0]])
            for word in range(begin, begin + int(counts[0])):
                from_byte[at + texts.offsets[word]] = texts.words[word]
            return
        begin_of_row = first[self.places] - (np.cumsum(counts) - counts)
        words = np.repeat(begin_of_row, counts) + np.arange(counts.sum())
        from_byte[np.repeat(at, counts) + texts.offsets[words]] = texts.words[words]


Field = Column | TextColumn


@dataclass(frozen=True)
class Lines:
    """Lines of one form."""

    count: int
    fields: Sequence[Field]

    def lengths(self) -> np.ndarray:
        """The bytes of each line."""
        lengths: np.ndarray = np.zeros(self.count, np.int64)
        for field in self.fields:
            lengths += field.lengths
        return lengths


def text(content: str) -> TextColumn:
    """The same text of at least eight bytes in each row."""
    return TextColumn(Texts([content]), np.zeros(1, np.int64))


def short(content: str) -> list[Column]:
    """The same text in each row."""
    return same(content.encode())


def digits(numbers: np.ndarray) -> list[Column]:
    """Whole numbers, without zeros in front."""
    left = np.abs(numbers)
    count: np.ndarray = TEN.searchsorted(left, "right") + 1
    columns: list[Column] = []
    for before in range(0, int(count.max(initial=1)), WORD):
        left, low = np.divmod(left, IN_WORD)
        own = np.clip(count - before, 0, WORD)
        words = FOUR_DIGITS[low // HALF] | FOUR_DIGITS[low % HALF] << 32
        words >>= (8 * (WORD - own)).astype(np.uint64)
        columns.insert(0, Column(words, own, int(own.max(initial=0))))
    if (numbers < 0).any():
        minus = (numbers < 0).astype(np.int64)
        columns.insert(0, Column((minus * ord("-")).astype(np.uint64), minus, 1))
    return columns


def thousands(numbers: np.ndarray) -> list[Column]:
    """Whole numbers as thousands, with three decimals."""
    whole, rest = np.divmod(numbers, 1000)
    return [*digits(whole), Column(THOUSANDTHS[rest], np.array([4]), 4)]


def merged(groups: Sequence[Lines], order: np.ndarray) -> str:
    """The lines of all groups, in this order of their places among all lines."""
    lengths = np.concatenate([lines.lengths() for lines in groups])
    ends = np.cumsum(lengths[order])
    starts = np.empty_like(ends)
    starts[order] = ends - lengths[order]
    content, from_byte = space(int(lengths.sum()))
    first = np.cumsum([lines.count for lines in groups])
    starts_of = np.split(starts, first[:-1])
    for kind in (Column, TextColumn):
        for lines, begin in zip(groups, starts_of, strict=True):
            at = begin
            for field in lines.fields:
                if isinstance(field, kind):
                    field.write(from_byte, at)
                at = at + field.lengths
    return str(content[:-WORD].data, "utf-8")
