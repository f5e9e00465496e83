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
from contextlib import contextmanager, suppress
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
ADDS = "FileWriter.add_run_metadata adds traces"
INCOMPLETE = (
    "A step in '{}' has {:,} op runs or more, and TensorFlow records no more. Those that ended "
    "later are missing."
)


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

    `graph` is anything that `--model` of the other commands accepts, or an event file. Without it,
    the graph is that of the partition graphs in the files, or else the one that an event file has
    next to its traces.
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
            notes += note
            if trace.is_incomplete(metadata.step_stats):
                notes.append(INCOMPLETE.format(path, trace.MOST_OP_RUNS))
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

    The runs of a step start within an hour: that in which most of them start and, if there are
    several, the latest, because a clock that was not read is 0.
    """
    kept = runs.where(possible(runs))
    if not kept:
        raise TflabError(f"'{path}' has no op runs. Record the step with trace_level=FULL_TRACE.")
    starts = np.sort(kept.start_ns)
    within = starts.searchsorted(starts + HOUR_NS) - np.arange(len(starts))
    first = starts[np.flatnonzero(within == within.max())[-1]]
    kept = kept.where((first <= kept.start_ns) & (kept.start_ns - first < HOUR_NS))
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
    """Return the GraphDefs of an event file, of another file with a graph, or of a model with its
    training step.

    Raises UsageError if there is no such file or model, or it has no graph.
    """
    from tflab import models

    if os.path.isfile(name) and is_event_file(name):
        if graphs := graphs_in_event_files([name]):
            return graphs
        raise UsageError(
            f"'{name}' is an event file without a graph. FileWriter(logdir, graph) writes one."
        )
    if not models.is_file(name):
        return [built(models.find(name))]
    if name.endswith(models.KERAS):
        raise UsageError(
            f"'{name}' is a Keras model, and a file of it has no graph that could have run. Give "
            "the graph that ran, such as graph.as_graph_def().SerializeToString()."
        )
    from tflab.models import graph_file

    return [graph_file.read(Path(name)).graph_def]


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
    with sentences(path):
        if is_event_file(path):
            yield from traces_in_events(path)
        else:
            yield Path(path).name, metadata_of(path, untrusted.content(path))


@contextmanager
def sentences(path: str) -> Iterator[None]:
    """Turn errors of the system into sentences."""
    try:
        yield
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error


def is_event_file(path: str) -> bool:
    with untrusted.opened(path) as file:
        return EVENTS in file.read(HEAD)


def metadata_of(path: str, data: bytes) -> Any:
    """Return the RunMetadata in a file, binary or text; the content decides, not the name. Raise
    UsageError for other content."""
    from google.protobuf.message import DecodeError

    kind = kinds()["RunMetadata"]
    first = FIRST_FIELD.match(data[:HEAD])
    if first and first[1].decode() in kind.DESCRIPTOR.fields_by_name:
        return parsed_text(path, data)
    with suppress(DecodeError):
        message = kind.FromString(data)
        rows = any(device.node_stats for device in message.step_stats.dev_stats)
        if rows or message.partition_graphs:
            return message
    raise UsageError(f"'{path}' {other_kind(path, data)}.")


def kinds() -> dict[str, Any]:
    """Return the messages that files contain, by name."""
    tf_import.load()
    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.protobuf import config_pb2

    return {"RunMetadata": config_pb2.RunMetadata, "GraphDef": graph_pb2.GraphDef}


def parsed_text(path: str, data: bytes) -> Any:
    """Return a RunMetadata from its text form. This takes about 400 us per row, because the parser
    is pure Python."""
    from google.protobuf import text_format

    if len(data) > LARGEST_TEXT:
        raise TflabError(f"'{path}' is text of over {units.size(LARGEST_TEXT)}; give it in binary.")
    message = kinds()["RunMetadata"]()
    try:
        return text_format.Parse(data.decode(), message, allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise TflabError(
            f"'{path}' is text that cannot be read as a RunMetadata: {reason}."
        ) from error


def other_kind(path: str, data: bytes) -> str:
    """Return what is wrong with a file that has no RunMetadata, as the end of a sentence."""
    from google.protobuf.message import DecodeError

    from tflab.models import graph_file
    from tflab.runtime import private

    if not data and "tfevents" in Path(path).name:
        return f"is an event file without any event yet: close its FileWriter, or wait. {ADDS}"
    if not data:
        return f"is empty; {WANTED}"
    if data.startswith(b"\x1f\x8b"):
        return f"is compressed with gzip. Decompress it first: {STEP_WANTED}"
    if TIMELINE.match(data[:HEAD]):
        return (
            "is a timeline in JSON; open it in ui.perfetto.dev or chrome://tracing. "
            f"{STEP_WANTED}, from which it was made"
        )
    planes: Sequence[Any] = ()
    with suppress(DecodeError):
        planes = private.xspace(data).planes
    if any(plane.name and (plane.lines or plane.stats) for plane in planes):
        return (
            "is an XSpace, as TensorBoard's profiler writes it; open its logdir in TensorBoard "
            f"Profile. {STEP_WANTED}"
        )
    graph = graph_file.parse(kinds()["GraphDef"](), data)
    if graph and graph.node and all(node.name and node.op for node in graph.node):
        return "is a GraphDef, not a trace. Give it as --graph, together with a RunMetadata"
    return (
        "cannot be read as a RunMetadata or an event file: it has no op runs, is cut off or "
        f"damaged, or is something else; {WANTED}"
    )


# Event files of TensorBoard: `add_run_metadata` of a FileWriter adds each trace under a tag


def traces_in_events(path: str) -> Iterator[tuple[str, Any]]:
    """Yield the traces in an event file in their order."""
    count = 0
    for event in events(path):
        tagged = event.tagged_run_metadata
        if tagged.run_metadata:
            count += 1
            yield tagged.tag, part(path, "RunMetadata", tagged.run_metadata, tagged.tag)
    if not count:
        raise UsageError(
            f"'{path}' is an event file of TensorBoard without a complete trace. {ADDS}."
        )


def graphs_in_event_files(paths: Iterable[str]) -> list[Any]:
    """Return the graphs in event files, as the program built them."""
    return [
        part(path, "GraphDef", event.graph_def, "graph_def")
        for path in paths
        if os.path.isfile(path) and is_event_file(path)
        for event in events(path)
        if event.graph_def
    ]


def part(path: str, kind: str, data: bytes, name: str) -> Any:
    """Return a message that an event contains under a name. Raise TflabError if it is damaged."""
    from google.protobuf.message import DecodeError

    try:
        return kinds()[kind].FromString(data)
    except DecodeError as error:
        raise TflabError(f"'{path}' has a {kind} that cannot be read, under '{name}'.") from error


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
