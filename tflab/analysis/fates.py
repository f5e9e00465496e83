"""Fates: every node of the user's graph has one fate, every executed node one origin.

The account closes: the executed nodes are the user's nodes with the fate `executed` and the nodes
with an origin, each once.

Fates: `executed` under its own name, perhaps with another type; `unreached`: the fetches do not
depend on it; `folded` into a constant; `merged` with an equal node; `fused` into a node that also
does the work of others; `compiled` into an XLA cluster; `removed`: its users take their value from
another node (perhaps one that a pass made to replace it), or no node needs it any more.

`Step` finds in the graphs before and after a pass which node replaces each one that the pass
removed or left without users, and checks it against both graphs. `fates` follows these replacements
to the nodes that ran. `not_taken` tells which of those a step did not run.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import ne

from tflab.records.graph import Node, grouped, node_of, nodes_needed, reach, turned_around
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

# Ops that change nothing; the second passes its input on if it is not fed
PASS_ON = ("Identity", "PlaceholderWithDefault", "StopGradient", "PreventGradient", "Snapshot")
FEEDS = ("_Arg", "_Recv")  # what a placeholder becomes
# Ops whose inputs a pass may exchange (`is_commutative` in their registrations)
COMMUTATIVE = (
    *("AccumulateNV2", "Add", "AddN", "AddV2", "ApproximateEqual", "BitwiseAnd", "BitwiseOr"),
    *("BitwiseXor", "Equal", "LogicalAnd", "LogicalOr", "Mul", "NotEqual", "SquaredDifference"),
)
# Ops that keep the elements of their first input; ops that do the work of no other node
KEEPING = (*PASS_ON, "ExpandDims", "Reshape", "Squeeze", "Transpose")
ALONE = (*KEEPING, "Add", "AddV2", "Cast", "Div", "Mul", "Neg", "RealDiv", "Square", "Sub")
# The values of these may be known before the step although their inputs are not
SHAPES = ("Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "TensorArraySizeV3")
RANDOM = re.compile("Random|TruncatedNormal|Multinomial|Parameterized|Stateful|Stateless")
CALLS = re.compile("(Stateless)?(If|While|Case)$|(Stateful)?PartitionedCall|__|cluster_")
VARYING = re.compile(f"{RANDOM.pattern}|{CALLS.pattern}")
COMPOSITION = "/unary_ops_composition"  # the end of the name of ops that became one node
WORK = ("fused", "compiled")  # fates of a node whose work another one does

# node -> the nodes that take it, and the index of that input
Users = Mapping[str, Sequence[tuple[str, int]]]
Removals = dict[str, list[tuple[int, str, Takeover]]]  # number and name of the pass, and how


def confirmed(passes: Sequence[Pass], relieved: Sequence[Sequence[Takeover]]) -> tuple[Pass, ...]:
    """Return the passes, each with the nodes that it left without work added to those that it took.
    A node counts only if a later pass removed it as not needed. A fetched node stays."""
    completed = []
    unneeded: set[str] = set()  # nodes that wait for a pass that removes them without a replacement
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
    """Return one Fate for each node of the user's graph, in the order of the graph. The first of
    these that applies decides: a pass folded the node; it was executed; it is gone, but no pass
    removed it (`removed`); the fetches do not need it (`unreached`). Otherwise the chain of its
    replacements decides."""
    running = {node.name for node in executed}
    # The pass that removed each node, and the pass that folded it in place. The first removal since
    # the node last entered the graph counts: a fused node stays as an Identity, and the pass that
    # removes that Identity says nothing about the node's work.
    removals: Removals = {}
    folded: dict[str, str] = {}
    for number, step in enumerate(passes):
        for name in step.added:
            removals.pop(name, None)
        for taken in step.taken:
            if taken.into == taken.name:
                folded[taken.name] = step.name
                continue
            lost = removals.get(taken.into or "", ())
            if any(at < number and not one.into for at, _, one in lost):  # it has another value
                taken = Takeover(taken.name, "removed", None)
            removals.setdefault(taken.name, []).append((number, step.name, taken))
    rewritten = {change.name: step.name for step in passes for change in step.rewritten}
    needed = nodes_needed(user_nodes, fetches, feeds)

    def fate(name: str) -> Fate:
        if name in folded and name in removals:
            end = followed(name, removals, running)
            into = end.into if end.into in running else None
            return Fate(name, "folded", folded[name], into, end.has_value)
        if name in running:
            if name in folded:
                return Fate(name, "folded", folded[name], name)
            return Fate(name, "executed", rewritten.get(name), None)
        if name not in removals:
            return Fate(name, "removed", None, None)
        if name not in needed:
            return Fate(name, "unreached", removals[name][0][1], None)
        return followed(name, removals, running)

    return tuple(fate(node.name) for node in user_nodes)


def followed(name: str, removals: Removals, running: Collection[str]) -> Fate:
    """Return the fate of a node that a pass removed, from the chain of its replacements. The chain
    leads to the executed node that does the work or has the value, because a replacement may itself
    be compiled, fused or folded. It ends where the value is lost: if a node was bypassed, and a
    later pass fused the bypass into a kernel, this kernel does not do the work of the node."""
    _, by, first = removals[name][0]
    fate, has_value = first.fate, True
    later: tuple[str, ...] = ("compiled",) if fate == "fused" else ()
    later = ("compiled", "fused", "folded") if first.replaced else later
    kind = "replaced"  # what happens to a replaced node is what happens to its replacement
    equal = first.into if fate == "merged" else None  # also if that is gone
    into: str | None = name
    at = -1  # the number of the pass from which on `into` does the work
    while into is not None:
        after = [removal for removal in removals.get(into, ()) if removal[0] > at]
        if not after:
            break
        at, step, taken = after[0]
        if taken is not first and taken.fate in later:
            fate, by = taken.fate, step
            later = ("compiled",) if fate == "fused" else ()
        elif later and taken.fate == "removed" and not taken.replaced:
            later = ("compiled",)  # its own work was not needed any more
        if kind == "replaced" and not taken.replaced:
            kind = taken.fate
        goes_on = taken.fate == "folded" if kind == "folded" else taken.fate in WORK
        if not (taken.has_value or taken.replaced or (goes_on and kind != "removed")):
            return Fate(name, fate, by, equal)
        has_value = has_value and taken.has_value
        into = taken.into
    if into is None:
        return Fate(name, fate, by, equal, has_value or equal is not None)
    if into not in running:
        return Fate(name, fate, by, equal)
    return Fate(name, fate, by, into, has_value, first.replaced and fate == first.fate)


def origins(
    ledger: Sequence[Fate], passes: Sequence[Pass], executed: Sequence[Node]
) -> Iterator[Origin]:
    """Yield one Origin for each executed node that does not belong to the user."""
    executed_names = {fate.name for fate in ledger if fate.fate == "executed"}
    user_names = {fate.name for fate in ledger}
    maker = {name: step.name for step in passes for name in step.added}
    folder = {fate.name: fate.by for fate in ledger if fate.fate == "folded"}
    for node in executed:
        if node.name not in executed_names:
            by = ROLES.get(node.op) or maker.get(node.name) or folder.get(node.name)
            # Over several tasks, the runtime feeds and fetches through these (subgraph.cc)
            if node.op == "_Recv" and FED.fullmatch(node.name):
                by = "feed"
            elif node.op == "_Send" and node.name.startswith("_send_"):
                by = "fetch"
            # A node that was inlined has the call of the function as the prefix of its name
            parts = node.name.removeprefix("Func/").split("/") if by in INLINERS else []
            prefixes = ("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
            call = next((prefix for prefix in prefixes if prefix in user_names), None)
            yield Origin(node.name, f"{by}{INLINED_FROM}{call}" if call else by or "unknown")


# Replacements: which node does the work of a node that a pass removed, or left without users


class Indexed:
    """The nodes of a graph by name. Their users are found once, for all passes that ask."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = {node.name: node for node in nodes}

    @cached_property
    def users(self) -> Users:
        return grouped(
            (node_of(tensor), (node.name, position))
            for node in self.nodes.values()
            for position, tensor in enumerate(node.inputs)
        )

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Return the nodes whose values a step determines: feeds, variables, random numbers."""
        nodes = self.nodes
        return tuple(
            name
            for name, node in nodes.items()
            if (not node.inputs and node.op != "Const")
            or VARYING.match(node.op)  # whatever its inputs are
            or any(tensor not in nodes and node_of(tensor) not in nodes for tensor in node.inputs)
        )

    def dependents(self, stop: Collection[str] = ()) -> set[str]:
        """Return the nodes whose values depend on the step, if those of `stop` do not."""
        edges = {name: [user for user, _ in users] for name, users in self.users.items()}
        return reach(self.sources, edges, stop)

    @cached_property
    def varying(self) -> set[str]:
        return self.dependents()


@dataclass(frozen=True)
class Replacement:
    """The node that does the work of another one now."""

    node: str
    has_value: bool  # whether its output replaces that of the other; otherwise it does more
    is_moved: bool = False  # whether it does the same work at another place in the graph


class Step:
    """The graphs before and after a pass."""

    def __init__(
        self, before: Indexed, after: Indexed, clusters: Mapping[str, str] | None = None
    ) -> None:
        self.before, self.after = before, after
        self.old, self.new = before.nodes, after.nodes
        self.clusters = clusters or {}  # node -> the XLA cluster to which it belongs

    def taken(self) -> Iterator[Takeover]:
        """Yield what happened to each node that is gone, or that no longer computes its value."""
        old, new = self.old, self.new
        runners = {
            node.name.partition("/")[0].rpartition("_")[0]: node.name  # `cluster_0_1/xla_run`
            for node in new.values()
            if node.op == "_XlaRun" and node.name not in old
        }
        known = self.removed()
        shared = self.shared(known)
        for name, node in old.items():
            cluster = self.clusters.get(name)
            runner = cluster if cluster in new else runners.get(name)
            if name not in new and runner:
                yield Takeover(name, "compiled", runner, has_value=False)
            elif name not in new:
                takeover = self.takeover(name, known.get(name), shared)
                yield takeover or Takeover(name, "removed", None)
            elif name in self.regrouped:
                yield Takeover(name, "removed", None)
            elif new[name].op == "Const" != node.op:
                folded = Takeover(name, "folded", name)
                yield folded if self.check(folded) else Takeover(name, "removed", None)

    def relieved(self) -> Iterator[Takeover]:
        """Yield what happened to each node that remains, but whose users all take another node. The
        arithmetic optimiser replaces nodes so. Nodes that only such nodes use are included."""
        old, new, users = self.old, self.new, self.after.users
        known = {
            name: by
            for name in self.before.users
            if name in old and name in new and name not in users
            if (by := self.agreed(self.taken_instead(name)))
        }

        def is_idle(name: str) -> bool:
            computes = name in new and bool(old[name].inputs)
            return computes and all(user in known for user, _ in users.get(name, ()))

        known = self.spread(known, is_idle)
        shared = self.shared(known)
        yield from filter(None, (self.takeover(name, known.get(name), shared) for name in old))

    def takeover(
        self, name: str, by: Replacement | None, shared: Collection[str]
    ) -> Takeover | None:
        """Return what happened to a node, judged by its replacement; None if there is none, or if
        the pass cannot have made it. `shared` are the new nodes that do the work of several."""
        if by is None or self.is_opposite(name, by.node):
            return None
        node, was, now = self.old[name], self.old.get(by.node), self.new[by.node]
        does_more = by.node in shared if by.has_value else now.op != node.op
        passed = {*map(node_of, node.inputs), *self.passed_on(name)}
        alone = now.op in ALONE and (node.op, now.op) != ("Neg", "Sub")  # a Sub may negate
        alone = alone or (node.op in KEEPING and "MatMul" not in now.op)  # which may transpose
        fate = "removed"  # its users take the value from its input, or from a node like it
        if now.op == "Const" and (
            (was.op if was else node.op) != "Const" or (was is None and not by.has_value)
        ):
            fate = "folded"  # its value is in a constant that this pass made, or went into it
        elif was is None:
            # A feed or a part of an expanded call only passes its value on
            if does_more and not alone and now.op != "_Arg" and not is_inside(now, node):
                fate = "fused"
        elif was.op != now.op and not alone:
            fate = "fused"  # its work is in a node that was rewritten to do both
        elif was.op == node.op and by.node not in passed:
            fate = "merged"  # an equal node replaces it
        replaced = fate == "removed" and (by.is_moved or self.is_made_for(by, node))
        takeover = Takeover(name, fate, by.node, by.has_value, replaced)
        return takeover if self.check(takeover) else None

    def is_opposite(self, name: str, other: str) -> bool:
        """Return whether a node has the negated values of another: `-reshape(-x)`, `reshape(x)`."""
        both = [one for one in (name, other) if one in self.old]
        ways = [(one, *self.passed_on(one, (*KEEPING, "Neg"))) for one in both]
        negations = [one for way in ways for one in way if self.old[one].op == "Neg"]
        return len(ways) > len({way[-1] for way in ways}) and len(negations) % 2 == 1

    def is_made_for(self, by: Replacement, node: Node) -> bool:
        """Return whether the pass made a replacement to do the work of the node. If the replacement
        takes from other new nodes, these may do the work."""
        now = self.new[by.node]
        makers_of_inputs = (self.new[name] for name in map(node_of, now.inputs) if name in self.new)
        return (
            by.has_value
            and by.node not in self.old
            and (node.op not in KEEPING or node.op == now.op not in PASS_ON)
            and now.op not in (*PASS_ON, *FEEDS)
            and not is_inside(now, node)
            and all(maker.name in self.old or maker.op == "Const" for maker in makers_of_inputs)
        )

    def shared(self, known: Mapping[str, Replacement]) -> set[str]:
        """Return the new nodes that do the work of more than one."""
        work = {name for name, node in self.old.items() if node.inputs and node.op not in PASS_ON}
        counts = Counter(by.node for name, by in known.items() if name in work)
        return {name for name, count in counts.items() if count > 1 and name not in self.old}

    def removed(self) -> dict[str, Replacement]:
        """Return the replacement of each removed node that was needed. It is found at a user of the
        node; if that was removed too, at the nearest user that was not."""
        gone = (name for name in self.old if name not in self.new)
        known = {name: by for name in gone if (by := self.agreed(self.at_users(name)))}
        return self.spread(known, lambda name: name not in self.new)

    def spread(
        self, known: dict[str, Replacement], is_wanted: Callable[[str], bool]
    ) -> dict[str, Replacement]:
        """Return `known` with the replacements of the wanted nodes on which its nodes depend."""
        waiting = deque(known)
        while waiting:
            user = waiting.popleft()
            for position, name in enumerate(map(node_of, self.old[user].inputs)):
                if name in self.old and name not in known and is_wanted(name):
                    known[name] = self.beyond(self.old[user], position, known[user])
                    waiting.append(name)
        return {name: self.moved(self.old[name], by) for name, by in known.items()}

    @cached_property
    def regrouped(self) -> set[str]:
        """Return the nodes that have another value now: a pass regrouped a sum or product, so that
        a user took an input of theirs (`ConstantPushDown` in grappler's constant_folding.cc); or
        of a negation between two reshapes only the sign was left (`RemoveInvolution`)."""
        inputs = ((n, node.inputs, self.new.get(n, node).inputs) for n, node in self.old.items())
        changed = {name: (Counter(a), Counter(b)) for name, a, b in inputs if a != b}
        turned = (
            name
            for name, node in self.old.items()
            if node.op in KEEPING and all(changed.get(name, [()]))
            if self.is_opposite(node_of(node.inputs[0]), node_of(self.new[name].inputs[0]))
        )
        kept = {
            name: [user for user, _ in users if self.old[user].op in KEEPING]
            for name, users in self.before.users.items()
        }
        return reach(turned, kept) | {
            name
            for was, now in changed.values()
            for name in changed.keys() & {*map(node_of, was)}
            if self.new[name].op != "NoOp" and (now - was) & (changed[name][0] - changed[name][1])
        }

    def beyond(self, user: Node, position: int, by: Replacement) -> Replacement:
        """Return the replacement of an input of a node that has a replacement. If the node was
        merged, it is the input of the equal node. If the node changes nothing, its replacement also
        has the value of the input. Otherwise the input's work went into that replacement."""
        old, new, twin = self.old, self.new, by.node
        if by.has_value and twin in old and new[twin].op == user.op:
            taken = node_of(user.inputs[position])
            equal = self.instead(position, user, new[twin])
            if equal in old and equal in new and new[equal].op == old[taken].op:
                return Replacement(equal, True)
        return Replacement(by.node, by.has_value and user.op in PASS_ON)

    def agreed(self, found: Iterable[Replacement]) -> Replacement | None:
        """Return the first of what users of a node take instead; None if one takes an old node and
        others do not: a pass regrouped a sum or product."""
        every = [*found]
        nodes = {by.node for by in every if by.has_value}
        return None if len(nodes) > 1 and nodes & self.old.keys() else next(iter(every), None)

    def at_users(self, name: str) -> Iterator[Replacement]:
        """Yield what users of a removed node take instead, or the user if it now does more."""
        old, new = self.old, self.new
        for user, position in self.before.users.get(name, ()):
            if user not in new:
                continue
            into = self.instead(position, old[user], new[user])
            if new[user].op != old[user].op:
                is_factor = into in new and into not in old and new[into].op == "Const"
                sources = map(node_of, old[name].inputs or (name,))
                known = is_factor and all(old[one].op == "Const" for one in sources if one in old)
                yield Replacement(into if into and known else user, False)
            elif into in new and into != node_of(old[user].inputs[position]):
                yield Replacement(into, True)

    def instead(self, position: int, before: Node, now: Node) -> str:
        """Return the node that a user now takes instead of the input at this position; "" if
        unclear: the pass regrouped the user, exchanged its inputs, or changed too many of them."""
        if position >= len(now.inputs) or self.regrouped & {*map(node_of, now.inputs)}:
            return ""
        was, takes = [*map(node_of, before.inputs)], [*map(node_of, now.inputs)]
        gone, added = Counter(was) - Counter(takes), Counter(takes) - Counter(was)
        name, into = was[position], takes[position]
        sorts = before.op in COMMUTATIVE
        if sorts and (name not in gone or gone.total() == added.total() == 1):
            return next(iter(added)) if name in gone else name
        if before.op != now.op or (not sorts and added.total() < 2) or into in self.passed_on(name):
            return into
        op = self.old[name].op  # of -a - -b = b - a, either may be a new node
        alike = op == self.old[into].op if into in self.old else op != "Neg"
        # Of two constants of a sum, the position does not tell which one replaces the input
        is_constant = self.new.get(into, now).op == "Const"
        in_place = gone.total() == sum(map(ne, was, takes)) and not is_constant
        return into if alike and (in_place or not sorts) else ""

    def passed_on(self, name: str, by: Collection[str] = KEEPING) -> Iterator[str]:
        """Yield what a node passes on, what that passes on, and so on."""
        visited = {name}
        while self.old[name].op in by and self.old[name].inputs:
            name = node_of(self.old[name].inputs[0])
            if name in visited or name not in self.old:
                return
            visited.add(name)
            yield name

    def moved(self, node: Node, by: Replacement) -> Replacement:
        """Return the node that does this node's work at another place, else the replacement. The
        arithmetic optimiser moves a cast before a reshape, whose users then take the reshape, and
        names the new cast after it:
        `ArithmeticOptimizer/ReorderCastLikeAndValuePreserving_float_cast`."""
        old, new = self.old, self.new
        scope, _, last = node.name.rpartition("/")
        visited: set[str] = set()
        waiting = deque([] if node.op in PASS_ON else [by.node])
        while waiting:
            name = waiting.popleft()
            if name in visited or name in old or name not in new:
                continue
            visited.add(name)
            if new[name].op == node.op and name.startswith(scope) and name.endswith(f"_{last}"):
                return by if by == Replacement(name, True) else Replacement(name, False, True)
            waiting.extend(map(node_of, new[name].inputs))
        return by

    def taken_instead(self, name: str) -> Iterator[Replacement]:
        """Yield the nodes that users take instead of this one, and did not take before. A
        composed chain of ops is found by its name, because the same pass may have changed the
        users, too (`UnaryOpsComposition` in
        tensorflow/core/grappler/optimizers/arithmetic_optimizer.cc)."""
        old, new = self.old, self.new
        composed = f"{name}{COMPOSITION}"
        if composed in new and composed not in old:
            yield Replacement(composed, True)
            return
        for user, position in self.before.users[name]:
            if user in new and len(new[user].inputs) == len(old[user].inputs):
                into = self.instead(position, old[user], new[user])
                if into in new and into not in map(node_of, old[user].inputs):
                    yield Replacement(into, new[user].op == old[user].op)

    # Check
    #
    # A pass may give a name to another value: where constant folding reorders products, a node that
    # held one of them becomes a constant factor. But it never puts a value that only a step can
    # know into a constant, or a value that is known before into a node that depends on the step.

    def check(self, takeover: Takeover) -> bool:
        """Return whether the pass can have done this."""
        name, into = takeover.name, takeover.into
        if takeover.fate == "fused":
            return name in self.before.varying
        if takeover.fate == "folded":
            return name not in self.unforeseeable
        if not (takeover.has_value or takeover.replaced):
            return False
        if into in self.after.varying:
            return name in self.before.varying
        # Of a call, one output may be known before the step and another one not
        return name not in self.unforeseeable or CALLS.match(self.old[name].op) is not None

    @cached_property
    def unforeseeable(self) -> set[str]:
        """Return the nodes whose values the pass cannot know. It may know shapes. It may know that
        a product with zero is 0; then the constant still has control dependencies on the inputs."""
        new, varying = self.new, self.before.varying
        return self.before.dependents(
            {
                name
                for name, node in self.old.items()
                if node.op in SHAPES
                or (
                    name in new
                    and new[name].op == "Const" != node.op
                    and {*new[name].control_inputs} & {*map(node_of, node.inputs)} & varying
                )
            }
        )


def is_inside(node: Node, call: Node) -> bool:
    """Return whether a node is part of an expanded loop, branch or call, so that it does not do the
    work of that. A node such as `Sqrt/unary_ops_composition` does; its type begins with `_`."""
    inside = node.name.removeprefix("Func/").startswith(f"{call.name}/")
    return inside and not node.op.startswith("_")


# Branches

SWITCHES = ("Switch", "RefSwitch", "_SwitchN")
MERGES = ("Merge", "RefMerge", "_XlaMerge")  # run if one of their inputs is not dead
# Not in any trace. They also run to pass on that a tensor is dead
TRANSFERS = ("_Send", "_Recv", "_HostSend", "_HostRecv")
NOT_TAKEN = "in a branch that was not taken"  # instead of `executed`


def not_taken(
    nodes: Sequence[Node], ran: Collection[str], transfers: Iterable[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Return the executed nodes in a branch or a loop body that was not taken. `ran` are the nodes
    with an op run in any step; `transfers` are the `_Send` and the `_Recv` of each tensor."""
    switches = {node.name for node in nodes if node.op in SWITCHES and node.name in ran}
    passed_on = {
        tensor
        for node in nodes
        if node.name in ran and node.op not in MERGES
        for tensor in node.inputs
    }
    first = (
        node.name
        for node in nodes
        if node.name not in ran
        and any(node_of(name) in switches and name not in passed_on for name in node.inputs)
    )
    edges = {node.name: node.waits_for for node in nodes}
    for send, receive in transfers:
        edges.setdefault(receive, []).append(send)
    dead = reach(first, turned_around(edges), stop=ran)
    return tuple(node.name for node in nodes if node.name in dead and node.op not in TRANSFERS)


def depending(nodes: Sequence[Node]) -> set[str]:
    """Return the nodes that depend on a `Switch`: only a step can tell whether they run."""
    switches = {node.name for node in nodes if node.op in SWITCHES}
    first = (node.name for node in nodes if any(node_of(name) in switches for name in node.inputs))
    return reach(first, turned_around({node.name: node.waits_for for node in nodes}))


def fates_in_step(ledger: Iterable[Fate], not_run: Collection[str]) -> dict[str, str]:
    """Return the fate of each node in a step; `not_run` are the nodes in branches not taken."""
    return {
        fate.name: NOT_TAKEN if fate.fate == "executed" and fate.name in not_run else fate.fate
        for fate in ledger
    }
