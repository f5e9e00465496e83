"""View of the order of reads and writes: those of one variable, queue or table without any, and
what always runs although one branch uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflab.records.blocks import Fact
from tflab.records.graph import BranchInput, Source, Unordered
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
    """Return `shown reads weight (model.py:12), train writes it (model.py:20)`, where `shown` is
    the fetch that is computed from what is read; without or with several, the node."""
    first, second = row.first, row.second
    who = row.fetches[0] if len(row.fetches) == 1 else first.node
    does = f"{who} {first.does} {row.resource}{at(first.source)}"
    return f"{does}, {second.node} {second.does} it{at(second.source)}"


def at(source: Source | None) -> str:
    return f" ({place(source)})" if source else ""


def always_run(inputs: Sequence[BranchInput]) -> Iterator[Fact]:
    """Yield the nodes that were made outside of the only branch that uses them."""
    for row in inputs[:NAMED]:
        why = f"only the {row.branch} uses it; it was made outside of that branch"
        about = ", ".join(filter(None, (row.op, place(row.source))))
        yield Fact("always runs", f"{row.node} ({about})", why)
    if (more := len(inputs) - NAMED) > 0:
        yield Fact("always run", f"{plural(more, 'more node')}", "that one branch uses")
