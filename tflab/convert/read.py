"""Read recorded traces: files of RunMetadata, or event files, become records.

Each RunMetadata is a step. It does not contain the duration of its `session.run`, so a step extends
from the start of its first op to the end of its last. One file at a time is in memory as a message;
of all files, only the columns of their op runs are kept.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tflab import units, untrusted
from tflab.analysis import op_runs, tracks
from tflab.analysis.memory import US
from tflab.analysis.op_runs import OpRuns
from tflab.cli import terminal
from tflab.errors import TflabError, UsageError
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import Capture, OpRun, StepTime
from tflab.runtime import tf_import, trace
from tflab.units import plural

HOUR_NS = 3600 * 10**9  # no step that anyone traces takes longer
LATEST_NS = 2**62  # the year 2116: the formats of other tools have no later times
MOST_BYTES = 2**48  # 256 TiB: no op requests more
LARGEST_TEXT = 2**28  # bytes, which take minutes to parse
FIRST_FIELD = re.compile(rb"(?:\s|#[^\n]*\n)*(\w+)\s*[:{<]")  # of a message as text
TIMELINE = re.compile(rb'\s*[\[{].*"(traceEvents|ph)"\s*:', re.DOTALL)
EVENTS = b"brain.Event:"  # in the first record of an event file
HEAD = 2**16  # bytes of a file in which such a mark is searched
OP_TYPE = re.compile(r"[A-Za-z_]\w*")
RPC = "RecvTensor"  # a transfer between processes; its label has no op
WANTED = "give the output of run_metadata.SerializeToString(), or its text form"
STEP_WANTED = "convert takes the RunMetadata of a step"


@dataclass(frozen=True)
class TrackSummary:
    """The rows under one name in a trace, which may be a part of a device (see `tracks`)."""

    device: str
    kind: str
    op_runs: int
    total_ns: int
    left_out: int  # rows that are under another name as well


@dataclass(frozen=True)
class Recording:
    """The content of the files of a conversion."""

    files: tuple[str, ...]
    labels: tuple[str, ...]  # name of each step: its file, or its tag in an event file
    steps: tuple[StepTime, ...]
    runs: Sequence[OpRun] = field(repr=False)  # step by step, each once
    tracks: tuple[TrackSummary, ...] = ()
    nodes: tuple[Node, ...] = field(default=(), repr=False)
    transfers: tuple[Transfer, ...] = ()
    notes: tuple[str, ...] = ()  # problems in the files, and what was done about them

    def capture(self) -> Capture:
        """Return the steps as a capture for exporters, named after the first file."""
        more = f"-and-{len(self.files) - 1}-more" if len(self.files) > 1 else ""
        return Capture(Path(self.files[0]).stem + more, self.steps, self.runs)


def read(files: Sequence[str], graph: str | None = None) -> Recording:
    """Read the steps in these files, in this order, and the graph that ran, if there is one.

    `graph` is anything that `--model` of the other commands accepts. Without it, the graph is that
    of the partition graphs in the files, or else the one that an event file has next to its traces.
    Raises UsageError for a file with other content, TflabError for a damaged file and for one
    without op runs.
    """
    beside = Graphs(graphs_of(graph) if graph else graphs_in_event_files(files))
    ran = Graphs(())
    steps: list[StepTime] = []
    labels: list[str] = []
    notes: list[str] = []
    parts: list[OpRuns] = []
    left_out: Counter[str] = Counter()
    for path in terminal.track("reading", files, len(files)):
        for label, metadata in traces_in(path):
            ran.add(metadata.partition_graphs)
            recorded = by_device(len(steps), metadata.step_stats, beside.types | ran.types)
            kept = tracks.without_repeats(recorded)
            left_out.update({name: len(recorded[name]) - len(kept[name]) for name in recorded})
            own, note = possible_runs(path, op_runs.concatenated([*kept.values()]))
            notes += [*note, *incomplete(path, metadata.step_stats)]
            steps.append(span(len(steps), own))
            labels.append(label)
            parts.append(own)
            del metadata  # before the next one is read
    runs = op_runs.concatenated(parts)
    if graph and not any(run[0] in beside.nodes for run in runs.kinds):
        raise UsageError(
            f"The graph '{graph}' has none of the nodes that ran, such as '{runs[-1].name}'; "
            "give the graph that was traced."
        )
    shown = beside if graph or not ran.nodes else ran
    return Recording(
        files=tuple(files),
        labels=tuple(labels),
        steps=tuple(steps),
        runs=runs,
        tracks=tuple(summaries(runs, left_out)),
        nodes=tuple(shown.nodes.values()),
        transfers=tuple(shown.transfers),
        notes=tuple(notes),
    )


# Op runs


def by_device(step: int, step_stats: Any, types: Mapping[str, str]) -> dict[str, OpRuns]:
    """Return all rows of a step by device. A trace may contain a device more than once."""
    rows: dict[str, list[Any]] = {}
    for device in step_stats.dev_stats:
        rows.setdefault(device.device, []).append(device.node_stats)
    recorded = {}
    for device, own in rows.items():
        labels = RowTypes(device, types)
        runs = partial(trace.device_runs, step, device, labels=labels)
        try:
            recorded[device] = op_runs.of(runs(chain.from_iterable(own)))
        except OverflowError:
            recorded[device] = op_runs.of(map(in_64_bits, runs(chain.from_iterable(own))))
    return recorded


def in_64_bits(run: OpRun) -> OpRun:
    """Return the run with -1, which is impossible, for numbers that are too large for a column."""

    def whole(number: int) -> int:
        return number if abs(number) <= LATEST_NS else -1

    start, duration, requested = run.start_ns, run.duration_ns, run.requested_bytes
    return run._replace(
        start_ns=whole(start), duration_ns=whole(duration), requested_bytes=whole(requested)
    )


class RowTypes(dict[tuple[str, str], tuple[str, str]]):
    """Node and op type by the name and the label of a row of one device.

    The label has the type that ran. The graph may be from before fusion, which reuses names, so it
    is used only if the label has no type.
    """

    def __init__(self, device: str, types: Mapping[str, str]) -> None:
        self._kind, self._types = tracks.track_kind(device), types

    def __missing__(self, row: tuple[str, str]) -> tuple[str, str]:
        name, label = row
        if self._kind in (tracks.OPS, tracks.LAUNCHES):
            op = RPC if name == RPC else trace.labelled_type(label)
            known = bool(label and OP_TYPE.fullmatch(op))
        else:
            name, op = tracks.node_and_op(name, label)
            known = op != "unknown"
        self[row] = name, op if known else self._types.get(name, "unknown")
        return self[row]


def possible_runs(path: str, runs: OpRuns) -> tuple[OpRuns, list[str]]:
    """Return the op runs with possible times and sizes, and a note if others were omitted.

    A run whose start is an hour or more from the median start of its step has a wrong clock.
    """
    kept = runs.where(possible(runs))
    if not kept:
        raise TflabError(f"'{path}' has no op runs. Record the step with trace_level=FULL_TRACE.")
    middle = int(np.sort(kept.start_ns)[(len(kept) - 1) // 2])
    kept = kept.where(np.abs(kept.start_ns - middle) < HOUR_NS)
    if len(kept) == len(runs):
        return kept, []
    wrong = plural(len(runs) - len(kept), "op run")
    return kept, [
        f"In '{path}', {wrong} omitted because of impossible times or sizes, or a start an hour or "
        "more from the others."
    ]


def possible(runs: OpRuns) -> np.ndarray:
    """Return for each run whether a clock and an allocator can have given its times and sizes."""

    def within(column: np.ndarray, low: int, high: int) -> np.ndarray:
        return (low <= column) & (column <= high)

    events = runs.allocations
    right = within(runs.start_ns, 0, LATEST_NS) & within(runs.duration_ns, 0, HOUR_NS)
    right &= within(runs.requested_bytes, 0, MOST_BYTES)
    wrong = ~within(events.us, 0, LATEST_NS // US) | ~within(events.bytes, -MOST_BYTES, MOST_BYTES)
    right[events.run[wrong]] = False
    return right


def incomplete(path: str, step_stats: Any) -> Iterator[str]:
    """Yield a note if op runs may be missing from a step."""
    if trace.is_incomplete(step_stats):
        yield (
            f"A step in '{path}' has {trace.MOST_OP_RUNS:,} op runs or more, and TensorFlow "
            "records no more. Those that ended later are missing."
        )


def span(step: int, runs: OpRuns) -> StepTime:
    """Return the step from the first start to the last end."""
    start = int(runs.start_ns.min())
    return StepTime(step, start, int((runs.start_ns + runs.duration_ns).max()) - start)


def summaries(runs: OpRuns, left_out: Mapping[str, int]) -> Iterator[TrackSummary]:
    """Yield the total of every name that has rows in a trace, in the order of the trace. Totals of
    different kinds of tracks must not be added."""
    own = runs.by_device()
    for device, repeated in left_out.items():
        kept = own.get(device, runs[:0])
        if kept or repeated:
            kind = tracks.track_kind(device) if kept else tracks.REPEATS
            yield TrackSummary(device, kind, len(kept), int(kept.duration_ns.sum()), repeated)


# Graphs


class Graphs:
    """The nodes and the transfers in GraphDefs; of several nodes with one name, the first."""

    def __init__(self, graphs: Iterable[Any]) -> None:
        self.nodes: dict[str, Node] = {}
        self.types: dict[str, str] = {}
        self.transfers: dict[Transfer, None] = {}
        self.add(graphs)

    def add(self, graphs: Iterable[Any]) -> None:
        from tflab.runtime import nodes

        graphs = list(graphs)
        for node in (node for graph in graphs for node in nodes.from_graph_def(graph, {}, {})):
            self.nodes.setdefault(node.name, node)
            self.types.setdefault(node.name, node.op)
        self.transfers |= dict.fromkeys(nodes.transfers(graphs, {}))


def graphs_of(name: str) -> list[Any]:
    """Return the GraphDefs of a file (of a RunMetadata, its partition graphs) or of a model.

    Raises UsageError if there is no such file or model, or it has no graph.
    """
    if os.path.isfile(name):
        data = content(name)
        if EVENTS in data[:HEAD]:
            return partition_graphs(name, graphs_in_event_files([name]))
        kind, message = parsed(name, data)
        if kind == "GraphDef":
            return [message]
        if kind:
            return partition_graphs(name, list(getattr(message, "partition_graphs", ())))
    return [of_model(name)]


def partition_graphs(name: str, graphs: list[Any]) -> list[Any]:
    if not graphs:
        raise UsageError(
            f"'{name}' is not a GraphDef. Give the output of "
            "graph.as_graph_def().SerializeToString(), its text form, or anything that --model of "
            "the other commands takes."
        )
    return graphs


def of_model(name: str) -> Any:
    """Return the graph of a file that TensorFlow reads, or of a model with its training step."""
    from tflab import models

    if models.is_file(name):
        from tflab.models import graph_file

        return graph_file.read(Path(name)).graph_def
    return built(models.find(name))


def built(function: Any) -> Any:
    """Return the graph that a model function builds, with gradients and updates if it has an
    optimiser."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        model = function()
        if model.loss is not None and model.optimizer is not None:
            pairs = model.optimizer.compute_gradients(model.loss)
            model.optimizer.apply_gradients(pairs, name="train")
    return graph.as_graph_def()


