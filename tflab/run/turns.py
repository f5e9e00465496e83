"""Turns: two programs, or one with two lists of arguments, run in turns and compared.

A round has three processes, watched as `tflab.run` watches them: A B A, then B A B, and so on. They
live at once, and one of them runs at a time. At the end of a step, a process that has run for
TURN_NS stops itself, and the next one goes on. So a machine that gets slower or faster changes all
three alike. Before that, each program runs once: that fills caches of files, and does not count.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from tflab.analysis import verdicts
from tflab.cli import command, interrupts, output_paths, temporary, terminal
from tflab.compare import RACE_S, WHAT, saved, view
from tflab.errors import TflabError, UsageError
from tflab.exporters import csv
from tflab.records.blocks import Block
from tflab.records.measured import Change, Gate, Load, Programs
from tflab.records.watched import Group, Watched
from tflab.run import launch, program_graph, summary
from tflab.run.view import program_ns
from tflab.runtime import machine_load, processes
from tflab.units import plural
from tflab.views import execution

FIRST = ((0,), (1,))  # the places of the programs in the rounds at the beginning
ORDER = ((0, 1, 0), (1, 0, 1))  # in the others, again and again
LEAST_ROUNDS = verdicts.LEAST + 1
MOST_ROUNDS = 14
TURN_NS = 50_000_000  # after which a process stops itself at the end of its next step
ALLOCATE = "TF_FORCE_GPU_ALLOW_GROWTH"  # otherwise the first process takes all memory of a GPU
STOP_S = 3.0  # for which an interrupted program may end by itself
WHOLE, OP, LINE = "program", "op", "line"
STEP, PROCESS = "median step", "whole process"
NO_STEP = "unknown: nothing ran more than once in a session or tf.function"
GIVE = "give two programs, or one followed by two lists of arguments: train.py -- -b 32 -- -b 64"

Row = tuple[str, str]  # kind and name


class Program(NamedTuple):
    name: str
    words: tuple[str, ...]  # the script and its arguments


@dataclass(frozen=True)
class Run:
    """What one process of a program took."""

    place: int  # of the program: 0 or 1
    group: str | None  # what the runs fetch that are the steps
    times: Mapping[Row, float]  # ns


Round = Sequence[Run]  # that took turns, in the order of their start


def run(args: argparse.Namespace, lists: Sequence[Sequence[str]]) -> int:
    """Compare two programs, and show the result. Raise TflabError if one fails."""
    programs = programs_of(args.files, lists)
    os.environ.setdefault(ALLOCATE, "true")
    if args.save:
        output_paths.check(Path(args.save), WHAT)
    with terminal.phase("programs"), interrupts.held():
        result = compared(programs, args.steps or 0)
        if args.fail_if_slower is not None:
            result = replace(result, gate=gate_of(result, args.fail_if_slower))
        changed = {WHOLE: result.whole, OP: result.ops, LINE: result.lines}
        title, shown = " and ".join(result.programs), blocks(result, args.top, args.full)
        saved.show(args, title, result, shown, lambda: csv.changes(changed))
        saved.save(args, result)
    if result.failure:
        raise TflabError(result.failure)
    if result.interrupted:
        if args.format == "csv":  # has no place to say so
            terminal.say("".join(execution.partial(True, None)), sys.stderr)
        return command.INTERRUPTED
    return saved.decide(args, result.gate)


def programs_of(files: Sequence[str], lists: Sequence[Sequence[str]]) -> list[Program]:
    """Return both programs; one list of arguments is for both. Raise UsageError for any other."""
    scripts = [*files] * (2 if len(files) == 1 and len(lists) == 2 else 1)
    if len(scripts) != 2 or len(lists) > 2:
        raise UsageError(f"Programs: {len(files)}, lists of arguments: {len(lists)}; {GIVE}.")
    for script in scripts:
        if not script.endswith(".py"):
            raise UsageError(f"'{script}' is not a Python file; {GIVE}.")
        launch.check(script)
    own = ([*lists] * 2)[:2] or [(), ()]
    first, second = ((script, *words) for script, words in zip(scripts, own, strict=True))
    names = [shlex.join([Path(script).name, *words]) for script, *words in (first, second)]
    if names[0] == names[1]:
        names = [shlex.join(first), f"{shlex.join(second)}{' again' * (first == second)}"]
    return [Program(names[0], first), Program(names[1], second)]


def compared(programs: Sequence[Program], steps: int, budget_s: float = RACE_S) -> Programs:
    """Run both programs in turns, and compare what they took. After a failure or an interruption
    the result has the rounds so far; without any that counts, the error is raised."""
    load = machine_load.begin()
    rounds: list[Round] = []
    ending: BaseException | None = None
    try:
        for each in interrupts.interruptible(rounds_of(programs, steps, budget_s)):
            rounds.append(each)
    except (KeyboardInterrupt, TflabError) as error:
        ending = error
        if len(rounds) <= len(FIRST):
            raise
    result = concluded([program.name for program in programs], rounds, load())
    failure = str(ending) if isinstance(ending, TflabError) else None
    return replace(result, interrupted=isinstance(ending, KeyboardInterrupt), failure=failure)


def rounds_of(programs: Sequence[Program], steps: int, budget_s: float) -> Iterator[Round]:
    """Yield rounds until the time is over, at least LEAST_ROUNDS that count."""
    start = time.monotonic()
    # The largest of each program, in its first process; of the second the same, if it has that
    groups: dict[int, str] = {}
    order = (*FIRST, *islice(cycle(ORDER), MOST_ROUNDS))

    for number, places in enumerate(terminal.track("rounds", order, len(order), None, budget_s)):
        enough = number >= len(FIRST) + LEAST_ROUNDS
        if enough and time.monotonic() - start > budget_s:
            return
        seen = together([programs[place] for place in places], steps)
        runs = [
            run_of(of, place, groups.get(place) or groups.get(0))
            for of, place in zip(seen, places, strict=True)
        ]
        groups = {each.place: each.group for each in runs if each.group} | groups
        yield runs


def together(programs: Sequence[Program], steps: int) -> list[Watched]:
    """Run a process of each of these programs, in turns; return what was seen of each. Raise
    TflabError if one fails."""
    turn_ns = TURN_NS if len(programs) > 1 else 0
    ended: dict[int, Watched] = {}
    with ExitStack() as stack:
        processes = [process_of(program, steps, turn_ns) for program in programs]
        for process in processes:
            stack.callback(process.close)
        while len(ended) < len(programs):
            for at, process in enumerate(processes):
                if at not in ended and (seen := next(process)):
                    ended[at] = seen
    return [ended[at] for at in range(len(programs))]


def process_of(program: Program, steps: int, turn_ns: int) -> Generator[Watched | None, None, None]:
    """Run a program, and interrupt it after `steps` steps if they are not 0. Yield None at the end
    of each turn, and at last what was seen. Raise TflabError if the program fails."""
    settings = {"OVERHEAD": "5", "STEPS": str(steps), "TURN": str(turn_ns), "KEEP": "1"}
    with temporary.folder("turn") as folder, temporary.file() as output:
        files = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        # In its own session: a signal to the group of this process is not for it
        start = {**files, "start_new_session": True}
        process, start_ns = launch.start(program.words, folder, settings, **start)
        try:
            # Wait until the process stops itself, or ends
            while os.WIFSTOPPED(status := os.waitpid(process.pid, os.WUNTRACED)[1]):
                yield None
                os.killpg(process.pid, signal.SIGCONT)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:  # an interruption ends it too, with the processes that it started
            for number in (signal.SIGINT, signal.SIGKILL):
                if process.poll() is None:
                    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                        os.killpg(process.pid, number)
                        os.killpg(process.pid, signal.SIGCONT)
                        process.wait(STOP_S)
        wall_ns = time.perf_counter_ns() - start_ns
        segment = summary.read(folder)
        if segment["faults"]:
            raise TflabError(f"{summary.STOPPED} '{program.name}': {segment['faults'][0]}")
        if process.returncode and not segment["stopped"]:
            raise TflabError(f"'{program.name}' ended {processes.ending(process, output)}")
        graph, _ = program_graph.read(folder)
        yield summary.watched(program.words, segment, wall_ns, 0, graph)


def run_of(seen: Watched, place: int, group: str | None) -> Run:
    """Return the times of a process. Its steps are the runs of this group or, without one, of the
    group that took longest; groups with runs in the main thread come first."""

    def rank(of: Group) -> tuple[bool, bool, int]:
        return name_of(of) == group, of.in_other_threads < of.calls, of.total_ns

    steps = max(filter(lambda each: each.median_ns, seen.groups), key=rank, default=None)
    times: defaultdict[Row, float] = defaultdict(float)
    if steps and steps.median_ns:
        times[WHOLE, STEP] = steps.median_ns
    times[WHOLE, PROCESS] = program_ns(seen)
    if (graph := seen.graph) and graph.traced:
        types = {node.name: node.op for node in (*graph.nodes, *graph.executed)}
        for node, op in graph.ops.items():
            if node in types:
                times[OP, types[node]] += op.ns / graph.traced
    for line in filter(lambda line: line.code, seen.lines):
        times[LINE, line.code] += line.total_ns
    return Run(place, name_of(steps) if steps else None, times)


def name_of(group: Group) -> str:
    """Return what a group fetches and is fed: `loss:0, train with x:0 (8, 4)`."""
    name = ", ".join(group.fetches) or group.graph
    feeds = ", ".join(map(" ".join, group.feeds.items()))
    return f"{name} with {feeds}" if feeds else name


# What the rounds say


def concluded(names: Sequence[str], rounds: Sequence[Round], load: Load | None) -> Programs:
    whole = tuple(changes(rounds, WHOLE))
    counted = [each.place for each in chain(*rounds[len(FIRST) :])]
    groups = {each.place: each.group for each in reversed([*chain(*rounds)])}  # of the first runs
    return Programs(
        programs=(names[0], names[1]),
        runs=(counted.count(0), counted.count(1)),
        steps=(groups.get(0), groups.get(1)),
        whole=whole,
        least_slower={
            change.key: verdicts.least_slower(*observed(rounds, (WHOLE, change.key)), len(whole))
            for change in whole
            if change.verdict and change.verdict.observations >= verdicts.LEAST
        },
        ops=tuple(changes(rounds, OP)),
        lines=tuple(changes(rounds, LINE)),
        load=load,
        interrupted=False,
        failure=None,
        gate=None,
    )


def gate_of(result: Programs, limit: float) -> Gate:
    """Return whether the second program is proven slower, by its step or as a whole process."""
    rows = [row for row in result.whole if row.verdict]
    first = saved.gate_of(limit, rows[:1], widened=False)
    return replace(first, slower=saved.gate_of(limit, rows, widened=False).slower)


def observed(rounds: Sequence[Round], row: Row) -> tuple[list[float], list[float]]:
    """Return the ratios of the second program to the first, and the ratios of the control."""
    ratios, control = [], []
    for of_round in rounds[len(FIRST) :]:
        first, middle, last = (each.times[row] for each in of_round)
        ratio = middle / sqrt(first * last)
        ratios.append(ratio if of_round[1].place else 1 / ratio)
        control.append(last / first)
    return ratios, control


def changes(rounds: Sequence[Round], kind: str) -> Iterator[Change]:
    """Yield the change of each row of this kind that both programs, or only one, have in all of
    their processes. The verdicts are made together."""
    rows: dict[Row, list[list[float]]] = {}
    for row in dict.fromkeys(row for each in chain(*rounds) for row in each.times):
        if row[0] != kind:
            continue
        runs = [*chain(*rounds[len(FIRST) :])]
        times = [[each.times.get(row, 0) for each in runs if each.place == at] for at in (0, 1)]
        if any(map(any, times)) and all(all(own) or not any(own) for own in times):
            rows[row] = times
    both = [row for row in rows if all(map(any, rows[row]))]
    made = verdicts.of_race([observed(rounds, row) for row in both])
    against = dict(zip(both, made, strict=True))
    for row, times in rows.items():
        usual, other = (saved.mean(own if any(own) else None) for own in times)
        verdict = against.get(row)  # of runs of the same round
        second = usual * verdict.ratio if usual and verdict else other
        yield Change(None, row[1], usual, second, verdict)


# View


def blocks(result: Programs, top: int, full: bool = False) -> Iterator[Block]:
    names, rounds = result.programs, sum(result.runs) // len(ORDER[0])
    partial = [*execution.partial(result.interrupted, result.failure)]
    yield from partial
    if result.gate and not partial:
        yield saved.sentence(result.gate)
    yield f"{names[1]} compared with {names[0]}: {view.in_words(result.whole)}."
    yield from execution.load_line(result.load, brief=True)
    steps = f"; of {names[1]}, ".join(dict.fromkeys(step or NO_STEP for step in result.steps))
    runs = " and ".join(f"{n} of {name}" for n, name in zip(result.runs, names, strict=True))
    yield f"{plural(rounds, 'round')} of three runs: {runs}. A step is {steps}."
    yield view.compared("Both programs", result.whole, names, (view.label("what"),))
    if rounds < verdicts.LEAST:
        yield f"A verdict takes at least {verdicts.LEAST} rounds. --steps N makes rounds shorter."
        return
    least = ", ".join(f"{key} {ratio:.2f} x" for key, ratio in result.least_slower.items())
    yield f"The smallest slow-down that would have been shown: {least}."
    shown = [*result.whole]
    for what, key, rows in (
        ("Types of ops in a traced step", "type that ran", result.ops),
        ("Lines in the whole process", "code", result.lines),
    ):
        differ = view.differing(rows, full)
        shown += differ
        if differ:
            title = f"{what}{', where they differ' * (not full)}"
            yield view.compared(title, differ, names, (view.label(key),), top)
        else:
            seen = "no difference is proven" if rows else "none was seen in all runs of a program"
            yield f"{what}: {seen}."
    yield view.reading(
        shown,
        "the middle one of three runs that take turns, A B A or B A B, divided by the mean of the "
        f"others; mean of {view.observations(result.whole)}",
        "90 % interval of the two others divided by each other",
        ("times", "of the first: geometric mean of its runs; of the second: this x the ratio"),
        *saved.rule(result.gate, "low", f"high of the {next(iter(result.least_slower))}"),
    )
