"""Node history: one node, from the line that made it to the time that it took.

Each stage knows its own graph; a history combines what they say about one name, and about its
carrier if the node was fused into another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tflab.analysis.gradient_graph import gradient_name
from tflab.errors import UsageError, did_you_mean
from tflab.exporters import text
from tflab.follow import view
from tflab.follow.view import PREPOSITIONS
from tflab.records.graph import (
    GradientNode,
    Node,
    graph_def_name,
    grouped,
    makers,
    node_of,
    turned_around,
)
from tflab.records.measured import OpStats
from tflab.records.placed import Fate, Pass
from tflab.records.stages import (
    Backward,
    Execution,
    NodeHistory,
    Placement,
    Stage,
    Touch,
    find_stage,
)
from tflab.records.values import Value
from tflab.units import short_device
from tflab.views.values import elements
from tflab.views.words import counted

Histories = dict[str, NodeHistory]
Graph = Mapping[str, Node]
Users = Mapping[str, Sequence[str]]
text.show_as(NodeHistory, view.blocks)


def histories(
    stages: Sequence[Stage], tables: Mapping[int, Sequence[OpStats]] | None = None
) -> Histories:
    """Return the history of every node of a walk: the user's in their order, then the runtime's.
    `tables` hold the rows by node of its step, by batch size."""
    backward, ran = find_stage(stages, Backward), find_stage(stages, Execution)
    by_name = from_program(stages[0], backward)
    if placement := find_stage(stages, Placement):
        by_name = with_placement(by_name, placement)
    by_name = with_times(by_name, ran, tables or {})
    meanings = backward.gradient_nodes if backward else ()
    return with_values(by_name, meanings, ran.values if ran else ())


def find(name: str, among: Mapping[str, NodeHistory], whose: str = "the program") -> NodeHistory:
    """Return the history of one node. Raises UsageError with the nearest names if none has it."""
    if node_of(name) in among:
        return among[node_of(name)]
    hint = did_you_mean(name, list(among), 5)
    raise UsageError(f"There is no node '{name}' in the graph of {whose}.{hint}")


def from_program(frontend: Stage, backward: Backward | None) -> Histories:
    """Return what the program knows about its nodes: lines, tensors, gradients."""
    users = turned_around(makers(frontend.nodes))
    by_name = {node.name: blank(node, "forward", users) for node in frontend.nodes}
    if backward is None:
        return by_name
    users, updates = turned_around(makers(backward.nodes)), {*backward.update_nodes}
    for node in backward.nodes:
        kind = "update" if node.name in updates else "gradient"
        by_name.setdefault(node.name, blank(node, kind, users))
    gradients = {gradient.forward: gradient for gradient in backward.gradients}
    derived = {name: one.forward for one in backward.gradients for name in one.nodes}
    ways = {stop.variable: stop.path for stop in reversed(backward.gradient_stops)}
    for name, history in by_name.items():
        gradient = gradients.get(name)
        known = {*history.consumers, *(gradient.nodes if gradient else ())}
        by_name[name] = replace(
            history,
            later_consumers=tuple(user for user in users.get(name, ()) if user not in known),
            gradient_function=gradient.function if gradient else None,
            gradient_nodes=gradient.nodes if gradient else (),
            no_gradient=gradient.reason if gradient else None,
            gradient_path=ways.get(name, ()),
            derived_from=derived.get(name),
        )
    return by_name


def with_placement(by_name: Histories, placement: Placement) -> Histories:
    """Add what the runtime did to the user's nodes, and the runtime's own nodes."""
    executed = {node.name: node for node in placement.nodes}
    defined = {node.name: node for step in placement.passes for node in step.definitions}
    users = turned_around(makers(placement.nodes))
    origins = {origin.name: origin for origin in placement.origins}
    fates = {fate.name: fate for fate in placement.ledger}
    not_run = set(placement.not_run)
    carried = extra_work(fate for fate in placement.ledger if fate.into in executed)
    touched = grouped(
        (name, Touch(step.name, place, what, about))
        for place, step in enumerate(placement.passes)
        for name, what, about in changes(step)
    )
    kernels = {kernel.name: kernel for kernel in placement.kernels}
    generated = (kernel for one in placement.generated for kernel in one.kernels)
    code = grouped((name, kernel) for kernel in generated for name in kernel.nodes)
    added = {
        name: replace(blank(node, "runtime", users), origin=origins.get(name))
        for name, node in (defined | executed).items()
        if name not in by_name
    }
    placed = {}
    for name, history in (by_name | added).items():
        carrier = carrier_of(history, fates.get(name), executed)
        at = carrier or ""
        placed[name] = replace(
            history,
            fate=fates.get(name),
            touches=tuple(touched.get(name, ())),
            carrier=carrier,
            not_run=at in not_run,
            carries=tuple(carried.get(name, ())),
            ran_as=executed[at].op if carrier else None,
            ran_outputs=executed[at].outputs if carrier else (),
            kernel=kernels.get(at),
            code=tuple(dict.fromkeys(one for owner in (name, at) for one in code.get(owner, ()))),
        )
    return placed


def with_times(
    by_name: Histories, execution: Execution | None, tables: Mapping[int, Sequence[OpStats]]
) -> Histories:
    """Add to each node the times of its carrier, whether that ran, and the load of the machine."""
    known = {size: {row.key: row for row in rows} for size, rows in tables.items()}
    timed = {key for rows in known.values() for key in rows}
    timed |= {row.key for row in execution.top_ops} if execution else set()
    return {
        name: replace(
            history,
            not_run=False if at in timed else history.not_run,
            times={size: rows[at] for size, rows in known.items() if at in rows},
            load=execution.load if execution else None,
        )
        if (at := history.carrier) is not None
        else history
        for name, history in by_name.items()
    }


def blank(node: Node, kind: str, users: Users) -> NodeHistory:
    """Return a history that has only the node itself and the nodes that use it."""
    return NodeHistory(
        name=node.name,
        op=node.op,
        kind=kind,
        source=node.source,
        inputs=node.inputs,
        control_inputs=node.control_inputs,
        outputs=node.outputs,
        consumers=tuple(users.get(node.name, ())),
    )


def carrier_of(history: NodeHistory, fate: Fate | None, executed: Mapping[str, Node]) -> str | None:
    """Return the executed node that does a node's work, for all its outputs; None without one."""
    if history.name in executed:
        return history.name
    several = len(history.outputs) > 1 and fate is not None and fate.fate == "removed"
    return fate.into if fate and fate.into in executed and not several else None