# Files


def traces_in(path: str) -> Iterator[tuple[str, Any]]:
    """Yield the traces in a file, each with its name: one in a RunMetadata, one for each tag in an
    event file."""
    data = content(path)
    if EVENTS in data[:HEAD]:
        del data
        yield from traces_in_events(path)
        return
    if not data:
        raise UsageError(f"'{path}' is empty; {WANTED}.")
    kind, message = parsed(path, data)
    if kind == "GraphDef":
        raise UsageError(
            f"'{path}' is a GraphDef, not a trace. Give it as --graph, together with a RunMetadata."
        )
    if not kind:
        raise UsageError(f"'{path}' {other_kind(data)}.")
    del data
    yield Path(path).name, message


def content(path: str) -> bytes:
    """Return the bytes of a file. Errors become sentences."""
    try:
        return untrusted.content(path)
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error


def kinds() -> dict[str, Any]:
    """Return the messages that a file may contain, by name."""
    tf_import.load()
    from tensorflow.core.framework import graph_pb2, step_stats_pb2
    from tensorflow.core.protobuf import config_pb2

    return {
        "RunMetadata": config_pb2.RunMetadata,
        "StepStats": step_stats_pb2.StepStats,
        "GraphDef": graph_pb2.GraphDef,
    }


def parsed(path: str, data: bytes) -> tuple[str, Any]:
    """Return the kind of message in a file and the message, a bare StepStats as a RunMetadata; ""
    and None if it has none of `kinds`.

    The content decides, not the name of the file. The parser takes some bytes for several kinds,
    of which one has content.
    """
    from google.protobuf.message import DecodeError

    first = FIRST_FIELD.match(data[:HEAD])
    for name, kind in kinds().items():
        if first and first[1].decode() in kind.DESCRIPTOR.fields_by_name:
            return name, as_metadata(name, parsed_text(path, data, kind))
    for name, kind in kinds().items():
        try:
            message = as_metadata(name, kind.FromString(data))
        except DecodeError:
            continue
        if has_content(name, message):
            return name, message
    return "", None


