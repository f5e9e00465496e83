"""View: where the time of a watched program went, on half a screen, and what it traced."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tflab import units
from tflab.records.blocks import Block, Column, Fact, Table, fact_table, numbers, table
from tflab.records.watched import Compiled, Group, RecordedValues, Watched, WatchedLine
from tflab.run import sampler, summary
from tflab.views import execution, values
from tflab.views.op_table import text_or_blank
from tflab.views.words import listed

ROWS = 7  # of the table of owners
SMALL = 0.02  # of the time: more is a row of its own
OPS = 8  # of the table of ops
LEAST_OP = 0.01  # of the time of ops: less is not in the table
MANY = 5  # traced runs: of fewer, an estimate has one digit
CHILDREN = 0.5  # of the time, from which on waiting for child processes is told
TOLD = 0.01  # of the time, from which on waiting for data and tracing again are told
HEADLINE = 0.1  # of all time: a part in the first lines; of the program's own time: a line
NAMED = 3  # lines, arguments and functions in a sentence
MOST_LINES = 15
PRECISE = 0.1  # the largest error of a time that is shown as one number
ONCE = "*"  # marks a time that comes from one traced run
ORIGINS = 2  # of NaN and Inf, each with a sentence
ALIKE = (
    "with arguments that read the same: for another object, graph, device or strategy, or because "
    "the first tracing created variables"
)
# Parts of the time that a program cannot make shorter
NOT_OWN = (sampler.START, sampler.IMPORT_TENSORFLOW, sampler.IMPORTS, summary.END, summary.REST)


class Row(NamedTuple):
    """An owner of time, with details."""

    owner: str
    ns: int
    share: float | None  # of the program's time; None for tflab's own
    about: str


def blocks(seen: Watched, with_lines: bool) -> Iterator[Block]:
    took = f"tflab: {name_of(seen)} took {units.time(seen.process.wall_ns)}"
    ending = f" and ended with exit status {seen.exit_status}" * bool(seen.exit_status)
    if seen.exit_status < 0:
        ending = f" and was ended by signal {-seen.exit_status}"
    if seen.stopped:
        ending = "; --steps interrupted it"
    yield " ".join((f"{took}{ending}.", *in_short(seen)))
    yield from traced_again(seen)
    yield from seen.notes
    if execution.is_busy(seen.load):
        yield from execution.load_line(seen.load)
    if seen.values and seen.values.values:
        results = seen.groups[seen.values.group - 1].fetches
        yield from values.statistics(seen.values.values, f"run {seen.values.run:,}", results)
    if with_lines:
        yield from of_lines(seen)
    yield table(
        "Where the time went (shares are of all time but tflab's)",
        rows(seen),
        Column("", lambda row: row.owner),
        numbers("time", lambda row: units.time(row.ns)),
        numbers("share", lambda row: text_or_blank(row.share, units.percent)),
        Column("", lambda row: row.about, hanging=True),
        drawing=True,
    )
    yield from seen.findings
    yield from waiting(seen)
    yield from growing(seen)
    if seen.ops:
        yield ops(seen)
    yield from compiled(seen.compiled)


def name_of(seen: Watched) -> str:
    """Return the name of the program: `train.py`, or that of a module."""
    return os.path.basename(seen.program[1 if seen.program[0] == "-m" else 0])


def program_ns(seen: Watched) -> int:
    """Return the ns of the process without tflab's own."""
    owners = seen.process.owners
    return seen.process.wall_ns - sum(owner.ns for owner in owners if owner.owner == summary.OWN)


