"""Saved measurements: one is shown as it was measured, several are compared; so are the watched
programs that `tflab.run --save` wrote."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tflab import models, units
from tflab.cli import environment
from tflab.compare import output
from tflab.compare.command_line import OF_SEVERAL, as_typed
from tflab.errors import UsageError
from tflab.exporters import csv, json, notebook, text
from tflab.measurements import contrast, files, view
from tflab.measurements.comparable import Named
from tflab.records.blocks import Block, Column, Table
from tflab.records.measurements import Contrast, Measurement
from tflab.records.watched import Group, Watched

# Options that can be combined with files
OPTIONS = ("files", "top", "format", "plots", "fail_if_undecided", *OF_SEVERAL)
# Of watched programs
OPTIONS_OF_RUNS = ("files", "format")
FORMATS_OF_RUNS = ("text", "json", "markdown")
NO_VERDICT = (
    "Each file comes from one process. Times also differ between processes by chance, so there "
    "is no verdict. Run the program several times to see how much they differ."
)

Seen = Mapping[str, Watched]  # by the name of the file
# Fetches, fed shapes, and which of the groups with these: functions may have the same name
Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...], int]
OF_GROUP = re.compile(r"(.* group) (\d+)")  # owners of the time of a group


notebook.show_as(Contrast, view.blocks)


def run(args: argparse.Namespace, arguments_named: Sequence[str]) -> int:
    """Show or compare the files of a command line; `arguments_named` are the arguments in
    it. Raises the TflabError of the gate if that fails."""
    if files.read_content(args.files[0]):
        return compare_runs(args, arguments_named)
    for name in arguments_named:
        if name not in OPTIONS:
            raise UsageError(
                f"{as_typed(name)} applies to a new measurement, but '{args.files[0]}' is a saved "
                f"one; give either files or measuring options."
            )
        if name in OF_SEVERAL and len(args.files) < 2:
            raise UsageError(
                f"{as_typed(name)} needs two or more measurements, the baseline first."
            )
    measurements = read_all(args.files)
    first, *others = measurements
    if not others:
        show_one(measurements[first], args)
        return 0
    if args.plots:
        raise UsageError("--plots draws one measurement; give one file, or omit --plots.")
    result = contrast.contrast(measurements, args.other_graph)
    if args.fail_if_slower is not None:
        gate = contrast.judge(measurements, result, args.fail_if_slower)
        result = replace(result, gate=gate)
    show(result, measurements, args)
    failure = result.gate and contrast.failure(result.gate, first, args.fail_if_undecided)
    if failure:
        raise failure
    return 0


def read_all(paths: Sequence[str]) -> Named:
    """The measurements in these files, in order, by name."""
    return {name: read(path) for name, path in zip(contrast.short_names(paths), paths, strict=True)}


def read(path: str) -> Measurement:
    try:
        return files.read(path)
    except UsageError as error:
        if path in models.MODELS:
            raise UsageError(f"{error} Did you mean '--model {path}'?") from error
        raise


def show_one(measurement: Measurement, args: argparse.Namespace) -> None:
    with output.plots_of(args) as folder:
        output.show(measurement.comparison, args, measurement.environment)
        if folder:
            output.draw(measurement.comparison, folder)
    output.say_plots(args)


def show(result: Contrast, measurements: Named, args: argparse.Namespace) -> None:
    text.show_in_format(
        args.format,
        f"{result.model}: {', '.join(result.measurements)}",
        environment.describe(),
        view.blocks(result, args.top),
        json=lambda: json.contrast(
            result, {name: item.environment for name, item in measurements.items()}
        ),
        csv=lambda: csv.contrast(result),
    )


# Watched programs


def compare_runs(args: argparse.Namespace, arguments_named: Sequence[str]) -> int:
    """Show or compare the files of a command line; `arguments_named` are the arguments in it."""
    for name in arguments_named:
        if name not in OPTIONS_OF_RUNS:
            raise UsageError(f"{as_typed(name)} does not apply to watched runs; omit it.")
    if args.format not in FORMATS_OF_RUNS:
        raise UsageError(f"Watched runs are compared as {', '.join(FORMATS_OF_RUNS)}.")
    names = contrast.short_names(args.files)
    watched_runs = {
        name: files.read_run(path) for name, path in zip(names, args.files, strict=True)
    }
    text.show_in_format(
        args.format,
        "Watched runs",
        {},
        blocks_of_runs(watched_runs),
        json=lambda: json.document(runs=watched_runs),
    )
    return 0


def blocks_of_runs(seen: Seen) -> Iterator[Block]:
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
