"""The door for traces recorded anywhere: files of RunMetadata go in, records come out.

Each file is a step. How long its `session.run` took is not in a RunMetadata: a step is taken from
the start of its first op to the end of its last one. No TensorFlow in here.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from tflab import doors
from tflab.analysis import tracks
from tflab.cli import progress
from tflab.convert import decoded, protos
from tflab.convert.fields import DamagedError
from tflab.convert.plausible import plausible
from tflab.errors import TflabError, UsageError
from tflab.records import Capture, Node, OpRun, StepTime, Transfer
from tflab.runtime import trace

BUFFER = 1 << 16  # bytes of a file
WANTED = "give what run_metadata.SerializeToString() returned, or its text"

Runs = list[OpRun]


@dataclass(frozen=True)
class Track:
    """The rows under one name in a trace, which may be less than a device (see `tracks`)."""

    device: str
    kind: str
    op_runs: int
    total_ns: int
    left_out: int  # rows that stand under another name as well


@dataclass(frozen=True)
class Recorded:
    """What is in the files of a conversion."""

    files: tuple[str, ...]
    steps: tuple[StepTime, ...]
    runs: tuple[OpRun, ...] = field(repr=False)  # step by step, each once
    tracks: tuple[Track, ...] = ()
    nodes: tuple[Node, ...] = field(default=(), repr=False)
    transfers: tuple[Transfer, ...] = ()
    notes: tuple[str, ...] = ()  # what was wrong in the files, and what was done about it

    def capture(self) -> Capture:
        """For the exporters, under the name of the first file."""
        more = f"-and-{len(self.files) - 1}-more" if len(self.files) > 1 else ""
        return Capture(Path(self.files[0]).stem + more, self.steps, self.runs)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without Python's search for cycles. Records are in none, and going through all of them again
    and again takes a fifth of the time of making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@uncollected()
def read(files: Sequence[str], graph: str | None = None) -> Recorded:
    """The steps in these files, in this order, and the graph that ran, where there is one.

    `graph` is a file with a GraphDef; without it the partition graphs in the files are taken.
    Raises UsageError for a file that holds something else, TflabError for one that is damaged or
    has no op runs.
    """
    words = decoded.Vocabulary()
    given = read_graphs(graph) if graph else []
    nodes = decoded.nodes(given, words.names)
    sent = dict.fromkeys(decoded.transfers(given, words.names))
    words.types.update({name: node.op for name, node in nodes.items()})
    steps: list[StepTime] = []
    runs: Runs = []
    notes: list[str] = []
    left_out: Counter[str] = Counter()
    for step, path in enumerate(progress.track("reading", files, len(files))):
        with opened(path) as file:
            found = protos.read_trace(file, *message_in(path, file))
            ran = decoded.nodes(found.graphs, words.names)
            words.types.update({name: node.op for name, node in ran.items()})
            if not graph:
                nodes = ran | nodes
                sent |= dict.fromkeys(decoded.transfers(found.graphs, words.names))
            rows = by_device(step, found, words)
        kept = tracks.without_repeats(rows)
        left_out.update({device: len(rows[device]) - len(kept[device]) for device in rows})
        own, wrong = plausible([run for group in kept.values() for run in group])
        if not own:
            raise TflabError(
                f"'{path}' has no op runs: a step is recorded with trace_level=FULL_TRACE."
            )
        notes += [f"In '{path}' {what}." for what in wrong]
        steps.append(span(step, own))
        runs += own
    if graph and not any(run.name in nodes for run in runs):
        raise UsageError(
            f"The graph '{graph}' has none of the nodes that ran, such as '{runs[-1].name}'; "
            "give the graph that was traced."
        )
    return Recorded(
        files=tuple(files),
        steps=tuple(steps),
        runs=tuple(runs),
        tracks=totals(runs, left_out),
        nodes=tuple(nodes.values()),
        transfers=tuple(sent),
        notes=tuple(notes),
    )


def by_device(step: int, found: protos.Trace, words: decoded.Vocabulary) -> dict[str, Runs]:
    """All rows of a step as op runs. A device may stand in a trace more than once."""
    rows: dict[str, Runs] = {}
    for raw, stats in found.devices:
        device = words.names[raw]
        rows.setdefault(device, []).extend(
            trace.device_runs(step, device, stats, words.labels(device), words.names.__getitem__)
        )
    return rows


def span(step: int, runs: Runs) -> StepTime:
    """From the first start to the last end."""
    start = min(run.start_ns for run in runs)
    return StepTime(step, start, max(run.start_ns + run.duration_ns for run in runs) - start)


def totals(runs: Runs, left_out: Mapping[str, int]) -> tuple[Track, ...]:
    """Every name under which a trace has rows, in its order. Never add up tracks of two kinds."""
    calls = Counter(run.device for run in runs)
    times: Counter[str] = Counter()
    for run in runs:
        times[run.device] += run.duration_ns
    return tuple(
        Track(
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


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file at a path; whatever is wrong with it as a sentence."""
    try:
        with doors.opened(path, BUFFER) as file:
            yield file
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except DamagedError as error:
        raise TflabError(f"'{path}' {error}.") from error


def message_in(path: str, file: BinaryIO) -> tuple[str, bool]:
    """What `recognised` says of a file that has to be a trace."""
    name, text = protos.recognised(file)
    if name == "GraphDef":
        raise UsageError(
            f"'{path}' holds a GraphDef and not a trace; give it as --graph, beside a RunMetadata."
        )
    if not name:
        what = "is not a RunMetadata" if file.seek(0, 2) else "is empty"
        raise UsageError(f"'{path}' {what}; {WANTED}.")
    return name, text


def read_graphs(path: str) -> list[Any]:
    """The GraphDef in a file; of a RunMetadata its partition graphs."""
    with opened(path) as file:
        name, text = protos.recognised(file)
        if name == "GraphDef":
            return [protos.read_graph(file, text)]
        graphs = list(protos.read_trace(file, name, text).graphs) if name else []
        if not graphs:
            raise UsageError(
                f"'{path}' is not a GraphDef; give what graph.as_graph_def().SerializeToString() "
                "returned, or its text."
            )
    return graphs