def in_short(seen: Watched) -> Iterator[str]:
    """Yield NaN and Inf, the steps that took longest, the largest part of all time and of the
    program's own, the most expensive line, and what happened at the end and in other threads."""
    if seen.values:
        yield from values_of(seen.values, seen.groups)
    yield from fetched(seen)
    all_ns, others = program_ns(seen), sum(group.in_other_threads for group in seen.groups)
    parts = [owner for owner in seen.process.owners if owner.owner != summary.OWN]
    parts.sort(key=lambda owner: -owner.ns)
    own = [owner for owner in parts if owner.owner not in NOT_OWN]
    least_ns = HEADLINE * sum(part.ns for part in own)
    if steps := next((part for part in own if part.owner.startswith(summary.STEPS)), None):
        group = seen.groups[int(steps.owner.rpartition(" ")[2]) - 1]
        waiting = steps.owner.replace(summary.STEPS, summary.WAITING)
        share = sum(part.ns for part in own if part.owner in (steps.owner, waiting)) / all_ns
        yield f"Steps ({runs_of(group)}): {count_of(group)}, {units.percent(share)} of the time."
    largest = {
        part: f"{plain(part.owner)}, {units.percent(part.ns / all_ns)}"
        for part in (*parts[:1], *own[:1])
        if part != steps and part.ns >= TOLD * all_ns
    }
    if largest:
        yield f"Largest part: {'; of what the program can change: '.join(largest.values())}."
    if (line := seen.costliest) and line.ns >= least_ns:
        shares = [
            sampled(of.ns / all_ns, of.samples, lambda part: units.percent(min(part, 1)))
            for of in (line, seen.with_runs)
            if of
        ]
        yield f"Most expensive line of Python: {line.place}, {', with its runs '.join(shares)}."
    names = [part.owner for part in parts]
    if summary.FIRST_RUNS not in names and names == [*map(plain, names)]:
        where = " in its main thread" if seen.groups else ""
        yield f"tflab saw no session.run and no tf.function that ran a graph{where}."
    if run := seen.open_run:
        at = f" at {run.place}" * bool(run.place)
        yield f"A run of {runs_of(seen.groups[run.group - 1])}{at} did not end."
    if others:
        runs = units.plural(sum(group.calls for group in seen.groups), "run")
        yield f"{others:,} of {runs} happened in other threads; the parts are the main thread's."
    if (line := seen.elsewhere) and line.ns >= least_ns:
        spent = sampled(line.ns, line.samples)
        yield f"In other threads, {spent} passed at {line.place}."


def is_function(group: Group) -> bool:
    return group.graph.startswith(f"{summary.FUNCTION} ")


def plain(owner: str) -> str:
    """Return the name of an owner without its group's number."""
    return re.sub(",? (of|in) group [0-9]+", "", owner)


def runs_of(group: Group, most: int = NAMED) -> str:
    """Return what the runs of a group fetch, or call, if that is known."""
    return listed(group.fetches, most) or group.graph


def count_of(group: Group) -> str:
    """Return `399 runs, median 1.94 ms`."""
    middle = "" if group.median_ns is None else f", median {units.time(group.median_ns)}"
    tracings = group.first_runs if is_function(group) else 1
    traced = f" in {tracings:,} tracings" * (tracings > 1)
    return f"{units.plural(group.calls - group.first_runs, 'run')}{traced}{middle}"


