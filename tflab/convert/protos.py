"""Protos: TensorFlow's files as messages, read without TensorFlow, and traces piece by piece.

The content of a file shows whether it is a RunMetadata, a bare StepStats or a GraphDef, and binary
or text; its name does not matter. SCHEMA declares only the fields that tflab reads; the parser
skips the others. Strings are declared as bytes, because a file may contain names that are not
UTF-8.

Numbers and types of the fields are those of TensorFlow's config.proto, step_stats.proto,
graph.proto, node_def.proto, attr_value.proto and tensor_shape.proto. Since 2016 fields were only
added there.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from tflab import units
from tflab.convert.fields import (
    LENGTH,
    LONGER,
    VARINT,
    DamagedError,
    content,
    fields,
    likely_part,
    whole_fields,
    whole_part,
)

SCHEMA = {
    "RunMetadata": "1 step_stats StepStats, 3 partition_graphs GraphDef*",
    "StepStats": "1 dev_stats DeviceStepStats*",
    "DeviceStepStats": "1 device bytes, 2 node_stats NodeExecStats*",
    "NodeExecStats": (
        "1 node_name bytes, 2 all_start_micros int64, 4 op_end_rel_micros int64, "
        "5 all_end_rel_micros int64, 6 memory AllocatorMemoryUsed*, 8 timeline_label bytes, "
        "13 all_start_nanos int64, 16 all_end_rel_nanos int64"
    ),
    "AllocatorMemoryUsed": (
        "1 allocator_name bytes, 2 total_bytes int64, 6 allocation_records AllocationRecord*"
    ),
    "AllocationRecord": "1 alloc_micros int64, 2 alloc_bytes int64",
    "GraphDef": "1 node NodeDef*",
    "NodeDef": "1 name bytes, 2 op bytes, 3 input bytes*, 4 device bytes, 5 attr Attr*",
    "Attr": "1 key bytes, 2 value AttrValue",
    "AttrValue": "2 s bytes, 7 shape Shape",
    "Shape": "2 dim Dim*, 3 unknown_rank bool",
    "Dim": "1 size int64",
}
SCALARS = {"bytes": 12, "int64": 3, "bool": 8}  # FieldDescriptorProto.Type

# The fields by which a binary file is recognised. Newer versions may add fields.
Fields = dict[int, tuple[int, str]]  # number -> wire type, and the nested message to check
KNOWN: dict[str, Fields] = {
    "RunMetadata": {
        **dict.fromkeys(range(1, 16), (LENGTH, "")),
        1: (LENGTH, "StepStats"),
        3: (LENGTH, "GraphDef"),
    },
    "StepStats": {1: (LENGTH, "DeviceStepStats")},
    "DeviceStepStats": {1: (LENGTH, ""), 2: (LENGTH, "NodeExecStats"), 3: (LENGTH, "")},
    "NodeExecStats": {
        **dict.fromkeys((1, 6, 7, 8, 11, 12), (LENGTH, "")),
        **dict.fromkeys((2, 3, 4, 5, 9, 10, 13, 14, 15, 16, 17), (VARINT, "")),
    },
    "GraphDef": {
        **dict.fromkeys(range(1, 16), (LENGTH, "")),
        1: (LENGTH, "NodeDef"),
        3: (VARINT, ""),
    },
    "NodeDef": dict.fromkeys(range(1, 8), (LENGTH, "")),
}
SAMPLE = 10  # fields of a message that are checked to recognise it

# The same by the first field of a text file
FIRST_FIELD = re.compile(rb"(?:\s|#[^\n]*\n)*(\w+)\s*[:{<]")
TEXT = {
    **dict.fromkeys((b"step_stats", b"cost_graph", b"partition_graphs"), "RunMetadata"),
    **dict.fromkeys((b"function_graphs", b"session_metadata"), "RunMetadata"),
    b"dev_stats": "StepStats",
    **dict.fromkeys((b"node", b"versions", b"version", b"library"), "GraphDef"),
}
PIECE = 1 << 20  # bytes of a trace that are parsed at once
# Ptars calls itself for each level of nested groups, which a damaged file may have in each byte of
# a piece; a level takes about 80 bytes of the stack (ptars 0.0.25).
STACK = 256 * PIECE
LARGEST_TEXT = 1 << 28  # bytes, which take minutes to parse
HEAD = 1 << 16  # bytes that must contain the first field of a text


@dataclass(frozen=True)
class Trace:
    """The content of a RunMetadata: the graphs that ran, if it has them, and the name of each
    device with its rows in pieces."""

    graphs: tuple[Any, ...]  # GraphDef
    devices: Iterator[tuple[bytes, Iterator[Any]]]  # to be read once, in this order; see `rows`


def recognised(file: BinaryIO) -> tuple[str, bool]:
    """The message in a file, "" for another file, and whether it is text."""
    match = FIRST_FIELD.match(start_of(file))
    if match and match[1] in TEXT:
        return TEXT[match[1]], True
    size = file.seek(0, 2)
    names = ("RunMetadata", "StepStats", "GraphDef") if size else ()
    return next((name for name in names if fits(file, 0, size, name)), ""), False


def start_of(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(HEAD)


def fits(file: BinaryIO, start: int, end: int, name: str) -> bool:
    """Whether a part of a file can be this message, which may be truncated."""
    known = KNOWN[name]
    try:
        for number, wire, begin, stop in islice(fields(file, start, end), SAMPLE):
            expected, inner = known.get(number, (-1, ""))
            if wire != expected or (inner and not fits(file, begin, stop, inner)):
                return False
    except DamagedError:
        return False
    except EOFError:
        return True
    return True


def read_trace(file: BinaryIO, name: str, text: bool) -> Trace:
    """A RunMetadata or a StepStats, as `recognised`.

    Raises DamagedError, also while its rows are read.
    """
    if text:
        found = parsed_text(file, name)
        stats = found.step_stats if name == "RunMetadata" else found
        devices = (
            (device.device, iter([rows(device.SerializeToString())])) for device in stats.dev_stats
        )
        return Trace(tuple(getattr(found, "partition_graphs", ())), devices)
    size = file.seek(0, 2)
    if name == "StepStats":
        return Trace((), device_rows(file, [(0, size)]))
    parts = list(whole_fields(file, 0, size))
    graphs = (parsed(file, "GraphDef", begin, stop) for number, begin, stop in parts if number == 3)
    steps = [(begin, stop) for number, begin, stop in parts if number == 1]
    return Trace(tuple(graphs), device_rows(file, steps))


def read_graph(file: BinaryIO, text: bool) -> Any:
    """A GraphDef. Raises DamagedError."""
    if text:
        return parsed_text(file, "GraphDef")
    return parsed(file, "GraphDef", 0, file.seek(0, 2))


def device_rows(
    file: BinaryIO, steps: Iterable[tuple[int, int]]
) -> Iterator[tuple[bytes, Iterator[Any]]]:
    """The name and the rows of each DeviceStepStats in these parts of a file."""
    for start, end in steps:
        for _, begin, stop in whole_fields(file, start, end):
            names = (part for part in whole_fields(file, begin, stop) if part[0] == 1)
            _, at, until = next(names, (1, 0, 0))
            yield content(file, at, until), pieces(file, begin, stop)


def pieces(file: BinaryIO, start: int, end: int) -> Iterator[Any]:
    """The `rows` of a DeviceStepStats, split between rows. Raises DamagedError."""
    size = PIECE
    while start < end:
        data = content(file, start, min(start + size, end))
        whole = len(data) if start + size >= end else likely_part(data)
        try:
            found = rows(data[:whole])
        except ValueError:
            whole = whole_part(data)
            found = readable_rows(data[:whole])
        if whole:
            yield found
        elif start + size < end:
            size *= 2
        else:
            raise DamagedError(f"is damaged near byte {end:,}: {LONGER}")
        start += whole


def rows(data: bytes) -> Any:
    """The rows of a DeviceStepStats: its NodeExecStats as an Arrow array, with a column for each
    field (https://arrow.apache.org/docs/format/Columnar.html). Raises ValueError."""
    import pyarrow
    from google.protobuf.message import DecodeError

    if len(data) > PIECE:  # a long row, perhaps of groups for which no stack suffices
        try:
            message("DeviceStepStats").FromString(data)
        except DecodeError as error:
            raise ValueError(str(error)) from error
    whole = pyarrow.array([data], pyarrow.binary())
    batch = deep_thread().submit(row_parser().array_to_record_batch, whole).result()
    return batch.column("node_stats").values


@functools.cache
def deep_thread() -> ThreadPoolExecutor:
    """A thread with a stack of STACK bytes; the system provides only the used part."""
    before = threading.stack_size(STACK)
    try:
        pool = ThreadPoolExecutor(1)
        pool.submit(int).result()  # so that the thread begins now
    finally:
        threading.stack_size(before)
    return pool


def readable_rows(data: bytes) -> Any:
    try:
        return rows(data)
    except ValueError as error:
        raise DamagedError("has a row that cannot be read") from error


@functools.cache
def row_parser() -> Any:
    """Ptars, which parses messages into columns. A message that upb parses becomes several objects
    for each row, and reading their attributes takes longer than parsing."""
    from ptars import HandlerPool

    stats = message("DeviceStepStats").DESCRIPTOR
    return HandlerPool([stats.file]).get_for_message(stats)


def parsed(file: BinaryIO, name: str, start: int, end: int) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return message(name).FromString(content(file, start, end))
    except DecodeError as error:
        raise DamagedError(f"has a {name} that cannot be read") from error


def parsed_text(file: BinaryIO, name: str) -> Any:
    """A message from its text form. This takes about 400 us per row, because the parser is pure
    Python."""
    from google.protobuf import text_format

    if file.seek(0, 2) > LARGEST_TEXT:
        raise DamagedError(f"is text of over {units.size(LARGEST_TEXT)}; give it in binary")
    file.seek(0)
    # The parser takes only text, so bytes that are not UTF-8 become escapes.
    text = file.read().decode(errors="backslashreplace")
    try:
        return text_format.Parse(text, message(name)(), allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DamagedError(f"is text that cannot be read as a {name}: {reason}") from error


@functools.cache
def message(name: str) -> Any:
    """The class of a message of SCHEMA."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="tflab.proto", package="tflab", syntax="proto3")
    for outer, declared in SCHEMA.items():
        described = file.message_type.add(name=outer)
        for field in declared.split(", "):
            number, label, kind = field.split()
            added = described.field.add(name=label, number=int(number))
            added.label = added.LABEL_REPEATED if kind.endswith("*") else added.LABEL_OPTIONAL
            kind = kind.removesuffix("*")
            if kind in SCHEMA:
                added.type, added.type_name = added.TYPE_MESSAGE, f".tflab.{kind}"
            else:
                added.type = SCALARS[kind]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tflab.{name}"))
