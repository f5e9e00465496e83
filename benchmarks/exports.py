"""From RunMetadata to tables, XSpace and Chrome trace, beside TensorFlow's own tools.

    python -m benchmarks.exports

The traces are those of LeNet's training steps, put together into one step. Every export is made in
a process of its own, whose memory is that of this export.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from benchmarks import report, resident, turns
from tflab.records.blocks import Block, Column, Table
from tflab.runtime import processes
from tflab.units import size

ROUNDS = {10_000: 5, 100_000: 3}  # op runs in a trace -> rounds; peers would not go on from there
PEER = "Timeline"


@dataclass(frozen=True)
class Measured:
    seconds: float  # on the wall clock
    peak: int  # bytes, the peak during reading and writing


@dataclass(frozen=True)
class Export:
    op_runs: int
    tool: str
    rounds: list[Measured]


def measure(quick: bool) -> list[Export]:
    from benchmarks import lenet

    exports = []
    with TemporaryDirectory(prefix="tflab-") as folder, lenet.steps("training") as steps:
        graph, small, file = (str(Path(folder, name)) for name in ("graph", "small", "trace"))
        Path(graph).write_bytes(steps.graph.as_graph_def().SerializeToString())
        write_trace(small, steps, 1)
        for least_op_runs, rounds in ({1_500: 1} if quick else ROUNDS).items():
            op_runs = write_trace(file, steps, least_op_runs)
            works = {
                tool: partial(processes.call, "benchmarks.exports:once", tool, small, file)
                for tool in TOOLS
            }
            for tool, times in turns.take(works, rounds).items():
                exports.append(Export(op_runs, tool, times))
    return exports


def write_trace(file: str, steps: Any, least_op_runs: int) -> int:
    """Write traced steps as one step of at least this number of op runs; return the number."""
    import tensorflow.compat.v1 as tf1

    whole = tf1.RunMetadata()
    rows = None
    for values in steps.batches(1, least_op_runs):
        metadata = tf1.RunMetadata()
        steps.traced(*values, run_metadata=metadata)
        (device,) = metadata.step_stats.dev_stats
        rows = rows or whole.step_stats.dev_stats.add(device=device.device)
        rows.node_stats.extend(device.node_stats)
        if len(rows.node_stats) >= least_op_runs:
            break
    assert rows is not None
    Path(file).write_bytes(whole.SerializeToString())
    return len(rows.node_stats)


# In a separate process


def once(tool: str, small: str, file: str) -> Measured:
    """The time that a tool takes to write, and the memory of reading and writing."""
    read, write = TOOLS[tool]
    write(read(small), small)  # so that imports are not timed
    resident.forget_peak()
    before = resident.now()
    source = read(file)
    seconds = turns.seconds(partial(write, source, file))
    return Measured(seconds, resident.peak() - before)


def records(file: str) -> Any:
    from tflab.convert import read

    return read.read([file])


def table(file: str) -> None:
    from tflab.convert import conversion

    conversion.convert(records(file))


def to_xspace(trace: Any, file: str) -> None:
    from tflab.exporters import xspace

    with TemporaryDirectory(prefix="tflab-") as logdir:
        xspace.write(logdir, [trace.capture()])


def chrome_trace(trace: Any, file: str) -> None:
    from tflab.exporters import chrome_trace

    with open(f"{file}.json", "w") as stream:
        chrome_trace.write(stream, [trace.capture()])


def step_stats(file: str) -> Any:
    import tensorflow.compat.v1 as tf1

    return tf1.RunMetadata.FromString(Path(file).read_bytes()).step_stats


def timeline(stats: Any, file: str) -> None:
    from tensorflow.python.client.timeline import Timeline

    Path(f"{file}.json").write_text(Timeline(stats).generate_chrome_trace_format())


def profile(stats: Any, file: str) -> None:
    import tensorflow.compat.v1 as tf1

    metadata = tf1.RunMetadata(step_stats=stats)
    options = tf1.profiler.ProfileOptionBuilder(
        tf1.profiler.ProfileOptionBuilder.time_and_memory()
    ).with_empty_output()
    graph = tf1.GraphDef.FromString(Path(file).with_name("graph").read_bytes())
    with tf1.Graph().as_default() as built:
        tf1.import_graph_def(graph, name="")
    tf1.profiler.profile(built, metadata, cmd="op", options=options.build())


def to_logdir(file: str) -> str:
    from tflab.exporters import xspace

    logdir = mkdtemp(dir=Path(file).parent)  # which the benchmark removes
    return str(xspace.write(logdir, [records(file).capture()])[0])


def xprof(path: str, file: str) -> None:
    from xprof.convert import raw_to_tool_data

    raw_to_tool_data.xspace_to_tool_data([path], "framework_op_stats", {})


TOOLS = {  # (its untimed reading, its writing)
    "file to records": (lambda file: file, lambda file, _: records(file)),
    "file to table": (lambda file: file, lambda file, _: table(file)),
    "records to XSpace": (records, to_xspace),
    "records to Chrome trace": (records, chrome_trace),
    PEER: (step_stats, timeline),
    "profiler.profile": (step_stats, profile),
    "XProf: XSpace to table of ops": (to_logdir, xprof),
}


# The tables


def blocks(exports: list[Export]) -> Iterator[Block]:
    peer = {row.op_runs: seconds(row) for row in exports if row.tool == PEER}

    def ratio(row: Export) -> str:
        return turns.ratio(seconds(row), peer[row.op_runs]) if row.op_runs in peer else ""

    yield Table(
        f"Op runs of LeNet's training, exported ({PEER} is 1)",
        (
            Column("op runs", lambda row: f"{row.op_runs:,}", right=True),
            Column("tool", lambda row: row.tool),
            Column("time", lambda row: turns.duration(seconds(row)), right=True),
            Column(
                "a second",
                lambda row: f"{row.op_runs / turns.median(seconds(row)):,.0f}",
                right=True,
            ),
            Column(
                "memory at most",
                lambda row: size(turns.median([run.peak for run in row.rounds])),
                right=True,
            ),
            Column("ratio", ratio, right=True),
        ),
        tuple(exports),
    )


def seconds(row: Export) -> list[float]:
    return [run.seconds for run in row.rounds]


if __name__ == "__main__":
    report.show("exports")
