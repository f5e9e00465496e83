"""Event files: the files that TensorBoard reads, with the traces that `add_run_metadata` of a
FileWriter added, each under a tag.

The file is a sequence of records (tensorflow/core/lib/io/record_writer.h): a length of eight bytes
and its checksum of four, the content, and its checksum of four. Each content is an Event
(event.proto).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from tflab.convert.fields import content, whole_fields

FRAME = struct.Struct("<QI")  # the length of a record, and its checksum
CHECKSUM = 4  # bytes after the content
FIRST = b"brain.Event:"  # in the first record, with the version of the format
GRAPH, TAGGED = 4, 8  # fields of an Event
TAG, METADATA = 1, 2  # fields of a TaggedRunMetadata


@dataclass(frozen=True)
class Tagged:
    """A trace in an event file."""

    tag: str
    metadata: BinaryIO  # a RunMetadata


class Part(io.RawIOBase):
    """The bytes between two positions of a file, as a file. A trace may have hundreds of megabytes,
    but little of it is in memory at a time."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self.file, self.start, self.end, self.position = file, start, end, start

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origins = {io.SEEK_SET: self.start, io.SEEK_CUR: self.position, io.SEEK_END: self.end}
        self.position = max(self.start, origins[whence] + offset)
        return self.position - self.start

    def readinto(self, buffer: Any) -> int:
        self.file.seek(self.position)
        data = self.file.read(max(0, min(len(buffer), self.end - self.position)))
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


def recognised(file: BinaryIO) -> bool:
    """Whether a file is an event file, according to its first record."""
    file.seek(0)
    head = file.read(FRAME.size + 64)
    if len(head) < FRAME.size:
        return False
    length, _ = FRAME.unpack_from(head)
    return length <= 64 and FIRST in head


def traces(file: BinaryIO) -> Iterator[Tagged]:
    """The traces in their order. Raises DamagedError for a truncated file."""
    for start, end in events(file, TAGGED):
        parts = {number: (begin, stop) for number, begin, stop in whole_fields(file, start, end)}
        if METADATA in parts:
            tag = content(file, *parts.get(TAG, (0, 0))).decode(errors="replace")
            yield Tagged(tag, io.BufferedReader(Part(file, *parts[METADATA])))


def graphs(file: BinaryIO) -> Iterator[BinaryIO]:
    """The GraphDefs, as the program built them."""
    return (io.BytesIO(content(file, start, end)) for start, end in events(file, GRAPH))


def events(file: BinaryIO, wanted: int) -> Iterator[tuple[int, int]]:
    """The position of this field in every event that has it."""
    for start, end in records(file):
        for number, begin, stop in whole_fields(file, start, end):
            if number == wanted:
                yield begin, stop


def records(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """The position of the content of each record. An incomplete last record, of a file that is
    still being written, is omitted."""
    size = file.seek(0, 2)
    position = 0
    while position + FRAME.size <= size:
        length, _ = FRAME.unpack(content(file, position, position + FRAME.size))
        start = position + FRAME.size
        if start + length + CHECKSUM > size:
            return
        yield start, start + length
        position = start + length + CHECKSUM