def extra_work(ledger: Iterable[Fate]) -> dict[str, list[str]]:
    """Return, for each executed node, the user's nodes whose work it does besides its own."""
    return grouped(
        (fate.into, fate.name)
        for fate in ledger
        # Without a value, a constant was computed from it
        if fate.into and fate.into != fate.name and (fate.fate != "folded" or fate.has_value)
    )


def changes(step: Pass) -> Iterator[tuple[str, str, str]]:
    """Yield (node, what the pass did to it, the other node or the change of its type)."""
    for name in step.added:
        yield name, "added", ""
    gone = {*step.removed}
    for taken in step.taken:
        into = taken.into if taken.into != taken.name else None
        reused = taken.into is None and taken.name not in gone
        what = "reused" if reused else "replaced" if taken.replaced else taken.fate
        stays = what == "removed" and into and taken.name not in gone
        yield taken.name, "bypassed" if stays else what, into or ""
    for rewrite in step.rewritten:
        yield rewrite.name, "rewritten", f"{rewrite.old} to {rewrite.new}"


def with_values(
    histories: Mapping[str, NodeHistory],
    gradient_nodes: Sequence[GradientNode],
    values: Iterable[Value],
) -> dict[str, NodeHistory]:
    """Return the histories with the purposes of gradient nodes and with the program's values."""
    meanings = {node.name: node for node in gradient_nodes}
    every = tuple(values)
    by_tensor = {graph_def_name(value.tensor): value for value in every}
    outputs = grouped((value.node, value) for value in every)
    complete = (node for node in gradient_nodes if node.complete and node.used)
    computing = grouped((node.towards, node.name) for node in complete if node.towards)

    def gradient(name: str) -> Value | None:
        """Return the value of the last node that computes a gradient as large as the tensor."""
        own = outputs.get(name)
        for node in reversed(computing.get(gradient_name(name), ())):
            made = outputs.get(node, ())
            if len(made) == 1 and (not own or elements(made[0].shape) == elements(own[0].shape)):
                return made[0]
        return None

    return {
        name: replace(
            history,
            meaning=meanings.get(name),
            values=tuple(outputs.get(name, ())),
            taken=tuple(by_tensor[tensor] for tensor in history.inputs if tensor in by_tensor),
            gradient=gradient(name),
        )
        for name, history in histories.items()
    }


# Unlike its neighbours
#
# A node that a pass left as it was is compared with one of its type that the pass changed, in the
# graph before that pass. A pass may have other reasons than these differences.

# The number of a name, which may be missing: `dense_1` is like `dense`
NUMBER = re.compile(r"(?<=[A-Za-z/])[_.-]?\d+|^\d+(?=/|$)")


