"""Summary: the results of the program's process, as records."""

from __future__ import annotations

import ast
import linecache
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tflab import units
from tflab.records.graph import BACKWARD, FORWARD, UPDATE
from tflab.records.timed import Owner
from tflab.records.watched import (
    Compiled,
    Group,
    GrownGraph,
    GrownMemory,
    InputPipeline,
    MadeAnew,
    OpenRun,
    Process,
    SampledLine,
    TracedFunction,
    Watched,
    WatchedLine,
    WatchedOp,
)
from tflab.run import exchange, lines, sampler
from tflab.run.groups import DATA_OPS, ENOUGH, FOR_TRACES, without_longest

FIRST_RUNS = "first runs"
STEPS = "steps of group"
OPEN = "a run that did not end, of group"
WAITING = "waiting for data in group"
FUNCTION = "function"
LATER, LATER_FUNCTIONS = "later groups", "later functions"
END = "end of Python"
# What lines have of runs, besides the phases
WAITS, OP_RUNS = "waits", "op runs"
NONE: Counter[str] = Counter()
Graph = Sequence[tuple[str, str, Any, str]]  # node, phase, line, op
MOST_CODE = 200  # characters of a source line
MODULE = "<module>"  # the code of a file
LEAST_SHARE = 0.1  # of the program's time: the least of a group whose runs have findings
# Stages of tf.data that only wait for others
PASSING = ("Root", "Prefetch", "Model", "MaxIntraOpParallelism", "PrivateThreadPool")
Spent = Mapping[sampler.Line, Sequence[int]]  # ns and number of samples
OWN = "tflab"
STOPPED = "tflab stopped watching"
REST = "not seen"
NOTHING: Mapping[str, Any] = {
    "owners": {},
    "lines": {},
    "called": {},
    "elsewhere": {},
    "in_data": {},
    "for_children": {},
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
        file.read_text(encoding="utf-8") for file in [folder / exchange.FAULT] if file.exists()
    ]
    file = folder / exchange.SEGMENT
    if not file.exists():
        return {**NOTHING, "faults": faults}
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    segment = ast.literal_eval(text)
    return {**segment, "faults": [*faults, *segment["faults"]]}


def watched(
    program: Sequence[str], segment: Mapping[str, Any], wall_ns: int, status: int
) -> Watched:
    """Return the record of a process with this duration and exit status, without graph and
    values."""
    groups, graphs = segment.get("groups", ()), segment.get("graphs", ())
    of_groups = [of_lines(group, graphs) for group in groups]
    fates = segment.get("fates", {})
    return Watched(
        program=tuple(program),
        groups=tuple(
            group_of(group, of_group, segment["overhead"])
            for group, of_group in zip(groups, of_groups, strict=True)
        ),
        process=Process(wall_ns, ledger(segment, groups, wall_ns)),
        lines=lines_of(of_groups, graphs, segment, path_of(fates, groups, graphs)),
        exit_status=status,
        stopped=bool(segment.get("stopped")),
        fates=fates.get("counts", {}),
        not_run=fates.get("not_run", 0),
        costliest=costliest_line(segment["lines"], segment["called"]),
        elsewhere=costliest_line(segment["elsewhere"]),
        open_run=open_run(segment),
        for_children=time_for_children(segment["for_children"]),
        ops=ops_of(groups, graphs),
        findings=findings_of(groups, fates, wall_ns),
        input_pipeline=input_pipeline(segment, groups),
        grown_graphs=tuple(map(grown_graph, segment.get("grown", ()))),
        grown_memory=grown_memory(segment.get("memory")),
        notes=tuple(notes_of(segment, wall_ns)),
        made_anew=tuple(
            MadeAnew(place(*anew["made"]), place(*anew["line"]), anew["functions"], anew["ns"])
            for anew in segment.get("made_anew", ())
        ),
        functions=tuple(map(function_of, segment.get("functions", ()))),
        compiled=compiled(segment.get("compiled", ())),
        values=None,
        graph=None,
    )


def costliest_line(*spent: Spent) -> SampledLine | None:
    """Return the line with most time, if the samples show that it is the first. A line may have
    several functions: up to Python 3.11 a comprehension is one."""
    ranked = sorted(by_place(*spent).items(), key=lambda row: -row[1][0])
    if not ranked:
        return None
    ((file, number), (ns, samples)), *others = ranked
    functions = Counter[str]()
    for (*at, function), (own_ns, _) in (item for each in spent for item in each.items()):
        functions[function] += own_ns * (at == [file, number])
    named = [name for name, own_ns in functions.items() if own_ns and not name.startswith("<")]
    function = max(named or functions, key=functions.__getitem__)
    first = SampledLine(place(file, number, function), ns, samples)
    return first if lines.clearly_first(first, others[0][1][1] if others else 0) else None


