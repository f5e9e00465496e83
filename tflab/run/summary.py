"""Summary: the results of the program's process, as records."""

from __future__ import annotations

import ast
import linecache
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tflab.records.graph import BACKWARD, FORWARD, UPDATE
from tflab.records.timed import Owner
from tflab.records.watched import (
    Group,
    MadeAnew,
    Process,
    Recorded,
    TracedFunction,
    Tracing,
    Watched,
    WatchedLine,
)
from tflab.run import sampler, watcher
from tflab.run.groups import DATA_OPS, without_longest

FIRST_RUNS = "first runs"
STEPS = "steps of group"
WAITING = "waiting for data in group"
FUNCTION = "function"
LATER, LATER_FUNCTIONS = "later groups", "later functions"
END = "end of Python"
# What lines have of runs, besides the phases
WAITS, OP_RUNS = "waits", "op runs"
NONE: Counter[str] = Counter()
Graph = Sequence[tuple[str, str, Any, str]]  # node, phase, line, op
MOST_CODE = 200  # characters of a source line
OWN = "tflab"
STOPPED = "tflab stopped watching"
REST = "not seen"
NOTHING: Mapping[str, Any] = {
    "owners": {},
    "lines": {},
    "called": {},
    "own_ns": 0,
    "final": False,
    "faults": [],
}
# In the order of a program
ORDER = (
    sampler.START,
    sampler.IMPORT_TENSORFLOW,
    sampler.IMPORTS,
    sampler.BEFORE,
    sampler.GRAPHS,
    sampler.EAGER,
    sampler.FRAMEWORK,
    FIRST_RUNS,
)


def read(folder: Path) -> Mapping[str, Any]:
    """The last segment of a process; empty if it left none."""
    faults = [
        file.read_text(encoding="utf-8") for file in [folder / watcher.FAULT] if file.exists()
    ]
    file = folder / watcher.SEGMENT
    if not file.exists():
        return {**NOTHING, "faults": faults}
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    segment = ast.literal_eval(text)
    return {**segment, "faults": [*faults, *segment["faults"]]}


def watched(
    program: Sequence[str],
    segment: Mapping[str, Any],
    wall_ns: int,
    status: int,
    graph: Recorded | None = None,
) -> Watched:
    """The record of a process with this duration and exit status."""
    groups, graphs = segment.get("groups", ()), segment.get("graphs", ())
    of_groups = [of_lines(group, graphs) for group in groups]
    owners = ledger(segment, groups, wall_ns)
    python, called = segment["lines"], segment["called"]
    stopped = bool(segment.get("stopped"))
    return Watched(
        program=tuple(program),
        groups=tuple(map(group_of, groups, of_groups)),
        process=Process(wall_ns, owners),
        lines=lines_of(of_groups, graphs, python, called),
        exit_status=status,
        fates=segment.get("fates", {}).get("counts", {}),
        not_run=segment.get("fates", {}).get("not_run", 0),
        costliest=costliest_line(Counter(python) + Counter(called)),
        stopped=stopped,
        notes=tuple(notes_of(segment)),
        tracings=tuple(map(tracing_of, segment.get("tracings", ()))),
        made_anew=tuple(
            MadeAnew(place(*anew["made"]), place(*anew["line"]), anew["functions"], anew["ns"])
            for anew in segment.get("made_anew", ())
        ),
        functions=tuple(
            TracedFunction(**{**function, "last": tracing_of(function["last"])})
            for function in segment.get("functions", ())
        ),
        graph=graph,
    )


def costliest_line(spent: Mapping[sampler.Line, int]) -> tuple[str, int] | None:
    """The place of the line with most time, and its ns. A line may have several functions: up to
    Python 3.11 a comprehension is one."""
    total = without_functions(spent)
    if not total:
        return None
    (line, line_ns), *_ = total.most_common(1)
    functions = {key[2]: ns for key, ns in spent.items() if key[:2] == line}
    named = [name for name in functions if not name.startswith("<")]
    return place(*line, max(named or functions, key=functions.__getitem__)), line_ns


def ledger(
    segment: Mapping[str, Any], groups: Iterable[Mapping[str, Any]], wall_ns: int
) -> tuple[Owner, ...]:
    """Every nanosecond of the process, attributed to exactly one owner; owners without time are
    omitted."""
    owners = dict(segment["owners"])
    if not segment.get("runs") and sampler.BEFORE in owners:
        owners["Python"] = owners.pop(sampler.BEFORE)
    owners[FIRST_RUNS] = sum(group["main_ns"][0] for group in groups)
    steps: dict[str, int] = {}
    for at, group in enumerate(groups, 1):
        waited_ns = waited(group)
        steps[f"{WAITING} {at}"] = waited_ns
        steps[name_of_steps(at)] = group["main_ns"][1] - waited_ns
    known = {name: owners.pop(name) for name in ORDER if name in owners}
    owners = {**known, **steps, **owners, OWN: segment["own_ns"]}
    rest_ns = wall_ns - sum(owners.values())
    owners[END if segment["final"] else REST] = rest_ns
    return tuple(Owner(owner, ns) for owner, ns in owners.items() if ns)


def waited(group: Mapping[str, Any]) -> int:
    """The part of the steps of a group in the main thread in which an op waited for data."""
    share = group["waited_ns"] / group["total_ns"] if group["total_ns"] else 0
    return round(group["main_ns"][1] * share)


def name_of_steps(group: int) -> str:
    return f"{STEPS} {group}"


def tracing_of(tracing: Mapping[str, Any]) -> Tracing:
    line = tracing["line"]
    return Tracing(
        function=tracing["function"],
        place=place(*line) if line else "",
        again=tracing["again"],
        changed=tuple(map(tuple, tracing["changed"])),
        ns=tracing["ns"],
        number=tracing.get("number", 0),
        way=tracing.get("way", 0),
        created=tracing.get("created", False),
    )


