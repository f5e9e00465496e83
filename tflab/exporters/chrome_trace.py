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
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from operator import itemgetter
from typing import TextIO

from tflab.analysis import critical_path, op_runs, timeline
from tflab.analysis.op_runs import OpRuns
from tflab.escaping import visible
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import Capture, OpRun

STEPS = "steps"

Event = tuple[int, str, str]  # its time in ns, and its JSON before and after the time


def write(
    stream: TextIO,
    captures: Iterable[Capture],
    nodes: Sequence[Node] = (),
    transfers: Sequence[Transfer] = (),
) -> None:
    """Write all captures as one JSON object, with its events in order of time.

    `nodes` is the graph that ran. With it there are arrows from producers to consumers, also
    through the `transfers` between its devices.
    """
    captures = list(captures)
    numbers, ids = count(1), count()
    names: list[str] = []
    events: list[Event] = []
    arrows: list[Event] = []
    for capture in captures:
        prefix = f"{capture.name}: " if len(captures) > 1 else ""
        linked: list[tuple[OpRuns, str]] = []
        for name, runs, is_linked in processes(capture):
            pid = next(numbers)
            names += name_events("process", prefix + name, pid, pid)
            for number, lane in enumerate(timeline.pack(runs), 1):
                tid = next(numbers)
                names += name_events("thread", f"lane {number}", pid, tid)
                thread = f'"pid":{pid},"tid":{tid},'
                events += slices(lane, thread)
                if is_linked:
                    linked.append((lane, thread))
        if nodes:
            arrows += arrows_between(linked, nodes, transfers, ids)
    events = sorted(events + arrows, key=itemgetter(0))
    origin = events[0][0] if events else 0
    about = json.dumps({"origin_ns_since_1970": origin})
    stream.write(f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n')
    stream.write(",\n".join(names))
    stream.writelines(f",\n{head}{us(time - origin)}{tail}" for time, head, tail in events)
    stream.write("\n]}\n")


def us(ns: int) -> str:
    """Return a time in microseconds, with three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def json_text(value: str) -> str:
    return json.dumps(visible(value), ensure_ascii=False)


def name_events(what: str, name: str, pid: int, tid: int) -> Iterator[str]:
    """Yield the events that name a process or a thread and give its place in the order."""
    head = f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}'
    yield f'{head}_name","args":{{"name":{json_text(name)}}}}}'
    yield f'{head}_sort_index","args":{{"sort_index":{tid}}}}}'


def processes(capture: Capture) -> Iterator[tuple[str, OpRuns, bool]]:
    """Yield the steps and each device: a name, its runs, and whether arrows connect them."""
    steps = [
        OpRun(step.step, STEPS, f"step {step.step}", STEPS, step.start_ns, step.wall_ns)
        for step in capture.steps
    ]
    yield STEPS, op_runs.of(steps), False
    for device, runs in op_runs.of(capture.runs).by_device().items():
        yield device, runs, True


def slices(lane: OpRuns, thread: str) -> Iterator[Event]:
    """Yield runs as slices. A slice is named by its op type, so that each type has one colour."""
    head = f'{{"ph":"X",{thread}"ts":'
    abouts = [
        f',"name":{op},"cat":"op","args":{{"node":{json_text(name)},"op":{op},"step":'
        for name, op in ((name, json_text(op)) for name, op, _ in lane.kinds)
    ]
    columns = (column.tolist() for column in lane.columns)
    for kind, step, start, duration, size in zip(*columns, strict=True):
        yield start, head, f',"dur":{us(duration)}{abouts[kind]}{step},"bytes":{size}}}}}'


def arrows_between(
    linked: Sequence[tuple[OpRuns, str]],
    nodes: Sequence[Node],
    transfers: Sequence[Transfer],
    ids: Iterator[int],
) -> Iterator[Event]:
    """Yield the beginning and the end of each arrow, half a nanosecond after their times."""
    runs = op_runs.concatenated([lane for lane, _ in linked])
    threads = [thread for lane, thread in linked for _ in range(len(lane))]
    ran = {runs.kinds[kind][0] for kind in runs.kinds_in_order()}
    before = critical_path.producers(nodes, transfers, ran)
    producers, consumers = critical_path.flows(runs, before)
    lasting = (runs.duration_ns[producers] > 0) & (runs.duration_ns[consumers] > 0)
    producers, consumers = producers[lasting], consumers[lasting]
    ends = runs.start_ns[producers] + runs.duration_ns[producers] - 1
    columns = (producers, ends, consumers, runs.start_ns[consumers])
    pairs = zip(*(column.tolist() for column in columns), strict=True)
    for maker, end, taker, start in pairs:
        tail = f'5,"id":{next(ids)},"name":"data","cat":"data"}}'
        yield end, f'{{"ph":"s",{threads[maker]}"ts":', tail
        yield start, f'{{"ph":"f","bp":"e",{threads[taker]}"ts":', tail
