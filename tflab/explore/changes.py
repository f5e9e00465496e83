"""Changes: the difference between a life and an earlier or another one: nodes, fates, costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from tflab.records.blocks import Block, Column, Table
from tflab.units import size, time
from tflab.views.op_table import flops_text

LISTED = 8  # names of nodes in a line

Nodes = Mapping[str, Sequence[Any]]  # node -> its kind, its signature, its fate
Numbers = Mapping[str, float | None]
WRITTEN = {"FLOPs": flops_text, "bytes": size, "ns": time}
TIMES = ("ns", "low_ns", "high_ns")  # of a step: median, p10, p90
EDIT = ("before", "now")
CALLED = {"bytes": "memory at most", "ns": "a step, median"}


@dataclass(frozen=True)
class Changes:
    """The nodes that an edit added, removed and changed."""

    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]  # other op, inputs or outputs
    fates: tuple[tuple[str, str, str], ...]  # node, before, now
    numbers: tuple[tuple[str, float | None, float | None], ...]  # name, before, now


def compare(before: Nodes, now: Nodes, earlier: Numbers, later: Numbers) -> Changes:
    """The changes from one life to the next, by the names of nodes."""
    both = [name for name in now if name in before]
    return Changes(
        new=tuple(name for name in now if name not in before),
        gone=tuple(name for name in before if name not in now),
        changed=tuple(name for name in both if before[name][1] != now[name][1]),
        fates=tuple(
            (name, before[name][2], now[name][2])
            for name in both
            if before[name][2] and now[name][2] and before[name][2] != now[name][2]
        ),
        numbers=tuple(
            (what, earlier[what], later[what])
            for what in later
            if what in earlier and differ(what, earlier, later)
        ),
    )


def differ(what: str, earlier: Numbers, later: Numbers) -> bool:
    """Whether a number differs. A time differs only if nearly all steps took longer, or nearly all
    took less."""
    if what not in TIMES:
        return earlier[what] != later[what]
    if what != "ns":
        return False
    before, now = ([numbers[name] or 0.0 for name in TIMES[1:]] for numbers in (earlier, later))
    return before[1] < now[0] or now[1] < before[0]


def blocks(
    changes: Changes, now: Nodes, before: Nodes, heads: tuple[str, str] = EDIT
) -> Iterator[Block]:
    """The changes for readers; a sentence if there are none. `heads` name the two lives."""
    edit = heads == EDIT
    rows = [
        (what, f"{len(names):,}", listed(names, by_name))
        for what, names, by_name in (
            ("new" if edit else f"only {heads[1]}", changes.new, now),
            ("gone" if edit else f"only {heads[0]}", changes.gone, before),
            ("changed" if edit else "differ", changes.changed, now),
        )
        if names
    ]
    if rows:
        yield texts("Nodes", ("", "nodes", "which"), rows)
    else:
        yield "No node is new, gone or changed." if edit else "Both have the same nodes."
    if changes.fates:
        some = changes.fates[:LISTED]
        yield texts("Other fates", ("node", *heads), some, len(changes.fates) - LISTED)
    numbers = [
        (CALLED.get(what, what), number_text(what, old), number_text(what, new))
        for what, old, new in changes.numbers
    ]
    if numbers:
        yield texts("Totals", ("", *heads), numbers, right=True)


def listed(names: Sequence[str], by_name: Nodes) -> str:
    """The names, those of the forward graph first."""
    ordered = sorted(names, key=lambda name: by_name[name][0] != "forward")
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(ordered[:LISTED]) + more


def number_text(what: str, number: float | None) -> str:
    if number is None:
        return "not known"
    return WRITTEN[what](number) if what in WRITTEN else f"{number:,.0f}"


def texts(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    more: int = 0,
    right: bool = False,
) -> Table:
    """A table of texts; with `right`, all columns except the first are right-aligned."""
    columns = tuple(
        Column(head, itemgetter(place), right=right and place > 0)
        for place, head in enumerate(heads)
    )
    return Table(title, columns, tuple(map(tuple, rows)), more=max(0, more))
