"""Passes: what each graph pass of the runtime did, read off the graphs before and after it.

No TensorFlow in here: snapshots go in, `Pass` records come out. What a kind of pass is for stands
in PURPOSES; what it did here is the difference of two dumps. `replay` goes the other way: from the
changes to the versions that each node had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tflab.records import Node, Pass, Rewrite, Snapshot, Taken, node_of

PURPOSES = {
    # The steps of the runtime between its groups of passes
    "placer": "gives every node a device",
    "feeds_and_fetches": "prunes to what was asked for; fed and fetched tensors get nodes",
    "partitioner": "cuts the graph into one part per device, joined by _Send and _Recv",
    "grappler": "the graph optimiser as a whole: what it does outside its passes",
    "graph_optimizer": "the last clean-up of each partition, before its executor is made",
    # Grappler, in the order of its usual iteration (core/grappler/optimizers)
    "model_pruner": "drops what the fetches do not need, and nodes that only pass a value on",
    "tfg_optimizer": "the same kind of clean-up, on an MLIR form of the graph",
    "implementation_selector": "picks the version of a function that suits its device",
    "function_optimizer": "puts the body of a function where it is called",
    "common_subgraph_elimination": "keeps one of several equal computations",
    "debug_stripper": "drops assertions and prints",
    "constant_folding": "computes what depends on constants only, once and for all",
    "shape_optimizer": "simplifies arithmetic on shapes",
    "auto_mixed_precision": "moves suitable ops to 16-bit floats",
    "auto_mixed_precision_onednn_bfloat16": "moves suitable ops to bfloat16",
    "pin_to_host_optimizer": "keeps small integer ops on the host",
    "arithmetic_optimizer": "replaces arithmetic by equal but cheaper arithmetic",
    "layout": "changes the order of image dimensions to what the device likes",
    "remapper": "fuses neighbouring ops into one kernel",
    "loop_optimizer": "moves work out of loops and drops dead branches",
    "dependency_optimizer": "drops control dependencies, and nodes that only carried them",
    "auto_parallel": "copies the graph for several devices",
    "memory_optimizer": "recomputes or swaps tensors to save memory",
    "scoped_allocator_optimizer": "lets tensors that travel together share one buffer",
    # The runtime's own passes (core/common_runtime, core/tpu, compiler/jit)
    "MklLayoutRewritePass": "replaces ops by the kernels of oneDNN",
    "LowerFunctionalOpsPass": "turns functional control flow and calls into nodes",
    "MarkForCompilationPass": "chooses the clusters that XLA will compile",
    "EncapsulateSubgraphsPass": "moves each cluster into a function of its own",
    "BuildXlaOpsPass": "replaces each cluster by ops that compile it and run it",
    "ReplicateConstantsPass": "gives each device its own copy of a small constant",
    "CloneConstantsForBetterClusteringPass": "copies small constants, so that clusters stay apart",
    "PartiallyDeclusterPass": "takes nodes that are better off outside out of their cluster",
    "IncreaseDynamismForAutoJitPass": "rewrites slices so that XLA compiles less often",
    "AccumulateNV2RemovePass": "replaces AccumulateNV2 by ops that have kernels",
    "ParallelConcatRemovePass": "replaces ParallelConcat by ops that have kernels",
}
STEPS = {  # what the runtime did just before it began this group of passes
    "post_placement": "placer",
    "post_rewrite_for_exec": "feeds_and_fetches",
    "post_partitioning": "partitioner",
}


@dataclass(frozen=True)
class State:
    """The graph, all partitions together, after a pass."""

    name: str
    iteration: int | None
    nodes: tuple[Node, ...]
    clusters: Mapping[str, str]


@dataclass(frozen=True)
class Version:
    """A node as it was defined from one state of the graph to another, both included."""

    first: int
    last: int
    node: Node


Change = tuple[Iterable[str], Iterable[Node]]  # nodes that go, and those that are new or changed
Versions = dict[str, list[Version]]  # of each node, in their order


def compare(
    user_nodes: tuple[Node, ...], snapshots: Sequence[Snapshot], executed: tuple[Node, ...]
) -> tuple[Pass, ...]:
    """The passes in their order, each with what it changed.

    The first takes the user's graph, the last leaves the one that was executed.
    """
    passes = []
    before = State("", None, user_nodes, {})
    for after in (*states(snapshots), State("graph_optimizer", None, executed, {})):
        step = difference(before, after)
        if before.name or step.added or step.removed or step.rewritten:
            passes.append(step)  # else the first dump, which is just the user's graph
        before = after
    return tuple(passes)


def states(snapshots: Sequence[Snapshot]) -> Iterator[State]:
    """One state for each pass, and for each step of the runtime between its groups of passes."""
    parts: dict[str | None, tuple[Node, ...]] = {}
    last: tuple[Node, ...] = ()
    for name, members in rounds(snapshots):
        first = members[0]
        parts = {} if first.partition is None else {p: n for p, n in parts.items() if p}
        parts |= {snapshot.partition: snapshot.nodes for snapshot in members}
        nodes = next(iter(parts.values()))
        if len(parts) > 1:
            nodes = tuple(node for part in parts.values() for node in part)
        step = STEPS.get(first.group) if first.moment == "before" else None
        if name or step or nodes != last:
            clusters = {k: v for snapshot in members for k, v in snapshot.clusters.items()}
            yield State(name or step or first.group, first.iteration, nodes, clusters)
        last = nodes


def rounds(snapshots: Sequence[Snapshot]) -> Iterable[tuple[str | None, list[Snapshot]]]:
    """Each pass with its snapshots: one while the graph is whole, then one for each partition."""
    groups: dict[tuple, list[Snapshot]] = {}
    for index, snapshot in enumerate(snapshots):
        whole = snapshot.partition is None
        key = (index,) if whole else (snapshot.moment, snapshot.group, snapshot.name)
        groups.setdefault(key, []).append(snapshot)
    return [(members[0].name, members) for members in groups.values()]


def difference(before: State, after: State) -> Pass:
    """What one pass added, removed, rewrote, re-wired and moved, and who took over what is gone."""
    old = {node.name: node for node in before.nodes}
    new = old if after.nodes is before.nodes else {node.name: node for node in after.nodes}
    kept = [] if new is old else [(old[name], new[name]) for name in old if name in new]
    return Pass(
        name=after.name,
        iteration=after.iteration,
        before=len(old),
        after=len(new),
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        rewritten=tuple(Rewrite(a.name, a.op, b.op) for a, b in kept if a.op != b.op),
        rewired=tuple(
            a.name for a, b in kept if (a.inputs, a.control_inputs) != (b.inputs, b.control_inputs)
        ),
        moved=tuple(a.name for a, b in kept if a.device != b.device),
        definitions=(
            *(b for a, b in kept if altered(a, b)),
            *(node for name, node in new.items() if name not in old),
        ),
        taken=() if new is old else tuple(takeovers(old, new, before.clusters)),
    )


def altered(before: Node, after: Node) -> bool:
    """Whether a node does or takes something else than before, or does it elsewhere."""
    return (before.op, before.inputs, before.control_inputs, before.device) != (
        after.op,
        after.inputs,
        after.control_inputs,
        after.device,
    )


def replay(changes: Iterable[Change]) -> Versions:
    """Every definition that each node had, with the states of the graph in which it stood.

    The first change leaves state 0, each further one the next. Nodes come in the order in which
    they were first defined.
    """
    versions: Versions = {}
    standing: dict[str, tuple[int, Node]] = {}
    steps = list(changes)

    def end(name: str, last: int) -> None:
        if name in standing:
            first, node = standing.pop(name)
            versions[name].append(Version(first, last, node))

    for number, (gone, defined) in enumerate(steps):
        for name in gone:
            end(name, number - 1)
        for node in defined:
            end(node.name, number - 1)
            versions.setdefault(node.name, [])
            standing[node.name] = number, node
    for name in list(standing):
        end(name, len(steps) - 1)
    return versions


def graph_at(versions: Versions, state: int) -> dict[str, Node]:
    """The graph in one state, by name."""
    return {
        name: version.node
        for name, all_of_it in versions.items()
        for version in all_of_it
        if version.first <= state <= version.last
    }


def takeovers(
    old: Mapping[str, Node], new: Mapping[str, Node], clusters: Mapping[str, str]
) -> Iterator[Taken]:
    """For each node that a pass removed or relieved of its work: what became of it.

    The heir of a removed node is found where its value was used: a user was rewritten and now
    does its work as well, or takes another tensor in its place.
    """
    users: dict[str, list[tuple[str, int]]] = {}
    for node in old.values():
        for position, tensor in enumerate(node.inputs):
            users.setdefault(node_of(tensor), []).append((node.name, position))
    runners = {
        node.name.partition("/")[0].rpartition("_")[0]: node.name  # `cluster_0_1/xla_run`
        for node in new.values()
        if node.op == "_XlaRun" and node.name not in old
    }
    taking_over = heirs(old, new, users)
    for name, node in old.items():
        if name not in new:
            cluster = clusters.get(name)
            heir = cluster if cluster in new else runners.get(name)
            heir = heir or taking_over.get(name)
            yield Taken(name, fate_of(node, heir, old, new, cluster), heir)
        elif new[name].op == "Const" != node.op:
            yield Taken(name, "folded", name)
        elif absorbed := absorber(node, old, new):
            yield Taken(name, "fused", absorbed)


def absorber(node: Node, old: Mapping[str, Node], new: Mapping[str, Node]) -> str | None:
    """The input that now does this node's work as well; the node is left and passes it on.

    So the remapper fuses batch norm and ReLU in training, where batch norm has other users.
    """
    after = new[node.name]
    if after.op == "Identity" != node.op and after.inputs:
        heir = node_of(after.inputs[0])
        kept = heir in old and heir in new and heir in map(node_of, node.inputs)
        if kept and new[heir].op != old[heir].op and new[heir].op.startswith("_"):  # the runtime's
            return heir
    return None


def heirs(
    old: Mapping[str, Node],
    new: Mapping[str, Node],
    users: Mapping[str, Sequence[tuple[str, int]]],
) -> dict[str, str]:
    """For each removed node that somebody needed: the node that stands in for it after the pass.

    It is found at a user of its own, or else is that of the nearest user that is gone as well.
    """
    heir_of = {}
    for name in old:
        if name not in new and (heir := heir_at_users(name, old, new, users)):
            heir_of[name] = heir
    waiting = deque(heir_of)
    while waiting:
        user = waiting.popleft()
        for name in map(node_of, old[user].inputs):
            if name in old and name not in new and name not in heir_of:
                heir_of[name] = heir_of[user]
                waiting.append(name)
    return heir_of


def heir_at_users(
    name: str,
    old: Mapping[str, Node],
    new: Mapping[str, Node],
    users: Mapping[str, Sequence[tuple[str, int]]],
) -> str | None:
    for user, position in users.get(name, ()):
        if user not in new:
            continue
        if new[user].op != old[user].op:
            return user
        if position < len(new[user].inputs):
            heir = node_of(new[user].inputs[position])
            if heir in new and heir != node_of(old[user].inputs[position]):
                return heir
    return None


def fate_of(
    node: Node,
    heir: str | None,
    old: Mapping[str, Node],
    new: Mapping[str, Node],
    cluster: str | None,
) -> str:
    """What happened to a removed node, by who took it over and how that one changed."""
    if heir is None:
        return "removed"
    if heir == cluster:
        return "compiled"
    was, now = old.get(heir), new[heir]
    if now.op == "Const" and (was.op if was else node.op) != "Const":
        return "folded"  # its value went into a constant that was made here
    if was is None:  # into a node that was made here: a feed, a copy, or one that does more
        return "removed" if now.op in ("_Arg", node.op) else "fused"
    if was.op != now.op:
        return "fused"  # into a node that was rewritten to do the work of both
    if was.op == node.op and heir not in map(node_of, node.inputs):
        return "merged"  # with its twin
    return "removed"  # its users take the value from where it came
