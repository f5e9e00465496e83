"""Byte columns: many rows of bytes at once, in columns of up to eight bytes.

Eight bytes are one number of 64 bits, so NumPy puts together the bytes of all rows with a few
operations on numbers. A column is written as whole words; what a word has too much is overwritten
by what follows it in the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

WORD = 8  # bytes


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
