"""Planes: lines of events for TensorBoard Profile, with the tables of their names.

An XSpace holds planes (a host, a device), a plane holds lines (a thread), and a line holds events
with a start and a duration in picoseconds. Names are kept in the plane's tables, and events refer
to them by number; other properties of an event are a list of stats. The format is that of
tsl/profiler/protobuf/xplane.proto.

XProf splits the name of an event at the first colon into a node and an op type. An event that does
not match its patterns is in none of its statistics (`ParseTfOpFullname` in tf_op_utils.cc of
xla/tsl/profiler/utils; checked with xprof 2.24).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

from tflab.escaping import visible

PS = 1000  # picoseconds in a nanosecond
NO_STATS: Mapping[str, int | str] = MappingProxyType({})
COUNTERS = "_counters_"  # the name of a line whose events are drawn as curves
Message = Any  # of xplane.proto


class Plane:
    """A plane of an XSpace, with the numbers of its names."""

    def __init__(self, space: Message, name: str) -> None:
        self.proto = space.planes.add(name=name)
        self._events: dict[tuple[str, str], int] = {}
        self._texts: dict[str, int] = {}

    def event(self, name: str, display: str = "") -> int:
        """Return the number of a name. The trace viewer shows `display` instead, if it is given."""
        number = self._events.setdefault((name, display), len(self._events) + 1)
        if number not in self.proto.event_metadata:
            about = self.proto.event_metadata[number]
            about.id, about.name, about.display_name = number, visible(name), visible(display)
        return number

    def text(self, text: str) -> int:
        """Return the number of a text that stats refer to, or of the name of a stat."""
        number = self._texts.setdefault(text, len(self._texts) + 1)
        if number not in self.proto.stat_metadata:
            about = self.proto.stat_metadata[number]
            about.id, about.name = number, visible(text)
        return number

    def line(self, name: str, number: int | None = None) -> Message:
        """Add a line. Without a `number` it is drawn below the lines that were added before."""
        place = len(self.proto.lines) + 1 if number is None else number
        return self.proto.lines.add(id=place, name=visible(name))

    def add(
        self,
        line: Message,
        event: int,
        start_ns: int,
        duration_ns: int,
        stats: Mapping[str, int | str] = NO_STATS,
    ) -> None:
        """Add an event to a line. Its start is since the profile began."""
        added = line.events.add(metadata_id=event)
        added.offset_ps, added.duration_ps = start_ns * PS, duration_ns * PS
        for name, value in stats.items():
            stat = added.stats.add(metadata_id=self.text(name))
            if isinstance(value, str):
                stat.ref_value = self.text(value)
            else:
                stat.int64_value = value


# Names of events that XProf recognises as ops

Kind = tuple[str, str]  # a node and the type that ran

# Names that XProf takes for step markers, input pipelines, its row for idle time or its own
# runtime; and names that do not begin as TensorFlow's do.
MISREAD = re.compile(
    r"(train|test|TraceContext)[^/]*|Iterator|IDLE"
    r"|(EagerExecute|EagerLocalExecute|EagerKernelExecute|FunctionRun).*|([^A-Za-z0-9.].*)?"
)


def event_names(kinds: Iterable[Kind]) -> dict[Kind, str]:
    """Return a `<node>:<OpType>` for each node and type, in which no two have the same node.

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
    """Return `Relu (conv1/Relu)`: the last part first, as few boxes are wide enough for all."""
    scope, _, leaf = node.rpartition("/")
    return f"{leaf} ({node})" if scope and leaf else node
