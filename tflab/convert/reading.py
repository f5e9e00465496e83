"""Reading: recorded traces, that is files of RunMetadata, become records.

Each file is a step. A RunMetadata does not contain the duration of its `session.run`, so a step
extends from the start of its first op to the end of its last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tflab.analysis import columns, tracks
from tflab.analysis.columns import Kind, OpRuns
from tflab.analysis.memory import US
from tflab.analysis.stored import Store, StoredRuns
from tflab.cli import terminal
from tflab.convert import decoded, event_files, graphs, protos, rows
from tflab.convert.fields import DamagedError
from tflab.convert.graphs import opened
from tflab.errors import TflabError, UsageError
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import Capture, OpRun, StepTime
from tflab.runtime import trace
from tflab.units import plural

LATEST_NS = 2**62  # the year 2116: the formats of other tools have no later times
MOST_BYTES = 2**48  # 256 TiB: no op requests more
WANTED = "give the output of run_metadata.SerializeToString(), or its text form"


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
        """The steps as a capture for exporters, named after the first file."""
        more = f"-and-{len(self.files) - 1}-more" if len(self.files) > 1 else ""
        return Capture(Path(self.files[0]).stem + more, self.steps, self.runs)


def read(files: Sequence[str], graph: str | None = None) -> Recording:
    """The steps in these files, in this order, and the graph that ran, if there is one.

    `graph` is anything that `--model` of the other commands accepts. Without it, the graph is that
    of the partition graphs in the files, or else the one that an event file has next to its traces.
    Raises UsageError for a file with other content, TflabError for a damaged file and for one
    without op runs.
    """
    words = decoded.Vocabulary()
    given = graphs.read(graph) if graph else []
    nodes = decoded.nodes(given, words.names)
    in_files = [] if graph else graphs.in_event_files(files)
    beside = decoded.nodes(in_files, words.names)
    words.types.update({name: node.op for name, node in beside.items()})
    sent = dict.fromkeys(decoded.transfers(given, words.names))
    words.types.update({name: node.op for name, node in nodes.items()})
    steps: list[StepTime] = []
    tables = rows.Tables()
    store, counts = Store(), Counted()
    labels: list[str] = []
    notes: list[str] = []
    left_out: Counter[str] = Counter()
    for path in terminal.track("reading", files, len(files)):
        for label, found in traces_in(path):
            ran = decoded.nodes(found.graphs, words.names)
            words.types.update({name: node.op for name, node in ran.items()})
            if not graph:
                nodes = ran | nodes
                sent |= dict.fromkeys(decoded.transfers(found.graphs, words.names))
            recorded = by_device(len(steps), found, words, tables)
            kept = tracks.without_repeats(recorded)
            left_out.update({one: len(recorded[one]) - len(kept[one]) for one in recorded})
            own, note = possible_runs(path, columns.concatenate(list(kept.values())))
            notes += [*note, *incomplete(path, recorded)]
            steps.append(span(len(steps), own))
            labels.append(label)
            store.add(own)
            counts.add(own)
    runs = StoredRuns(tables.kinds, tables.allocators, store)
    if graph and not any(tables.kinds[kind][0] in nodes for kind in counts.runs):
        raise wrong_graph(graph, own[-1].name)
    if not nodes:
        nodes = beside
    return Recording(
        files=tuple(files),
        labels=tuple(labels),
        steps=tuple(steps),
        runs=runs,
        tracks=counts.tracks(tables.kinds, left_out),
        nodes=tuple(nodes.values()),
        transfers=tuple(sent),
        notes=tuple(notes),
    )


def wrong_graph(graph: str, ran: str) -> UsageError:
    return UsageError(
        f"The graph '{graph}' has none of the nodes that ran, such as '{ran}'; "
        "give the graph that was traced."
    )


def possible_runs(path: str, runs: OpRuns) -> tuple[OpRuns, list[str]]:
    """The op runs with possible times and sizes, and a note if others were omitted."""
    kept = runs.where(possible(runs))
    if not kept:
        raise TflabError(f"'{path}' has no op runs. Record the step with trace_level=FULL_TRACE.")
    if len(kept) == len(runs):
        return kept, []
    wrong = plural(len(runs) - len(kept), "op run")
    return kept, [f"In '{path}', {wrong} omitted because of impossible times or sizes."]


def incomplete(path: str, recorded: Mapping[str, OpRuns]) -> Iterator[str]:
    """A note if op runs may be missing from a step."""
    if trace.is_full((device, len(runs)) for device, runs in recorded.items()):
        yield (
            f"A step in '{path}' has {trace.MOST_OP_RUNS:,} op runs or more, and TensorFlow "
            "records no more. Those that ended later are missing."
        )


def by_device(
    step: int, found: protos.Trace, words: decoded.Vocabulary, tables: rows.Tables
) -> dict[str, OpRuns]:
    """All rows of a step as op runs. A trace may contain a device more than once."""
    parts: dict[str, list[OpRuns]] = {}
    for raw, stats in found.devices:
        device = words.names[raw]
        parts.setdefault(device, []).append(rows.op_runs(step, device, stats, words, tables))
    return {device: columns.concatenate(group) for device, group in parts.items()}


def possible(runs: OpRuns) -> np.ndarray:
    """Whether a clock and an allocator can have produced these times and sizes, for each run."""

    def within(column: np.ndarray, low: int, high: int) -> np.ndarray:
        return (low <= column) & (column <= high)

    end_ns = np.minimum(runs.start_ns, LATEST_NS) + np.minimum(runs.duration_ns, LATEST_NS)
    found = within(runs.start_ns, 0, LATEST_NS) & within(runs.duration_ns, 0, LATEST_NS)
    found &= within(end_ns, 0, LATEST_NS) & within(runs.requested_bytes, 0, MOST_BYTES)
    wrong = ~within(runs.event_us, 0, LATEST_NS // US)
    wrong |= ~within(runs.event_bytes, -MOST_BYTES, MOST_BYTES)
    found[runs.event_run()[wrong]] = False
    return found


def span(step: int, runs: OpRuns) -> StepTime:
    """From the first start to the last end."""
    start = int(runs.start_ns.min())
    return StepTime(step, start, int((runs.start_ns + runs.duration_ns).max()) - start)


class Counted:
    """The number and the total time of the runs of each kind."""

    def __init__(self) -> None:
        self.runs: Counter[int] = Counter()
        self.total_ns: Counter[int] = Counter()

    def add(self, runs: OpRuns) -> None:
        totals = columns.sums(runs.kind, runs.duration_ns, len(runs.kinds)).tolist()
        for kind, count in enumerate(np.bincount(runs.kind).tolist()):
            if count:
                self.runs[kind] += count
                self.total_ns[kind] += totals[kind]

    def tracks(
        self, kinds: Sequence[Kind], left_out: Mapping[str, int]
    ) -> tuple[TrackSummary, ...]:
        """The total of every name that has rows in a trace, in the order of the trace. Totals of
        different kinds of tracks must not be added."""
        calls: Counter[str] = Counter()
        times: Counter[str] = Counter()
        for kind, count in self.runs.items():
            calls[kinds[kind][2]] += count
            times[kinds[kind][2]] += self.total_ns[kind]
        return tuple(
            TrackSummary(
                device=device,
                kind=tracks.track_kind(device) if calls[device] else tracks.REPEATS,
                op_runs=calls[device],
                total_ns=times[device],
                left_out=repeated,
            )
            for device, repeated in left_out.items()
            if calls[device] or repeated
        )


# Files


def traces_in(path: str) -> Iterator[tuple[str, protos.Trace]]:
    """The traces in a file, each with its name: one in a RunMetadata, one for each tag in an event
    file."""
    with opened(path) as file:
        if not event_files.recognised(file):
            yield Path(path).name, protos.read_trace(file, *message_in(path, file))
            return
        tagged = None
        for tagged in event_files.traces(file):
            size = tagged.metadata.seek(0, 2)
            if size and not protos.fits(tagged.metadata, 0, size, "RunMetadata"):
                raise DamagedError(f"has a RunMetadata that cannot be read, under '{tagged.tag}'")
            yield tagged.tag, protos.read_trace(tagged.metadata, "RunMetadata", False)
        if tagged is None:
            raise UsageError(
                f"'{path}' is an event file of TensorBoard without a complete trace. "
                "FileWriter.add_run_metadata adds traces."
            )


def message_in(path: str, file: BinaryIO) -> tuple[str, bool]:
    """The kind of message in a file that should be a trace, and whether it is text."""
    other = other_kind(protos.start_of(file))
    if other:
        raise UsageError(f"'{path}' {other}.")
    name, text = protos.recognised(file)
    if name == "GraphDef":
        raise UsageError(
            f"'{path}' is a GraphDef, not a trace. Give it as --graph, together with a RunMetadata."
        )
    if not name:
        what = "is not a RunMetadata" if file.seek(0, 2) else "is empty"
        raise UsageError(f"'{path}' {what}; {WANTED}.")
    return name, text


# Other files that look like traces of a session, and what to do with each


STEP_WANTED = "convert takes the RunMetadata of a step"
# An XSpace begins with an XPlane (field 1), which begins with its number or the name of a device.
LENGTH = rb"[\x80-\xff]*[\x00-\x7f]"
PLANE = re.compile(rb"\x0a%b(\x08%b)?\x12.(/host:|/device:|Task )" % (LENGTH, LENGTH), re.DOTALL)
TIMELINE = re.compile(rb'\s*[\[{].*"(traceEvents|ph)"\s*:', re.DOTALL)


def other_kind(head: bytes) -> str | None:
    """The kind of a file according to its beginning, as the end of a sentence; None if unknown."""
    if head.startswith(b"\x1f\x8b"):
        return f"is compressed with gzip. Decompress it first: {STEP_WANTED}"
    if PLANE.match(head):
        return (
            "is an XSpace, as TensorBoard's profiler writes it; open its logdir in TensorBoard "
            f"Profile. {STEP_WANTED}"
        )
    if TIMELINE.match(head):
        return (
            "is a timeline in JSON; open it in ui.perfetto.dev or chrome://tracing. "
            f"{STEP_WANTED}, from which it was made"
        )
    return None
