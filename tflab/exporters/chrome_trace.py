"""Chrome trace: steps and op runs as JSON, for Perfetto (ui.perfetto.dev) and chrome://tracing.

The format is the Trace Event Format, described at
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. A process is a
device; its threads are lanes, in which no run overlaps another, because events of a thread have
to nest. The viewers require more than that document says:

- Perfetto identifies threads by `tid` alone, so no number is used twice in a trace.
- Older versions of Perfetto read an event up to its `ts`, without exponents and without `\\u`, so
  `ts` comes before all strings.
- chrome://tracing nests events within the same microsecond, unless times are nanoseconds.
- A number in JavaScript has 53 bits, too few for nanoseconds since 1970: time begins at 0, and
  `otherData` says when that was.
- An arrow belongs to the slice that is open at its time. Where one slice ends and the next begins
  the viewers disagree, so arrows keep half a nanosecond away from both; runs of 0 ns have none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TextIO

import numpy as np

from tflab.analysis import flows, lanes, stored, timeline
from tflab.analysis.columns import Kind, OpRuns, columns
from tflab.analysis.lanes import Level
from tflab.escaping import visible
from tflab.exporters import byte_columns
from tflab.exporters.byte_columns import Field, Lines, TextColumn, Texts
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import Capture, OpRun

STEPS = "steps"
STRIDE = 16_384  # events of a track that are sorted and written together


@dataclass(frozen=True)
class TraceProcess:
    """The runs and counters that the viewers draw under one heading."""

    name: str
    runs: Sequence[OpRun]
    levels: dict[tuple[str, str], Level] = field(default_factory=dict)  # by name and unit
    linked: bool = True  # whether arrows connect its runs


@dataclass(frozen=True)
class Track:
    """Events in order of time, in ns. `fields(origin, i, j)` are those of events i to j as JSON."""

    times: np.ndarray
    fields: Callable[[int, int, int], list[Field]]


def write(
    stream: TextIO,
    captures: Iterable[Capture],
    nodes: Sequence[Node] = (),
    transfers: Sequence[Transfer] = (),
) -> None:
    """Write all captures as one JSON object, with its events in order of time. Of a large capture,
    some steps are in memory at a time.

    `nodes` is the graph that ran. With it there are arrows from producers to consumers and, for
    the `transfers` between its devices, bars and arrows that are marked as inferred.
    """
    captures = list(captures)
    headings = Headings()
    first_arrow = 0
    origin: int | None = None
    # Several captures share one axis of time, so all of them are written as one portion.
    portions = stored.portions(captures[0]) if len(captures) == 1 else [captures]
    for portion in portions:
        tracks, arrows, named = tracks_of(portion, headings, nodes, transfers, first_arrow)
        first_arrow += sum(len(track.times) for track in arrows) // 2
        tracks = [track for track in tracks + arrows if len(track.times)]  # arrows after slices
        if origin is None:
            origin = min((int(track.times[0]) for track in tracks), default=0)
            about = json.dumps({"origin_ns_since_1970": origin})
            stream.write(f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n')
            stream.write(",\n".join(named))
        else:
            stream.writelines(f",\n{line}" for line in named)
        for events in events_by_time(tracks, origin):
            stream.write(events)
        del portion, tracks, arrows  # before the next ones are read
    stream.write("\n]}\n")


class Headings:
    """The numbers of processes and threads in a trace, which each get a name."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._pids: dict[tuple[object, ...], int] = {}
        self._tids: dict[tuple[int, int], int] = {}

    def process(self, key: tuple[object, ...], name: str) -> tuple[int, list[str]]:
        """The number of a process, and the events that name it if it is new."""
        if key in self._pids:
            return self._pids[key], []
        self._pids[key] = pid = next(self._numbers)
        return pid, list(name_events("process", name, pid, pid))

    def thread(self, pid: int, lane: int) -> tuple[int, list[str]]:
        if (pid, lane) in self._tids:
            return self._tids[pid, lane], []
        self._tids[pid, lane] = tid = next(self._numbers)
        return tid, list(name_events("thread", f"lane {lane}", pid, tid))


