"""Fields: the positions of the fields of a binary proto in a file, found without parsing it.

The encoding is described in https://protobuf.dev/programming-guides/encoding. Files may be damaged
or truncated: a length that exceeds the surrounding message is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from tflab import units, untrusted
from tflab.errors import TflabError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5  # wire types, without the old groups
HEADER = 20  # bytes, the most that a tag and a length take
TAIL = 1 << 13  # bytes in which the last whole row is searched
ROW = re.compile(rb"\x12(?:[\x80-\xff][\x01-\x7f]|[\x01-\x7f])\x0a")  # the beginning of a row
LONGER = "a part is longer than the message around it"


class DamagedError(TflabError):
    """What is wrong with a file, as the end of a sentence that begins with the file's name."""


def whole_fields(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, start, end) of every field. Raises DamagedError if a field exceeds its message."""
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

    The end follows from the declared length and is not checked. The caller may read elsewhere in
    the file in between.
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
    """A number with seven bits per byte, the lowest first, and the position after it."""
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


def likely_part(data: bytes) -> int:
    """The `whole_part` of rows whose last one may be cut off, in most cases.

    Rows are followed from the first place near the end that looks like one. A parser accepts the
    part only if it ends where a field ends, so it finds out if this was no row.
    """
    for match in ROW.finditer(data, max(0, len(data) - TAIL)):
        try:
            size = whole_part(data[match.start() :])
        except DamagedError:
            continue
        if size:
            return match.start() + size
    return whole_part(data)


def whole_part(data: bytes) -> int:
    """The number of bytes that are complete fields of a DeviceStepStats. Raises DamagedError."""
    at = 0
    try:
        while True:
            if data[at] & 0x87 != LENGTH:
                raise DamagedError("has other data where a row should start")
            size, begin = varint(data, at + 1)
            if begin + size > len(data):
                return at
            at = begin + size
    except (IndexError, EOFError):
        return at
