"""Summary: the results of the program's process, as records."""

from __future__ import annotations

import ast
import linecache
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tflab import units
from tflab.records import watched as records
from tflab.records.graph import BACKWARD, FORWARD, UPDATE
from tflab.records.measured import Load
from tflab.records.timed import Owner
from tflab.run import FAULT, SEGMENT, sampler
from tflab.run.groups import DATA_OPS, without_longest
from tflab.run.sampler import MOST_CODE, place

FIRST_RUNS = "first runs"
STEPS = "steps of group"
OPEN = "a run that did not end, of group"
WAITING = "waiting for data in group"
FUNCTION = "function"
LATER = "all later runs"
END = "end of Python"
WAITS = "waits"  # what lines have of runs, besides the phases
# Kind of sampled time -> its lines in a segment
SAMPLED = {"python": sampler.LINES, "tensorflow": sampler.CALLS, "elsewhere": sampler.ELSEWHERE}
LEAST_SAMPLES = 10  # of a line, for its time
LEAST_SHARE = 0.1  # of the program's time: the least of a group whose runs have findings
# Stages of tf.data that only wait for others
PASSING = ("Root", "Prefetch", "Model", "MaxIntraOpParallelism", "PrivateThreadPool")
OWN = "tflab"
STOPPED = "tflab stopped watching"
REST = "not seen"
SUMS = ("calls", "first_runs", "cold_ns", "total_ns", "in_other_threads", "traced", "traced_ns")
# What a process may not have come to
NOTHING: Mapping[str, Any] = {
    **{of: {} for of in ("owners", sampler.LINES, sampler.CALLS, *sampler.KINDS)},
    **dict.fromkeys(("groups", "graphs", "grown", "kept", "compiled"), ()),
    **dict.fromkeys(("functions", "notes", "faults"), ()),
    **dict.fromkeys(("until_ns", "own_ns", "runs", "in_run_of"), 0),
    **dict.fromkeys(("final", "forked", "stopped"), False),
    "memory": None,
    "fates": {},
}
# In the order of a program
ORDER = (
    *(sampler.START, sampler.IMPORT_TENSORFLOW, sampler.IMPORTS, sampler.BEFORE),
    *(sampler.GRAPHS, sampler.EAGER, sampler.FRAMEWORK, FIRST_RUNS),
)
Segment = Mapping[str, Any]  # of a process, or of one of its groups
Place = tuple[str, int]  # file and line
Spent = Mapping[sampler.Line, Sequence[int]]  # ns and number of samples


def read(folder: Path) -> Segment:
    """Return the last segment of a process."""
    segment, fault = folder / SEGMENT, folder / FAULT
    text = segment.read_text("utf-8", "surrogateescape") if segment.exists() else "{}"
    known = {**NOTHING, **ast.literal_eval(text)}
    if fault.exists():
        known["faults"] = [fault.read_text(encoding="utf-8"), *known["faults"]]
    return known


