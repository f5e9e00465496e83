"""Saved: two comparisons in files, compared step by step and row by row.

A file has the median of each round of the sweep, for the step and for every row. Rounds of one
process are not independent of one another: therefore the control of a verdict is how much rounds of
the same thing differed within each file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from tflab.analysis import verdicts
from tflab.cli import command, environment, output_paths, terminal
from tflab.compare import WHAT, view
from tflab.errors import UsageError
from tflab.escaping import visible
from tflab.exporters import csv, json, text
from tflab.records import codec
from tflab.records.blocks import Block
from tflab.records.measured import Change, Changes, Gate, SavedComparison
from tflab.units import percent
from tflab.views.op_table import NAMES

GIVE = "give two files that `python -m tflab.compare --save FILE` wrote"
STEP = "step"

# What is compared -> its time in each round or observation
Times = Mapping[tuple[int, str], Sequence[float]]


def run(args: argparse.Namespace) -> int:
    """Compare two files, and show the result; return the exit status."""
    first, second = names_of(args.files)
    result = compare(first, second, *(codec.read_object(path, GIVE) for path in args.files))
    if args.fail_if_slower is not None:
        result = replace(result, gate=gate_of(args.fail_if_slower, result.steps))
    changed = {STEP: result.steps, result.by: result.rows}
    title, shown = f"{result.model}: {first} and {second}", blocks(result, args.top)
    show(args, title, result, shown, lambda: csv.changes(changed))
    return decide(args, result.gate, first)


def show(
    args: argparse.Namespace,
    title: str,
    result: object,
    blocks: Iterable[Block],
    rows: Callable[[], str],
) -> None:
    """Show a result in the format of the arguments; `rows` makes CSV."""
    about = environment.describe()
    with command.reader_may_leave():
        text.show_in_format(
            *(args.format, title, about, blocks),
            json=lambda: json.document(environment=about, **json.plain(result)),
            csv=rows,
        )


def save(args: argparse.Namespace, result: object) -> None:
    """Write a result into the file that --save names, if it is given."""
    if args.save:
        content = json.document(environment=environment.describe(), **json.plain(result))
        output_paths.write(Path(args.save), content.encode(), WHAT, "--save")
        notes = sys.stdout if args.format == "text" else sys.stderr
        terminal.say(f"\nThe comparison is in {visible(args.save)}", notes)


def names_of(paths: Sequence[str]) -> list[str]:
    """Return the names of two files, with their folders if the names are equal."""
    if len(paths) != 2:
        raise UsageError(f"The number of files is {len(paths)}; {GIVE}.")
    if paths[0] == paths[1]:
        raise UsageError(f"The file '{paths[0]}' is given twice; give each file once.")
    short = [Path(path).stem for path in paths]
    return short if short[0] != short[1] else [*paths]


def read(path: str, content: dict[str, Any]) -> SavedComparison:
    """Return what verdicts need of a file's content. Raise UsageError if it lacks that."""
    if "rounds" not in content or "phase" not in content:
        raise UsageError(f"'{path}' is not a saved comparison; {GIVE}.")
    saved = codec.decode_file(SavedComparison, content, path)
    if any(min(times, default=1) <= 0 for times in steps(saved).values()):
        raise codec.wrong(path)  # a step takes no time
    return saved


def compare(
    first: str, second: str, content: dict[str, Any], other_content: dict[str, Any]
) -> Changes:
    """Return the change of every step and row. Raise UsageError if nothing can be compared."""
    usual, other = read(first, content), read(second, other_content)
    for option in ("phase", "by"):
        mine, theirs = getattr(usual, option), getattr(other, option)
        if mine != theirs:
            raise UsageError(
                f"'{first}' has --{option} {mine}, and '{second}' --{option} {theirs}; measure "
                "both with one of them."
            )
    if not usual.rounds.keys() & other.rounds.keys():
        raise UsageError(
            f"'{first}' has batch sizes {[*usual.rounds]}, and '{second}' {[*other.rounds]}; "
            "measure both at a common size."
        )
    return Changes(
        files=(first, second),
        model=" and ".join(dict.fromkeys((usual.model, other.model))),
        phase=usual.phase,
        by=usual.by,
        steps=tuple(changes(steps(usual), steps(other))),
        rows=tuple(changes(rows(usual), rows(other))),
        gate=None,
    )


