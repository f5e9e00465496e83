"""Bearing out: whether the graphs before and after a pass agree with what was found at the users.

Passes use names again: where constant folding reorders products, the node that held one of them
becomes a constant factor. So a value that only a step can know is in no constant, and a constant is
in no node that depends on the step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from tflab.analysis.ledger import Graph, is_inside
from tflab.records.graph import Node, node_of, reach
from tflab.records.placed import Takeover

# node -> the nodes that take it, and the index of that input
Users = Mapping[str, Sequence[tuple[str, int]]]
# Ops that change nothing; the second passes its input on if it is not fed
PASS_ON = ("Identity", "PlaceholderWithDefault", "StopGradient", "PreventGradient", "Snapshot")
FEEDS = ("_Arg", "_Recv")  # what a placeholder becomes
# Ops whose inputs a pass may exchange (`is_commutative` in their registrations)
COMMUTATIVE = (
    *("AccumulateNV2", "Add", "AddN", "AddV2", "ApproximateEqual", "BitwiseAnd", "BitwiseOr"),
    *("BitwiseXor", "Equal", "LogicalAnd", "LogicalOr", "Mul", "NotEqual", "SquaredDifference"),
)
# The values of these may be known before the step although their inputs are not
SHAPES = ("Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "TensorArraySizeV3")
RANDOM = re.compile("Random|TruncatedNormal|Multinomial|Parameterized|Stateful|Stateless")
CALLS = re.compile("(Stateless)?(If|While|Case)$|(Stateful)?PartitionedCall|__|cluster_")


@dataclass(frozen=True)
class Indexed:
    """A graph by name. The users of its nodes are found once for all passes before and after."""

    nodes: Graph

    @cached_property
    def users(self) -> Users:
        return users_of(self.nodes)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The nodes whose values a step determines: feeds, variables, random numbers."""
        nodes = self.nodes
        return tuple(
            name
            for name, node in nodes.items()
            if (not node.inputs and node.op != "Const")
            or may_vary(node.op)
            or any(tensor not in nodes and node_of(tensor) not in nodes for tensor in node.inputs)
        )

    @cached_property
    def edges(self) -> Mapping[str, Sequence[str]]:
        return {name: [user for user, _ in users] for name, users in self.users.items()}

    @cached_property
    def varying(self) -> set[str]:
        """The nodes that depend on the step by data."""
        return reach(self.sources, self.edges)


@cache
def may_vary(op: str) -> bool:
    """Whether results of an op may vary although its inputs do not."""
    return bool(RANDOM.match(op) or CALLS.match(op))


def users_of(graph: Graph) -> Users:
    users: dict[str, list[tuple[str, int]]] = {}
    for node in graph.values():
        for position, tensor in enumerate(node.inputs):
            maker = node_of(tensor) if ":" in tensor else tensor
            users.setdefault(maker, []).append((node.name, position))
    return users


def indexed(nodes: Iterable[Node]) -> Indexed:
    return Indexed({node.name: node for node in nodes})


@dataclass(frozen=True)
class Evidence:
    """The graphs before and after a pass."""

    before: Indexed
    after: Indexed

    @cached_property
    def unforeseeable(self) -> set[str]:
        """The nodes whose values the pass cannot know. It may know shapes; and where it knows a
        product with zero, the constant still waits for what the product took."""
        old, new = self.before.nodes, self.after.nodes
        known = {
            name
            for name, node in old.items()
            if node.op in SHAPES
            or (
                name in new
                and new[name].op == "Const" != node.op
                and {*new[name].control_inputs} & {*map(node_of, node.inputs)} & self.before.varying
            )
        }
        return reach(self.before.sources, self.before.edges, known)

    def bears_out(self, claim: Takeover) -> bool:
        """Whether the pass can have done this."""
        name, into = claim.name, claim.into
        if into is None or claim.fate == "compiled":
            return True
        if claim.fate == "fused":
            return name in self.before.varying
        if claim.fate == "folded":
            return name not in self.unforeseeable
        if not (claim.has_value or claim.replaced):
            return False
        node = self.before.nodes[name]
        if into in self.after.varying:
            return node.op != "Const"
        # Of a call, one output may be known before the step and another one not
        return name not in self.unforeseeable or CALLS.match(node.op) is not None


@dataclass(frozen=True)
class Heir:
    """The node that took over from another one."""

    node: str
    has_value: bool  # whether its output replaces that of the other; otherwise it does more
    is_moved: bool = False  # whether it does the same work at another place in the graph


def replaces(heir: Heir, node: Node, old: Graph, new: Graph) -> bool:
    """Whether the pass made the heir to do the work of the node. If the heir takes from other new
    nodes, these may do it."""
    now = new[heir.node]
    makers_of_inputs = (new[name] for name in map(node_of, now.inputs) if name in new)
    return (
        heir.has_value
        and heir.node not in old
        and node.op not in PASS_ON
        and now.op not in (*PASS_ON, *FEEDS)
        and not is_inside(now, node)
        and all(maker.name in old or maker.op == "Const" for maker in makers_of_inputs)
    )


def shared_heirs(heir_of: Mapping[str, Heir], old: Graph) -> set[str]:
    """The heirs that do the work of more than one node."""
    counts = Counter(
        heir.node
        for name, heir in heir_of.items()
        if heir.node not in old and old[name].inputs and old[name].op not in PASS_ON
    )
    return {name for name, count in counts.items() if count > 1}
