"""View of the order of reads and writes: those of one variable, queue or table without any, and
what always runs although one branch uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflab.records.blocks import Fact
from tflab.records.graph import Access, BranchInput, Unordered
from tflab.units import plural
from tflab.views.words import place

NAMED = 3  # nodes in a fact
UNDEFINED = {  # what the order decides, by what the first of two accesses does
    "reads": "no path between them: it finds the old or the new value",
    "writes": "no path between them: either value may be the one that stays",
    "takes": "no path between them: either may get the first element",
    "puts": "no path between them: either element may be the first",
}


def facts(rows: Sequence[Unordered]) -> Iterator[Fact]:
    """Yield the first accesses without order, and how many others there are."""
    for number, row in enumerate(rows[:NAMED]):
        why = UNDEFINED[row.first.does]
        yield Fact("order undefined", sentence(row), why, detail=number > 0)
    if (more := len(rows) - NAMED) > 0:
        yield Fact("order undefined", plural(more, "more pair"), "JSON lists all", detail=True)


def sentence(row: Unordered) -> str:
    """Return `shown reads weight (model.py:12), train writes it (model.py:20)`"""
    first = f"{who(row)} {row.first.does} {row.resource}{at(row.first)}"
    return f"{first}, {row.second.node} {row.second.does} it{at(row.second)}"


def who(row: Unordered) -> str:
    """Return the fetch that is computed from what is read; without or with several, the node."""
    return row.fetches[0] if len(row.fetches) == 1 else row.first.node


def at(access: Access) -> str:
    return f" ({place(access.source)})" if access.source else ""


def always_run(inputs: Sequence[BranchInput]) -> Iterator[Fact]:
    """Yield the nodes that were made outside of the only branch that uses them."""
    for row in inputs[:NAMED]:
        why = f"only the {row.branch} uses it; it was made outside of that branch"
        line = f", {place(row.source)}" if row.source else ""
        yield Fact("always runs", f"{row.node} ({row.op}{line})", why)
    if (more := len(inputs) - NAMED) > 0:
        yield Fact("always run", f"{plural(more, 'more node')}", "that one branch uses")
