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
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count
from operator import itemgetter
from typing import TextIO

from tflab.analysis import op_runs, timeline
from tflab.analysis.op_runs import OpRuns
from tflab.escaping import visible
from tflab.records.timed import Capture, OpRun

STEPS = "steps"

Event = tuple[int, str, str]  # its time in ns, and its JSON before and after the time


def write(stream: TextIO, captures: Iterable[Capture]) -> None:
    """Write all captures as one JSON object, with its events in order of time."""
    captures = list(captures)
    numbers = count(1)
    names: list[str] = []
    events: list[Event] = []
    for capture in captures:
        prefix = f"{capture.name}: " if len(captures) > 1 else ""
        steps = op_runs.of(
            OpRun(step.step, STEPS, f"step {step.step}", STEPS, step.start_ns, step.wall_ns)
            for step in capture.steps
        )
        for name, runs in ((STEPS, steps), *op_runs.of(capture.runs).by_device().items()):
            pid = next(numbers)
            names += name_events("process", prefix + name, pid, pid)
            for number, lane in enumerate(timeline.pack(runs), 1):
                tid = next(numbers)
                names += name_events("thread", f"lane {number}", pid, tid)
                events += slices(lane, f'"pid":{pid},"tid":{tid},')
    events.sort(key=itemgetter(0))
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
    """Yield the events that name a process or a thread, and set its place in the order."""
    head = f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}'
    yield f'{head}_name","args":{{"name":{json_text(name)}}}}}'
    yield f'{head}_sort_index","args":{{"sort_index":{tid}}}}}'


def slices(lane: OpRuns, thread: str) -> Iterator[Event]:
    """Yield runs as slices, each called by its op type, so that each type has one colour."""
    head = f'{{"ph":"X",{thread}"ts":'
    abouts = [
        f',"name":{op},"cat":"op","args":{{"node":{json_text(name)},"op":{op},"step":'
        for name, op in ((name, json_text(op)) for name, op, _ in lane.kinds)
    ]
    columns = (column.tolist() for column in lane.columns)
    for kind, step, start, duration, size in zip(*columns, strict=True):
        yield start, head, f',"dur":{us(duration)}{abouts[kind]}{step},"bytes":{size}}}}}'
