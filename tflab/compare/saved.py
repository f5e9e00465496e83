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
from tflab.units import plural, three_digits
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
    title, shown = f"{result.model}: {first} and {second}", blocks(result, args.top, args.full)
    show(args, title, result, shown, lambda: csv.changes(changed))
    return decide(args, result.gate)


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
    names: dict[str, tuple[str, ...]] = dict.fromkeys(("slower", "undecided", "passed"), ())
    for row in rows:
        of, result = row.verdict, "undecided"
        margin = of.control_high if of and widened else 1
        if of and of.word == "slower" and of.low / margin > factor:
            result = "slower"
        elif of and of.high * margin <= factor:
            result = "passed"
        names[result] += (f"step at batch {row.batch_size}" if row.batch_size else row.key,)
    return Gate(limit, **names)


def decide(args: argparse.Namespace, gate: Gate | None) -> int:
    """Return the exit status of the gate; formats other than text say why on standard error."""
    if gate and status_of(gate) and args.format != "text":
        terminal.say(f"tflab: {visible(sentence(gate))}", sys.stderr)
    return status_of(gate) if gate else 0


def status_of(gate: Gate) -> int:
    """Return the exit status: 1 for a slower step, 3 for an undecided one."""
    return 1 if gate.slower else 3 if gate.undecided else 0


def sentence(gate: Gate) -> str:
    """Return `Gate, at most 10 % slower: fails for the step at batch 1, 16 (exit status 1).`"""
    told = (("fails", gate.slower), ("undecided", gate.undecided), ("passes", gate.passed))
    said = (f"{word} for the {', '.join(names)}" for word, names in told if names)
    result = ", ".join(said).replace(", step at batch ", ", ")
    return f"Gate, at most {gate.percent:g} % slower: {result} (exit status {status_of(gate)})."


def rule(gate: Gate | None, low: str, high: str) -> Iterator[tuple[str, str]]:
    """Yield how a gate decides, by what it makes of the ends of an interval."""
    if gate:
        fails = f"fails if the verdict is slower and {low} is above {1 + gate.percent / 100:g}"
        yield "gate", f"{fails}, passes if {high} is at most that; [low, high] is the interval"


def blocks(result: Changes, top: int = 10, full: bool = False) -> Iterator[Block]:
    if result.gate:
        yield sentence(result.gate)
    first, second = result.files
    of = f"step of {result.model} {result.phase}"
    name, differ = NAMES[result.by], view.differing(result.rows, False)
    each = f"{plural(len(result.rows), 'row')} by {name}"
    only_rows = differ and not any(map(view.tone, result.steps))
    changed = f"; {len(differ)} of {each} differ" if only_rows else ""
    yield f"{second} compared with {first}, {of}: {view.in_words(result.steps)}{changed}."
    yield from noise(result.steps)
    medians = "mean of the rounds' medians"
    yield view.compared(f"The untraced step: {medians}", result.steps, result.files, (view.BATCH,))
    shown = view.differing(result.rows, full)
    title = f"Traced steps by {name}{', where they differ' * (not full)}: {medians}"
    if shown:
        labels = view.label(name), view.BATCH
        yield view.compared(title, shown, result.files, labels, None if full else top)
    if rest := len(result.rows) - len(shown):
        yield f"{rest} of {each}: no difference is proven. --full lists them."
    machine = "errors by changes of the machine between the files: measure both in one go"
    yield view.reading(
        (*result.steps, *shown),
        f"geometric mean of the rounds of {second}, divided by that of {first}",
        f"1/r to r: r is the largest ratio of two rounds of a file, at least {verdicts.DRIFT}",
        *[("not covered", machine)] * any(map(view.tone, (*result.steps, *differ))),
        *rule(result.gate, "low / r", "high x r"),
    )


def noise(steps: Iterable[Change]) -> Iterator[str]:
    """Yield why steps have no verdict, if it is the rounds, and what to do."""
    unsure = [row.verdict for row in steps if row.verdict and row.verdict.word == "cannot tell"]
    most = max((each.control_high for each in unsure), default=0)
    if any(each.observations < verdicts.LEAST for each in unsure):
        yield f"A verdict takes at least {verdicts.LEAST} rounds: measure with more --images."
    elif most > verdicts.DRIFT:
        yield (
            f"Rounds of the step within one file differ by up to {three_digits(most)} x, which "
            "hides smaller differences of the step. Measure both again, in one go."
        )


text.show_as(Changes, blocks)