def rows(seen: Watched) -> Iterator[Row]:
    """Yield the owners in order. Small ones are combined, but not the group that took longest."""
    all_ns, firsts = program_ns(seen), sum(group.first_runs for group in seen.groups)
    about = {summary.FIRST_RUNS: f"{units.plural(firsts, 'run')}: the first of each kind"}
    for at, group in enumerate(seen.groups, 1):
        names = runs_of(group, len(group.fetches))
        traced = f", {group.traced:,} traced" if group.traced else ""
        about[f"{summary.STEPS} {at}"] = f"{names}: {count_of(group)}{traced}"
        about[f"{summary.OPEN} {at}"] = names
    owners = {owner.owner: owner.ns for owner in seen.process.owners}
    for name in [name for name in owners if name.startswith(summary.WAITING)]:
        of_steps = name.replace(summary.WAITING, summary.STEPS)
        owners[of_steps] = owners.get(of_steps, 0) + owners[name]
        about[of_steps] += f", about {units.time(owners.pop(name))} of it waiting for data"
    steps = [name for name in owners if name.startswith(summary.STEPS)]
    first = max(steps, key=lambda name: owners[name], default="")
    largest = sorted(owners, key=lambda name: (name != first, -owners[name]))
    # tflab's own time is no part of the shares
    shown = {summary.OWN, *(largest if len(owners) <= ROWS else largest[: ROWS - 1])}
    shown |= {name for name, ns in owners.items() if ns > SMALL * all_ns}
    for name, ns in owners.items():
        if name in shown:
            share = None if name == summary.OWN else ns / all_ns
            yield Row(plain(name), ns, share, about.get(name, ""))
    if rest := {name: ns for name, ns in owners.items() if name not in shown}:
        rest_ns = sum(rest.values())
        kinds = dict.fromkeys("other " * n.startswith(summary.STEPS) + plain(n) for n in rest)
        yield Row("all else", rest_ns, rest_ns / all_ns, ", ".join(kinds))


def ops(seen: Watched) -> Table:
    profiled = any(is_function(group) and group.traced for group in seen.groups)
    traced = sum(group.traced for group in seen.groups)
    lack = ", which may lack the shortest ops of functions" * profiled
    runs = units.plural(traced, "traced run")
    return table(
        f"The most expensive ops in the steps, estimated from {runs}{lack}",
        [row for row in seen.ops[:OPS] if row.share >= LEAST_OP],
        Column("type", lambda row: row.op),
        numbers("time", lambda row: rounded(row.ns, 1)),
        numbers("share of ops", lambda row: f"{100 * row.share:.0f} %"),
        drawing=True,
    )


def waiting(seen: Watched) -> Iterator[str]:
    """Yield what the program waits for: data, and child processes."""
    data, children, all_ns = seen.input_pipeline, seen.for_children, program_ns(seen)
    if data and data.waited_ns >= TOLD * all_ns:
        who = runs_of(seen.groups[data.group - 1]) if data.group else "the program"
        what = "run" if data.group else "step"
        waited, share = units.time(data.waited_ns), units.percent(data.waited_ns / all_ns)
        said = [f"Input pipeline: {who} waited {waited} for data, {share} of the time"]
        if data.runs:
            said.append(f"a mean of {units.time(data.waited_ns / data.runs)} a {what}")
        if data.stage:
            said.append(f"most expensive stage: {data.stage}")
        if line := data.line:
            said.append(f"its Python took {sampled(line.ns, line.samples)} at {line.place}")
        yield f"{'; '.join(said)}."
    if children and children.ns >= CHILDREN * all_ns:
        yield (
            f"{units.percent(children.ns / all_ns)} of the time passed in waiting for child "
            f"processes, most at {children.place}. tflab watches this process only: watch each "
            "child, a command with `python -m tflab.run`, a function with `tflab.watch()`."
        )


def growing(seen: Watched) -> Iterator[str]:
    first_ns = sum(o.ns for o in seen.process.owners if o.owner == summary.FIRST_RUNS)
    for graph in seen.grown_graphs:
        at = f", at {listed([*graph.made], NAMED)}" if graph.made else ""
        yield (
            f"Graph {graph.graph} grew before {graph.rises:,} of its {graph.runs:,} runs, from "
            f"{graph.first:,} to {units.plural(graph.last, 'node')}{at}: make nodes once, before "
            f"the first run. All first runs took {units.time(first_ns)}."
        )
    for kept in seen.kept_results:
        at = f" at {kept.place}" * bool(kept.place)
        yield (
            f"Live tensors grew with each call of {kept.function}{at}: after call {kept.calls:,}, "
            f"{kept.tensors:,} of its results were still kept."
        )
    if memory := seen.grown_memory:
        rise = f"{units.size(memory.first_bytes)} to {units.size(memory.last_bytes)}"
        place = f", at {memory.place}" if memory.place else ""
        yield f"Resident memory grew steadily until the end, from {rise}{place}."


