"""Ledger: every node of the user's graph has one fate, every executed node one origin.

The account closes: the executed nodes are the user's nodes with the fate `executed` and the nodes
with an origin, each once.

Fates: `executed` under its own name, perhaps with another type; `unreached`: the fetches do not
depend on it; `folded` into a constant; `merged` with an equal node; `fused` into a node that also
does the work of others; `compiled` into an XLA cluster; `removed`: its users take their value from
another node (perhaps one that a pass made to replace it), or no node needs it any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tflab.records.graph import Node, node_of
from tflab.records.placed import Fate, Origin, Pass, Takeover

INLINERS = ("function_optimizer", "LowerFunctionalOpsPass")  # passes that inline functions
INLINED_FROM = ", from "  # in an origin: between the pass and the call
FED = re.compile(r"_recv_.*_\d+")  # `_recv_images_0_S5` is the receiving end of a transfer
ROLES = {  # nodes that the runtime adds, by type
    "_Arg": "feed",
    "_Retval": "fetch",
    "_Send": "transfer",
    "_Recv": "transfer",
    "_HostSend": "transfer",
    "_HostRecv": "transfer",
}

Graph = Mapping[str, Node]  # by name


def fate_of_remaining(node: Node, after: Node, absorber: str | None) -> tuple[str, str] | None:
    """What happened to a node that is still there, and where its value or work is. `absorber` is
    the node that also does its work; None if there is neither an absorber nor a new value."""
    if after.op == "Const" != node.op:
        return "folded", node.name
    return ("fused", absorber) if absorber else None


def fate_by_heir(
    node: Node,
    heir: str,
    old: Graph,
    new: Graph,
    cluster: str | None,
    does_more: bool,
) -> str:
    """What happened to a node, judged by its heir and how that changed. `does_more`: a new heir
    also does the work of other nodes."""
    if heir == cluster:
        return "compiled"
    was, now = old.get(heir), new[heir]
    if now.op == "Const" and (was.op if was else node.op) != "Const":
        return "folded"  # its value is in a constant that this pass made
    # its value is in a node that this pass made: a feed, a replacement, or one that does more
    if was is None:
        return "fused" if does_more and now.op != "_Arg" and not is_inside(now, node) else "removed"
    if was.op != now.op:
        return "fused"  # its work is in a node that was rewritten to do both
    if was.op == node.op and heir not in map(node_of, node.inputs):
        return "merged"  # an equal node replaces it
    return "removed"  # its users take the value from its input


def is_inside(heir: Node, call: Node) -> bool:
    """Whether a node is part of an expanded loop, branch or call. Such a node passes on what the
    others computed, and does not do the work of the call. Of the runtime's own ops none does so:
    `Sqrt/unary_ops_composition` does the work of `Sqrt`."""
    inside = heir.name.removeprefix("Func/").startswith(f"{call.name}/")
    return inside and not heir.op.startswith("_")


def confirmed(passes: Sequence[Pass], relieved: Sequence[Sequence[Takeover]]) -> tuple[Pass, ...]:
    """The passes, each with the nodes that it left without work, if a later pass removed these as
    not needed. A fetched node stays."""
    completed = []
    unneeded: set[str] = set()  # nodes that wait for a pass that removes them without an heir
    for step, candidates in zip(reversed(passes), reversed(relieved), strict=True):
        lost = tuple(taken for taken in candidates if taken.name in unneeded)
        completed.append(replace(step, taken=(*step.taken, *lost)))
        unneeded = unneeded - {*step.added} - {taken.name for taken in step.taken}
        gone = set(step.removed)
        unneeded |= {taken.name for taken in step.taken if taken.name in gone and not taken.into}
    return tuple(reversed(completed))


def fates(
    user_nodes: Sequence[Node],
    passes: Sequence[Pass],
    executed: Sequence[Node],
    fetches: Iterable[str],
    feeds: Iterable[str],
) -> tuple[Fate, ...]:
    """One Fate for each node of the user's graph, in the order of the graph.

    The first of these decides: a pass folded the node, it is executed, no pass removed it and it
    is gone (`removed`), the fetches do not need it (`unreached`), a later pass compiled or fused
    its replacement, and then what the pass that removed it did.
    """
    running = {node.name for node in executed}
    removals, folded = removals_and_folds(passes)
    rewritten = {change.name: step.name for step in passes for change in step.rewritten}
    needed = nodes_needed(user_nodes, fetches, feeds)

    def fate(name: str) -> Fate:
        if name in folded and (name in running or name in removals):
            into, has_value = successor(name, removals, running)
            return Fate(name, "folded", folded[name], into, has_value=has_value)
        if name in running:
            return Fate(name, "executed", rewritten.get(name), None)
        if name not in removals:
            return Fate(name, "removed", None, None)
        by, taken = removals[name]
        if name not in needed:
            return Fate(name, "unreached", by, None)
        into, has_value = successor(name, removals, running)
        if later := later_fate(taken, removals):
            return Fate(name, *later, into, has_value=has_value)
        # There is no successor if the node that took over was itself removed as not needed.
        if into is None and taken.fate == "merged":
            into, has_value = last_successor(name, removals), True
        ends = ((own, holder(tensor, removals, running)) for own, tensor in taken.outputs)
        outputs = tuple((own, tensor) for own, tensor in ends if tensor)
        replaced = taken.replaced and into is not None
        return Fate(name, taken.fate, by, into, outputs, has_value, replaced)

    return tuple(fate(node.name) for node in user_nodes)


def removals_and_folds(
    passes: Sequence[Pass],
) -> tuple[dict[str, tuple[str, Takeover]], dict[str, str]]:
    """The pass that removed each node from the graph, and the pass that folded it in place.

    The first removal since the node last entered the graph counts. A fused node stays as an
    Identity, and the pass that removes that Identity says nothing about the node's work.
    """
    removals: dict[str, tuple[str, Takeover]] = {}
    folded: dict[str, str] = {}
    for step in passes:
        for name in step.added:
            removals.pop(name, None)
        for taken in step.taken:
            if taken.into == taken.name:
                folded[taken.name] = step.name
            else:
                removals.setdefault(taken.name, (step.name, taken))
    return removals, folded


def later_fate(
    taken: Takeover, removals: Mapping[str, tuple[str, Takeover]]
) -> tuple[str, str] | None:
    """What happened later to the work of a node that another one does, and the pass that did it.

    A kernel into which a pass had fused nodes does not run if it is then compiled. A node that
    replaced another one may itself be compiled, fused or folded.
    """
    fates = ("compiled", "fused", "folded") if taken.replaced else ("compiled",)
    if not (taken.replaced or taken.fate == "fused"):
        return None
    visited: set[str] = set()
    name = taken.into
    while name and name in removals and name not in visited:
        visited.add(name)
        by, later = removals[name]
        if later.fate in fates:
            following = later_fate(later, removals) if later.fate == "fused" else None
            return following or (later.fate, by)
        if later.fate == "removed" and not later.replaced:  # its own work was not needed any more
            fates = ("compiled",)
        name = later.into
    return None


WORK = ("fused", "compiled")  # fates of a node whose work another one does


def successor(
    name: str, removals: Mapping[str, tuple[str, Takeover]], running: set[str]
) -> tuple[str | None, bool]:
    """The executed node at the end of the chain of heirs, and whether it has the node's value.

    There is none if the value is lost on the way: a node that was bypassed is not the work of a
    node that the bypass was later fused into.
    """
    visited: set[str] = set()
    current: str | None = name
    has_value = True
    fate = ""  # of the node; that of a replaced one is what happens to its replacement
    while current is not None and current not in running:
        if current in visited or current not in removals:
            return None, True
        visited.add(current)
        taken = removals[current][1]
        if fate in ("", "replaced"):
            fate = "replaced" if taken.replaced else taken.fate
        if not (taken.has_value or taken.replaced or may_follow(fate, taken.fate)):
            return None, True
        has_value = has_value and taken.has_value
        current = taken.into
    return current, has_value


def may_follow(fate: str, later: str) -> bool:
    """Whether the heir of a node still stands for it where that goes into something larger."""
    if fate == "folded":
        return later == "folded"
    return later in WORK and fate != "removed"


def last_successor(name: str, removals: Mapping[str, tuple[str, Takeover]]) -> str | None:
    """The last node of the chain of heirs that has the node's value."""
    chain = [name]
    while chain[-1] in removals:
        taken = removals[chain[-1]][1]
        following = taken.into
        if following is None or not taken.has_value:
            break
        if following in chain:
            return None
        chain.append(following)
    return chain[-1] if len(chain) > 1 else None


