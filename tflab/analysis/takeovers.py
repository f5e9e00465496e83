"""Takeovers: which node does the work of a node that a pass removed, or left without users.

This is found in the graphs before and after the pass: where the node was used, another one now is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tflab.analysis import ledger
from tflab.analysis.ledger import Graph
from tflab.records.graph import Node, node_of, output_name
from tflab.records.placed import Takeover

# node -> the nodes that take it, and the index of that input
Users = Mapping[str, Sequence[tuple[str, int]]]
ARGUMENT = re.compile(r"Func/(.+)/input/_(\d+)")  # of a call that was expanded
COMPOSED, COMPOSITION = "_UnaryOpsComposition", "/unary_ops_composition"  # op, end of the name
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Indexed:
    """A graph by name. The users of its nodes are found once for all passes before and after."""

    nodes: Graph

    @cached_property
    def users(self) -> Users:
        return users_of(self.nodes, None)


def users_of(graph: Graph, names: Collection[str] | None) -> Users:
    """The users of the nodes with these names, or of all."""
    users: dict[str, list[tuple[str, int]]] = {}
    for node in graph.values():
        for position, tensor in enumerate(node.inputs):
            maker = node_of(tensor) if ":" in tensor else tensor
            if names is None or maker in names:
                users.setdefault(maker, []).append((node.name, position))
    return users


def indexed(nodes: Iterable[Node]) -> Indexed:
    return Indexed({node.name: node for node in nodes})


def takeovers(before: Indexed, after: Indexed, clusters: Mapping[str, str]) -> Iterator[Takeover]:
    """For each node that a pass removed or left without work, what happened to it.

    The heir of a removed node is found at its users: a user was rewritten and now also does its
    work, or it takes another tensor instead.
    """
    old, new = before.nodes, after.nodes
    removed = {name for name in old if name not in new}
    users = users_of(old, removed) if removed else {}
    runners = {
        node.name.partition("/")[0].rpartition("_")[0]: node.name  # `cluster_0_1/xla_run`
        for node in new.values()
        if node.op == "_XlaRun" and node.name not in old
    }
    handed = handed_over(old, new)
    taking_over = heirs(old, new, users, handed)
    for name, node in old.items():
        if name not in new:
            cluster = clusters.get(name)
            heir = cluster if cluster in new else runners.get(name)
            heir = heir or taking_over.get(name)
            outputs = outputs_at_users(name, old, new, users, handed)
            cluster = cluster or runners.get(name)
            yield Takeover(name, *ledger.fate_of_removed(node, heir, old, new, cluster), outputs)
        elif node is not new[name] and (
            fate := ledger.fate_of_remaining(node, new[name], absorber(node, old, new))
        ):
            yield Takeover(name, *fate)


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
        if user in new and len(new[user].inputs) == len(old[user].inputs):
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
) -> dict[str, str]:
    """For each removed node that was needed, the node that replaces it after the pass.

    It is found at a user of the node, or in the body of a call that was expanded and took the
    node, or is the heir of the nearest user that was also removed.
    """
    heir_of = {node_of(tensor): node_of(handed[tensor]) for tensor in sorted(handed, reverse=True)}
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
    return {name: namesake(old[name], heir, old, new) or heir for name, heir in heir_of.items()}


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


def heir_at_users(
    name: str,
    old: Graph,
    new: Graph,
    users: Users,
) -> str | None:
    for user, position in users.get(name, ()):
        if user not in new:
            continue
        if new[user].op != old[user].op:
            return user
        tensor = input_instead(position, old[user].inputs, new[user].inputs)
        heir = node_of(tensor) if tensor else None
        if heir in new and heir != node_of(old[user].inputs[position]):
            return heir
    return None


def namesake(node: Node, heir: str, old: Graph, new: Graph) -> str | None:
    """The input of a new heir that the pass made of this node, and named after it.

    The arithmetic optimiser swaps a cast with a reshape. Then the users of the second take the
    first, which it calls `ArithmeticOptimizer/ReorderCastLikeAndValuePreserving_float_cast`.
    """
    if heir in old or new[heir].op == node.op:
        return None
    scope, _, last = node.name.rpartition("/")
    for name in map(node_of, new[heir].inputs):
        made = name in new and name not in old and new[name].op == node.op
        if made and name.startswith(scope) and name.endswith(f"_{last}"):
            return name
    return None


def input_instead(position: int, before: Sequence[str], now: Sequence[str]) -> str | None:
    """The tensor that a user takes instead of one of its inputs. A pass may have exchanged the
    inputs of a sum or product; then it is the one that the user did not take before."""
    if position >= len(now):
        return None
    current = now[position]
    if current == before[position] or now.count(current) > before.count(current):
        return current
    earlier = set(before)
    added = [tensor for tensor in now if tensor not in earlier]
    return added[0] if len(added) == 1 else current


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
        if (heir := composed.get(name) or switched_to(name, old, new, users))
    }
    waiting = deque(heir_of)
    while waiting:
        user = waiting.popleft()
        for name in map(node_of, old[user].inputs):
            computes = name in old and name in new and bool(old[name].inputs)
            if computes and name not in heir_of and idle(name, heir_of, now):
                heir_of[name] = heir_of[user]
                waiting.append(name)
    for name in filter(heir_of.__contains__, old):
        heir = namesake(old[name], heir_of[name], old, new) or heir_of[name]
        fate, successor = ledger.fate_of_removed(old[name], heir, old, new, None)
        if successor:
            yield Takeover(name, fate, successor, outputs_at_users(name, old, new, users))


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


def switched_to(name: str, old: Graph, new: Graph, users: Users) -> str | None:
    """The node that a user takes instead of this one, and did not take before."""
    for user, position in users[name]:
        if user in new and len(new[user].inputs) == len(old[user].inputs):
            heir = node_of(new[user].inputs[position])
            if heir in new and heir not in map(node_of, old[user].inputs):
                return heir
    return None


def idle(name: str, relieved: Mapping[str, str], users: Users) -> bool:
    """Whether all users of a node have lost their work."""
    return all(user in relieved for user, _ in users.get(name, ()))
