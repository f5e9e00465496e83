"""From RunMetadata to tables, XSpace and Chrome trace, beside TensorFlow's own tools.

    python -m benchmarks.exports

The traces are those of LeNet's training steps, put together into one step. Every export is made in
a process of its own, whose memory is that of this export. For ten million op runs there are ten
files, each of a million op runs that were recorded once and moved in time.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np

from benchmarks import report, resident, turns
from tflab import units
from tflab.records.blocks import Block, Column, Table
from tflab.runtime import child
from tflab.units import size

ROUNDS = {10_000: 5, 100_000: 3}  # op runs in a trace -> rounds; peers would not go on from there
PEER = "Timeline"
GROWTH = (1, 3, 10)  # files that are converted together
CHECKED = 30  # files for which time and memory are predicted from the growth, and then measured
COPIES = 10  # of what was recorded, in each of them
FORMATS = ("text", "chrome", "xspace")
TIMES = {8: (0x08, 0x10, 0x48), 9: (0x68, 0x01)}  # bytes of a time in a trace -> tags before it


@dataclass(frozen=True)
class Measured:
    seconds: float  # on the wall clock
    processor: float  # seconds of processor time, in the process and for it
    peak: int  # bytes, the peak during reading and writing


@dataclass(frozen=True)
class Export:
    op_runs: int
    tool: str
    rounds: list[Measured]


@dataclass(frozen=True)
class Converted:
    """What one `convert` took."""

    op_runs: int
    files: int
    to: str
    measured: Measured


def measure(quick: bool) -> tuple[list[Export], list[Converted]]:
    from benchmarks import lenet

    exports = []
    with TemporaryDirectory(prefix="tflab-") as folder, lenet.steps("training") as steps:
        graph, small, file = (str(Path(folder, name)) for name in ("graph", "small", "trace"))
        Path(graph).write_bytes(steps.graph.as_graph_def().SerializeToString())
        write_trace(small, steps, 1)
        for least_op_runs, rounds in ({1_500: 1} if quick else ROUNDS).items():
            op_runs = write_trace(file, steps, least_op_runs)
            works = {
                tool: partial(child.call, "benchmarks.exports:once", tool, small, file, graph)
                for tool in TOOLS
            }
            for tool, times in turns.take(works, rounds).items():
                exports.append(Export(op_runs, tool, times))
        return exports, growth(file, op_runs, quick)


def growth(trace: str, op_runs: int, quick: bool) -> list[Converted]:
    """The growth of `convert` with files that are made from this trace, each once."""
    counts, last = ((1,), 2) if quick else (GROWTH, CHECKED)
    files = [moved(trace, f"{trace}-{number}", number) for number in range(last)]
    converted = []
    for count, to in [*product(counts, FORMATS), (last, FORMATS[0])]:
        work = "benchmarks.exports:convert", to, trace, files[:count], f"{trace}-{count}-{to}"
        converted.append(Converted(count * COPIES * op_runs, count, to, child.call(*work)))
    return converted


def moved(source: str, target: str, number: int) -> str:
    """Write COPIES of a trace one after the other in time, all after those of lower numbers."""
    from tflab.convert import fields
    from tflab.exporters.xspace import wire

    with open(source, "rb") as file:
        ((_, *step),) = fields.whole_fields(file, 0, Path(source).stat().st_size)
        ((_, *device),) = fields.whole_fields(file, *step)
        rows = fields.content(file, *device)
    places = {length: places_of_times(rows, length) for length in TIMES}
    data = np.frombuffer(rows, np.uint8)
    us = numbers_at(data, places[8], 8)
    length_us = int(us.max() - us.min()) + 1_000
    parts = []
    for copy in range(COPIES):
        later_us = (number * COPIES + copy) * length_us
        changed = data.copy()
        for length, unit in ((8, 1), (9, 1000)):
            times = numbers_at(data, places[length], length) + later_us * unit
            for byte in range(length):
                more = 0x80 * (byte < length - 1)
                changed[places[length] + byte] = times >> 7 * byte & 0x7F | more
        parts.append(changed.tobytes())
    with open(target, "wb") as stream:
        stream.writelines(wire.framed(1, wire.framed(1, parts)))
    return target


def places_of_times(rows: bytes, size: int) -> np.ndarray:
    """Where the numbers of this many bytes are that follow the tag of a time."""
    data = np.frombuffer(rows, np.uint8)
    last = np.flatnonzero(data < 0x80)
    places = last[np.diff(last, prepend=-1) == size] - size + 1
    return places[np.isin(data[places - 1], TIMES[size])]


def numbers_at(data: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    found: np.ndarray = np.zeros(len(places), np.int64)
    for byte in range(size):
        found |= (data[places + byte].astype(np.int64) & 0x7F) << 7 * byte
    return found


def write_trace(file: str, steps: Any, least_op_runs: int) -> int:
    """Write traced steps as one step of at least this number of op runs; return the number."""
    import tensorflow.compat.v1 as tf1

    from tflab.exporters.xspace import wire

    parts: list[bytes] = []
    op_runs = 0
    for values in steps.batches(1, least_op_runs):
        metadata = tf1.RunMetadata()
        steps.traced(*values, run_metadata=metadata)
        (device,) = metadata.step_stats.dev_stats
        parts.append(device.SerializeToString())  # concatenated they are one message
        op_runs += len(device.node_stats)
        if op_runs >= least_op_runs:
            break
    with open(file, "wb") as stream:
        stream.writelines(wire.framed(1, wire.framed(1, parts)))
    return op_runs


# In a separate process


def once(tool: str, small: str, file: str, graph: str) -> Measured:
    """The time that a tool takes to write, and the memory of reading and writing."""
    read, write = TOOLS[tool]
    write(read(small, graph), small)  # so that imports are not timed
    resident.forget_peak()
    before = resident.now()
    source = read(file, graph)
    seconds, processor = timed(partial(write, source, file))
    return Measured(seconds, processor, resident.peak() - before)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall clock, and of processor time."""
    before = time.process_time()
    seconds = turns.seconds(work)
    return seconds, time.process_time() - before