def graph_of(group: Mapping[str, Any]) -> str:
    if group.get("later"):
        return LATER_FUNCTIONS if group["function"] else LATER
    if group["function"]:
        return f"{FUNCTION} {group['function']}"
    return f"graph {group['graph']}" if group["graph"] else "other graphs"


def group_of(group: Mapping[str, Any], lines: Mapping[Any, Counter[str]]) -> Group:
    on_lines_ns = sum(of_line.total() - of_line[OP_RUNS] for of_line in lines.values())
    return Group(
        graph=graph_of(group),
        fetches=tuple(group["fetches"]),
        feeds=group["feeds"],
        calls=group["calls"],
        median_ns=float(median(group["times"])) if group["times"] else None,
        cold_ns=group["cold_ns"],
        total_ns=group["total_ns"],
        traced=group["traced"],
        in_other_threads=group["in_other_threads"],
        not_finite=group.get("not_finite"),
        first_runs=group.get("first_runs", 1),
        on_lines_ns=min(on_lines_ns, group["total_ns"]),
    )


def of_lines(
    group: Mapping[str, Any], graphs: Sequence[Graph]
) -> dict[tuple[str, int], Counter[str]]:
    """What each line has of all runs of a group but the first: the ns of its ops by phase, the ns
    in which they waited for data, and the number of their runs."""
    graph = graphs[group["graph"] - 1] if group["graph"] else ()
    of_node = {name: (phase, line[:2]) for name, phase, line, _ in graph if line}
    waiting = {name for name, _, _, op in graph if op.startswith(DATA_OPS)}
    types = [op for *_, op in graph]
    if group["function"] and types.count(DATA_OPS[0]) > 1:  # one name stands for all of them
        of_node.pop(DATA_OPS[0], None)
    data_ns = sum(ns for name, (_, ns, *_) in group["ops"].items() if name in waiting)
    spent: dict[tuple[str, int], Counter[str]] = {}
    for name in group["ops"].keys() & of_node.keys():
        op_runs, ns, traced_runs, most_ns = group["ops"][name]
        phase, line = of_node[name]
        of_line = spent.setdefault(line, Counter())
        of_line[OP_RUNS] += round(op_runs * (group["calls"] - 1) / group["traced"])
        if name in waiting:
            of_line[WAITS] += round(group["waited_ns"] * ns / data_ns) if ns else 0
        else:
            of_line[phase] += round(without_longest(traced_runs, ns, most_ns) * group["scale"])
    return spent


def lines_of(
    of_groups: Iterable[Mapping[tuple[str, int], Counter[str]]],
    graphs: Sequence[Graph],
    python: Mapping[sampler.Line, int],
    called: Mapping[sampler.Line, int],
) -> tuple[WatchedLine, ...]:
    """The lines that made nodes of graphs that ran, or that took time outside of runs."""
    spent: dict[tuple[str, int], Counter[str]] = {}
    for of_group in of_groups:
        for at, counts in of_group.items():
            spent.setdefault(at, Counter()).update(counts)
    names: dict[tuple[str, int], dict[str, None]] = {}
    code: dict[tuple[str, int], str] = {}
    for graph in graphs:
        for name, _, line, _ in graph:
            if line:
                names.setdefault(line[:2], {})[name] = None
                code[line[:2]] = line[2]
    own, tensorflow = without_functions(python), without_functions(called)
    keys = dict.fromkeys([*names, *own, *tensorflow])
    lines = [
        WatchedLine(
            file=key[0],
            line=key[1],
            code=code.get(key) or linecache.getline(*key).strip()[:MOST_CODE],
            nodes=tuple(names.get(key, ())),
            forward_ns=spent.get(key, NONE)[FORWARD],
            backward_ns=spent.get(key, NONE)[BACKWARD],
            update_ns=spent.get(key, NONE)[UPDATE],
            python_ns=own[key],
            runs=spent.get(key, NONE)[OP_RUNS],
            tensorflow_ns=tensorflow[key],
            waiting_ns=spent.get(key, NONE)[WAITS],
        )
        for key in keys
    ]
    return tuple(sorted(lines, key=lambda line: (-total_ns(line), line.file, line.line)))


def without_functions(spent: Mapping[sampler.Line, int]) -> Counter[tuple[str, int]]:
    total: Counter[tuple[str, int]] = Counter()
    for (file, number, _), ns in spent.items():
        total[file, number] += ns
    return total


def total_ns(line: WatchedLine) -> int:
    nodes_ns = line.forward_ns + line.backward_ns + line.update_ns + line.waiting_ns
    return nodes_ns + line.python_ns + line.tensorflow_ns


def place(file: str, line: int, function: str) -> str:
    """`train.py:88 in next_batch`; a module's own code has no function."""
    name = "" if function.startswith("<") else f" in {function}"
    return f"{os.path.basename(file)}:{line}{name}"


def notes_of(segment: Mapping[str, Any]) -> Iterable[str]:
    if segment["faults"]:
        what = segment["faults"][0] or "the results could not be written; the disk may be full."
        yield f"{STOPPED} because of this error: {what}"
    elif not segment["final"]:
        seen = segment.get("until_ns")
        yield (
            f"Python did not end by itself: nothing is known after the first {seen / 1e9:.1f} s."
            if seen
            else "The process ended before tflab wrote anything."
        )
    if segment.get("forked"):
        yield "Forked child processes were not watched."
    if segment.get("more_tracings"):
        listed, more = len(segment["tracings"]), segment["more_tracings"]
        yield f"Of {listed + more:,} tracings of functions, only the first {listed:,} are listed."
    yield from segment.get("notes", ())