def watched(
    program: Sequence[str],
    segment: Segment,
    wall_ns: int,
    status: int,
    graph: records.Recorded | None = None,
    values: records.RecordedValues | None = None,
    load: Load | None = None,
) -> records.Watched:
    """Return the record of a process from its last segment, its duration and its exit status."""
    segment = {**NOTHING, **segment}
    ops = [[*op_times(group, segment["graphs"])] for group in segment["groups"]]
    lines = lines_of(segment, ops)
    segment = {**segment, "groups": joined(segment["groups"])}
    groups, fates = segment["groups"], segment["fates"]
    large = max((group["total_ns"] for group in groups), default=0) >= LEAST_SHARE * wall_ns
    compiled = (records.Compiled(**made) for made in segment["compiled"])
    costliest = costliest_line(segment[sampler.LINES], segment[sampler.CALLS])
    for_children = None
    if spent := segment["for_children"]:  # at the line that waited most, with the time of all
        at, sums = max(spent, key=lambda line: spent[line][0]), zip(*spent.values(), strict=True)
        for_children = records.SampledLine(place(*at), *map(sum, sums))
    return records.Watched(
        program=tuple(program),
        groups=tuple(map(group_of, groups)),
        process=records.Process(wall_ns, ledger(segment, wall_ns)),
        lines=lines,
        exit_status=status,
        stopped=segment["stopped"],
        fates=fates.get("counts", {}),
        costliest=costliest,
        with_runs=with_runs(costliest, segment),
        elsewhere=costliest_line(segment["elsewhere"]),
        open_run=open_run(segment),
        for_children=for_children,
        ops=ops_of(ops),
        findings=tuple(fates.get("findings", ())) if large else (),
        input_pipeline=input_pipeline(segment),
        grown_graphs=tuple(records.GrownGraph(**grown) for grown in segment["grown"]),
        kept_results=tuple(records.KeptResults(**kept) for kept in segment["kept"]),
        grown_memory=records.GrownMemory(**segment["memory"]) if segment["memory"] else None,
        notes=tuple(notes_of(segment, wall_ns)),
        functions=tuple(records.TracedFunction(**function) for function in segment["functions"]),
        compiled=tuple(sorted(compiled, key=lambda row: -row.ns)),
        values=values,
        load=load,
        graph=graph,
    )


def costliest_line(*spent: Spent) -> records.SampledLine | None:
    """Return the line with most time; None if its lead over the next one may be chance."""
    ranked = sorted(by_place(*spent).items(), key=lambda row: -row[1][0])
    if not ranked:
        return None
    (at, (ns, samples)), *others = ranked
    second = others[0][1][1] if others else 0
    if samples < LEAST_SAMPLES or samples - second <= 2 * sqrt(samples + second):
        return None
    named = {name: own[0] for each in spent for (*of, name), own in each.items() if (*of,) == at}
    # Up to Python 3.11 a comprehension is a function of its own
    function = max(named, key=lambda name: (not name.startswith("<"), named[name]))
    return records.SampledLine(place(*at, function), ns, samples)


def with_runs(line: records.SampledLine | None, segment: Segment) -> records.SampledLine | None:
    """Return the line with the runs that it began; None if too few of them were sampled."""
    spent = segment[sampler.IN_RUNS]
    own = [sums for at, sums in spent.items() if line and place(*at) == line.place]
    share_ns, samples = map(sum, zip((0, 0), *own, strict=True))
    if line is None or samples < LEAST_SAMPLES:
        return None
    runs_ns = sum(sum(group["main_ns"]) for group in segment["groups"])
    runs_ns = runs_ns * share_ns // sum(ns for ns, _ in spent.values())
    return records.SampledLine(line.place, line.ns + runs_ns, line.samples + samples)


def open_run(segment: Segment) -> records.OpenRun | None:
    """Return the run of the main thread that had not ended when the process was last seen."""
    if not segment["in_run_of"]:
        return None
    at = place(*segment["in_run_at"]) if segment["in_run_at"] else ""
    return records.OpenRun(segment["in_run_of"], segment["in_run_ns"], at)


# Ops and lines


class OpTime(NamedTuple):
    """A node in all runs of a group but the first, estimated from the traced ones."""

    node: str
    op: str  # the type that ran; "" if unknown
    phase: str
    line: Place | None
    ns: int

    @property
    def waits(self) -> bool:
        return self.op.startswith(DATA_OPS)


def op_times(group: Segment, graphs: Sequence[Any]) -> Iterator[OpTime]:
    graph = graphs[group["graph"] - 1] if group["graph"] else ()
    known = {name: (op, phase, line and line[:2]) for name, phase, line, op in graph}
    shared = group["function"] and [op for *_, op in graph].count(DATA_OPS[0]) > 1
    for name, (_, ns, traced_runs, most_ns) in group["ops"].items():
        if group["function"] and name not in known:
            continue  # a profile also has the ops of tf.data, which run meanwhile
        op, phase, line = known.get(name, ("", "", None))
        if shared and name == DATA_OPS[0]:  # one name stands for all of them
            line = None
        all_ns = round(without_longest(traced_runs, ns, most_ns) * group["scale"])
        yield OpTime(name, group["types"].get(name, op), phase, line, all_ns)