def parsed_text(path: str, data: bytes, kind: Any) -> Any:
    """Return a message from its text form. This takes about 400 us per row, because the parser is
    pure Python."""
    from google.protobuf import text_format

    if len(data) > LARGEST_TEXT:
        raise TflabError(f"'{path}' is text of over {units.size(LARGEST_TEXT)}; give it in binary.")
    try:
        return text_format.Parse(data.decode(), kind(), allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        name = kind.DESCRIPTOR.name
        raise TflabError(f"'{path}' is text that cannot be read as a {name}: {reason}.") from error


def as_metadata(name: str, message: Any) -> Any:
    return kinds()["RunMetadata"](step_stats=message) if name == "StepStats" else message


def has_content(name: str, message: Any) -> bool:
    if name == "GraphDef":
        return bool(message.node) and all(node.name and node.op for node in message.node)
    devices = message.step_stats.dev_stats
    return bool(message.partition_graphs) or any(device.node_stats for device in devices)


def other_kind(data: bytes) -> str:
    """Return what is wrong with a file that has none of the messages, as the end of a sentence."""
    from google.protobuf.message import DecodeError

    from tflab.runtime import private

    if data.startswith(b"\x1f\x8b"):
        return f"is compressed with gzip. Decompress it first: {STEP_WANTED}"
    if TIMELINE.match(data[:HEAD]):
        return (
            "is a timeline in JSON; open it in ui.perfetto.dev or chrome://tracing. "
            f"{STEP_WANTED}, from which it was made"
        )
    try:
        planes = private.xspace(data).planes
    except DecodeError:
        planes = ()
    if any(plane.name and (plane.lines or plane.stats) for plane in planes):
        return (
            "is an XSpace, as TensorBoard's profiler writes it; open its logdir in TensorBoard "
            f"Profile. {STEP_WANTED}"
        )
    return (
        "cannot be read as a RunMetadata, a StepStats, a GraphDef or an event file: it has no op "
        f"runs, is cut off or damaged, or is something else; {WANTED}"
    )


# Event files of TensorBoard: `add_run_metadata` of a FileWriter adds each trace under a tag


def traces_in_events(path: str) -> Iterator[tuple[str, Any]]:
    """Yield the traces in an event file in their order."""
    from google.protobuf.message import DecodeError

    count = 0
    for event in events(path):
        tagged = event.tagged_run_metadata
        if not tagged.run_metadata:
            continue
        count += 1
        try:
            metadata = kinds()["RunMetadata"].FromString(tagged.run_metadata)
        except DecodeError as error:
            raise TflabError(
                f"'{path}' has a RunMetadata that cannot be read, under '{tagged.tag}'."
            ) from error
        yield tagged.tag, metadata
    if not count:
        raise UsageError(
            f"'{path}' is an event file of TensorBoard without a complete trace. "
            "FileWriter.add_run_metadata adds traces."
        )


def graphs_in_event_files(paths: Iterable[str]) -> list[Any]:
    """Return the graphs in event files, as the program built them."""
    graphs = []
    for path in paths:
        if os.path.isfile(path):
            with untrusted.opened(path) as file:
                head = file.read(HEAD)
            if EVENTS in head:
                found = (event.graph_def for event in events(path))
                graphs += [kinds()["GraphDef"].FromString(graph) for graph in found if graph]
    return graphs


def events(path: str) -> Iterator[Any]:
    """Yield the events of a file. An incomplete last one, of a file that is still being written, is
    omitted."""
    tf_import.load()
    import tensorflow as tf
    from tensorflow.core.util import event_pb2

    try:
        for record in tf.compat.v1.io.tf_record_iterator(path):
            yield event_pb2.Event.FromString(record)
    except tf.errors.DataLossError as error:
        if "truncated" not in error.message:
            raise TflabError(
                f"'{path}' is an event file that is damaged: {error.message}."
            ) from error
