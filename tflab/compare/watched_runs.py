"""Watched runs: several files that `tflab.run --save` wrote, side by side."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tflab import units
from tflab.cli import saved_files
from tflab.compare.saved import names_of
from tflab.errors import UsageError
from tflab.exporters import json, text
from tflab.records.blocks import Block, Column, Table
from tflab.records.watched import Group, Watched

FORMATS = ("text", "json", "markdown")
NO_VERDICT = (
    "Each file comes from one process. Times also differ between processes by chance, so there "
    "is no verdict. Run the program several times to see how much they differ."
)

Seen = Mapping[str, Watched]  # by the name of the file
# Fetches, fed shapes, and which of the groups with these: functions may have the same name
Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...], int]
OF_GROUP = re.compile(r"(.* group) (\d+)")  # owners of the time of a group


def run(args: argparse.Namespace) -> int:
    """Show or compare the files of a command line."""
    if args.fail_if_slower is not None:
        raise UsageError("--fail-if-slower does not apply to watched runs; omit it.")
    if args.format not in FORMATS:
        raise UsageError(f"Watched runs are compared as {', '.join(FORMATS)}.")
    names = names_of(args.files)
    seen = {name: saved_files.read_run(path) for name, path in zip(names, args.files, strict=True)}
    text.show_in_format(
        args.format,
        "Watched runs",
        {},
        blocks(seen),
        json=lambda: json.document(runs=seen),
    )
    return 0


def blocks(seen: Seen) -> Iterator[Block]:
    rows = groups(seen)
    numbers = {key: number for number, key in enumerate(rows, 1)}
    yield Table(
        "Median run of each group, and its ratio to the first file",
        (
            Column("group", lambda row: str(numbers[row[0]]), right=True),
            Column("fetches", lambda row: ", ".join(row[0][0]), elastic=True),
            Column("fed", lambda row: ", ".join(map(" ".join, row[0][1])), elastic=True),
            *of_files(seen, median),
        ),
        tuple(rows.items()),
    )
    yield Table(
        "Where the time went",
        (Column("", lambda row: row[0]), *of_files(seen, spent)),
        tuple(owners(seen, numbers)),
    )
    if len(seen) > 1:
        yield NO_VERDICT


def of_files(seen: Seen, cell: Callable[[int, Any], str]) -> Iterator[Column]:
    for place, name in enumerate(seen):
        yield Column(name, partial(cell, place), right=True)


def groups(seen: Seen) -> dict[Key, tuple[Group | None, ...]]:
    """The groups that fetch the same and are fed the same shapes; None where a file has none."""
    by_key = [dict(zip(keys(one), one.groups, strict=True)) for one in seen.values()]
    every = dict.fromkeys(key for known in by_key for key in known)
    return {key: tuple(known.get(key) for known in by_key) for key in every}


def keys(watched: Watched) -> Iterator[Key]:
    """The key of each group. Groups that fetch and are fed the same follow the order of their first
    runs."""
    seen_before: Counter[tuple[Any, ...]] = Counter()
    for group in watched.groups:
        alike = group.fetches, tuple(group.feeds.items())
        seen_before[alike] += 1
        yield (*alike, seen_before[alike])


def owners(seen: Seen, numbers: Mapping[Key, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What owned the time, in each file; `numbers` are those of the groups in all files."""
    by_name = []
    for one in seen.values():
        own = [numbers[key] for key in keys(one)]
        by_name.append({numbered(owner.owner, own): owner.ns for owner in one.process.owners})
    for name in dict.fromkeys(name for known in by_name for name in known):
        yield name, tuple(known.get(name, 0) for known in by_name)
    yield "the whole process", tuple(one.process.wall_ns for one in seen.values())


def numbered(owner: str, numbers: Sequence[int]) -> str:
    """`steps of group 2`: the owner with the number of its group in all files, from those of the
    groups of its own file. That may come from a stranger, with groups that it does not have."""
    found = OF_GROUP.fullmatch(owner)
    place = int(found[2]) - 1 if found else -1
    return f"{found[1]} {numbers[place]}" if found and 0 <= place < len(numbers) else owner


def median(place: int, row: tuple[Key, tuple[Group | None, ...]]) -> str:
    """`3.10 ms`, in a later file with its ratio: `3.41 ms (1.10 x)`."""
    _, in_files = row
    times = [group.median_ns if group else None for group in in_files]
    return with_ratio(times[place], times[0] if place else None)


def spent(place: int, row: tuple[str, tuple[int, ...]]) -> str:
    _, times = row
    return with_ratio(times[place] or None, times[0] if place else None)


def with_ratio(ns: float | None, first: float | None) -> str:
    if ns is None:
        return ""
    return f"{units.time(ns)} ({ns / first:.2f} x)" if first else units.time(ns)