def ops_of(of_groups: Iterable[Iterable[OpTime]]) -> tuple[records.WatchedOp, ...]:
    """Return the types of ops, the most expensive first. Ops that wait for data are left out."""
    spent = Counter[str]()
    for row in chain(*of_groups):
        if row.op and not row.waits:
            spent[row.op] += row.ns
    whole = spent.total() or 1
    ranked = sorted(spent, key=lambda op: (-spent[op], op))
    return tuple(records.WatchedOp(op, spent[op], spent[op] / whole) for op in ranked)


def lines_of(
    segment: Segment, of_groups: Sequence[Sequence[OpTime]]
) -> tuple[records.WatchedLine, ...]:
    """Return the lines that made nodes of graphs that ran, or that took time outside of runs."""
    spent: defaultdict[Place, Counter[str]] = defaultdict(Counter)
    traced: dict[Place, int] = {}
    for group, rows in zip(segment["groups"], of_groups, strict=True):
        data_ns = sum(row.ns for row in rows if row.waits)
        for row in rows:
            if row.line:
                of_line = spent[row.line]
                if row.waits:
                    of_line[WAITS] += round(group["waited_ns"][0] * row.ns / (data_ns or 1))
                else:
                    of_line[row.phase] += row.ns
                traced[row.line] = min(group["traced"], traced.get(row.line, group["traced"]))
    names: defaultdict[Place, dict[str, None]] = defaultdict(dict)
    code: dict[Place, str] = {}
    for name, _, line, _ in chain(*segment["graphs"]):
        if line:
            names[line[:2]][name] = None
            code[line[:2]] = line[2]
    sampled = {kind: by_place(segment[key]) for kind, key in SAMPLED.items()}
    known = [
        records.WatchedLine(
            file=at[0],
            line=at[1],
            code=code.get(at) or linecache.getline(*at).strip()[:MOST_CODE],
            nodes=tuple(names[at]),
            forward_ns=spent[at][FORWARD],
            backward_ns=spent[at][BACKWARD],
            update_ns=spent[at][UPDATE],
            waiting_ns=spent[at][WAITS],
            traced=traced.get(at, 0),
            **{f"{kind}_ns": own[at][0] for kind, own in sampled.items()},
            **{f"{kind}_samples": own[at][1] for kind, own in sampled.items()},
        )
        for at in dict.fromkeys(chain(names, *sampled.values()))
    ]
    return tuple(sorted(known, key=lambda line: (-line.total_ns, line.file, line.line)))