def tracks_of(
    captures: Sequence[Capture],
    headings: Headings,
    nodes: Sequence[Node],
    transfers: Sequence[Transfer],
    first_arrow: int,
) -> tuple[list[Track], list[Track], list[str]]:
    """The tracks of captures and those of their arrows, and the events that name what is new."""
    named: list[str] = []
    tracks: list[Track] = []
    arrows: list[Track] = []
    for place, capture in enumerate(captures):
        prefix = f"{capture.name}: " if len(captures) > 1 else ""
        transfer_runs = list(flows.inferred_transfers(capture.runs, nodes, transfers))
        slices: list[OpRun] = []
        tids: list[int] = []  # of the slices, the threads in which they are
        threads: dict[int, str] = {}  # how an event names its thread
        for process in processes(capture, transfer_runs):
            key = place, process.linked, process.name
            pid, names = headings.process(key, prefix + process.name)
            named += names
            runs = columns(process.runs)
            texts = slice_texts(runs.kinds)
            for index, lane in enumerate(lanes.pack(runs), 1):
                tid, names = headings.thread(pid, index)
                named += names
                threads[tid] = f'"pid":{pid},"tid":{tid},'
                tracks.append(lane_track(lane, threads[tid], texts))
                if nodes and process.linked:
                    slices.extend(lane)
                    tids += [tid] * len(lane)
            tracks += [
                level_track(level, name_and_unit, pid)
                for name_and_unit, level in process.levels.items()
            ]
        if nodes:
            before = flows.producers(nodes, transfers, {run.name for run in slices})
            count_so_far = first_arrow + sum(len(track.times) for track in arrows) // 2
            arrows += arrow_tracks(slices, before, np.array(tids), threads, count_so_far)
    return tracks, arrows, named


def events_by_time(tracks: Sequence[Track], origin: int) -> Iterator[str]:
    """The events of all tracks by time, in portions, each event after a comma and a line's end; at
    equal times in the order of the tracks."""
    if not tracks:
        return
    sampled = np.unique(np.concatenate([track.times[STRIDE::STRIDE] for track in tracks]))
    edges = [
        np.concatenate([[0], np.searchsorted(track.times, sampled), [len(track.times)]]).tolist()
        for track in tracks
    ]
    for window in range(len(sampled) + 1):
        moments: list[np.ndarray] = []
        lines: list[Lines] = []
        for track, edge in zip(tracks, edges, strict=True):
            i, j = edge[window : window + 2]
            if i < j:
                moments.append(track.times[i:j])
                lines.append(Lines(j - i, track.fields(origin, i, j)))
        if lines:
            order = np.argsort(np.concatenate(moments), kind="stable")
            yield byte_columns.merged(lines, order)


def json_text(value: str) -> str:
    return json.dumps(visible(value), ensure_ascii=False)


def name_events(what: str, name: str, pid: int, tid: int) -> Iterator[str]:
    """The events that name a process or a thread and give its place in the order."""
    head = f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}'
    yield f'{head}_name","args":{{"name":{json_text(name)}}}}}'
    yield f'{head}_sort_index","args":{{"sort_index":{tid}}}}}'


# Slices


def processes(capture: Capture, transfer_runs: Iterable[OpRun]) -> Iterator[TraceProcess]:
    """The steps, every device with its runs and counters, and every direction of transfers."""
    steps = [
        OpRun(step.step, STEPS, f"step {step.step}", STEPS, step.start_ns, step.wall_ns)
        for step in capture.steps
    ]
    yield TraceProcess(STEPS, steps, linked=False)
    for device, runs in columns(capture.runs).by_device().items():
        levels_of_device = {("ops at once", "ops"): lanes.ops_at_once(runs)}
        for allocator, alive in lanes.bytes_alive(runs, capture.steps).items():
            levels_of_device[f"memory of {allocator}", "bytes"] = alive
        yield TraceProcess(device, runs, levels_of_device)
    for device, runs in columns(transfer_runs).by_device().items():
        yield TraceProcess(device, runs)


