"""Read: hand-made traces of all ages, damaged ones, and real ones of a LeNet session."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.examples.recordings import metadata as text
from tests.examples.recordings import micros, row
from tflab.analysis import timeline
from tflab.convert import read as reading
from tflab.convert.conversion import TrackSummary, convert
from tflab.errors import TflabError, UsageError
from tflab.records.graph import Node
from tflab.records.timed import OpRun, StepTime
from tflab.runtime import trace

JOB = "/job:localhost/replica:0/task:0"
CPU, GPU = f"{JOB}/device:CPU:0", f"{JOB}/device:GPU:0"
HOUR = 3600 * 10**9

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def read(tmp_path):
    """Reads files with these contents, as so many steps."""

    def written(*contents: bytes, graph: str | None = None) -> reading.Recording:
        files = []
        for index, content in enumerate(contents):
            file = tmp_path / f"{index}.pb"
            file.write_bytes(content)
            files.append(str(file))
        if graph is not None:
            (tmp_path / "graph.pb").write_text(graph)
        return reading.read(files, str(tmp_path / "graph.pb") if graph is not None else None)

    return written


def refusal(read, *contents: bytes, **graph: str) -> str:
    with pytest.raises(TflabError) as error:
        read(*contents, **graph)
    assert "\n" not in str(error.value)
    return str(error.value)


# Steps and runs


def test_a_file_is_a_step_from_the_first_start_to_the_last_end(read):
    second = text((CPU, [row("b", 2_000, 30, "b = Neg(a)"), row("a", 1_000, 5, "a = Const()")]))
    found = read(text((CPU, [row("a", 100, 7, "a = Const()")])), second)
    assert found.steps == (StepTime(0, 100, 7), StepTime(1, 1_000, 1_030))
    assert found.runs == (
        OpRun(0, "a", "Const", CPU, 100, 7),
        OpRun(1, "b", "Neg", CPU, 2_000, 30),
        OpRun(1, "a", "Const", CPU, 1_000, 5),
    )
    assert convert(found).tracks == (TrackSummary(CPU, timeline.OPS, 1, 7),)
    assert found.capture().name == "0-and-1-more"
    assert read(second).capture().name == "0"


def test_a_device_may_stand_in_a_trace_more_than_once(read):
    rows = [row("a", 100, 7)], [row("b", 200, 8)]
    found = read(text((CPU, rows[0]), (GPU, [row("c", 150, 1)]), (CPU, rows[1])))
    assert convert(found).tracks == (
        TrackSummary(CPU, timeline.OPS, 2, 15),
        TrackSummary(GPU, timeline.LAUNCHES, 1, 1),
    )
    # Old traces have microseconds
    found = read(text(("/cpu:0", [micros("a", 1_475_000_000_000_000, 12, "a = Const()")])))
    assert found.runs == (OpRun(0, "a", "Const", "/cpu:0", 1_475_000_000_000_000_000, 12_000),)


# GPUs

NEW = text(
    (CPU, [row("x", 1_000, 500, "x = Const()")]),
    (GPU, [row("conv", 2_000, 900, "conv = Conv2D(x, w)")]),
    ("/device:GPU:0/stream:13", [micros("conv:Conv2D", 3, 40, "winograd regs:32")]),
    ("/device:GPU:0/stream:all", [micros("conv:Conv2D", 3, 40, "winograd regs:32")]),
    ("/device:GPU:0/stream:14<MemcpyH2D>", [micros("x:Const", 2, 5, "MemcpyH2D bytes:4")]),
    ("/device:GPU:0/memcpy", [micros("x:Const", 2, 5, "MemcpyH2D bytes:4")]),
    ("/device:GPU:0/sync", [micros("cuStreamSynchronize", 3, 41, "ThreadId 7")]),
    ("/host:CPU", [micros("conv:Conv2D", 2, 1), micros("ExecutorState::Process", 1, 3)]),
)
COPY = micros("x:Const:MEMCPYHtoD", 2, 5, "MEMCPYHtoD 4 bytes")
OLD = text(  # of 2016: names without `device:`, copies among the kernels, and no labels of these
    (f"{JOB}/cpu:0", [micros("x", 1, 1, "x = Const()")]),
    (f"{JOB}/gpu:0", [micros("conv", 2, 1, "conv = Conv2D(x, w)")]),
    ("/gpu:0/stream:all", [micros("conv:Conv2D", 3, 40)] * 2),
    ("/gpu:0/stream:7", [COPY, micros("conv:Conv2D", 3, 40), micros("conv:Conv2D", 3, 40)]),
    ("/gpu:0/memcpy", [COPY]),
)


def test_on_a_gpu_nothing_is_counted_twice_and_a_kernel_has_the_name_of_its_node(read):
    lines = []
    for title, content in (("A trace of today", NEW), ("A trace of 2016", OLD)):
        found = read(content)
        ran = sorted({f"{run.name} {run.op}" for run in found.runs})
        lines += [title, *map(str, convert(found).tracks), *ran, ""]
    approve("convert-tracks.txt", "\n".join(lines))


@pytest.mark.parametrize(
    "device, name, label, expected",
    [
        (CPU, "mul", "mul = Mul(x, y)", ("mul", "Mul")),
        (CPU, "relu", "relu = _FusedConv2D(x)", ("relu", "_FusedConv2D")),
        (CPU, "relu", "", ("relu", "Relu")),
        (CPU, "relu", "no type in here", ("relu", "Relu")),
        (CPU, "other", "no type in here", ("other", "unknown")),
        (GPU, "mul", "[gpu 1.2MB] mul = Mul(x, y)", ("mul", "Mul")),
        (CPU, "RecvTensor", "[4B] edge_3 from /job:a to b", ("RecvTensor", "RecvTensor")),
        ("/gpu:0/stream:1", "relu:Relu", "void relu<float>()", ("relu", "Relu")),
        ("/gpu:0/stream:1", "relu", "void relu<float>()", ("relu", "Relu")),
        ("/gpu:0/memcpy", "x:Const:MEMCPYHtoD", "MEMCPYHtoD 4 bytes", ("x", "MEMCPYHtoD")),
        ("/gpu:0/sync", "cuStreamSynchronize", "ThreadId 7", ("cuStreamSynchronize", "unknown")),
    ],
)
def test_the_label_has_the_type_that_ran_and_the_graph_has_it_otherwise(
    device, name, label, expected
):
    assert reading.row_types(device, {"relu": "Relu"})(name, label) == expected


# Graphs

GRAPH = 'node { name: "b" op: "Neg" input: "a" } node { name: "a" op: "Const" }'


def test_a_graph_tells_the_types_that_no_label_tells_and_the_edges(read):
    found = read(text((CPU, [row("a", 1, 1), row("b", 2, 1, "b = _Fused(a)")])), graph=GRAPH)
    assert [run.op for run in found.runs] == ["Const", "_Fused"]
    assert [replace(node, outputs=()) for node in found.nodes] == [
        Node("b", "Neg", ("a",)),
        Node("a", "Const"),
    ]


def test_a_trace_may_bring_the_graphs_that_ran(read):
    rows = [row("a", 1, 1), row("b", 2, 1)]
    one = text((CPU, rows), more=f"partition_graphs {{ {GRAPH} }}")
    found = read(one, one)
    assert [run.op for run in found.runs] == ["Const", "Neg"] * 2
    assert [node.name for node in found.nodes] == ["b", "a"]
    # The graph that is named goes before it, and may be another trace's
    assert [node.op for node in read(one, graph='node { name: "a" op: "Mine" }').nodes] == ["Mine"]


def test_a_graph_of_something_else_and_a_trace_without_a_graph_are_refused(read):
    message = refusal(read, text((CPU, [row("mine", 1, 1)])), graph=GRAPH)
    assert "has none of the nodes that ran, such as 'mine'" in message


# What cannot have been


LEFT_OUT = (
    "0.pb', 1 op run omitted because of impossible times or sizes, or a start an hour or more from "
    "the others."
)


def held(allocator: str, content: str) -> str:
    return f'memory {{ allocator_name: "{allocator}" {content} }}'


def allocation(us: int, size: int) -> str:
    return held("cpu", f"allocation_records {{ alloc_micros: {us} alloc_bytes: {size} }}")


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            row("b", start, ns)
            for start, ns in (
                *((100, -7), (2**62 + 1, 0), (-5, 9), (100, 2**62), (2**63 - 1, 2**63 - 1)),
                *((HOUR + 105, 1), (100, HOUR + 1)),
            )
        ),
        *(
            row("b", 100, 7, more=allocation(us, size))
            for us, size in ((2**62, 1), (-1, 1), (1, 2**60), (1, -(2**60)))
        ),
    ],
)
def test_times_and_sizes_that_cannot_be_are_left_out(read, wrong):
    found = read(text((CPU, [row("a", 100, 7), wrong, row("c", 105, 8)])))
    assert [run.name for run in found.runs] == ["a", "c"]
    (note,) = found.notes
    assert note.endswith(LEFT_OUT)


@pytest.mark.parametrize("wrong", [0, 5 * 10**17 + HOUR + 20, 5 * 10**17 - HOUR, 10**18])
def test_a_run_whose_clock_is_an_hour_or_more_off_is_left_out(read, wrong):
    begin = 5 * 10**17
    rows = [row(name, begin + at, 5) for name, at in (("a", 0), ("b", HOUR - 1), ("c", 20))]
    found = read(text((CPU, [row("odd", wrong, 5), *rows])))
    assert [run.name for run in found.runs] == ["a", "b", "c"]
    assert found.steps == (StepTime(0, begin, HOUR + 4),)
    assert found.notes[0].endswith(LEFT_OUT)
    of_two = read(text((CPU, [row("odd", 0, 5), row("a", begin, 5)])))  # a clock that was not read
    assert [run.name for run in of_two.runs] == ["a"]


def test_a_step_with_as_many_op_runs_as_are_recorded_may_be_incomplete(read, monkeypatch):
    monkeypatch.setattr(trace, "MOST_OP_RUNS", 2)
    one, two = (text((CPU, [row(name, 100, 7) for name in names])) for names in ("a", "bc"))
    found = read(one, two, one)
    assert len(found.runs) == 4
    (note,) = found.notes
    assert note.startswith("A step in '") and "1.pb' has 2 op runs or more" in note


# Wrong files


@pytest.mark.parametrize(
    "content",
    [
        *(b"\x89PNG\r\n\x1a\n", b"Dear diary,\n", b"\x0a\x00", b"\x0a\xff\xff\xff\xff\x07", b""),
        b'step_stats { dev_stats { "oops" } }',
    ],
)
def test_a_file_of_something_else_is_refused_in_a_sentence(read, content):
    known = {b"": "is empty", b"\x0a\x00": "has no op runs"}
    what = known.get(content, "is not a RunMetadata, or is damaged")
    assert f"{what}. convert reads a RunMetadata" in refusal(read, content)


def test_a_trace_without_op_runs_or_with_impossible_numbers_is_refused(read):
    nothing = refusal(read, text(("/host:CPU", [row("a", 1, 1)])))
    assert "has no op runs. convert reads a RunMetadata" in nothing
    for wrong in (
        micros("b", 2**62, 7),
        row("b", 100, 7, more=held("a", f"total_bytes: {2**63 - 1}") * 2),
    ):
        assert "has times or sizes that do not fit 64 bits" in refusal(read, text((CPU, [wrong])))


def test_wrong_paths_are_refused_in_a_sentence(tmp_path):
    for path, reason in (
        (str(tmp_path), "Is a directory"),
        (str(tmp_path / "none.pb"), "No such file"),
        ("/proc/self/mem", "Input/output error"),  # opens, but cannot be read at its beginning
    ):
        with pytest.raises(UsageError, match=reason):
            reading.read([path])


# Real traces


@pytest.fixture(scope="module")
def metadata(captured):
    """The RunMetadata of a LeNet training step."""
    return captured("lenet")[1].trace


def test_a_real_trace_is_read_as_tensorflow_reads_it(read, metadata):
    expected = tuple(trace.op_runs(0, metadata.step_stats, {}))
    found = read(metadata.SerializeToString())
    assert (found.runs, found.notes) == (expected, ())


def test_partition_graphs_tell_nodes_and_transfers_as_the_placement_does(read, walked, captured):
    placement, trace = walked("toy", 2)["placement"], captured("toy", 2)[1].trace
    metadata = type(trace)()
    metadata.CopyFrom(trace)
    metadata.partition_graphs.extend(placement.partition_graphs)
    found = read(metadata.SerializeToString())
    assert [replace(node, outputs=()) for node in found.nodes] == [
        replace(node, outputs=(), source=None, phase="forward", forward_source=None)
        for node in placement.nodes
    ]
    assert found.transfers == tuple(
        replace(sent, shape=None, bytes=None) for sent in placement.transfers
    )
    assert found.transfers


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_trace_is_read_or_refused(tmp_path_factory, metadata, data):
    damaged = bytearray(metadata.SerializeToString())
    for bit in data.draw(st.lists(st.integers(0, 8 * len(damaged) - 1), max_size=8)):
        damaged[bit // 8] ^= 1 << bit % 8
    cut = data.draw(st.one_of(st.none(), st.integers(0, len(damaged))))
    file = tmp_path_factory.getbasetemp() / "damaged.pb"
    file.write_bytes(damaged[:cut])
    try:
        found = reading.read([str(file)])
    except TflabError as error:
        assert "\n" not in str(error)
    else:
        assert found.runs
        assert all(0 <= run.start_ns <= run.start_ns + run.duration_ns for run in found.runs)
