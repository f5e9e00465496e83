"""Event files by hand: traces by tag, a graph beside them, and what else people give."""

import io
import random
import struct

import pytest

from tests.convert.test_protos import message
from tests.convert.test_reading import CPU, row, text
from tflab.convert import event_files, reading
from tflab.errors import TflabError, UsageError


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, with a length of two bytes at most."""
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + length + content


def record(content: bytes) -> bytes:
    return struct.pack("<QI", len(content), 0) + content + bytes(4)


def metadata(*rows: str) -> bytes:
    return message("RunMetadata", text((CPU, list(rows))))


def tagged(tag: str, content: bytes) -> bytes:
    return record(field(8, field(1, tag.encode()) + field(2, content)))


VERSION = record(b"\x09" + bytes(8) + field(3, b"brain.Event:2"))
FIRST = tagged("step 10", metadata(row("a", 100, 7), row("b", 110, 5, "b = Neg(a)")))
SECOND = tagged("eval/20", metadata(row("a", 900, 3)))
GRAPH = record(field(4, message("GraphDef", 'node { name: "a" op: "Mine" }')))


@pytest.fixture
def read(tmp_path):
    def written(*contents: bytes, **options: str) -> reading.Recording:
        paths = [tmp_path / f"events.out.tfevents.{number}" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        return reading.read([str(path) for path in paths], **options)

    return written


def test_each_tag_of_an_event_file_is_a_step(read):
    found = read(VERSION + FIRST + record(b"\x10\x05") + SECOND)
    assert found.labels == ("step 10", "eval/20")
    assert [(run.step, run.name, run.op) for run in found.runs] == [
        (0, "a", "unknown"),
        (0, "b", "Neg"),
        (1, "a", "unknown"),
    ]
    assert [(step.step, step.start_ns, step.wall_ns) for step in found.steps] == [
        (0, 100, 15),
        (1, 900, 3),
    ]


def test_event_files_and_run_metadata_may_be_given_together(read, tmp_path):
    found = read(VERSION + FIRST, metadata(row("c", 500, 1)))
    assert found.labels == ("step 10", "events.out.tfevents.1")


def test_the_graph_beside_the_traces_is_that_of_the_steps(read):
    found = read(VERSION + GRAPH + FIRST)
    assert [(node.name, node.op) for node in found.nodes] == [("a", "Mine")]
    assert [run.op for run in found.runs] == ["Mine", "Neg"]


def test_the_graph_of_a_trace_may_come_from_an_event_file(read, tmp_path):
    (tmp_path / "graph").write_bytes(VERSION + GRAPH)
    found = read(metadata(row("a", 1, 1)), graph=str(tmp_path / "graph"))
    assert [run.op for run in found.runs] == ["Mine"]


def test_an_event_that_is_still_being_written_is_not_there_yet(read):
    whole = VERSION + FIRST + SECOND
    # In the length, its checksum, the content and the content's checksum, and at their borders
    for missing in (1, 3, 4, 5, len(SECOND) // 2, *range(len(SECOND) - 13, len(SECOND))):
        assert read(whole[:-missing]).labels == ("step 10",)


def test_an_event_file_without_traces_is_named_as_one(read):
    with pytest.raises(
        UsageError, match=r"is an event file of TensorBoard without a complete trace\. FileWriter"
    ):
        read(VERSION + GRAPH)


@pytest.mark.parametrize("content", [b"not a trace", b"\x0a\x7f"])
def test_a_damaged_trace_in_an_event_file_is_refused(read, content):
    with pytest.raises(TflabError, match=r"events.out.tfevents.0'? "):
        read(VERSION + tagged("step", content))


PLANE = b"\x08\x01\x12\x09/host:CPU\x1a\x04\x12\x02up"


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (field(1, PLANE), "is an XSpace, as TensorBoard's profiler"),
        (field(1, PLANE[2:]), "is an XSpace"),
        (b'{\n "traceEvents": [\n  {"ph": "X"', "is a timeline in JSON; open it in ui.perfetto"),
        (b'[{"name": "a", "ph": "X"}]', "is a timeline in JSON"),
        (b"\x1f\x8b\x08\x00", "is compressed with gzip. Decompress it first"),
    ],
)
def test_what_people_take_for_a_trace_is_named_as_what_it_is(head, what, read):
    assert reading.other_kind(head).startswith(what)
    with pytest.raises(UsageError, match=what):
        read(head)


def test_other_files_are_none_of_these():
    for head in (b"", b"Dear diary", b'{"steps": 1}', b"[1, 2]", b"\x89PNG"):
        assert reading.other_kind(head) is None


def test_a_part_of_a_file_reads_like_a_file_of_its_own():
    whole = random.Random(0).randbytes(1_000)
    part = event_files.Part(io.BytesIO(whole), 100, 900)
    alone = io.BytesIO(whole[100:900])
    chance = random.Random(1)
    for file in (part, io.BufferedReader(part)):
        for _ in range(200):
            whence = chance.randrange(3)
            offset = chance.randrange(-50, 900) if whence == 1 else chance.randrange(850)
            offset = (
                max(offset, -alone.tell()) if whence == 1 else -offset if whence == 2 else offset
            )
            if whence == 2 and offset < -800:
                continue
            assert file.seek(offset, whence) == alone.seek(offset, whence)
            size = chance.randrange(-1, 300)
            assert file.read(size) == alone.read(size)
            assert file.tell() == alone.tell()