def convert(to: str, small: str, files: list[str], out: str) -> Measured:
    """The time of a whole `convert`, without imports, and the memory of its process."""
    from tflab.convert import __main__ as command

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        command.main([small, "--to", to, "--out", f"{out}-small"])
        resident.forget_peak()
        work = partial(command.main, [*files, "--to", to, "--out", out])
        seconds, processor = timed(work)
    peak = resident.peak()
    (shutil.rmtree if Path(out).is_dir() else os.unlink)(out)
    return Measured(seconds, processor, peak)


def records(file: str, graph: str | None = None) -> Any:
    from tflab.convert import reading

    return reading.read([file], graph)


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
        chrome_trace.write(stream, [trace.capture()], trace.nodes)


def step_stats(file: str, graph: str) -> Any:
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


def to_logdir(file: str, graph: str) -> str:
    from tflab.exporters import xspace

    logdir = mkdtemp(dir=Path(file).parent)  # which the benchmark removes
    return str(xspace.write(logdir, [records(file).capture()])[0])


def xprof(path: str, file: str) -> None:
    from xprof.convert import raw_to_tool_data

    raw_to_tool_data.xspace_to_tool_data([path], "framework_op_stats", {})


TOOLS = {  # (its untimed reading, its writing)
    "file to records": (lambda file, graph: file, lambda file, _: records(file)),
    "file to table": (lambda file, graph: file, lambda file, _: table(file)),
    "records to XSpace": (lambda file, graph: records(file), to_xspace),
    "records to Chrome trace": (lambda file, graph: records(file), chrome_trace),
    "the same with arrows": (records, chrome_trace),
    PEER: (step_stats, timeline),
    "profiler.profile": (step_stats, profile),
    "XProf: XSpace to table of ops": (to_logdir, xprof),
}


# The tables


def blocks(measured: tuple[list[Export], list[Converted]]) -> Iterator[Block]:
    exports, converted = measured
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
    yield Table(
        "Traces of a million op runs each, converted together by one command (asked for: 1,000,000 "
        "a second of processor time to a table, 400,000 to the others, 500 MB)",
        (
            Column("op runs", lambda row: f"{row.op_runs:,}", right=True),
            Column("files", lambda row: str(row.files), right=True),
            Column("--to", lambda row: row.to),
            Column("time", lambda row: units.time(1e9 * row.measured.seconds), right=True),
            Column(
                "processor time",
                lambda row: units.time(1e9 * row.measured.processor),
                right=True,
            ),
            Column("a second of it", a_second, right=True),
            Column("memory of its process", lambda row: size(row.measured.peak), right=True),
        ),
        tuple(converted),
    )
    yield checked(converted)


def a_second(row: Converted) -> str:
    """Op runs in a second of processor time."""
    return f"{row.op_runs / row.measured.processor:,.0f}"


def checked(converted: list[Converted]) -> str:
    """The last table as predicted from those before, and as measured: processor time grows with
    the op runs, memory does not."""
    *grown, last = [row for row in converted if row.to == FORMATS[0]]
    low, high = grown[0], grown[-1]
    files = max(high.files - low.files, 1)
    slope = (high.measured.processor - low.measured.processor) / files
    expected = high.measured.processor + slope * (last.files - high.files)
    most = max(row.measured.peak for row in grown)
    return (
        f"A table of {last.op_runs:,} op runs: predicted from {low.op_runs:,} to {high.op_runs:,}, "
        f"{units.time(1e9 * expected)} of processor time and at most {size(most)}; measured, "
        f"{units.time(1e9 * last.measured.processor)} and {size(last.measured.peak)}."
    )


def seconds(row: Export) -> list[float]:
    return [run.seconds for run in row.rounds]


if __name__ == "__main__":
    report.show("exports")
