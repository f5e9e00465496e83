"""Saved runs: the watched programs that `tflab.run --save` wrote, compared with one another."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tflab import units
from tflab.compare.command_line import as_typed
from tflab.errors import UsageError
from tflab.exporters import formats, json
from tflab.measurements import contrast, run_files
from tflab.records.blocks import Block, Column, Table
from tflab.records.watched import Group, Watched

OPTIONS = ("files", "format")
FORMATS = ("text", "json", "markdown")
NO_VERDICT = (
    "Each file is of one process. Processes differ by chance too, so no verdict is given; run the "
    "program several times to see by how much."
)

Seen = Mapping[str, Watched]  # by the name of the file
Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]  # fetches, and fed shapes


def run(args: argparse.Namespace, arguments_named: Sequence[str]) -> int:
    """Show or compare the files of a command line; `arguments_named` are the arguments in it."""
    for name in arguments_named:
        if name not in OPTIONS:
            raise UsageError(f"{as_typed(name)} does not apply to watched runs; leave it out.")
    if args.format not in FORMATS:
        raise UsageError(f"Watched runs are compared as {', '.join(FORMATS)}.")
    names = contrast.short_names(args.files)
    watched_runs = {
        name: run_files.read(path) for name, path in zip(names, args.files, strict=True)
    }
    formats.show(
        args.format,
        "Watched runs",
        {},
        blocks(watched_runs),
        json=lambda: json.document(runs=watched_runs),
    )
    return 0


def blocks(seen: Seen) -> Iterator[Block]:
    yield Table(
        "Median run of each group, in ratio to the first file",
        (
            Column("fetches", lambda row: ", ".join(row[0][0]), elastic=True),
            Column("fed", lambda row: ", ".join(map(" ".join, row[0][1])), elastic=True),
            *of_files(seen, median),
        ),
        tuple(groups(seen)),
    )
    yield Table(
        "Where the time went",
        (Column("", lambda row: row[0]), *of_files(seen, spent)),
        tuple(owners(seen)),
    )
    if len(seen) > 1:
        yield NO_VERDICT


def of_files(seen: Seen, cell: Callable[[int, Any], str]) -> Iterator[Column]:
    for place, name in enumerate(seen):
        yield Column(name, partial(cell, place), right=True)


def groups(seen: Seen) -> Iterator[tuple[Key, tuple[Group | None, ...]]]:
    """The groups that fetch the same and are fed the same shapes; None where a file has none."""
    by_key: list[dict[Key, Group]] = [
        {(group.fetches, tuple(group.feeds.items())): group for group in one.groups}
        for one in seen.values()
    ]
    for key in dict.fromkeys(key for known in by_key for key in known):
        yield key, tuple(known.get(key) for known in by_key)


def owners(seen: Seen) -> Iterator[tuple[str, tuple[int, ...]]]:
    by_name = [{owner.owner: owner.ns for owner in one.process.owners} for one in seen.values()]
    for name in dict.fromkeys(name for known in by_name for name in known):
        yield name, tuple(known.get(name, 0) for known in by_name)
    yield "the whole process", tuple(one.process.wall_ns for one in seen.values())


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
