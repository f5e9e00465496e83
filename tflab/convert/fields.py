"""Fields: where the fields of a binary proto begin and end in a file, found without parsing it.

The encoding is that of https://protobuf.dev/programming-guides/encoding. Files may be damaged or
cut off; nothing is believed that goes beyond the end of what it stands in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tflab import units, untrusted
from tflab.errors import TflabError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5  # wire types; the old groups are not among them
HEADER = 20  # bytes: a tag and a length take no more
PIECE = 1 << 18  # bytes of a trace that are parsed at once
LONGER = "a part is longer than the message around it"


class DamagedError(TflabError):
    """What is wrong in a file, as the end of a sentence that begins with the file's name."""


def whole_fields(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, start, end) of every field. Raises DamagedError if one is longer than its whole."""
    try:
        for number, _, begin, stop in fields(file, start, end):
            if stop > end:
                raise EOFError(f"{stop - end:,} bytes are missing")
            yield number, begin, stop
    except EOFError as error:
        if end == file.seek(0, 2):
            raise DamagedError(f"is cut off after {end:,} bytes: {error}") from error
        raise DamagedError(f"is damaged near byte {end:,}: {LONGER}") from error


def fields(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, start, end) of every field between two positions of a file.

    The end is what the field claims. The file may be read elsewhere in between.
    """
    position = start
    while position < end:
        file.seek(position)
        head = file.read(HEADER)
        tag, at = varint(head, 0)
        wire = tag & 7
        if wire == LENGTH:
            size, at = varint(head, at)
            begin = position + at
            position = begin + size
        else:
            begin = position + at
            if wire == VARINT:
                position += varint(head, at)[1]
            elif wire in (FIXED64, FIXED32):
                position = begin + (8 if wire == FIXED64 else 4)
            else:
                raise DamagedError(f"has no field at byte {position:,}, where one should start")
        yield tag >> 3, wire, begin, position


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the place behind it."""
    value = shift = 0
    for byte in data[at : at + 10]:
        at += 1
        if byte < 128:
            return value | byte << shift, at
        value |= (byte & 127) << shift
        shift += 7
    if shift == 70:
        raise DamagedError("has a number of more than 64 bits where a length should be")
    raise EOFError("it ends within a number")


def content(file: BinaryIO, start: int, end: int) -> bytes:
    if end - start > untrusted.LARGEST:
        raise DamagedError(f"has a part of {units.size(end - start)}, but the limit is 2 GiB")
    file.seek(start)
    return file.read(end - start)


def pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """A DeviceStepStats cut between its fields: every piece is one of its own."""
    size = PIECE
    while start < end:
        data = content(file, start, min(start + size, end))
        whole = whole_part(data)
        if whole:
            yield data[:whole]
        elif start + size < end:
            size *= 2
        else:
            raise DamagedError(f"is damaged near byte {end:,}: {LONGER}")
        start += whole


def whole_part(data: bytes) -> int:
    """How many of these bytes are whole fields. As `fields`, but it sees every row of a trace."""
    at = 0
    try:
        while True:
            if data[at] & 0x87 != LENGTH:
                raise DamagedError("has other data where a row should start")
            size, begin = data[at + 1], at + 2
            if size > 127 and data[begin] < 128:  # two bytes, as for most rows
                size, begin = size & 127 | data[begin] << 7, at + 3
            elif size > 127:
                size, begin = varint(data, at + 1)
            if begin + size > len(data):
                return at
            at = begin + size
    except (IndexError, EOFError):
        return at