def holder(
    tensor: str, removals: Mapping[str, tuple[str, Takeover]], running: set[str]
) -> str | None:
    """The tensor of an executed node at the end of the chain of heirs. The pass says which output
    replaces which."""
    visited: set[str] = set()
    while node_of(tensor) not in running:
        if tensor in visited or node_of(tensor) not in removals:
            return None
        visited.add(tensor)
        taken = removals[node_of(tensor)][1]
        following = dict(taken.outputs).get(tensor) if taken.outputs else taken.into
        if following is None or not (taken.outputs or taken.has_value):
            return None
        tensor = following
    return tensor


def nodes_needed(nodes: Sequence[Node], fetches: Iterable[str], feeds: Iterable[str]) -> set[str]:
    """All nodes that the fetches depend on. The node of a fed tensor is needed if the tensor is;
    its inputs are needed only for another of its outputs, or if the node itself has to run."""
    fed = {name.removesuffix(":0") for name in feeds}
    by_name = {node.name: node for node in nodes}
    # (tensor, or "" if the node only has to run; node)
    waiting = [(name.removesuffix(":0") if ":" in name else "", node_of(name)) for name in fetches]
    needed: set[str] = set()
    followed: set[str] = set()
    while waiting:
        tensor, name = waiting.pop()
        if name in followed or name not in by_name:
            continue
        needed.add(name)
        if tensor not in fed:
            followed.add(name)
            waiting.extend((tensor, node_of(tensor)) for tensor in by_name[name].inputs)
            waiting.extend(("", control) for control in by_name[name].control_inputs)
    return needed


