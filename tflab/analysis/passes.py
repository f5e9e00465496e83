"""Passes: what each graph pass of the runtime did, from the graphs before and after it.

Snapshots go in, `Pass` records come out. PURPOSES has the purpose of each pass; its effect is the
difference of two dumps. `replay` goes the other way: from the changes to the versions of each node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tflab.analysis import fates
from tflab.analysis.fates import Indexed
from tflab.records.graph import Node, grouped
from tflab.records.placed import ON_FUNCTIONS, FirstPart, FirstRun, Pass, Rewrite, Snapshot
from tflab.units import task_of

PURPOSES = {
    # The steps of the runtime between its groups of passes
    "placer": "gives every node a device",
    "feeds_and_fetches": "prunes the graph to the fetches, and adds nodes for feeds and fetches",
    "partitioner": "cuts the graph into one part per device, joined by _Send and _Recv",
    "grappler": "the graph optimiser as a whole: what it does outside its passes",
    "tasks": "the parts of the tasks as they ran; the log has the master's passes, not theirs",
    "graph_optimizer": "the last clean-up of each partition, before its executor is made",
    # Grappler, in the order of its usual iteration (core/grappler/optimizers)
    "model_pruner": "drops nodes that the fetches do not need, and nodes that only pass on a value",
    "tfg_optimizer": "does the same clean-up on an MLIR form of the graph",
    "implementation_selector": "picks the version of a function that suits its device",
    "function_optimizer": "puts the body of a function where it is called",
    "common_subgraph_elimination": "merges equal computations into one",
    "constant_folding": "computes in advance everything that depends only on constants",
    "shape_optimizer": "simplifies arithmetic on shapes",
    "arithmetic_optimizer": "replaces arithmetic by equal but cheaper arithmetic",
    "layout": "changes the order of image dimensions to the one that the device prefers",
    "remapper": "fuses neighbouring ops into one kernel",
    "loop_optimizer": "moves work out of loops and drops dead branches",
    "dependency_optimizer": "drops redundant control dependencies and unused nodes",
    "memory_optimizer": "recomputes or swaps tensors to save memory",
    "MklLayoutRewritePass": "replaces ops by the kernels of oneDNN",
    "LowerFunctionalOpsPass": "turns functional control flow and calls into nodes",
    "MarkForCompilationPass": "chooses the clusters that XLA will compile",
    "EncapsulateSubgraphsPass": "moves each cluster into a function of its own",
    "BuildXlaOpsPass": "replaces each cluster by ops that compile it and run it",
    "ReplicateConstantsPass": "gives each device its own copy of a small constant",
    "PartiallyDeclusterPass": "moves nodes out of a cluster where compiling them does not pay",
}
STEPS = {  # what the runtime did just before this group of passes
    "post_placement": "placer",
    "post_rewrite_for_exec": "feeds_and_fetches",
    "post_partitioning": "partitioner",
}
# What is in the log of passes although it is none
BETWEEN = (*STEPS.values(), "grappler", "graph_optimizer", "tasks")


@dataclass(frozen=True)
class GraphState:
    """The graph after a pass, with all its partitions."""

    name: str
    iteration: int | None
    graph: Indexed
    clusters: Mapping[str, str]
    sent: tuple[Node, ...] = ()  # the nodes that are on other tasks by now


@dataclass(frozen=True)
class Version:
    """A node as it was defined from one state of the graph to another, both inclusive."""

    first: int
    last: int
    node: Node


# nodes that were removed, and nodes that are new or changed
Change = tuple[Iterable[str], Iterable[Node]]
Versions = dict[str, list[Version]]  # of each node, in order


def compare(
    user_nodes: tuple[Node, ...], snapshots: Sequence[Snapshot], executed: tuple[Node, ...]
) -> tuple[Pass, ...]:
    """Return the passes in order, from the user's graph to the one that was executed. Over several
    tasks, the last stands for all that the tasks did to their parts: they write no dumps here."""
    passes = []
    relieved = []  # the nodes that each pass left without work
    graph_states = [GraphState("", None, Indexed(user_nodes), {}), *states(snapshots)]
    sent = graph_states[-1].sent
    last = GraphState("tasks" if sent else "graph_optimizer", None, Indexed(executed), {}, sent)
    for before, after in pairwise((*graph_states, last)):
        step = difference(before, after)
        if before.name or step.added or step.removed or step.rewritten:
            passes.append(step)  # otherwise the first dump, which is the user's graph
            idle = fates.Step(before.graph, after.graph).relieved() if step.rewired else ()
            relieved.append([*idle])
    return fates.confirmed(passes, relieved)


def states(snapshots: Sequence[Snapshot]) -> Iterator[GraphState]:
    """Yield a state for each pass, and for each step of the runtime between groups of passes."""
    parts: dict[str | None, tuple[Node, ...]] = {}
    last: tuple[Node, ...] = ()
    graph = Indexed(last)
    sent: tuple[Node, ...] = ()
    # One snapshot of each pass while the graph is whole, later one per partition
    rounds = grouped(
        ((index,) if step.partition is None else (step.moment, step.group, step.name), step)
        for index, step in enumerate(snapshots)
    )
    for members in rounds.values():
        first = members[0]
        if first.group == "post_partitioning" and first.moment == "before" and not sent:
            # The nodes of the whole graph on tasks of which this part has no node
            tasks = {task_of(node.device) for member in members for node in member.nodes}
            sent = tuple(n for n in last if n.device and task_of(n.device) not in tasks)
        parts = {} if first.partition is None else {p: n for p, n in parts.items() if p}
        parts |= {snapshot.partition: snapshot.nodes for snapshot in members}
        nodes = tuple(node for part in (*parts.values(), sent) for node in part)
        step = STEPS.get(first.group) if first.moment == "before" else None
        changed = nodes != last
        if changed:
            last, graph = nodes, Indexed(nodes)
        if first.name or step or changed:
            clusters = {k: v for snapshot in members for k, v in snapshot.clusters.items()}
            name = first.name or step or first.group
            yield GraphState(name, first.iteration, graph, clusters, sent)


def difference(before: GraphState, after: GraphState) -> Pass:
    """Return what one pass did: nodes that it added, removed, rewrote, rewired or moved."""
    old, new = before.graph.nodes, after.graph.nodes
    same = new is old
    common = () if same else ((node, new[name]) for name, node in old.items() if name in new)
    changed = [(a, b) for a, b in common if a is not b and definition(a) != definition(b)]
    added = () if same else tuple(name for name in new if name not in old)
    newly_sent = after.sent if not before.sent else ()
    sent_to = grouped((task_of(node.device), node.name) for node in newly_sent)
    step = fates.Step(before.graph, after.graph, before.clusters)
    return Pass(
        name=after.name,
        iteration=after.iteration,
        before=len(old),
        after=len(new),
        added=added,
        removed=() if same else tuple(name for name in old if name not in new),
        rewritten=tuple(Rewrite(a.name, a.op, b.op) for a, b in changed if a.op != b.op),
        rewired=tuple(a.name for a, b in changed if definition(a)[:2] != definition(b)[:2]),
        moved=tuple(a.name for a, b in changed if a.device != b.device),
        definitions=(*(b for _, b in changed), *(new[name] for name in added)),
        taken=() if same else tuple(step.taken()),
        sent=tuple((task, tuple(names)) for task, names in sent_to.items()),
    )


def definition(node: Node) -> tuple[object, ...]:
    """Return the parts of a node that a pass may change."""
    return node.inputs, node.control_inputs, node.op, node.device


def replay(changes: Iterable[Change]) -> Versions:
    """Return every definition that each node had, with the states of the graph in which it was
    valid. The first change leads to state 0, each further one to the next."""
    versions: Versions = {}
    standing: dict[str, tuple[int, Node]] = {}
    steps = list(changes)

    for number, (gone, defined) in enumerate(steps):
        for name in (*gone, *(node.name for node in defined)):
            if name in standing:
                first, node = standing.pop(name)
                versions[name].append(Version(first, number - 1, node))
        for node in defined:
            versions.setdefault(node.name, [])
            standing[node.name] = number, node
    for name, (first, node) in standing.items():
        versions[name].append(Version(first, len(steps) - 1, node))
    return versions


# The first run
#
# The log says when each pass of the runtime began, how long each of Grappler's took, when kernels
# were made, and what XLA compiled. Every nanosecond gets one owner: a step of the runtime that the
# log marks at both ends, the run of the ops, or the rest.

REST = "not broken down"
RUN = "first run of the ops"
KERNELS = "kernels"
XLA = "XLA"

# The files of the runtime's source that write these lines, and the level at which they do:
# tensorflow/core/common_runtime (optimization_registry.cc, graph_execution_state.cc,
# constant_folding.cc), core/framework/op_kernel.cc, core/grappler/optimizers/meta_optimizer.cc,
# compiler/jit (device_compiler.h, device_compilation_profiler.cc); TensorFlow 2.21.0.
LEVELS = {
    "optimization_registry": 1,
    "graph_execution_state": 1,
    "meta_optimizer": 1,
    "constant_folding": 1,
    "op_kernel": 2,
    "device_compiler": 3,
    "device_compilation_profiler": 1,
}
# The prefix of Abseil's log: `I0000 00:00:1795731491.801366 23987 placer.cc:172] `
LINE = re.compile(r"[IWE]\d{4} \d\d:\d\d:(\d+)\.(\d{6}) +(\d+) ([\w.]+):\d+\] (.*)")
PASS = re.compile(r"Running optimization pass: (\S+)")
GROUP_ENDS = re.compile(r"Finished optimization of a group (\d)")
# What the runtime does after each group of passes; `Grouping` in optimization_registry.h
AFTER = {"0": "placer", "1": REST, "2": "partitioner", "3": "graph_optimizer"}
GRAPPLER = re.compile(r"(\w+)(?:\{.*)?: Graph size after: .*, time = ([\d.]+)ms\.")
SIGNATURE = re.compile(r"Instantly compiling for signature: ([^\[;]+)[^;]*; ?(.*)")
COMPILED = re.compile(r"Compiled (\S+) \d+ times, compile time: (\d+) us")
SHAPE = re.compile(r"\w+ \[[\d,]*\]")


@dataclass(frozen=True)
class Entry:
    """A line of the log."""

    ns: int  # since the epoch
    thread: str
    file: str
    text: str


def broken_down(log: str, build: tuple[int, int], run: tuple[int, int]) -> FirstRun:
    """Return the parts of a first run, in the order in which they began. `build` and `run` are when
    the runtime prepared and ran the step, from start to end in ns since the epoch."""
    read = []
    for match in filter(None, map(LINE.match, log.splitlines())):
        seconds, micros, thread, file, text = match.groups()
        read.append(Entry(1_000 * int(seconds + micros), thread, file, text))
    building = [entry for entry in read if build[0] <= entry.ns <= build[1]]
    threads = [entry.thread for entry in building if PASS.match(entry.text)]
    own = [entry for entry in building if entry.thread in threads[:1]]
    spans = [*marked(own, build[1])]
    # What XLA compiled: `XLA: step for float [16], float []`. The names of clusters are not stable
    signatures: dict[tuple[str, str], str] = {}
    for entry in read:
        if found := SIGNATURE.match(entry.text):
            signatures[entry.thread, found[1]] = ", ".join(SHAPE.findall(found[2]))
        elif found := COMPILED.match(entry.text):
            shapes = signatures.get((entry.thread, found[1]), "")
            name = XLA if found[1].startswith("cluster_") else f"{XLA}: {found[1]}"
            name = f"{name} for {shapes}" if shapes else name
            spans.append((entry.ns - 1_000 * int(found[2]), entry.ns, name, None))
    taken: Counter[tuple[str, int | None]] = Counter()
    for (start, end), owner in ((build, REST), (run, RUN)):
        at = start
        for begins, ends, name, iteration in sorted(spans):
            begins, ends = max(begins, at), min(ends, end)
            if begins < ends:
                taken[owner, None] += begins - at
                taken[name, iteration] += ends - begins
                at = ends
        taken[owner, None] += end - at
    parts = (FirstPart(name, iteration, ns) for (name, iteration), ns in taken.items() if ns)
    return FirstRun(build[1] - build[0] + run[1] - run[0], tuple(parts))


Span = tuple[int, int, str, int | None]  # start and end in ns, owner, iteration


def marked(read: Sequence[Entry], end: int) -> Iterator[Span]:
    """Yield what the thread that prepared the step did, and when. Most lines begin something, which
    lasts until the next such line. A line of Grappler ends a pass, and says how long it took."""
    owner, since = REST, 0
    iteration, seen, folds = 0, set[str](), False
    for entry in read:
        begins = began(entry, owner, folds)
        if passed := GRAPPLER.match(entry.text):
            iteration += passed[1] in seen
            seen = {passed[1]} if passed[1] in seen else seen | {passed[1]}
            start = entry.ns - round(float(passed[2]) * 1e6)
            of_graph = owner == "grappler"
            name = passed[1] if of_graph else f"{passed[1]}{ON_FUNCTIONS}"
            yield max(since, start), entry.ns, name, iteration if of_graph else None
            if since < start:
                yield since, start, owner, None
            since = entry.ns
        elif begins:
            yield since, entry.ns, owner, None
            owner, since = begins, entry.ns
            if owner == "grappler":
                iteration, seen = 0, set()
        folds = entry.file == "constant_folding.cc" or (folds and "_SOURCE" not in entry.text)
    yield since, end, owner, None


def began(entry: Entry, owner: str, folds: bool) -> str:
    """Return what the runtime begins to do at this line; "" if it goes on with what it did."""
    if match := PASS.match(entry.text):
        return match[1]
    if match := GROUP_ENDS.match(entry.text):
        return AFTER.get(match[1], REST)
    if entry.text.startswith("Starting optimization for grappler item"):
        return "grappler"
    if entry.file == "graph_execution_state.cc" or entry.text.startswith("Optimized "):
        return REST
    # The executor's first kernel; before it the last clean-up makes some, to fold constants
    is_source = "{{node _SOURCE}}" in entry.text
    return KERNELS if is_source and owner == "graph_optimizer" and not folds else ""
