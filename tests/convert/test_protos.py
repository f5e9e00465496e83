"""Protos: files by what is in them, and their rows piece by piece."""

import io

import pytest

from tflab.convert import protos
from tflab.convert.fields import DamagedError
from tflab.exporters.xspace import wire

NODE_STATS = """
step_stats { dev_stats { device: "/cpu:0"
  node_stats { node_name: "a" all_start_nanos: 5 all_end_rel_nanos: 2 timeline_label: "a = Op()"
    memory { allocator_name: "cpu" total_bytes: 7 allocation_records { alloc_bytes: 7 } } }
  node_stats { node_name: "b" }
} }
partition_graphs { node { name: "a" op: "Op" input: "b" device: "/cpu:0"
  attr { key: "T" value { type: DT_FLOAT } } } }
"""
GRAPH = 'node { name: "a" op: "Op" input: "b:1" input: "^c" } versions { producer: 1 }'


def message(name: str, text: str) -> bytes:
    """A message of `tflab.convert.protos` in binary, from its text."""
    return protos.parsed_text(io.BytesIO(text.encode()), name).SerializeToString()


TRACE = message("RunMetadata", NODE_STATS)
STEP_STATS = message(
    "StepStats", NODE_STATS.partition("{")[2].partition("partition")[0].rpartition("}")[0]
)


def recognised(content: bytes) -> tuple[str, bool]:
    return protos.recognised(io.BytesIO(content))


def rows(content: bytes) -> list[tuple[bytes, list[bytes]]]:
    file = io.BytesIO(content)
    trace = protos.read_trace(file, *protos.recognised(file))
    return [
        (device, [row["node_name"] for piece in pieces for row in piece.to_pylist()])
        for device, pieces in trace.devices
    ]


# What a file is


@pytest.mark.parametrize(
    "content, expected",
    [
        (TRACE, ("RunMetadata", False)),
        (STEP_STATS, ("StepStats", False)),
        (message("GraphDef", GRAPH), ("GraphDef", False)),
        (NODE_STATS.encode(), ("RunMetadata", True)),
        (b"# written by hand\n\n dev_stats: {}", ("StepStats", True)),
        (GRAPH.encode(), ("GraphDef", True)),
        (b"\x0a\x00", ("RunMetadata", False)),  # without a trace
        (b"", ("", False)),
        (b"hello\n", ("", False)),
        (b"\nHello, world", ("", False)),  # a newline is the first byte of a RunMetadata
        (b"hello: 1\n", ("", False)),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0", ("", False)),
        (b"\x08\x01", ("", False)),
        (b'{"steps": 1}', ("", False)),
    ],
)
def test_a_file_is_what_is_in_it(content, expected):
    assert recognised(content) == expected


def test_a_file_that_is_cut_off_is_still_known():
    for length in range(1, len(TRACE)):
        assert recognised(TRACE[:length]) == ("RunMetadata", False)


def test_a_claim_of_two_gigabytes_is_not_believed():
    with pytest.raises(DamagedError, match="cut off after 6 bytes: 2,147,483,647 bytes"):
        rows(b"\x0a\xff\xff\xff\xff\x07")


# What is in it


@pytest.mark.parametrize("content", [TRACE, STEP_STATS, NODE_STATS.encode()])
def test_rows_stand_under_their_device(content):
    assert rows(content) == [(b"/cpu:0", [b"a", b"b"])]


def test_a_row_has_the_fields_that_are_asked_for():
    file = io.BytesIO(TRACE)
    ((_, pieces),) = protos.read_trace(file, "RunMetadata", False).devices
    assert next(pieces).to_pylist()[0] == {
        "node_name": b"a",
        "all_start_micros": 0,
        "op_end_rel_micros": 0,
        "all_end_rel_micros": 0,
        "memory": [
            {
                "allocator_name": b"cpu",
                "total_bytes": 7,
                "allocation_records": [{"alloc_micros": 0, "alloc_bytes": 7}],
            }
        ],
        "timeline_label": b"a = Op()",
        "all_start_nanos": 5,
        "all_end_rel_nanos": 2,
    }


def test_partition_graphs_come_along():
    file = io.BytesIO(TRACE)
    (graph,) = protos.read_trace(file, "RunMetadata", False).graphs
    assert [(node.name, node.op, list(node.input)) for node in graph.node] == [
        (b"a", b"Op", [b"b"])
    ]


@pytest.mark.parametrize("piece", [1, 7, 20, 64])
def test_rows_are_whole_wherever_the_pieces_end(monkeypatch, piece):
    monkeypatch.setattr(protos, "PIECE", piece)
    assert rows(TRACE) == [(b"/cpu:0", [b"a", b"b"])]


def test_a_device_may_be_named_after_its_rows():
    head, name, stats = STEP_STATS[:2], STEP_STATS[2:10], STEP_STATS[10:]
    assert name == b"\x0a\x06/cpu:0"
    assert rows(head + stats + name) == [(b"/cpu:0", [b"a", b"b"])]


def test_bytes_that_are_not_utf8_come_through_a_text():
    raw = b'dev_stats { device: "\xff" node_stats { node_name: "a\\377" } }'
    assert rows(raw) == [(b"\xff", [b"a\xff"])]


def test_a_file_that_is_cut_off_is_refused():
    before_the_graph = TRACE.index(b"\x1a", len(STEP_STATS))  # which may be missing as a whole
    for length in {*range(1, len(TRACE))} - {before_the_graph}:
        with pytest.raises(DamagedError):
            rows(TRACE[:length])


def test_a_row_that_is_longer_than_its_device_is_refused():
    longer = bytearray(TRACE)
    longer[TRACE.index(b"\x12") + 1] += 100
    with pytest.raises(DamagedError, match="a part is longer than the message around it"):
        rows(bytes(longer))


def nested(levels: int) -> bytes:
    """A StepStats whose last row has groups, one within the other."""
    groups = b"\x1b" * levels + b"\x1c" * levels
    row = wire.framed(2, [b"\x0a\x01b", groups])
    return b"".join(wire.framed(1, [b"\x0a\x06/cpu:0", b"\x12\x03\x0a\x01a" * 10, *row]))


def test_groups_within_groups_end_no_process():
    # Almost all that fit into a piece
    assert rows(nested(500_000)) == [(b"/cpu:0", [b"a"] * 10 + [b"b"])]
    with pytest.raises(DamagedError, match="a row that cannot be read"):
        rows(nested(2_000_000))


@pytest.mark.tensorflow
def test_the_fields_are_those_of_tensorflow():
    from tensorflow.core.protobuf import config_pb2

    compare(protos.message("RunMetadata").DESCRIPTOR, config_pb2.RunMetadata.DESCRIPTOR)


def compare(ours, theirs):
    for field in ours.fields:
        other = theirs.fields_by_name[field.name]
        assert (field.number, field.is_repeated) == (other.number, other.is_repeated)
        if field.message_type:
            compare(field.message_type, other.message_type)
        else:  # texts are bytes here
            assert field.type == (
                field.TYPE_BYTES if other.type == other.TYPE_STRING else other.type
            )
