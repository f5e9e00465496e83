"""Takeovers: which node does the work of a node that a pass removed, or left without users.

This is found in the graphs before and after the pass: where the node was used, another one now is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from tflab.analysis import bearing_out, ledger
from tflab.analysis.bearing_out import COMMUTATIVE, PASS_ON, Evidence, Heir, Indexed, Users
from tflab.analysis.ledger import Graph
from tflab.records.graph import Node, node_of, output_name
from tflab.records.placed import Takeover

ARGUMENT = re.compile(r"Func/(.+)/input/_(\d+)")  # of a call that was expanded
COMPOSED, COMPOSITION = "_UnaryOpsComposition", "/unary_ops_composition"  # op, end of the name
NOTHING: Mapping[str, str] = {}


def takeovers(before: Indexed, after: Indexed, clusters: Mapping[str, str]) -> Iterator[Takeover]:
    """For each node that a pass removed or left without work, what happened to it.

    The heir of a removed node is found at its users: a user was rewritten and now also does its
    work, or it takes another tensor instead.
    """
    old, new = before.nodes, after.nodes
    users = before.users if any(name not in new for name in old) else {}
    runners = {
        node.name.partition("/")[0].rpartition("_")[0]: node.name  # `cluster_0_1/xla_run`
        for node in new.values()
        if node.op == "_XlaRun" and node.name not in old
    }
    handed = handed_over(old, new)
    taking_over = heirs(old, new, users, handed)
    shared = bearing_out.shared_heirs(taking_over, old)
    evidence = Evidence(before, after)
    for name, node in old.items():
        if name not in new:
            cluster = clusters.get(name)
            runner = cluster if cluster in new else runners.get(name)
            heir = Heir(runner, False) if runner else taking_over.get(name)
            outputs = outputs_at_users(name, old, new, users, handed)
            cluster = cluster or runners.get(name)
            claim = claimed(node, heir, old, new, cluster, outputs, shared)
            yield claim if evidence.bears_out(claim) else gone(name)
        elif node is not new[name] and (
            fate := ledger.fate_of_remaining(node, new[name], absorber(node, old, new))
        ):
            claim = Takeover(name, *fate, has_value=fate[0] == "folded")
            yield claim if evidence.bears_out(claim) else gone(name)


def claimed(
    node: Node,
    heir: Heir | None,
    old: Graph,
    new: Graph,
    cluster: str | None,
    outputs: tuple[tuple[str, str], ...],
    shared: Collection[str],
) -> Takeover:
    """What the heir of a removed node suggests. `shared` are the heirs that the pass made to do
    the work of several nodes."""
    if heir is None:
        return Takeover(node.name, "removed", None, outputs)
    now = new[heir.node]
    does_more = heir.node in shared if heir.has_value else now.op != node.op
    fate = ledger.fate_by_heir(node, heir.node, old, new, cluster, does_more)
    if not heir.has_value and heir.node not in old and now.op == "Const":
        fate = "folded"  # the constant was computed from it
    replaced = fate == "removed" and (heir.is_moved or bearing_out.replaces(heir, node, old, new))
    return Takeover(node.name, fate, heir.node, outputs, heir.has_value, replaced)


def gone(name: str) -> Takeover:
    return Takeover(name, "removed", None)


def outputs_at_users(
    name: str, old: Graph, new: Graph, users: Users, handed: Mapping[str, str] = NOTHING
) -> tuple[tuple[str, str], ...]:
    """For a node with several outputs, each output with the tensor that a user takes instead. A
    user that takes more or fewer tensors than before is no evidence."""
    if len(old[name].outputs) == 1:
        return ()
    if name in new and new[name].op == "IdentityN":  # an output of an expanded loop
        return tuple((output_name(name, slot), now) for slot, now in enumerate(new[name].inputs))
    replaced: dict[str, str] = {}
    for user, position in users.get(name, ()):
        alike = user in new and new[user].op == old[user].op
        if alike and len(new[user].inputs) == len(old[user].inputs):
            before, now = old[user].inputs[position], new[user].inputs[position]
            if now != before and node_of(now) in new:
                replaced.setdefault(before, now)
        elif (tensor := old[user].inputs[position]) in handed:
            replaced.setdefault(tensor, handed[tensor])
    return tuple(replaced.items()) if len({*replaced, name}) > 1 else ()


def absorber(node: Node, old: Graph, new: Graph) -> str | None:
    """The input that now also does this node's work; the node remains and passes it on.

    The remapper fuses batch norm and ReLU in this way in training, where batch norm has other
    users.
    """
    after = new[node.name]
    if after.op == "Identity" != node.op and after.inputs:
        heir = node_of(after.inputs[0])
        kept = heir in old and heir in new and heir in map(node_of, node.inputs)
        if kept and new[heir].op != old[heir].op and new[heir].op.startswith("_"):  # the runtime's
            return heir
    return None


def heirs(
    old: Graph,
    new: Graph,
    users: Users,
    handed: Mapping[str, str],
) -> dict[str, Heir]:
    """For each removed node that was needed, the node that took over from it.

    It is found at a user of the node, or in the body of a call that was expanded and took the
    node, or at the nearest user that was also removed.
    """
    heir_of = {
        node_of(tensor): Heir(node_of(handed[tensor]), True)
        for tensor in sorted(handed, reverse=True)
    }
    for name in old:
        if name not in new and (heir := heir_at_users(name, old, new, users)):
            heir_of[name] = heir
    for name in (name for name in users if name not in new and name not in heir_of):
        if name in old and (only := left_over(old[name], users[name], heir_of, old, new)):
            heir_of[name] = Heir(only, True)
    waiting = deque(heir_of)
    while waiting:
        user = waiting.popleft()
        for position, name in enumerate(map(node_of, old[user].inputs)):
            if name in old and name not in new and name not in heir_of:
                heir_of[name] = heir_beyond(old[user], position, heir_of[user], old, new)
                waiting.append(name)
    return {name: settled(old[name], heir, old, new) for name, heir in heir_of.items()}


def heir_beyond(user: Node, position: int, heir: Heir, old: Graph, new: Graph) -> Heir:
    """The heir of an input of a node that has one.

    If the node was merged with an equal one, it is the input of that. The heir of a node that
    changes nothing also has the value of its input. Otherwise the input went into the heir.
    """
    twin = heir.node
    if heir.has_value and twin in old and new[twin].op == user.op:
        taken = node_of(user.inputs[position])
        equal = input_instead(position, user, new[twin])
        if equal in old and equal in new and new[equal].op == old[taken].op:
            return Heir(equal, True)
    return Heir(heir.node, heir.has_value and user.op in PASS_ON)


def handed_over(old: Graph, new: Graph) -> dict[str, str]:
    """Each tensor that a call took which is now expanded, with the one that its body takes."""
    taken: dict[str, list[tuple[int, str]]] = {}
    for node in new.values():
        argument = ARGUMENT.fullmatch(node.name)
        if argument and argument[1] in old and argument[1] not in new and node.inputs:
            taken.setdefault(argument[1], []).append((int(argument[2]), node.inputs[0]))
    return {
        before: now
        for call, tensors in taken.items()
        if len(tensors) == len(old[call].inputs)
        for before, (_, now) in zip(old[call].inputs, sorted(tensors), strict=True)
        if before != now and node_of(before) not in new
    }


def heir_at_users(name: str, old: Graph, new: Graph, users: Users) -> Heir | None:
    for user, position in users.get(name, ()):
        if user not in new:
            continue
        heir = input_instead(position, old[user], new[user])
        if new[user].op != old[user].op:
            is_factor = heir in new and heir not in old and new[heir].op == "Const"
            known = is_factor and all(old[one].op == "Const" for one in makers(old[name], old))
            return Heir(heir if heir and known else user, False)
        if heir in new and heir != node_of(old[user].inputs[position]):
            return Heir(heir, True)
    return None


def left_over(
    node: Node,
    users: Sequence[tuple[str, int]],
    heir_of: Mapping[str, Heir],
    old: Graph,
    new: Graph,
) -> str | None:
    """The heir of a node at a sum or product whose inputs a pass exchanged: the only one that is
    not the heir of another input, or that the node passed on, or that has its type."""
    for user in (user for user, _ in users if user in new and new[user].op == old[user].op):
        before = [*map(node_of, old[user].inputs)]
        others = {heir_of[name].node for name in before if name in heir_of}
        left = {*map(node_of, new[user].inputs)} - others - {*before}
        alike = [name for name in left if name in new and new[name].op == node.op]
        passed = [name for name in passed_on(node, old) if name in left][:1]
        for choice in ([*left], passed, alike):
            if len(choice) == 1 and choice[0] in new:
                return choice[0]
    return None


def makers(node: Node, graph: Graph) -> Iterator[str]:
    """The nodes that a node takes from; the node itself if it takes nothing."""
    yield from (name for name in map(node_of, node.inputs or (node.name,)) if name in graph)


def settled(node: Node, heir: Heir, old: Graph, new: Graph) -> Heir:
    """The heir of a node; if the pass made another node of this one and named it after it, that.

    The arithmetic optimiser moves a cast before a reshape, or before several. Then the users of
    the cast take the reshape, and the cast is a new node, which it calls
    `ArithmeticOptimizer/ReorderCastLikeAndValuePreserving_float_cast`.
    """
    scope, _, last = node.name.rpartition("/")
    visited: set[str] = set()
    waiting = deque([] if node.op in PASS_ON else [heir.node])
    while waiting:
        name = waiting.popleft()
        if name in visited or name in old or name not in new:
            continue
        visited.add(name)
        if new[name].op == node.op and name.startswith(scope) and name.endswith(f"_{last}"):
            return heir if heir == Heir(name, True) else Heir(name, False, is_moved=True)
        waiting.extend(map(node_of, new[name].inputs))
    return heir


def passed_on(node: Node, graph: Graph) -> Iterator[str]:
    """The inputs of a node, and what these pass on."""
    visited: set[str] = set()
    waiting = [*map(node_of, node.inputs)]
    while waiting:
        name = waiting.pop()
        if name not in visited:
            visited.add(name)
            yield name
            if name in graph and graph[name].op in PASS_ON:
                waiting.extend(map(node_of, graph[name].inputs))


def input_instead(position: int, before: Node, now: Node) -> str:
    """The node that a user takes from instead of one of its inputs; "" if that is unclear. A pass
    may have exchanged the inputs of a sum or product; then it is the one that is new among them."""
    if position >= len(now.inputs):
        return ""
    current = now.inputs[position]
    added = [tensor for tensor in now.inputs if tensor not in before.inputs]
    if before.op in COMMUTATIVE:
        if len(added) > 1:
            return ""
        if current != before.inputs[position] and added:
            current = added[0]
    return node_of(current)


def reliefs(before: Indexed, after: Indexed) -> Iterator[Takeover]:
    """For each node that remains after a pass, but whose users all take another one: that other
    node.

    The arithmetic optimiser replaces nodes in this way: it adds a new node and redirects the users.
    The old one remains until a later pass finds that it is not needed. Nodes that only such nodes
    use have lost their work as well.
    """
    old, new, users, now = before.nodes, after.nodes, before.users, after.users
    composed = compositions(old, new)
    heir_of = {
        name: heir
        for name in users
        if name in old and name in new and name not in now
        if (heir := replaced_by(name, composed, old, new, users))
    }
    waiting = deque(heir_of)
    while waiting:
        user = waiting.popleft()
        for position, name in enumerate(map(node_of, old[user].inputs)):
            computes = name in old and name in new and bool(old[name].inputs)
            if computes and name not in heir_of and idle(name, heir_of, now):
                heir_of[name] = heir_beyond(old[user], position, heir_of[user], old, new)
                waiting.append(name)
    evidence = Evidence(before, after)
    heir_of = {name: settled(old[name], heir, old, new) for name, heir in heir_of.items()}
    shared = bearing_out.shared_heirs(heir_of, old)
    for name in filter(heir_of.__contains__, old):
        outputs = outputs_at_users(name, old, new, users)
        claim = claimed(old[name], heir_of[name], old, new, None, outputs, shared)
        if evidence.bears_out(claim):
            yield claim


def compositions(old: Graph, new: Graph) -> dict[str, str]:
    """The last op of each chain of which the arithmetic optimiser made one node, with that node.

    The node is named after it, and takes what the first op takes. The users may have changed in the
    same pass, and then do not show who took over (`UnaryOpsComposition` in
    tensorflow/core/grappler/optimizers/arithmetic_optimizer.cc).
    """
    made = (node for name, node in new.items() if name not in old and node.op == COMPOSED)
    last = {node.name.removesuffix(COMPOSITION): node for node in made if node.inputs}
    return {
        name: node.name
        for name, node in last.items()
        if is_chain(name, node_of(node.inputs[0]), old)
    }


def is_chain(last: str, start: str, graph: Graph) -> bool:
    """Whether ops of one input each lead from the output of a node to another node."""
    visited: set[str] = set()
    while last in graph and last not in visited and len(graph[last].inputs) == 1:
        visited.add(last)
        last = node_of(graph[last].inputs[0])
        if last == start:
            return True
    return False


def replaced_by(
    name: str, composed: Mapping[str, str], old: Graph, new: Graph, users: Users
) -> Heir | None:
    """The node that a user takes instead of this one, and did not take before."""
    if name in composed:
        return Heir(composed[name], True)
    for user, position in users[name]:
        if user in new and len(new[user].inputs) == len(old[user].inputs):
            heir = node_of(new[user].inputs[position])
            if heir in new and heir not in map(node_of, old[user].inputs):
                return Heir(heir, new[user].op == old[user].op)
    return None


def idle(name: str, relieved: Collection[str], users: Users) -> bool:
    """Whether all users of a node have lost their work."""
    return all(user in relieved for user, _ in users.get(name, ()))