def origins(
    ledger: Sequence[Fate], passes: Sequence[Pass], executed: Sequence[Node]
) -> Iterator[Origin]:
    """One Origin for each executed node that does not belong to the user."""
    executed_names = {fate.name for fate in ledger if fate.fate == "executed"}
    user_names = {fate.name for fate in ledger}
    maker = {name: step.name for step in passes for name in step.added}
    folder = {fate.name: fate.by for fate in ledger if fate.fate == "folded"}
    for node in executed:
        if node.name not in executed_names:
            by = role(node) or maker.get(node.name) or folder.get(node.name)
            call = function_call_of(node.name, user_names) if by in INLINERS else None
            yield Origin(node.name, f"{by}{INLINED_FROM}{call}" if call else by or "unknown")


def role(node: Node) -> str | None:
    """Why the runtime added a node. Over several tasks it feeds through a `_Recv` and fetches
    through a `_Send`, named like `_recv_images_0` (core/graph/subgraph.cc)."""
    if node.op == "_Recv" and FED.fullmatch(node.name):
        return "feed"
    if node.op == "_Send" and node.name.startswith("_send_"):
        return "fetch"
    return ROLES.get(node.op)


def function_call_of(name: str, user_names: set[str]) -> str | None:
    """The call of a function from which a node was inlined: its name is the prefix."""
    parts = name.removeprefix("Func/").split("/")
    prefixes = ("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    return next((prefix for prefix in prefixes if prefix in user_names), None)