def slice_texts(kinds: Sequence[Kind]) -> Texts:
    """What the slice of each kind says after its duration. A slice is named by its op type, so that
    each type has one colour."""
    return Texts(
        [
            f',"name":{op},"cat":"op","args":{{"node":{json_text(name)},"op":{op},"step":'
            for name, op in ((name, json_text(op)) for name, op, _ in kinds)
        ]
    )


def lane_track(lane: OpRuns, thread: str, texts: Texts) -> Track:
    """Runs as slices."""
    head = byte_columns.text(f',\n{{"ph":"X",{thread}"ts":')
    size = byte_columns.text(',"bytes":')

    def fields(origin: int, i: int, j: int) -> list[Field]:
        return [
            head,
            *byte_columns.thousands(lane.start_ns[i:j] - origin),
            *byte_columns.short(',"dur":'),
            *byte_columns.thousands(lane.duration_ns[i:j]),
            TextColumn(texts, lane.kind[i:j]),
            *byte_columns.digits(lane.step[i:j]),
            size,
            *byte_columns.digits(lane.requested_bytes[i:j]),
            *byte_columns.short("}}"),
        ]

    return Track(lane.start_ns, fields)


# Counters


def level_track(level: Level, name_and_unit: tuple[str, str], pid: int) -> Track:
    moments, values = level
    name, unit = name_and_unit
    head = byte_columns.text(f',\n{{"ph":"C","pid":{pid},"tid":{pid},"ts":')
    tail = byte_columns.text(f',"name":{json_text(name)},"args":{{"{unit}":')

    def fields(origin: int, i: int, j: int) -> list[Field]:
        time = byte_columns.thousands(moments[i:j] - origin)
        return [head, *time, tail, *byte_columns.digits(values[i:j]), *byte_columns.short("}}")]

    return Track(moments, fields)


# Arrows


def arrow_tracks(
    runs: Sequence[OpRun],
    before: Mapping[str, Sequence[str]],
    tids: np.ndarray,
    threads: Mapping[int, str],
    first: int,
) -> Iterator[Track]:
    """A track of the arrows' beginnings and one of their ends; ids count from `first`."""
    starts, durations = timeline.times(runs)
    inferred = timeline.column(run.op.endswith(flows.INFERRED) for run in runs)
    producers, consumers = flows.pairs(runs, before)
    lasting = (durations[producers] > 0) & (durations[consumers] > 0)
    producers, consumers = producers[lasting], consumers[lasting]
    kinds = inferred[producers] | inferred[consumers]
    ends = starts[producers] + durations[producers] - 1
    yield arrow_track("s", "", ends, tids[producers], kinds, threads, first)
    binding = '"bp":"e",'
    yield arrow_track("f", binding, starts[consumers], tids[consumers], kinds, threads, first)


def arrow_track(
    phase: str,
    binding: str,
    moments: np.ndarray,
    tids: np.ndarray,
    kinds: np.ndarray,
    threads: Mapping[int, str],
    first: int,
) -> Track:
    """The beginnings or the ends of arrows, half a nanosecond after these moments."""
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    numbers: np.ndarray = np.array(sorted(threads), np.int64)
    heads = Texts([f',\n{{"ph":"{phase}",{binding}{threads[tid]}"ts":' for tid in numbers.tolist()])
    tails = Texts(
        [f',"name":"{kind}","cat":"data"}}' for kind in ("data", f"data {flows.INFERRED}")]
    )

    def fields(origin: int, i: int, j: int) -> list[Field]:
        chosen = order[i:j]
        return [
            TextColumn(heads, np.asarray(numbers.searchsorted(tids[chosen]))),
            *byte_columns.thousands(moments[i:j] - origin),
            *byte_columns.short('5,"id":'),
            *byte_columns.digits(chosen + first),
            TextColumn(tails, kinds[chosen].astype(np.int64)),
        ]

    return Track(moments, fields)
