"""Chrome trace: steps and op runs as JSON, for Perfetto (ui.perfetto.dev) and chrome://tracing.

The format is the Trace Event Format, described at
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. A process is a
device; its threads are lanes, in which no run overlaps another, because events of a thread have
to nest. What the viewers ask for beyond that:

- Perfetto names threads by `tid` alone, so that no number is used twice in a trace.
- Older versions of it read an event up to its `ts`, without exponents and without `\\u`, so `ts`
  comes before all strings.
- chrome://tracing takes what lies within a microsecond for nested, unless times are nanoseconds.
- A number in JavaScript has 53 bits, too few for nanoseconds since 1970: time begins at 0, and
  `otherData` tells when that was.
- An arrow is fastened to the slice that is open at its time. Where one ends and the next begins the
  viewers disagree, so that arrows keep half a nanosecond away from either; runs of no duration
  have none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TextIO

import numpy as np

from tflab.analysis import flows, lanes, levels, timeline
from tflab.analysis.levels import Level
from tflab.records import Capture, Node, OpRun, Transfer

STEPS = "steps"
STRIDE = 1_000  # events of a track that are sorted and written at once
THOUSANDTHS = [f".{ns:03d}" for ns in range(1000)]  # of a microsecond


@dataclass(frozen=True)
class Process:
    """What the viewers draw under one heading."""

    name: str
    runs: Sequence[OpRun]
    levels: dict[tuple[str, str], Level] = field(default_factory=dict)  # by name and unit
    linked: bool = True  # by arrows


@dataclass(frozen=True)
class Track:
    """Events in order of time, in ns. `lines(origin, i, j)` writes some of them as JSON."""

    times: np.ndarray
    lines: Callable[[int, int, int], Iterable[str]]


def write(
    stream: TextIO,
    captures: Iterable[Capture],
    nodes: Sequence[Node] = (),
    transfers: Sequence[Transfer] = (),
) -> None:
    """Write all captures as one JSON object, with its events in order of time.

    `nodes` is the graph that ran. With it there are arrows from producers to consumers and, for
    the `transfers` between its devices, bars and arrows that are marked as inferred.
    """
    captures = list(captures)
    numbers = count(1)
    metadata: list[str] = []
    tracks: list[Track] = []
    arrows: list[Track] = []
    for capture in captures:
        among = f"{capture.name}: " if len(captures) > 1 else ""
        sent = list(flows.inferred_transfers(capture.runs, nodes, transfers))
        slices: list[OpRun] = []
        tids: list[int] = []  # of the slices, the threads in which they are
        threads: dict[int, str] = {}  # how an event names its thread
        for process in processes(capture, sent):
            pid = next(numbers)
            metadata += named("process", among + process.name, pid, pid)
            for index, lane in enumerate(lanes.pack(process.runs, nest=False), 1):
                tid = next(numbers)
                metadata += named("thread", f"lane {index}", pid, tid)
                threads[tid] = f'"pid":{pid},"tid":{tid},'
                tracks.append(lane_track(lane, threads[tid]))
                if nodes and process.linked:
                    slices += lane
                    tids += [tid] * len(lane)
            tracks += [level_track(one, what, pid) for what, one in process.levels.items()]
        if nodes:
            before = flows.producers(nodes, transfers, {run.name for run in slices})
            drawn = sum(len(track.times) for track in arrows) // 2
            arrows += arrow_tracks(slices, before, np.array(tids), threads, drawn)
    tracks = [track for track in tracks + arrows if len(track.times)]  # arrows after slices
    origin = min((int(track.times[0]) for track in tracks), default=0)
    about = json.dumps({"origin_ns_since_1970": origin})
    stream.write(f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n')
    for index, events in enumerate(chain([metadata], windows(tracks, origin))):
        stream.write(",\n" * (index > 0) + ",\n".join(events))
    stream.write("\n]}\n")


def windows(tracks: Sequence[Track], origin: int) -> Iterator[list[str]]:
    """The events of all tracks by time, some at a time; of equal times, in the order of tracks."""
    if not tracks:
        return
    sampled = np.unique(np.concatenate([track.times[STRIDE::STRIDE] for track in tracks]))
    edges = [
        np.concatenate([[0], np.searchsorted(track.times, sampled), [len(track.times)]]).tolist()
        for track in tracks
    ]
    for window in range(len(sampled) + 1):
        moments: list[np.ndarray] = []
        lines: list[str] = []
        for track, edge in zip(tracks, edges, strict=True):
            i, j = edge[window : window + 2]
            if i < j:
                moments.append(track.times[i:j])
                lines += track.lines(origin, i, j)
        if lines:
            order = np.argsort(np.concatenate(moments), kind="stable").tolist()
            yield [lines[place] for place in order]


def text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def named(what: str, name: str, pid: int, tid: int) -> Iterator[str]:
    """The name of a process or a thread, and its place among the others."""
    head = f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}'
    yield f'{head}_name","args":{{"name":{text(name)}}}}}'
    yield f'{head}_sort_index","args":{{"sort_index":{tid}}}}}'


# Slices


def processes(capture: Capture, sent: Iterable[OpRun]) -> Iterator[Process]:
    """The steps, every device with what ran and was alive at once, and every way of transfers."""
    steps = [
        OpRun(step.step, STEPS, f"step {step.step}", STEPS, step.start_ns, step.wall_ns)
        for step in capture.steps
    ]
    yield Process(STEPS, steps, linked=False)
    for device, runs in by_device(capture.runs).items():
        drawn = {("ops at once", "ops"): levels.ops_at_once(runs)}
        for allocator, alive in levels.bytes_alive(runs, capture.steps).items():
            drawn[f"memory of {allocator}", "bytes"] = alive
        yield Process(device, runs, drawn)
    for device, runs in by_device(sent).items():
        yield Process(device, runs)


def by_device(runs: Iterable[OpRun]) -> dict[str, list[OpRun]]:
    found: dict[str, list[OpRun]] = {}
    for run in runs:
        found.setdefault(run.device, []).append(run)
    return found


def lane_track(lane: Sequence[OpRun], thread: str) -> Track:
    """Runs as slices that have their op type for a name, so that a type has one colour."""
    head = f'{{"ph":"X",{thread}"ts":'
    tails: dict[tuple[str, str], str] = {}
    for name, op in {(run.name, run.op) for run in lane}:
        node, kind = text(name), text(op)
        tails[name, op] = f',"name":{kind},"cat":"op","args":{{"node":{node},"op":{kind},"step":'

    def lines(origin: int, i: int, j: int) -> Iterator[str]:
        for run in lane[i:j]:
            start, lasted = run.start_ns - origin, run.duration_ns
            yield (
                f"{head}{start // 1000}{THOUSANDTHS[start % 1000]}"
                f',"dur":{lasted // 1000}{THOUSANDTHS[lasted % 1000]}'
                f'{tails[run.name, run.op]}{run.step},"bytes":{run.requested_bytes}}}}}'
            )

    return Track(timeline.column(map(timeline.START, lane)), lines)


# Counters


def level_track(drawn: Level, what: tuple[str, str], pid: int) -> Track:
    moments, values = drawn
    name, unit = what
    head = f'{{"ph":"C","pid":{pid},"tid":{pid},"ts":'
    tail = f',"name":{text(name)},"args":{{"{unit}":'

    def lines(origin: int, i: int, j: int) -> Iterator[str]:
        for ns, value in zip((moments[i:j] - origin).tolist(), values[i:j].tolist(), strict=True):
            yield f"{head}{ns // 1000}{THOUSANDTHS[ns % 1000]}{tail}{value}}}}}"

    return Track(moments, lines)


# Arrows


def arrow_tracks(
    runs: Sequence[OpRun],
    before: Mapping[str, Sequence[str]],
    tids: np.ndarray,
    threads: Mapping[int, str],
    first: int,
) -> Iterator[Track]:
    """Where arrows begin and where they end, numbered from `first` on."""
    starts, lasted = timeline.times(runs)
    inferred = timeline.column(run.op.endswith(flows.INFERRED) for run in runs)
    producers, consumers = flows.pairs(runs, before)
    seen = (lasted[producers] > 0) & (lasted[consumers] > 0)
    producers, consumers = producers[seen], consumers[seen]
    kinds = inferred[producers] | inferred[consumers]
    left = starts[producers] + lasted[producers] - 1
    yield arrow_track("s", "", left, tids[producers], kinds, threads, first)
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
    heads = {tid: f'{{"ph":"{phase}",{binding}{thread}"ts":' for tid, thread in threads.items()}
    tails = [f',"name":"{kind}","cat":"data"}}' for kind in ("data", f"data {flows.INFERRED}")]

    def lines(origin: int, i: int, j: int) -> Iterator[str]:
        some = order[i:j]
        whole, rest = np.divmod(moments[i:j] - origin, 1000)
        for tid, us, ns, number, kind in zip(
            *(column.tolist() for column in (tids[some], whole, rest, some + first, kinds[some])),
            strict=True,
        ):
            yield f'{heads[tid]}{us}{THOUSANDTHS[ns]}5,"id":{number}{tails[kind]}'

    return Track(moments, lines)