def unlike_peers(placement: Placement, name: str) -> Iterator[str]:
    """Yield how a node differs from similar ones of its type that were fused, merged or folded."""
    written = {node.name: node for node in placement.user_nodes}
    if not any(fate.name == name and fate.fate == "executed" for fate in placement.ledger):
        return
    users, node = turned_around(makers(written.values())), written[name]

    def neighbours(node: Node) -> set[str]:
        return {*map(node_of, node.inputs), *users.get(node.name, ())}

    does_work = any(f.into == name and f.is_work_of_replacement for f in placement.ledger)
    for kind in ("fused", "merged", "folded"):
        fates = (f for f in placement.ledger if f.fate == kind and f.into)
        pairs = ((peer, f) for f in fates for peer in (f.name, f.into)[: 1 + (kind == "fused")])
        for peer, fate in pairs:
            one = written.get(peer or "")
            if one is None or one is node or one.op != node.op or (does_work and peer == fate.into):
                continue
            alike = NUMBER.sub("", one.name) == NUMBER.sub("", name)
            near = alike or neighbours(node) & neighbours(one)
            if near and (sentence := compared(placement, name, one.name, fate)):
                yield sentence
                break


def compared(placement: Placement, name: str, peer: str, fate: Fate) -> str:
    """Return how a node differs from a peer just before the pass that gave the peer this fate."""
    graph = {node.name: node for node in placement.user_nodes}
    for step in placement.passes:
        taken = next((one for one in step.taken if one.name == fate.name), None)
        if taken and taken.fate == fate.fate and taken.into and name in graph and peer in graph:
            into, pair = taken.into, (graph[name], graph[peer])
            differences = {
                "fused": of_fused(placement, graph, *pair, into),
                "merged": of_merged(graph, *pair, into),
                "folded": of_folded(placement, graph, *pair),
            }[fate.fate]
            which = "" if into == fate.name else f" {PREPOSITIONS[fate.fate]} {into}"
            how = f"{fate.name} was {fate.fate}{which} by {step.name}"
            return "; ".join([how, *shown]) if (shown := [*differences]) else ""
        graph = {one: node for one, node in graph.items() if one not in {*step.removed}}
        graph |= {node.name: node for node in step.definitions}
    return ""


def of_fused(
    placement: Placement, graph: Graph, node: Node, peer: Node, into: str
) -> Iterator[str]:
    """Yield how a node differs from a peer that became part of a kernel, along their chains."""
    users = turned_around(makers(graph.values()))
    fetched = {node_of(fetch) for fetch in placement.fetches}
    group = {fate.name for fate in placement.ledger if fate.fate == "fused" and fate.into == into}
    left = {*group, into} - {peer.name}
    waiting = [(node, peer)]
    while waiting:
        mine, its = waiting.pop(0)
        kinds = [("is on", short_device(mine.device), short_device(its.device))]
        for tensor, other in zip(mine.inputs, its.inputs, strict=False):
            if (maker := node_of(other)) in left and node_of(tensor) in graph:
                left.discard(maker)
                taken = graph[node_of(tensor)], graph[maker]
                kinds.append(("takes from", taken[0].op, taken[1].op))
                waiting += [taken] if taken[0].op == taken[1].op else []
        if its.name != into:  # who uses the result of the kernel does not matter
            taking, others = ([graph[u] for u in users.get(n.name, ())] for n in (mine, its))
            ops = [counted(sorted(user.op for user in each)) for each in (taking, others)]
            kinds.append(("is used by", ops[0] or "nothing", ops[1] or "nothing"))
            if (mine.name in fetched) != (its.name in fetched):
                yield f"{mine.name if mine.name in fetched else its.name} is fetched"
            for user in others:
                same = [one for one in taking if one.op == user.op]
                if user.name in left and len(same) == 1:
                    left.discard(user.name)
                    waiting.append((same[0], user))
        for what, own, other in kinds:
            if own != other:
                yield f"{mine.name} {what} {own}, {its.name} {what} {other}"


def of_merged(graph: Graph, node: Node, peer: Node, into: str) -> Iterator[str]:
    equal = [one for one in graph.values() if (one.op, one.inputs) == (node.op, node.inputs)]
    same = into in graph and peer.inputs == graph[into].inputs
    if node.inputs and same and equal == [node]:
        yield f"both have the same inputs, and no other {node.op} has those of {node.name}"


def of_folded(placement: Placement, graph: Graph, node: Node, peer: Node) -> Iterator[str]:
    constant = {fate.name for fate in placement.ledger if fate.fate == "folded"}
    constant |= {one.name for one in graph.values() if one.op == "Const"}
    own, its = ([graph.get(node_of(name)) for name in one.inputs] for one in (node, peer))
    others = [f"{one.name} ({one.op})" for one in own if one and one.name not in constant]
    if its and others and all(one is None or one.name in constant for one in its):
        yield f"all its inputs are constant, and {node.name} takes {', '.join(others)}"
