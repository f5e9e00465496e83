"""Read recorded traces: files of RunMetadata, or event files, become records.

Each RunMetadata is a step. It does not contain the duration of its `session.run`, so a step extends
from the start of its first op to the end of its last. One file at a time is in memory as a message;
of all files, only the columns of their op runs are kept.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tflab.analysis import op_runs, timeline
from tflab.analysis.memory import US
from tflab.analysis.op_runs import OpRuns
from tflab.cli import terminal
from tflab.errors import TflabError, UsageError
from tflab.records.graph import Node, grouped
from tflab.records.placed import Transfer
from tflab.records.timed import Capture, StepTime
from tflab.runtime import tf_import, trace
from tflab.units import plural

HOUR_NS = 3600 * 10**9  # no step that anyone traces takes longer
LATEST_NS = 2**62  # the year 2116: the formats of other tools have no later times
MOST_BYTES = 2**48  # 256 TiB: no op requests more
EVENTS = b"brain.Event:"  # in the first record of an event file
HEAD = 2**16  # bytes of a file in which this is searched
OP_TYPE = re.compile(r"[A-Za-z_]\w*")
RPC = "RecvTensor"  # a transfer between processes; its label has no op
ADDS = "FileWriter.add_run_metadata adds traces"
READS = (
    "convert reads a RunMetadata (traced with FULL_TRACE, written with SerializeToString()) or an "
    "event file of TensorBoard."
)


@dataclass(frozen=True)
class Recording:
    """The content of the files of a conversion."""

    files: tuple[str, ...]
    labels: tuple[str, ...]  # name of each step: its file, or its tag in an event file
    steps: tuple[StepTime, ...]
    runs: OpRuns = field(repr=False)  # step by step, each once
    nodes: tuple[Node, ...] = field(default=(), repr=False)
    transfers: tuple[Transfer, ...] = ()
    notes: tuple[str, ...] = ()  # problems in the files, and what was done about them

    def capture(self) -> Capture:
        """Return the steps as a capture for exporters, named after the first file."""
        more = f"-and-{len(self.files) - 1}-more" if len(self.files) > 1 else ""
        return Capture(Path(self.files[0]).stem + more, self.steps, self.runs)


def read(files: Sequence[str], graph: str | None = None) -> Recording:
    """Read the steps in these files, in this order, and the graph that ran, if there is one.

    `graph` is a file with a graph, or an event file. Without it, the graph is that of the partition
    graphs in the files, or else the one that an event file has next to its traces. Raises
    UsageError for a file with other content, TflabError for one without op runs.
    """
    beside, ran = Graphs(), Graphs()
    if graph:
        beside.add(graphs_of(graph))
    for path in filter(is_event_file, () if graph else files):
        beside.add([one for _, one in in_events(path, graphs=True)])
    steps: list[StepTime] = []
    labels: list[str] = []
    notes: list[str] = []
    parts: list[OpRuns] = []
    for path in terminal.track("reading", files, len(files)):
        for label, metadata in traces_in(path):
            ran.add(metadata.partition_graphs)
            types = {name: node.op for name, node in (beside.nodes | ran.nodes).items()}
            stats = metadata.step_stats.dev_stats  # which may contain a device more than once
            rows = grouped((one.device, row) for one in stats for row in one.node_stats)
            try:
                recorded = {
                    name: op_runs.of(
                        trace.device_runs(len(steps), name, own, typed=row_types(name, types))
                    )
                    for name, own in rows.items()
                }
            except OverflowError as error:
                raise TflabError(f"'{path}' has times or sizes that do not fit 64 bits.") from error
            kept = timeline.without_repeats(recorded)
            own, note = possible_runs(path, op_runs.concatenated([*kept.values()]))
            notes += note
            if trace.is_incomplete(metadata.step_stats):
                notes.append(
                    f"A step in '{path}' has {trace.MOST_OP_RUNS:,} op runs or more, and "
                    "TensorFlow records no more. Those that ended later are missing."
                )
            start = int(own.start_ns.min())
            end = int((own.start_ns + own.duration_ns).max())
            steps.append(StepTime(len(steps), start, end - start))
            labels.append(label)
            parts.append(own)
            del metadata, stats, rows  # before the next one is read
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
        nodes=tuple(shown.nodes.values()),
        transfers=tuple(shown.transfers),
        notes=tuple(notes),
    )


# Op runs


def row_types(device: str, types: Mapping[str, str]) -> Callable[[str, str], tuple[str, str]]:
    """Return a function that gives the node and the op type of a row from its name and label.

    The label has the type that ran. The graph may be from before fusion, which reuses names, so it
    is used only if the label has no type.
    """
    kind = timeline.track_kind(device)

    @functools.cache
    def typed(name: str, label: str) -> tuple[str, str]:
        if kind in (timeline.OPS, timeline.LAUNCHES):
            op = RPC if name == RPC else trace.labelled_type(label)
            known = bool(label and OP_TYPE.fullmatch(op))
        else:
            name, op = timeline.node_and_op(name, label)
            known = op != "unknown"
        return name, op if known else types.get(name, "unknown")

    return typed


def possible_runs(path: str, runs: OpRuns) -> tuple[OpRuns, list[str]]:
    """Return the op runs with possible times and sizes, and a note if others were omitted.

    The runs of a step start within one hour: the hour in which most of them start. If there are
    several such hours, it is the latest, because a clock that was not read is 0.
    """

    def within(column: np.ndarray, low: int, high: int) -> np.ndarray:
        return (low <= column) & (column <= high)

    # That a clock and an allocator can have given
    right = within(runs.start_ns, 0, LATEST_NS) & within(runs.duration_ns, 0, HOUR_NS)
    right &= within(runs.requested_bytes, 0, MOST_BYTES)
    events = runs.allocations
    wrong = ~within(events.us, 0, LATEST_NS // US) | ~within(events.bytes, -MOST_BYTES, MOST_BYTES)
    right[events.run[wrong]] = False
    kept = runs.where(right)
    if not kept:
        raise TflabError(f"'{path}' has no op runs. {READS}")
    starts = np.sort(kept.start_ns)
    counts = starts.searchsorted(starts + HOUR_NS) - np.arange(len(starts))
    first = starts[np.flatnonzero(counts == counts.max())[-1]]
    kept = kept.where((first <= kept.start_ns) & (kept.start_ns - first < HOUR_NS))
    if len(kept) == len(runs):
        return kept, []
    return kept, [
        f"In '{path}', {plural(len(runs) - len(kept), 'op run')} omitted because of impossible "
        "times or sizes, or a start an hour or more from the others."
    ]


# Graphs


@dataclass
class Graphs:
    """The nodes and the transfers in GraphDefs; of several nodes with one name, the first."""

    nodes: dict[str, Node] = field(default_factory=dict)
    transfers: dict[Transfer, None] = field(default_factory=dict)

    def add(self, graphs: Sequence[Any]) -> None:
        from tflab.runtime import nodes

        for node in (node for graph in graphs for node in nodes.from_graph_def(graph, {}, {})):
            self.nodes.setdefault(node.name, node)
        self.transfers |= dict.fromkeys(nodes.transfers(graphs, {}))


def graphs_of(path: str) -> list[Any]:
    """Return the GraphDefs of a file of events or of a graph. Raises UsageError without any."""
    from tflab.models import graph_file

    if not is_event_file(path):
        return [graph_file.read(Path(path)).graph_def]
    if graphs := [graph for _, graph in in_events(path, graphs=True)]:
        return graphs
    raise UsageError(
        f"'{path}' is an event file without a graph. FileWriter(logdir, graph) writes one."
    )


# Files


def traces_in(path: str) -> Iterator[tuple[str, Any]]:
    """Yield each trace of a RunMetadata or an event file, with its name."""
    name = None
    try:
        if not is_event_file(path):
            yield Path(path).name, metadata_of(path, Path(path).read_bytes())
            return
        for name, metadata in in_events(path):
            yield name, metadata
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}. {READS}") from error
    if name is None:
        raise UsageError(
            f"'{path}' is an event file of TensorBoard without a complete trace. {ADDS}."
        )


def metadata_of(path: str, data: bytes) -> Any:
    """Return the RunMetadata in a file. Raise UsageError for other content."""
    tf_import.load()
    import tensorflow.compat.v1 as tf1
    from google.protobuf.message import DecodeError

    if not data and "tfevents" in Path(path).name:
        raise UsageError(
            f"'{path}' is an event file without any event yet: close its FileWriter, or wait. "
            f"{ADDS}."
        )
    what = "is not a RunMetadata, or is damaged"
    with suppress(DecodeError):
        message = tf1.RunMetadata.FromString(data)
        rows = any(device.node_stats for device in message.step_stats.dev_stats)
        if rows or message.partition_graphs:
            return message
        what = "has no op runs" if data else "is empty"
    raise UsageError(f"'{path}' {what}. {READS}")


def is_event_file(path: str) -> bool:
    """Return whether this is an event file, to which FileWriter.add_run_metadata adds traces."""
    with suppress(OSError):  # whoever reads on says why it cannot be read
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return EVENTS in file.read(HEAD)
    return False


def in_events(path: str, graphs: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the traces in an event file with their tags, or the graphs, as the program built them.
    An incomplete last event, of a file that is still being written, is omitted."""
    tf_import.load()
    import tensorflow.compat.v1 as tf1
    from google.protobuf.message import DecodeError

    kind, name = tf1.GraphDef if graphs else tf1.RunMetadata, "graph_def"
    try:
        for record in tf1.io.tf_record_iterator(path):
            event = tf1.Event.FromString(record)
            data = event.graph_def
            if not graphs:
                tagged = event.tagged_run_metadata
                name, data = tagged.tag, tagged.run_metadata
            if data:
                yield name, kind.FromString(data)
    except DecodeError as error:
        what = f"'{path}' has a {kind.DESCRIPTOR.name} that cannot be read, under '{name}'."
        raise TflabError(what) from error
    except tf1.errors.DataLossError as error:
        if "truncated" not in error.message:
            raise TflabError(f"'{path}' is damaged: {error.message}.") from error
