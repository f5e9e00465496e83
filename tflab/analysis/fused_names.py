"""Fused names: whose output a fused node computes. It need not be that of the node that it is named
after. No TensorFlow in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tflab.records import Fate

GONE = ("fused", "compiled")  # fates


def last(ledger: Iterable[Fate], order: Mapping[str, int]) -> dict[str, Fate]:
    """For an executed node that took in one that follows it: the last of these, whose output is
    what it computes. A fused batch norm keeps its name and computes the ReLU behind it."""
    known: dict[str, Fate] = {}
    for fate in ledger:
        into = fate.into or ""
        if fate.fate == "fused" and into in order and fate.name in order:
            current = known[into].name if into in known else into
            if order[fate.name] > order[current]:
                known[into] = fate
    return known


def by_last(tensors: Mapping[str, Any], last: Mapping[str, Fate]) -> dict[str, Any]:
    """What is known of tensors, each under the name of the node whose output it is."""
    return {last[name].name if name in last else name: item for name, item in tensors.items()}


def gone(ledger: Iterable[Fate], last: Mapping[str, Fate]) -> Iterator[Fate]:
    """The nodes whose output no node computes any more, with the one that computes on from it."""
    for fate in ledger:
        ends = last.get(fate.name) or last.get(fate.into or "")
        if ends is None:
            if fate.fate in GONE:
                yield fate
        elif fate.name != ends.name and (fate.fate in GONE or fate.name in last):
            yield Fate(fate.name, ends.fate, ends.by, ends.name)
