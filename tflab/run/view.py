"""View of a watched program: where its time went, on half a screen, and what it traced."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflab import units
from tflab.records.blocks import Block, Column, Table
from tflab.records.timed import Owner
from tflab.records.values import VARIABLE
from tflab.records.watched import Group, RecordedValues, Watched
from tflab.run import line_table, sampler, summary, tracings
from tflab.views import values

ROWS = 7  # of the table of owners
ORIGINS = 2  # of NaN and Inf, each with a sentence
# Times between runs, of the thread whose runs these are
OF_MAIN_THREAD = (sampler.BEFORE, sampler.BETWEEN, sampler.AFTER)
UNLIKE = {
    summary.LATER: "runs that fetch or are fed something other than all earlier groups",
    summary.LATER_FUNCTIONS: "functions as they were traced after all earlier groups",
}


@dataclass(frozen=True)
class Row:
    """An owner of time, with details."""

    owner: str
    ns: int
    wall_ns: int
    about: str


OWNERS = (
    Column("", lambda row: row.owner),
    Column("time", lambda row: units.time(row.ns), right=True),
    Column("share", lambda row: units.percent(row.ns / row.wall_ns), right=True),
    Column("", lambda row: row.about, elastic=True),
)


def blocks(seen: Watched, lines: bool) -> Iterator[Block]:
    yield f"tflab: {' '.join((ending(seen), *time_outside_runs(seen)))}"
    yield Table("Where the time went", OWNERS, tuple(rows(seen)), drawing=True)
    if seen.fates:
        yield fates(seen)
    if sentences := [*(values_of(seen.values) if seen.values else ()), *fetched(seen)]:
        yield " ".join(sentences)
    if lines:
        yield from line_table.blocks(seen)
    yield from many_groups(seen.groups)
    yield from tracings.traced_again(seen.functions)
    yield from tracings.made_anew(seen.made_anew)
    if lines and seen.tracings:
        yield tracings.table(seen.tracings, seen.functions)
    yield from seen.notes


def ending(seen: Watched) -> str:
    """`train.py took 12.3 s and ended with exit status 0.`"""
    took = f"{name_of(seen)} took {units.time(seen.process.wall_ns)}"
    if seen.stopped:
        return f"{took}; --steps interrupted it."
    if seen.exit_status < 0:
        return f"{took} and was ended by signal {-seen.exit_status}."
    return f"{took} and ended with exit status {seen.exit_status}."


def name_of(seen: Watched) -> str:
    """`train.py`, or the name of a module."""
    return os.path.basename(seen.program[1 if seen.program[0] == "-m" else 0])


def time_outside_runs(seen: Watched) -> Iterator[str]:
    """`53 % of its time passed outside session.run, 16 % at train.py:88 in next_batch.`, or `of the
    main thread's time` if other threads ran steps, too."""
    others = in_other_threads(seen)
    within_ns = sum(owner.ns for owner in seen.process.owners if is_run(owner))
    outside_ns = seen.process.wall_ns - within_ns
    line, line_ns = seen.costliest or ("", 0)
    at_line = f"{round(100 * line_ns / seen.process.wall_ns)} %"
    told = 100 * line_ns >= seen.process.wall_ns  # less than one percent is not worth a sentence
    if within_ns:
        share = round(100 * outside_ns / seen.process.wall_ns)
        where = f", {at_line} at {line}" if told else ""
        kinds = dict.fromkeys(map(is_function, seen.groups))
        runs = " and ".join("calls of functions" if kind else "session.run" for kind in kinds)
        whose = "the main thread's" if others else "its"
        yield f"{share} % of {whose} time passed outside {runs}{where}."
    elif told:
        yield f"{no_runs(seen)}; {at_line} of its time passed at {line}."
    if others:
        of_all = f"of {units.plural(sum(group.calls for group in seen.groups), 'run')}"
        yield (
            f"{others:,} {of_all} happened in other threads; the first table has the main thread's "
            "time."
        )


def no_runs(seen: Watched) -> str:
    """What is known of a program without runs in its main thread."""
    owners = {owner.owner: owner.ns for owner in seen.process.owners}
    none = "No session and no tf.function ran a graph"
    if summary.REST in owners or any(note.startswith(summary.STOPPED) for note in seen.notes):
        return "tflab saw no run"
    if seen.groups:
        return f"{none} in its main thread"
    # What was traced may run within tf.data
    eagerly = not seen.tracings and 100 * owners.get(sampler.EAGER, 0) >= seen.process.wall_ns
    return f"{none}, so all ops ran eagerly" if eagerly else none


def in_other_threads(seen: Watched) -> int:
    return sum(group.in_other_threads for group in seen.groups)


def is_function(group: Group) -> bool:
    return group.graph.startswith(f"{summary.FUNCTION} ") or group.graph == summary.LATER_FUNCTIONS


def is_run(owner: Owner) -> bool:
    return owner.owner == summary.FIRST_RUNS or owner.owner.startswith(
        (summary.STEPS, summary.WAITING)
    )


def rows(seen: Watched) -> Iterator[Row]:
    """The owners in the order of a program. The steps of a group are always shown; the smallest
    owners are combined."""
    wall_ns = seen.process.wall_ns
    about = {
        summary.name_of_steps(at): about_group(group) for at, group in enumerate(seen.groups, 1)
    }
    owners = seen.process.owners
    steps = [owner for owner in owners if owner.owner.startswith(summary.STEPS)]
    first = max(steps, key=lambda owner: owner.ns, default=None)
    largest = sorted(owners, key=lambda owner: (owner is not first, -owner.ns))
    shown = {owner.owner for owner in (largest if len(owners) <= ROWS else largest[: ROWS - 1])}
    for owner in owners:
        if owner.owner in shown:
            name = owner.owner
            if name in OF_MAIN_THREAD and in_other_threads(seen):
                name += " of the main thread"
            yield Row(name, owner.ns, wall_ns, about.get(name, ""))
    rest = [owner for owner in owners if owner.owner not in shown]
    if rest:
        names = ", ".join(owner.owner for owner in rest)
        yield Row("all else", sum(owner.ns for owner in rest), wall_ns, names)


def about_group(group: Group) -> str:
    """`1,499 runs, median 3.10 ms, 112 traced: loss:0, train`"""
    middle = "" if group.median_ns is None else f", median {units.time(group.median_ns)}"
    names = ", ".join(group.fetches) or UNLIKE.get(group.graph, "compiled steps")
    how = "profiled" if is_function(group) else "traced"
    traced = f", {group.traced:,} {how}" if group.traced else ""
    return f"{units.plural(group.calls - group.first_runs, 'run')}{middle}{traced}: {names}"


def many_groups(groups: Sequence[Group]) -> Iterator[str]:
    """What follows from more groups than tflab tells apart."""
    told = [group for group in groups if group.graph not in UNLIKE]
    later = {group.graph: group for group in groups if group.graph in UNLIKE}
    if functions := later.get(summary.LATER_FUNCTIONS):
        graphs = units.plural(functions.first_runs, "graph")
        yield (
            "Each tracing of a function makes a graph, whose calls are a group of runs. After the "
            f"first {len(told):,} groups, {graphs} of functions ran, which are one group here."
        )
    if summary.LATER not in later:
        return
    # A session prepares a graph for what is fetched and fed, whatever its shape.
    of_sessions = [group for group in told if not is_function(group)]
    prepared = len({(group.fetches, tuple(group.feeds)) for group in of_sessions})
    yield (
        f"More than {len(told):,} groups of runs differ in what they fetch or in what they are "
        "fed; here the later ones are one group."
    )
    if 2 * prepared > len(told):
        yield (
            f"{prepared:,} of the first {len(told):,} fetch or feed other tensors than earlier "
            "groups, and the runtime prepares the graph again for each of these groups. If the "
            "program makes new nodes between its runs, make them once, before the first run."
        )


def fates(seen: Watched) -> str:
    """`Of the 145 nodes of the graph, ...: 81 executed, 44 unreached and 20 fused.`"""
    counts = sorted(seen.fates.items(), key=lambda fate: -fate[1])
    parts = [f"{count:,} {fate}" for fate, count in counts]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return (
        f"Of the {units.plural(sum(seen.fates.values()), 'node')} of the graph, at the first run "
        f"of the largest group: {listed}.{branches(seen)}"
    )


def branches(seen: Watched) -> str:
    """That some of the executed nodes did not run, or that this is unknown."""
    if seen.not_run is None:
        return (
            " Whether all executed nodes ran is not known: the graph has branches, and no run was "
            "traced."
        )
    whose = "their" if seen.not_run > 1 else "its"
    return (
        f" {seen.not_run:,} of the executed nodes ran in no traced run, because {whose} branch was "
        "not taken."
        if seen.not_run
        else ""
    )


def values_of(recorded: RecordedValues) -> Iterator[str]:
    """`Values of run 3 of group 2: 148 tensors, all finite.`, or the origins of NaN and Inf."""
    count = sum(value.not_finite > 0 for value in recorded.values)
    all_of = units.plural(len(recorded.values), "tensor")
    what = f"{count:,} of {all_of} have NaN or Inf" if count else f"{all_of}, all finite"
    yield f"Values of run {recorded.run:,} of group {recorded.group}: {what}."
    yield from map(values.origin, recorded.origins[:ORIGINS])
    more = len(recorded.origins) - ORIGINS
    if more > 0:
        yield f"{units.plural(more, 'other node')} produced NaN or Inf independently."


def fetched(seen: Watched) -> Iterator[str]:
    """Which fetched values were not finite, and what was not checked in the other runs."""
    number = seen.values.group if seen.values else 0
    for at, group in enumerate(seen.groups, 1):
        if group.not_finite:
            name, first = min(group.not_finite.items(), key=lambda item: item[1])
            yield f"Run {first:,} of group {at} was the first to fetch NaN or Inf: {name}."
        elif at == number and group.calls > 1:
            looked = group.not_finite is not None and any(":" in name for name in group.fetches)
            runs = units.plural(group.calls - 1, "other run")
            checked = "only the fetched values were checked; they are finite"
            yield f"Of {runs}, {checked if looked else 'nothing was checked'}."
        if at == number and seen.values:
            yield from advice(seen.values, min((group.not_finite or {}).values(), default=0))


def advice(recorded: RecordedValues, first: int) -> Iterator[str]:
    """Which run to record for the origin of NaN and Inf, if the recorded one does not have it.

    `first` is the first run that fetched any; 0 if none did.
    """
    run = recorded.run
    held = [origin.tensor for origin in recorded.origins if origin.kind == VARIABLE]
    if held and held[0] not in recorded.updated:
        yield f"Group {recorded.group} does not update {held[0]}: other runs made it not finite."
    elif held and run == 1:
        yield f"{held[0]} was not finite before the first run of group {recorded.group}."
    elif held:
        earlier = first if 0 < first < run else run - 1
        before = f" {held[0]} had NaN or Inf before run {run:,}: an earlier run made it."
        yield f"{'' if first == earlier else before} {again(earlier)}".strip()
    elif first not in (0, run):
        yield again(first)


def again(run: int) -> str:
    return f"Run the program again with --values {run} to see that run."