def steps(saved: SavedComparison) -> Times:
    return {(size, STEP): rounds.step_ns for size, rounds in saved.rounds.items()}


def rows(saved: SavedComparison) -> Times:
    """Return the times of the rows whose time was above 0 in every round."""
    return {
        (size, key): times
        for size, rounds in saved.rounds.items()
        for key, times in rounds.rows_ns.items()
        if min(times, default=0) > 0
    }


def changes(usual: Times, other: Times) -> Iterator[Change]:
    """Yield the change of each row of either file; the verdicts are made together."""
    both = [key for key in usual if key in other and usual[key] and other[key]]
    made = verdicts.of_files([(usual[key], other[key]) for key in both])
    against = dict(zip(both, made, strict=True))
    sizes = {size for size, _ in usual} & {size for size, _ in other}
    for key in dict.fromkeys([*usual, *other]):
        if key[0] in sizes:
            yield Change(*key, mean(usual.get(key)), mean(other.get(key)), against.get(key))


def mean(times: Sequence[float] | None) -> float | None:
    return geometric_mean(times) if times else None


# --fail-if-slower: a step is proven to be slower by more than a percentage if its interval,
# widened by the control, lies above it.


def gate_of(limit: float, rows: Iterable[Change], widened: bool = True) -> Gate:
    factor = 1 + limit / 100
    slower, undecided = [], []
    for row, verdict in ((row, row.verdict) for row in rows if row.verdict):
        margin = verdict.control_high if widened else 1
        if verdict.word == "slower" and verdict.low / margin > factor:
            slower.append(view.named(row))
        elif not verdict.high * margin <= factor:
            undecided.append(view.named(row))
    return Gate(limit, tuple(slower), tuple(undecided))


def decide(args: argparse.Namespace, gate: Gate | None, first: str) -> int:
    """Return the exit status: 1 for a slower step, 3 for an undecided one. Text already says why;
    in other formats, it is printed on standard error."""
    status = (1 if gate.slower else 3 if gate.undecided else 0) if gate else 0
    if gate and status and args.format != "text":
        terminal.say(f"tflab: {visible(sentence(gate, first))}", sys.stderr)
    return status


def sentence(gate: Gate, first: str) -> str:
    limit = percent(gate.percent / 100)
    undecided = ", ".join(gate.undecided)
    if gate.slower:
        others = f" Undecided: {undecided}." if undecided else ""
        return f"Slower than '{first}' by more than {limit}: {', '.join(gate.slower)}.{others}"
    if undecided:
        return f"Undecided if slower than '{first}' by more than {limit}: {undecided}."
    return f"No step is slower than '{first}' by more than {limit}."


def blocks(result: Changes, top: int = 10) -> Iterator[Block]:
    yield view.headline_of(result.files, result.steps)
    if result.gate:
        yield sentence(result.gate, result.files[0])
    medians = "mean of the rounds' medians"
    title = f"The untraced step of {result.model}, {result.phase}: {medians}"
    yield view.compared(title, result.steps, result.files, (view.BATCH,))
    for size in dict.fromkeys(row.batch_size for row in result.rows):
        of_size = [row for row in result.rows if row.batch_size == size]
        of_size.sort(key=lambda row: -max(row.first_ns or 0, row.second_ns or 0))
        title = f"Batch {size}, traced step by {NAMES[result.by]}: {medians}"
        yield view.compared(title, of_size, result.files, (view.label(NAMES[result.by]),), top)
    yield view.reading(
        "geometric mean of the second file's rounds, divided by that of the first's",
        f"[1/r, r]: r is the largest ratio of two rounds of a file, at least {verdicts.DRIFT}",
        ("not covered", "changes of the machine: measure both files one right after the other"),
    )


text.show_as(Changes, blocks)