# Tracings of functions


def traced_again(seen: Watched) -> Iterator[str]:
    """Yield a sentence about the function that took longest to trace again: where, how often,
    why. Two functions of the same code, each traced once, may be meant."""
    functions = seen.functions
    again = (of for of in functions if of.tracings > 1 and (of.functions, of.tracings) != (2, 2))
    most = max(again, key=lambda function: function.ns - function.first_ns, default=None)
    if most is None or most.ns - most.first_ns < TOLD * program_ns(seen):
        return
    made = f" ({most.made})" if most.made else ""
    who, why = f"{most.name}{made} was", ALIKE
    if most.functions > 1:
        who = f"{most.functions:,} functions {most.name} of the same code{made} were"
        why = "as a new function" + f", or {ALIKE}" * (most.tracings > most.functions)
    if most.changed:
        changes = [f"{name} was {was} and is {now}" for name, was, now in most.changed]
        why = f"because {listed(changes, NAMED)}"
    times = units.plural(most.tracings, "time")
    after = f"all but the first took {units.time(most.ns - most.first_ns)}"
    yield f"Retracing: {who} traced {times} ({after}), the last time at {most.place}, {why}."


def compiled(rows: Sequence[Compiled]) -> Iterator[str]:
    """Yield sentences: how often XLA compiled a function, for which shapes, how long, and where."""
    for row in rows[:NAMED]:
        times = units.plural(row.compilations, "time")
        shapes = units.plural(len(row.shapes), "combination")
        some = "; ".join(row.shapes[:NAMED]) + "; ..." * (len(row.shapes) > NAMED)
        at = f", at {row.place}" if row.place else ""
        yield (
            f"XLA compiled {row.name} {times}, for {shapes} of shapes ({some}), in "
            f"{units.time(row.ns)}{at}."
        )


def values_of(recorded: RecordedValues, groups: Sequence[Group]) -> Iterator[str]:
    """Yield where NaN and Inf began, or `Values of run 3 (loss:0): 148 tensors, all finite.`"""
    yield from values.origins(recorded.origins[:ORIGINS])
    if recorded.group and recorded.origins and not recorded.not_finite:
        yield values.consequence(())
    more = len(recorded.origins) - ORIGINS
    if more > 0:
        yield f"{units.plural(more, 'other node')} produced NaN or Inf independently."
    if recorded.group:
        group, run = groups[recorded.group - 1], f"run {recorded.run:,}"
        first = recorded.run == min((group.not_finite or {}).values(), default=0)
        tensors = units.plural(len(recorded.values), "tensor")
        finite = f"Values of {run} ({runs_of(group)}): {tensors}, all finite."
        bad = f"First in {run}." if first else f"Seen in {run} ({runs_of(group)})."
        yield bad if any(value.not_finite for value in recorded.values) else finite
    elif recorded.function:
        found = "" if recorded.origins else ": no op made NaN"
        yield f"Call {recorded.run:,} of {recorded.function} ran op by op{found}."


def fetched(seen: Watched) -> Iterator[str]:
    """Yield which fetched values were not finite, and which run would show why."""
    recorded = seen.values
    for at, group in enumerate(seen.groups, 1):
        if group.not_finite:
            name, first = min(group.not_finite.items(), key=lambda item: item[1])
            what = f"Run {first:,} ({runs_of(group)}) was the first to fetch"
            if is_function(group):
                what = f"Call {first:,} of {group.fetches[0]} was the first to return"
                if recorded and recorded.function and recorded.origins:
                    continue  # what a call that ran op by op returned was not looked at
            if recorded and (recorded.group, recorded.run) == (at, first):
                continue  # it is said to be the first
            yield f"{what} NaN or Inf: {name}."
            if recorded and (recorded.group not in (0, at) or recorded.run == first):
                continue
            # An earlier run shows it, too, if it had NaN or Inf
            if not recorded or recorded.run > first or not recorded.origins:
                yield f"--values {first} shows where it began."