def open_run(segment: Mapping[str, Any]) -> OpenRun | None:
    """Return the run that the main thread had not ended when it was last seen."""
    if not segment.get("in_run_of"):
        return None
    line = segment["in_run_at"]
    return OpenRun(segment["in_run_of"], segment["in_run_ns"], place(*line) if line else "")


def time_for_children(spent: Spent) -> SampledLine | None:
    """Return the line that waited most for child processes, with the time of all lines that did."""
    if not spent:
        return None
    line = max(spent, key=lambda line: spent[line][0])
    ns, samples = (sum(of_line[at] for of_line in spent.values()) for at in (0, 1))
    return SampledLine(place(*line), ns, samples)


def ops_of(groups: Sequence[Mapping[str, Any]], graphs: Sequence[Graph]) -> tuple[WatchedOp, ...]:
    """Return the types of ops, the most expensive first. Ops that wait for data are left out."""
    calls, spent = Counter[str](), Counter[str]()
    by_line: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group in groups:
        graph = graphs[group["graph"] - 1] if group["graph"] else ()
        lines_of_nodes = {name: line for name, _, line, _ in graph if line}
        types = {name: op for name, _, _, op in graph}
        known = types.keys() if group["function"] else group["ops"].keys()
        for name, (runs, ns, traced_runs, most_ns) in group["ops"].items():
            # A profile also has the ops of tf.data, which run meanwhile
            op = group["types"].get(name, types.get(name, "")) if name in known else ""
            if op and not op.startswith(DATA_OPS):
                all_ns = round(without_longest(traced_runs, ns, most_ns) * group["scale"])
                calls[op] += round(runs * (group["calls"] - 1) / group["traced"])
                spent[op] += all_ns
                if name in lines_of_nodes:
                    file, number, _ = lines_of_nodes[name]
                    by_line[op][place(file, number, MODULE)] += all_ns
    whole = spent.total() or 1

    def line_of(op: str) -> str:
        line, ns = max(by_line[op].items(), key=lambda item: item[1], default=("", 0))
        return line if 2 * ns > spent[op] else ""

    ranked = sorted(spent, key=lambda op: (-spent[op], op))
    return tuple(
        WatchedOp(op, calls[op], spent[op], spent[op] / whole, line_of(op)) for op in ranked
    )


def findings_of(
    groups: Sequence[Mapping[str, Any]], fates: Mapping[str, Any], wall_ns: int
) -> tuple[str, ...]:
    """Return why the runs of the largest group are slow, if they take a part of the time at all."""
    largest_ns = max((group["total_ns"] for group in groups), default=0)
    return tuple(fates.get("findings", ())) if largest_ns >= LEAST_SHARE * wall_ns else ()


