"""Lines: the most expensive lines of a watched program, and the fates of their nodes."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import starmap

from tflab import units
from tflab.records.blocks import Block, Column, numbers, table
from tflab.records.watched import Recorded, Watched, WatchedLine

MOST = 15
NOT_NEEDED = "not needed by this group"
LEAST_SAMPLES = 10  # of a line, for its time
PRECISE = 0.1  # the largest error of a time that is shown as one number
ONCE = "*"  # marks a time that comes from one traced run

Line = tuple[str, int]


def blocks(seen: Watched) -> Iterator[Block]:
    """Yield the most expensive lines."""
    known = [line for line in seen.lines if any(times(line))]
    files = {line.file for line in known}
    name = f" of {os.path.basename(files.pop())}" if len(files) == 1 else ""
    runs = sum(group.traced for group in seen.groups)
    from_runs = f", with times of ops estimated from {units.plural(runs, 'traced run')}"
    title = f"The most expensive lines{name}{from_runs * bool(runs)}"

    def place(line: WatchedLine) -> str:
        return str(line.line) if name else f"{os.path.basename(line.file)}:{line.line}"

    def column(at: int, header: str) -> Column:
        return numbers(header, lambda line: times(line)[at], SPARE.get(header, 0))

    columns = (
        Column("line", place, right=bool(name)),
        *starmap(column, enumerate(HEADERS)),
        Column("code", lambda line: line.code, elastic=True, least=20, spare=1),
    )
    shown = (column for column in columns if any(map(column.cell, known[:MOST])))
    if known:
        yield (lines := table(title, known, *shown, most=MOST))
        if any(ONCE in cell for row in lines.cells() for cell in row[:-1]):
            yield f"{ONCE} from one traced run"


HEADERS = ("forward", "backward", "updates", "waiting", "Python", "TensorFlow", "other threads")
SPARE = {"waiting": 3}  # omitted first where a terminal is narrow


def times(line: WatchedLine) -> tuple[str, ...]:
    """Return the cells of HEADERS."""
    once = ONCE if line.traced == 1 else ""
    of_nodes = (line.forward_ns, line.backward_ns, line.update_ns, line.waiting_ns)
    return (
        *(f"{units.time(ns)}{once}" if ns else "" for ns in of_nodes),
        sampled(line.python_ns, line.python_samples),
        sampled(line.tensorflow_ns, line.tensorflow_samples),
        sampled(line.elsewhere_ns, line.elsewhere_samples),
    )


def total_ns(line: WatchedLine) -> int:
    nodes_ns = line.forward_ns + line.backward_ns + line.update_ns + line.waiting_ns
    return nodes_ns + line.python_ns + line.tensorflow_ns + line.elsewhere_ns


# The precision of a sampled time


def sampled(ns: int, samples: int) -> str:
    """Return `1.25 s`, or `0.3 to 0.5 s` where the samples do not say more."""
    return spread(units.time, ns, samples)


def spread(say: Callable[[float], str], value: float, samples: int) -> str:
    """Return a sampled value, or its 95 % interval; "" if there are too few samples."""
    if samples < LEAST_SAMPLES:
        return ""
    # The number of samples on a line is nearly Poisson, so its standard deviation is its root
    error = 2 * value / math.sqrt(samples)
    low, high = value - error, value + error
    if error <= PRECISE * value:
        return say(value)
    (least, small), (most, unit) = (say(float(f"{bound:.1e}")).split(" ") for bound in (low, high))
    if (least, small) == (most, unit):
        return f"{most} {unit}"
    first = f"{float(least):g}" if small == unit else f"{float(least):g} {small}"
    return f"{first} to {float(most):g} {unit}"


# The fates of the nodes of a line, in a few words


def nodes_by_line(graph: Recorded | None) -> dict[Line, list[str]]:
    made: dict[Line, list[str]] = {}
    for node in graph.nodes if graph else ():
        if node.line:
            made.setdefault((node.line.file, node.line.line), []).append(node.name)
    return made


def notes_by_line(graph: Recorded | None) -> dict[Line, str]:
    """Return the fates of the nodes of each line, unless all were executed: `2 fused, 1 folded`."""
    fates = {fate.name: fate.fate for fate in graph.ledger} if graph else {}
    told: dict[Line, str] = {}
    for line, names in nodes_by_line(graph).items():
        own = Counter(fates[name] for name in names if name in fates)
        gone = ", ".join(f"{count} {fate}" for fate, count in own.items() if fate != "executed")
        told[line] = NOT_NEEDED if own and {*own} == {"unreached"} else gone
    return told
