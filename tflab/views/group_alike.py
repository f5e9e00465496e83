"""Numbered: things whose names differ only in their numbers, such as block_1 to block_96."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

# The number of a name, which may be missing: `dense_1` comes after `dense`. A number by itself, as
# in a formula, is no part of a name.
NUMBER = re.compile(r"(?<=[A-Za-z/])[_.-]?\d+|^\d+(?=/|$)")

Thing = TypeVar("Thing")


def pattern(name: str) -> str:
    """Return the name without its numbers; equal for names that are numbered alike."""
    return NUMBER.sub("", name)


def groups(
    things: Iterable[Thing], name: Callable[[Thing], str], content: Callable[[Thing], Hashable]
) -> list[list[Thing]]:
    """Group the things that are numbered alike and have equal content, in the order of the first
    of each group."""
    groups_found: dict[Hashable, list[Thing]] = {}
    for thing in things:
        groups_found.setdefault((pattern(name(thing)), content(thing)), []).append(thing)
    return list(groups_found.values())


def label(names: Sequence[str]) -> str:
    """Return `block_1 ... block_96 (96 alike)`; a single name unchanged."""
    if len(names) == 1:
        return names[0]
    return f"{names[0]} ... {names[-1]} ({len(names):,} alike)"


def listed(names: Sequence[str], most: int) -> str:
    """Return `a, b, c and 5 more`: names in a line. If there are more than `most`, those that are
    numbered alike are written once."""
    few = len(names) <= most
    told = [[name] for name in names] if few else groups(names, str, lambda name: None)
    more = sum(map(len, told[most:]))
    return ", ".join(map(label, told[:most])) + (f" and {more:,} more" if more else "")


def shortened(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return lines of text: if there are more than `most`, each pattern once with its number, and
    the number of the others."""
    if len(lines) <= most:
        return tuple(lines)
    rows = [
        first if not others else f"{first} ({len(others) + 1:,} alike)"
        for first, *others in groups(lines, str, lambda line: None)
    ]
    more = len(rows) - most
    return (*rows[:most], f"... and {more:,} more") if more > 0 else tuple(rows)
