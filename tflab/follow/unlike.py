"""Unlike: what differs between a node that no pass fused, merged or folded, and one of its kind
that a pass did.

Both are compared in the graph before that pass. These are differences that the pass log shows, not
the reasons of the pass, which may look at more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tflab.records.graph import Node, makers, node_of, turned_around
from tflab.records.placed import Fate
from tflab.records.stages import Placement
from tflab.units import short_device
from tflab.views.words import counted

Graph = Mapping[str, Node]
Users = Mapping[str, Sequence[str]]
# The number of a name, which may be missing: `dense_1` is like `dense`
NUMBER = re.compile(r"(?<=[A-Za-z/])[_.-]?\d+|^\d+(?=/|$)")
INTO = {"fused": "into", "merged": "with", "folded": "into"}


def sentences(placement: Placement, name: str) -> Iterator[str]:
    """Yield what differs from a node of the same type that was fused, merged or folded: one with a
    like name, or with a common input or user. Nothing is yielded for a node that did not run."""
    written = {node.name: node for node in placement.user_nodes}
    if not any(fate.name == name and fate.fate == "executed" for fate in placement.ledger):
        return
    users, node = users_of(written), written[name]
    does_work = any(f.into == name and f.is_work_of_replacement for f in placement.ledger)
    near = neighbours(node, users)
    for kind in INTO:
        fates = (f for f in placement.ledger if f.fate == kind and f.into)
        pairs = ((peer, f) for f in fates for peer in (f.name, f.into)[: 1 + (kind == "fused")])
        for peer, fate in pairs:
            one = written.get(peer or "")
            if one is None or one is node or one.op != node.op or (does_work and peer == fate.into):
                continue
            alike = NUMBER.sub("", one.name) == NUMBER.sub("", name)
            if not (alike or near & neighbours(one, users)):
                continue
            if sentence := compared(placement, name, one.name, fate):
                yield sentence
                break


def compared(placement: Placement, name: str, peer: str, fate: Fate) -> str:
    """Return what differs from a node with this fate in the graph before its pass; "" if nothing
    that is known does."""
    graph = {node.name: node for node in placement.user_nodes}
    for place, step in enumerate(placement.passes):
        taken = next((one for one in step.taken if one.name == fate.name), None)
        if taken and taken.fate == fate.fate and taken.into and name in graph and peer in graph:
            into = taken.into
            if fate.fate == "fused":
                differences = [*of_fused(placement, graph, name, peer, into)]
            elif fate.fate == "merged":
                differences = [*of_merged(graph, name, peer, into)]
            else:
                known = {one.name for one in placement.ledger if one.fate == "folded"}
                differences = [*of_folded(graph, name, peer, known)]
            which = "" if into == fate.name else f" {INTO[fate.fate]} {into}"
            how = f"{fate.name} was {fate.fate}{which} by {step.name} (pass {place + 1})"
            return f"{how}; {'; '.join(differences)}" if differences else ""
        graph = {one: node for one, node in graph.items() if one not in {*step.removed}}
        graph |= {node.name: node for node in step.definitions}
    return ""


def of_fused(placement: Placement, graph: Graph, name: str, peer: str, into: str) -> Iterator[str]:
    """Yield the differences along both chains of ops, one of which became one kernel."""
    users = users_of(graph)
    fetched = {node_of(fetch) for fetch in placement.fetches}
    group = {fate.name for fate in placement.ledger if fate.fate == "fused" and fate.into == into}
    left = {*group, into} - {peer}
    waiting = [(graph[name], graph[peer])]
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
                same = [node for node in taking if node.op == user.op]
                if user.name in left and len(same) == 1:
                    left.discard(user.name)
                    waiting.append((same[0], user))
        for what, own, other in kinds:
            if own != other:
                yield f"{mine.name} {what} {own}, {its.name} {what} {other}"


def of_merged(graph: Graph, name: str, peer: str, into: str) -> Iterator[str]:
    node = graph[name]
    equal = [one for one in graph.values() if (one.op, one.inputs) == (node.op, node.inputs)]
    same = into in graph and graph[peer].inputs == graph[into].inputs
    if node.inputs and same and equal == [node]:
        yield f"both have the same inputs, and no other {node.op} has those of {name}"


def of_folded(graph: Graph, name: str, peer: str, known: set[str]) -> Iterator[str]:
    def varying(node: Node) -> list[str]:
        makers = (graph.get(node_of(tensor)) for tensor in node.inputs)
        others = (one for one in makers if one and one.op != "Const" and one.name not in known)
        return [f"{one.name} ({one.op})" for one in others]

    if graph[peer].inputs and not varying(graph[peer]) and (others := varying(graph[name])):
        yield f"all its inputs are constant, and {name} takes {', '.join(others)}"


def users_of(graph: Graph) -> Users:
    return turned_around(makers(graph.values()))


def neighbours(node: Node, users: Users) -> set[str]:
    return {*map(node_of, node.inputs), *users.get(node.name, ())}