def input_pipeline(
    segment: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> InputPipeline | None:
    """Return how the runs of a group, or the program between its steps, waited for data, whichever
    is more."""
    waits = [(group["waited_ns"][0], at) for at, group in enumerate(groups, 1)]
    between_ns = segment["owners"].get(sampler.DATA, 0)
    waited_ns, at = max([*waits, (between_ns, 0)])
    if not waited_ns:
        return None
    steps = groups[at - 1] if at else max(groups, key=lambda group: group["total_ns"], default=None)
    runs = steps["calls"] - steps["first_runs"] if steps else 0
    stage = costliest_stage(groups)
    return InputPipeline(at, runs, waited_ns, stage, costliest_line(segment["in_data"]))


def costliest_stage(groups: Sequence[Mapping[str, Any]]) -> str:
    """Return the stage of tf.data that took more than half of the time of the profiled calls,
    without the stages from which it takes its data; "" if none did.

    A profile has only what both began and ended in it. So the stages that it has may be short ones
    within a longer one that it does not have, and their share of all stages says nothing.
    """
    own: Counter[str] = Counter()
    for path, ns in (item for group in groups for item in group["stages"].items()):
        outer, _, name = path.rpartition("::")
        if not name.startswith(PASSING):
            own[path] += ns
        if not outer.rpartition("::")[2].startswith(PASSING):
            own[outer] -= ns
    most = max(own, key=own.__getitem__, default="")
    profiled_ns = sum(group["traced_ns"] for group in groups if group["stages"])
    return most.rpartition("::")[2] if 2 * own[most] > profiled_ns else ""


def grown_graph(grown: Mapping[str, Any]) -> GrownGraph:
    made = Counter({place(file, line, MODULE): n for (file, line), n in grown["made"].items()})
    first = grown["sizes"][0]
    size, runs, rises = (grown[name] for name in ("size", "runs", "rises"))
    return GrownGraph(grown["graph"], first, size, runs, rises, dict(made.most_common()))


def grown_memory(grown: Mapping[str, Any] | None) -> GrownMemory | None:
    if not grown:
        return None
    at = place(*grown["line"]) if grown["line"] else ""
    return GrownMemory(grown["from"], grown["to"], at)


def ledger(
    segment: Mapping[str, Any], groups: Iterable[Mapping[str, Any]], wall_ns: int
) -> tuple[Owner, ...]:
    """Every nanosecond of the process, attributed to exactly one owner; owners without time are
    omitted."""
    owners = dict(segment["owners"])
    if run := open_run(segment):
        owners[f"{OPEN} {run.group}"] = run.ns
    if not segment.get("runs") and sampler.BEFORE in owners:
        owners["Python"] = owners.pop(sampler.BEFORE)
    owners[FIRST_RUNS] = sum(group["main_ns"][0] for group in groups)
    steps: dict[str, int] = {}
    for at, group in enumerate(groups, 1):
        waited_ns = waited(group, group["waited_ns"][0])
        steps[f"{WAITING} {at}"] = waited_ns
        steps[name_of_steps(at)] = group["main_ns"][1] - waited_ns
    known = {name: owners.pop(name) for name in ORDER if name in owners}
    owners = {**known, **steps, **owners, OWN: segment["own_ns"]}
    rest_ns = wall_ns - sum(owners.values())
    owners[END if segment["final"] else REST] = rest_ns
    return tuple(Owner(owner, ns) for owner, ns in owners.items() if ns)


def waited(group: Mapping[str, Any], waited_ns: int) -> int:
    """Return the part of the steps of a group in the main thread in which an op waited for data."""
    share = waited_ns / group["total_ns"] if group["total_ns"] else 0
    return round(group["main_ns"][1] * share)


def name_of_steps(group: int) -> str:
    return f"{STEPS} {group}"


def function_of(function: Mapping[str, Any]) -> TracedFunction:
    code, line = function["code"], function["line"]
    return TracedFunction(
        name=function["name"],
        made=place(code[0], code[1], MODULE) if code else "",
        tracings=function["tracings"],
        ns=function["ns"],
        first_ns=function["first_ns"],
        place=place(*line) if line else "",
        changed=tuple(map(tuple, function["changed"])),
        created=function["created"],
    )


def compiled(made: Iterable[tuple[str, sampler.Line | None, str, int]]) -> tuple[Compiled, ...]:
    groups: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for name, line, shapes, ns in made:
        groups.setdefault((name, place(*line) if line else ""), []).append((shapes, ns))
    rows = []
    for (name, at), of_group in groups.items():
        every, times = zip(*of_group, strict=True)
        rows.append(Compiled(name, at, len(times), tuple(dict.fromkeys(every)), sum(times)))
    return tuple(sorted(rows, key=lambda row: -row.ns))


def graph_of(group: Mapping[str, Any]) -> str:
    if group.get("later"):
        return LATER_FUNCTIONS if group["function"] else LATER
    if group["function"]:
        return f"{FUNCTION} {group['function']}"
    return f"graph {group['graph']}" if group["graph"] else "other graphs"


def group_of(group: Mapping[str, Any], spent: Mapping[Any, Counter[str]], overhead: float) -> Group:
    on_lines_ns = sum(of_line.total() - of_line[OP_RUNS] for of_line in spent.values())
    middle_ns = float(median(group["times"])) if group["times"] else None
    return Group(
        graph=graph_of(group),
        fetches=tuple(group["fetches"]),
        feeds=group["feeds"],
        calls=group["calls"],
        median_ns=middle_ns,
        cold_ns=group["cold_ns"],
        total_ns=group["total_ns"],
        traced=group["traced"],
        in_other_threads=group["in_other_threads"],
        not_finite=group["not_finite"],
        first_runs=group["first_runs"],
        on_lines_ns=min(on_lines_ns, group["total_ns"]),
        waited_ns=tuple(group["waited_ns"]),
        overhead_for_ten=overhead_for_ten(group, overhead),
    )


def overhead_for_ten(group: Mapping[str, Any], overhead: float) -> float | None:
    """Return the percentage of the program's time with which ten runs are traced; None if that is
    impossible, or the overhead that the program ran with."""
    if group["calls"] <= ENOUGH or not group["total_ns"] or not group["graph"]:
        return None
    percent = 100 * ENOUGH * group["trace_ns"] / (FOR_TRACES * group["total_ns"])
    return percent if overhead < percent <= 100 else None


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
            of_line[WAITS] += round(group["waited_ns"][0] * ns / data_ns) if ns else 0
        else:
            of_line[phase] += round(without_longest(traced_runs, ns, most_ns) * group["scale"])
    return spent


def path_of(
    fates: Mapping[str, Any], groups: Sequence[Mapping[str, Any]], graphs: Sequence[Graph]
) -> dict[tuple[str, int], float]:
    """Return the share of each line in the critical path of a step of the largest group."""
    spent: dict[tuple[str, int], float] = {}
    if shares := fates.get("path"):
        for name, _, line, _ in graphs[groups[fates["group"] - 1]["graph"] - 1]:
            if line and name in shares:
                spent[line[:2]] = spent.get(line[:2], 0) + shares[name]
    return spent


def lines_of(
    of_groups: Sequence[Mapping[tuple[str, int], Counter[str]]],
    graphs: Sequence[Graph],
    segment: Mapping[str, Any],
    path: Mapping[tuple[str, int], float],
) -> tuple[WatchedLine, ...]:
    """Return the lines that made nodes of graphs that ran, or that took time outside of runs."""
    spent: dict[tuple[str, int], Counter[str]] = {}
    traced: dict[tuple[str, int], int] = {}
    for group, of_group in zip(segment.get("groups", ()), of_groups, strict=True):
        for at, counts in of_group.items():
            spent.setdefault(at, Counter()).update(counts)
            traced[at] = min(group["traced"], traced.get(at, group["traced"]))
    names: dict[tuple[str, int], dict[str, None]] = {}
    code: dict[tuple[str, int], str] = {}
    for graph in graphs:
        for name, _, line, _ in graph:
            if line:
                names.setdefault(line[:2], {})[name] = None
                code[line[:2]] = line[2]
    python, tensorflow, elsewhere = (
        by_place(segment[kind]) for kind in ("lines", "called", "elsewhere")
    )
    keys = dict.fromkeys([*names, *python, *tensorflow, *elsewhere])
    known = [
        WatchedLine(
            file=key[0],
            line=key[1],
            code=code.get(key) or linecache.getline(*key).strip()[:MOST_CODE],
            nodes=tuple(names.get(key, ())),
            forward_ns=spent.get(key, NONE)[FORWARD],
            backward_ns=spent.get(key, NONE)[BACKWARD],
            update_ns=spent.get(key, NONE)[UPDATE],
            waiting_ns=spent.get(key, NONE)[WAITS],
            runs=spent.get(key, NONE)[OP_RUNS],
            traced=traced.get(key, 0),
            path_share=path.get(key),
            python_ns=python[key][0],
            python_samples=python[key][1],
            tensorflow_ns=tensorflow[key][0],
            tensorflow_samples=tensorflow[key][1],
            elsewhere_ns=elsewhere[key][0],
            elsewhere_samples=elsewhere[key][1],
        )
        for key in keys
    ]
    return tuple(sorted(known, key=lambda line: (-lines.total_ns(line), line.file, line.line)))


def by_place(*spent: Spent) -> defaultdict[tuple[str, int], tuple[int, int]]:
    """Return ns and number of samples of each line, whatever its functions."""
    total: defaultdict[tuple[str, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for (file, number, _), (ns, samples) in (item for each in spent for item in each.items()):
        before = total[file, number]
        total[file, number] = before[0] + ns, before[1] + samples
    return total


def place(file: str, line: int, function: str) -> str:
    """`train.py:88 in next_batch`; a module's own code has no function."""
    name = "" if function.startswith("<") else f" in {function}"
    return f"{os.path.basename(file)}:{line}{name}"


def notes_of(segment: Mapping[str, Any], wall_ns: int) -> Iterable[str]:
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
    if segment.get("traced", 0) > (kept := len(segment.get("functions", ()))):
        yield f"Of {segment['traced']:,} functions that were traced, only {kept:,} are listed."
    for at, group in enumerate(segment.get("groups", ()), 1):
        least_ns, most_ns = (waited(group, ns) for ns in group["waited_ns"])
        if most_ns - least_ns > max(least_ns, wall_ns / 100):
            yield (
                f"Group {at} waited for data for {units.time(least_ns)} at least and "
                f"{units.time(most_ns)} at most: data arrive while TensorFlow's profiler starts."
            )
    yield from segment.get("notes", ())