def by_place(*spent: Spent) -> defaultdict[Place, tuple[int, int]]:
    """Return (ns, number of samples) of each line, summed over the functions that it is in."""
    total: defaultdict[Place, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for (file, number, _), (ns, samples) in chain(*(each.items() for each in spent)):
        before = total[file, number]
        total[file, number] = before[0] + ns, before[1] + samples
    return total


# Waiting for data


def input_pipeline(segment: Segment) -> records.InputPipeline | None:
    """Return how long the group that waited most waited for data, or the program between steps."""
    groups = segment["groups"]
    waited_ns, at = segment["owners"].get(sampler.DATA, 0), 0
    # Which of several functions take what the program waits for is not known
    runs = groups[0]["calls"] if len(groups) == 1 else 0
    for number, group in enumerate(groups, 1):
        same = [of for of in groups if of["fetches"] == group["fetches"]]
        own_ns = sum(of["waited_ns"][0] for of in same)
        if own_ns and own_ns >= waited_ns:
            waited_ns, at = own_ns, number
            runs = sum(of["calls"] - of["first_runs"] for of in same)
    if not waited_ns:
        return None
    line = costliest_line(segment["in_data"])
    return records.InputPipeline(at, runs, waited_ns, costliest_stage(groups), line)


def costliest_stage(groups: Sequence[Segment]) -> str:
    """Return the stage of tf.data that, without the stages below it, took more than half of the
    profiled calls' time; "" if none did. A profile lacks stages that began before it."""
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


# Groups, and all of the time


def joined(groups: Iterable[Segment]) -> list[Segment]:
    """Return the groups in the order of their numbers, all tracings of a function as one."""
    tracings: defaultdict[int, list[Segment]] = defaultdict(list)
    for group in groups:
        tracings[group["number"]].append(group)
    return [join(*tracings[number]) for number in sorted(tracings)]


def join(first: Segment, *others: Segment) -> Segment:
    """Return the tracings of a function as one group; its times stand for all runs alike."""
    if not others:
        return first
    groups = first, *others
    known: dict[str, Any] = {name: sum(group[name] for group in groups) for name in SUMS}
    for name in ("main_ns", "waited_ns"):
        known[name] = tuple(map(sum, zip(*(group[name] for group in groups), strict=True)))
    known["times"] = [
        ns
        for group in groups
        for ns in group["times"] * round((group["calls"] - 1) / (len(group["times"]) or 1) or 1)
    ]
    known["stages"] = sum((Counter(group["stages"]) for group in groups), Counter())
    bad = [(n, run) for group in groups for n, run in (group["not_finite"] or {}).items()]
    if any(group["not_finite"] is not None for group in groups):
        known["not_finite"] = dict(sorted(bad, key=lambda item: -item[1]))
    return {**first, **known}


def group_of(group: Segment) -> records.Group:
    graph = f"graph {group['graph']}" if group["graph"] else "other graphs"
    if group["function"]:
        graph = f"{FUNCTION} {group['function']}"
    known = {
        **group,
        "graph": LATER if group["later"] else graph,
        "median_ns": float(median(group["times"])) if group["times"] else None,
    }
    return records.Group(**{field.name: known[field.name] for field in fields(records.Group)})


def ledger(segment: Segment, wall_ns: int) -> tuple[Owner, ...]:
    """Return every nanosecond of the process, attributed to exactly one owner."""
    owners, groups = dict(segment["owners"]), segment["groups"]
    if run := open_run(segment):
        owners[f"{OPEN} {run.group}"] = run.ns
    if not segment["runs"] and sampler.BEFORE in owners:
        owners["Python"] = owners.pop(sampler.BEFORE)
    owners[FIRST_RUNS] = sum(group["main_ns"][0] for group in groups)
    steps: dict[str, int] = {}
    for at, group in enumerate(groups, 1):
        waited_ns = steps[f"{WAITING} {at}"] = waited(group, group["waited_ns"][0])
        steps[f"{STEPS} {at}"] = group["main_ns"][1] - waited_ns
    known = {name: owners.pop(name) for name in ORDER if name in owners}
    owners = {**known, **steps, **owners, OWN: segment["own_ns"]}
    rest_ns = wall_ns - sum(owners.values())
    owners[END if segment["final"] else REST] = rest_ns
    return tuple(Owner(owner, ns) for owner, ns in owners.items() if ns)


def waited(group: Segment, waited_ns: int) -> int:
    """Return the ns of `waited_ns` that belong to the steps of a group in the main thread."""
    return round(group["main_ns"][1] * waited_ns / (group["total_ns"] or 1))


def notes_of(segment: Segment, wall_ns: int) -> Iterator[str]:
    if segment["faults"]:
        what = segment["faults"][0] or "the results could not be written; the disk may be full."
        yield f"{STOPPED} because of this error: {what}"
    elif not segment["final"]:
        known_s = segment["until_ns"] / 1e9
        unknown = f"Python did not end by itself: nothing is known after the first {known_s:.1f} s."
        yield unknown if known_s else "The process ended before tflab wrote anything."
    if segment["forked"]:
        yield "Forked child processes were not watched."
    for group in segment["groups"]:
        least_ns, most_ns = (waited(group, ns) for ns in group["waited_ns"])
        if most_ns - least_ns > max(least_ns, wall_ns / 100):
            yield (
                f"{', '.join(group['fetches'])} waited for data between {units.time(least_ns)} and "
                f"{units.time(most_ns)}; it is not known more exactly, because data also arrive "
                "while TensorFlow's profiler starts."
            )
    yield from segment["notes"]
