"""Planes: lines of events for TensorBoard Profile, with the tables of their names.

An XSpace file holds planes (a host, a device), a plane holds lines (a thread), and a line holds
events with a start and a duration in picoseconds. Names are kept in the plane's tables, and events
refer to them by number; other properties of an event are a list of stats. The format is
that of tsl/profiler/protobuf/xplane.proto, whose field numbers are used here: checked with
TensorFlow 2.21.

XProf splits the name of an event at the first colon into a node and an op type. An event that does
not match its patterns is in none of its statistics (`ParseTfOpFullname` in tf_op_utils.cc of
xla/tsl/profiler/utils; checked with xprof 2.24).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from tflab.escaping import visible
from tflab.exporters.xspace import wire

PS = 1000  # picoseconds in a nanosecond
COUNTERS = "_counters_"  # the name of a line whose events are drawn as curves
CHUNK = 16_384  # events that are encoded together: few enough for the processor's cache


@dataclass(frozen=True)
class Events:
    """Events of one line that have the same stats, by columns."""

    names: np.ndarray  # numbers from `Plane.event`
    starts_ns: np.ndarray  # since the profile began
    durations_ns: np.ndarray
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)  # stats, by name
    texts: Mapping[str, np.ndarray] = field(default_factory=dict)  # also from `Plane.text`


@dataclass
class PlaneLine:
    """A line that is being built."""

    place: int
    content: wire.Stored  # its events
    name: str = ""


class Plane:
    """A plane that is being built: number the names of its events, add lines, then take `parts`."""

    def __init__(self, name: str) -> None:
        self._parts = [wire.field(2, name)]
        self._lines: dict[object, PlaneLine] = {}
        self._events: dict[tuple[str, str], int] = {}
        self._texts: dict[str, int] = {}  # names of stats, and texts that stats refer to

    def event(self, name: str, display: str = "", stats: Mapping[str, bytes] | None = None) -> int:
        """The number of a name. The trace viewer shows `display` instead, if it is given."""
        number = self._events.get((name, display))
        if number is None:
            number = self._events[name, display] = len(self._events) + 1
            content = wire.field(1, number) + wire.field(2, visible(name))
            content += wire.field(4, visible(display)) if display else b""
            for stat, value in (stats or {}).items():
                content += wire.field(5, wire.field(1, self.text(stat)) + wire.field(6, value))
            self._parts.append(wire.field(4, wire.field(1, number) + wire.field(2, content)))
        return number

    def text(self, text: str) -> int:
        """The number of a text that stats refer to, or of the name of a stat."""
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = len(self._texts) + 1
            content = wire.field(1, number) + wire.field(2, visible(text))
            self._parts.append(wire.field(5, wire.field(1, number) + wire.field(2, content)))
        return number

    def stat(self, name: str, value: int) -> None:
        """Add a stat of the plane itself."""
        self._parts.append(wire.field(6, wire.field(1, self.text(name)) + wire.field(3, value)))

    def line(
        self, name: str, *events: Events, number: int | None = None, key: object = None
    ) -> None:
        """Add a line, or events to the line that was added with the same key.

        Without a `number` it is drawn below the lines that were added before. Of several names a
        line has the longest.
        """
        key = key or len(self._lines)
        if key not in self._lines:
            place = len(self._lines) + 1 if number is None else number
            self._lines[key] = PlaneLine(place, wire.Stored())
        line = self._lines[key]
        line.name = max(line.name, name, key=len)
        for block in events:
            for content in self._encoded(block):
                line.content.add(content)

    def _encoded(self, events: Events) -> Iterator[bytes]:
        stats = [
            (wire.field(1, self.text(name)), kind, values)
            for kind, named in ((4, events.numbers), (7, events.texts))
            for name, values in named.items()
        ]
        for start in range(0, len(events.names), CHUNK):
            rows = slice(start, start + CHUNK)
            fields = [
                wire.numbers(1, events.names[rows]),
                wire.numbers(2, events.starts_ns[rows] * PS),
                wire.numbers(3, events.durations_ns[rows] * PS),
            ]
            for name, kind, values in stats:
                value = wire.numbers(kind, values[rows])
                fields.append(wire.nested(4, [wire.same(name, len(value.lengths)), value]))
            yield wire.nested(4, fields).encoded()

    def parts(self) -> list[wire.Part]:
        """The plane as a field of an XSpace, in pieces."""
        parts: list[wire.Part] = list(self._parts)
        for line in self._lines.values():
            head = wire.field(1, line.place) + wire.field(2, visible(line.name))
            parts += wire.framed(3, [head, line.content.whole()])
        return wire.framed(1, parts)


def column(values: Iterable[int]) -> np.ndarray:
    return np.fromiter(values, np.int64)


NOTHING = Events(column([]), column([]), column([]), {"group_id": column([])})


# Names of events that XProf recognises as ops

Kind = tuple[str, str]  # a node and the type that ran

# Names that XProf takes for step markers, input pipelines, its row for idle time or its own
# runtime; and names that do not begin as TensorFlow's do.
MISREAD = re.compile(
    r"(train|test|TraceContext)[^/]*|Iterator|IDLE"
    r"|(EagerExecute|EagerLocalExecute|EagerKernelExecute|FunctionRun).*|([^A-Za-z0-9.].*)?"
)


def event_names(kinds: Iterable[Kind]) -> dict[Kind, str]:
    """A `<node>:<OpType>` for each node and type, in which no two have the same node.

    Characters that are not allowed become underscores. A leading underscore marks nodes that the
    runtime has added, and XProf does not count these: `_arg_x` becomes `runtime/arg_x`. A name that
    XProf would misread gets a `./`. Names that become equal are numbered, and so are the types of
    one node, because XProf adds up by node.
    """
    names: dict[Kind, str] = {}
    taken: set[str] = set()
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(2))
    # Unchanged names come first and keep their name; the numbers do not depend on the given order.
    for node, op in sorted(kinds, key=lambda kind: (plain_name(kind[0]) != kind[0], kind)):
        name = plain = plain_name(node)
        while name in taken:
            name = f"{plain}-{next(numbers[plain])}"
        taken.add(name)
        names[node, op] = f"{name}:{plain_type(op)}"
    return names


def plain_name(node: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_./>-]", "_", node)
    if node.startswith("_"):
        return f"runtime/{plain.lstrip('_')}"
    return f"./{plain}" if MISREAD.fullmatch(plain) else plain


def plain_type(op: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", op)
    return plain if re.match("[A-Z_]", plain) else f"_{plain}"


def display_name(node: str) -> str:
    """`Relu (conv1/Relu)`: the last part first, because a box is rarely wide enough for all."""
    scope, _, leaf = node.rpartition("/")
    return f"{leaf} ({node})" if scope and leaf else node


DEVICE = re.compile(r"(/job:([^/]*))?(/replica:\d+)?(/task:(\d+))?/(device:)?(.*)", re.DOTALL)


def short_device_names(names: Iterable[str]) -> dict[str, str]:
    """`/job:worker/replica:0/task:1/device:CPU:0` as `CPU:0`, or with several tasks as `worker 1,
    CPU:0`. If two short names would be equal, all names stay as they are."""
    matches = {name: DEVICE.fullmatch(name) for name in sorted(names)}
    for form in (r"\7", r"\2 \5, \7"):
        short = {
            name: match.expand(form).strip(" ,") if match else name
            for name, match in matches.items()
        }
        if len(set(short.values())) == len(short):
            return short
    return {name: name for name in matches}