# The lines of the program

HEADERS = ("forward", "backward", "updates", "waiting", "Python", "TensorFlow", "other threads")


def of_lines(seen: Watched) -> Iterator[Block]:
    """Yield the most expensive lines, in the order of the times that are shown."""
    known = sorted(filter(shown_ns, seen.lines), key=shown_ns, reverse=True)
    files = {line.file for line in known}
    name = f" of {os.path.basename(files.pop())}" if len(files) == 1 else ""
    runs = sum(group.traced for group in seen.groups)
    from_runs = f", with times of ops estimated from {units.plural(runs, 'traced run')}"

    def place(line: WatchedLine) -> str:
        return str(line.line) if name else f"{os.path.basename(line.file)}:{line.line}"

    def column(header: str) -> Column:
        return numbers(header, lambda line: times(line)[HEADERS.index(header)][1])

    columns = (
        Column("line", place, right=bool(name)),
        *map(column, HEADERS),
        Column("code", lambda line: line.code, elastic=True, least=12, spare=1),
    )
    shown = [column for column in columns if any(map(column.cell, known[:MOST_LINES]))]
    if len(known) == 1:
        facts = fact_table(Fact(column.header, column.cell(known[0])) for column in shown)
        yield replace(facts, title=f"The only line{name} with a time{from_runs * bool(runs)}")
    elif known:
        yield table(
            f"The most expensive lines{name}, by the sum of their times{from_runs * bool(runs)}",
            known,
            *shown,
            most=MOST_LINES,
        )
    else:
        yield "No line of the program has a time: too few samples, and no ops in a traced run."
    if any(text.endswith(ONCE) for line in known[:MOST_LINES] for _, text in times(line)):
        yield f"{ONCE} from one traced run"


def shown_ns(line: WatchedLine) -> int:
    """Return the sum of a line's times that are shown: those from few samples are hidden."""
    return sum(ns for ns, text in times(line) if text)


def times(line: WatchedLine) -> tuple[tuple[int, str], ...]:
    """Return the times of a line, one for each of HEADERS, as ns and text, "" if not shown."""
    once = ONCE if line.traced == 1 else ""
    of_nodes = (line.forward_ns, line.backward_ns, line.update_ns, line.waiting_ns)
    return (
        *((ns, f"{rounded(ns, int(line.traced >= MANY))}{once}" if ns else "") for ns in of_nodes),
        (line.python_ns, sampled(line.python_ns, line.python_samples)),
        (line.tensorflow_ns, sampled(line.tensorflow_ns, line.tensorflow_samples)),
        (line.elsewhere_ns, sampled(line.elsewhere_ns, line.elsewhere_samples)),
    )


# The precision of a sampled time


def sampled(value: float, samples: int, say: Callable[[float], str] = units.time) -> str:
    """Return `1.25 s`, or the 95 % interval `0.3 to 0.5 s` if the samples are too few to be more
    precise; "" if there are too few for that."""
    if samples < summary.LEAST_SAMPLES:
        return ""
    # The number of samples on a line is nearly Poisson, so its standard deviation is its root
    error = 2 * value / math.sqrt(samples)
    low, high = value - error, value + error
    if error <= PRECISE * value:
        return say(value)
    least, most = rounded(low, 1, say), rounded(high, 1, say)
    number, unit = least.split(" ")
    return f"{number if most.endswith(f' {unit}') else least} to {most}"


def rounded(value: float, more: int, say: Callable[[float], str] = units.time) -> str:
    """Return a value with one digit, and so many more: `1.2 s`."""
    number, unit = say(float(f"{value:.{more}e}")).split(" ")
    return f"{float(number):g} {unit}"
