"""Names: event names that XProf recognises as ops.

XProf splits the name of an event at the first colon into a node and an op type. An event that does
not match its patterns is in none of its statistics (`ParseTfOpFullname` in tf_op_utils.cc of
xla/tsl/profiler/utils; checked with xprof 2.24).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count

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
    """`Relu (conv1/Relu)`: the last part first, because a box is seldom wide enough for all."""
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
