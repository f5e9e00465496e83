"""Access order: reads and writes of one variable, queue or table that nothing puts in an order.

The runtime runs two ops in an order only if a path of tensors and control dependencies leads from
one to the other. In a graph nothing adds such paths: automatic control dependencies exist only
inside of a tf.function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tflab.analysis.fates import MERGES, RANDOM, SHAPES, SWITCHES, edges_of
from tflab.records.access import Access, BranchInput, Unordered
from tflab.records.graph import (
    VARIABLES,
    Call,
    Function,
    Node,
    graph_def_name,
    node_of,
    nodes_needed,
    reach,
    turned_around,
    with_dependents,
)

# What holds values from step to step. Of other queues the order of elements is random.
HOLDERS = re.compile(
    rf"{'|'.join(VARIABLES)}|(FIFOQueue|PaddingFIFOQueue|PriorityQueue)(V2)?"
    r"|(Mutable)?(Dense)?HashTable(OfTensors)?(V2)?"
)
REFERENCES = VARIABLES[1:]  # whose output is the value itself, not a handle
DOES = {
    "writes": re.compile(
        r"Assign(Add|Sub)?(VariableOp)?|(Resource)?(Sparse)?Apply\w+"
        r"|(Resource)?(Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)|StridedSliceAssign|CountUpTo)"
        r"|LookupTable(Insert|Remove|Import)(V2)?|InitializeTable\w*"
    ),
    "reads": re.compile(
        r"ReadVariable(Op|XlaSplitND)|ResourceGather(Nd)?|LookupTable(Find|Size|Export)(V2)?"
    ),
    "takes": re.compile(r"QueueDequeue(Many|UpTo)?(V2)?"),
    "puts": re.compile(r"QueueEnqueue(Many)?(V2)?"),
}
# Changes of one kind have the same result in any order, but for rounding
SUMS = re.compile(r"(Assign|(Resource)?Scatter(Nd)?)(Add|Sub)(VariableOp)?|\w*ApplyGradientDescent")
# Ops whose output is what they were given: a handle, or the variable itself
HAND_ON = ("Identity", "Enter", "Exit", "Merge", "NextIteration", "Switch")
HAND_ON_REFERENCES = tuple(f"Ref{op}" for op in HAND_ON)
BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")  # their first input is the condition
CALLS = (*BRANCHES, "While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall")
AT_ONCE = 512  # variables and others whose accesses are bits of one number per node
VARYING = re.compile(rf"Placeholder|{'|'.join(VARIABLES)}|IteratorGetNext|QueueDequeue.*")
# Ops that do no work of a step, whoever uses them
IDLE = ("Const", "ReadVariableOp", "Identity", "Placeholder", "PlaceholderWithDefault", *SHAPES)

Users = Mapping[str, Sequence[tuple[Node, int]]]  # node -> its users, and the index of that input
Edges = Mapping[str, Sequence[str]]


class Step:
    """The nodes that some fetches need, and how they depend on one another."""

    def __init__(self, nodes: Sequence[Node], needed: Collection[str], fed: Collection[str]):
        self.nodes = [node for node in nodes if node.name in needed]
        self.before: dict[str, list[str]] = {}  # node -> those that it waits for
        self.users: dict[str, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            taken = [(node_of(t), place) for place, t in enumerate(node.inputs) if t not in fed]
            self.before[node.name] = [*(name for name, _ in taken), *node.control_inputs]
            for name, place in taken:
                self.users.setdefault(name, []).append((node, place))
        self.loops = {node.name for node in self.nodes if node.op == "LoopCond"}

    @classmethod
    def of(cls, nodes: Sequence[Node], fetches: Iterable[str], feeds: Iterable[str]) -> Step:
        fed = {graph_def_name(name) for name in feeds}
        return cls(nodes, nodes_needed(nodes, fetches, fed), fed)

    def in_branches(self) -> set[str]:
        """Return the nodes that run only if a branch is taken, those that choose one included.
        Branches of TensorFlow 1 are between Switch and Merge; loops have these ops too."""
        merges = {node.name for node in self.nodes if node.op in MERGES}
        switches = (node.name for node in self.nodes if self.is_switch(node))
        inside = reach(switches, turned_around(self.before), stop=merges)
        return inside | {node.name for node in self.nodes if node.op in BRANCHES}

    def is_switch(self, node: Node) -> bool:
        return node.op in SWITCHES and node_of(node.inputs[-1]) not in self.loops


class Bodies:
    """The functions that nodes call, and what these do with their arguments."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self.functions = {function.name: function for function in functions}
        self.called: dict[tuple[str | None, str], list[tuple[Call, str]]] = {}
        for function in self.functions.values():
            for call in function.called_by:
                self.called.setdefault((call.function, call.node), []).append((call, function.name))
        self.known: dict[tuple[str, int], frozenset[str]] = {}

    def calls(self, node: Node, inside: str | None) -> Iterator[tuple[str, Function, int]]:
        """Yield the functions that a node calls, each with its role and the index of the node's
        input that is the first argument. Of other ops than `CALLS` the arguments are unknown."""
        for call, name in self.called.get((inside, node.name), ()):
            if node.op in CALLS or not call.attribute:
                yield call.attribute, self.functions[name], int(node.op in BRANCHES)

    def of_argument(self, function: Function, index: int) -> frozenset[str]:
        key = function.name, index
        if key not in self.known and 0 <= index < len(function.nodes):
            self.known[key] = frozenset()  # functions may call each other in a circle
            nodes = function.nodes
            ends = map(node_of, (*function.returns, *function.ends))
            step = Step(nodes, reach(ends, edges_of(nodes)), ())
            found = accesses(nodes[index], step.users, self, function.name)
            self.known[key] = frozenset(does for _, does in found)
        return self.known.get(key, frozenset())


def accesses(
    holder: Node, users: Users, bodies: Bodies, inside: str | None = None
) -> Iterator[tuple[Node, str]]:
    """Yield the nodes that read or change what a node holds, and what they do."""
    is_reference = holder.op in REFERENCES
    hands_on = HAND_ON_REFERENCES if is_reference else HAND_ON
    waiting, visited = [holder.name], {holder.name}
    while waiting:
        for user, place in users.get(waiting.pop(), ()):
            done = {does for does, ops in DOES.items() if ops.fullmatch(user.op)}
            if is_reference and (not done or (place and "Apply" not in user.op)):
                ignored = (*hands_on, "IsVariableInitialized", *SHAPES)
                done = set() if user.op in ignored else {"reads"}
            for _, function, first in bodies.calls(user, inside):
                done |= bodies.of_argument(function, place - first)
            yield from ((user, does) for does in done)
            passes = user.op in hands_on or (is_reference and "writes" in done)
            if passes and user.name not in visited:
                visited.add(user.name)
                waiting.append(user.name)


def unordered(
    nodes: Sequence[Node],
    functions: Iterable[Function],
    fetches: Sequence[str],
    feeds: Iterable[str] = (),
) -> tuple[Unordered, ...]:
    """Return the accesses without order in a step that computes these fetches; of those of the same
    lines one.

    Two accesses of which at most one runs are left out: those in branches, and a read in a branch,
    which may be the one that is taken where nothing is written.
    """
    step = Step.of(nodes, fetches, feeds)
    bodies, in_branches = Bodies(functions), step.in_branches()
    results = {name: node_of(name) for name in fetches if ":" in name}

    def matters(node: Node, does: str) -> bool:
        if does != "reads":
            return True
        is_used = node.name in results.values() or node.op in CALLS
        is_used |= DOES["writes"].fullmatch(node.op) is not None
        is_used |= any(user.op not in SHAPES for user, _ in step.users.get(node.name, ()))
        return is_used and node.name not in in_branches

    found: dict[str, list[tuple[Node, str]]] = {}
    for holder in step.nodes:
        if HOLDERS.fullmatch(holder.op):
            touching = dict.fromkeys(accesses(holder, step.users, bodies))
            found[holder.name] = [access for access in touching if matters(*access)]
    several = [name for name, each in found.items() if {does for _, does in each} - {"reads"}]
    several = [name for name in several if len(found[name]) > 1]
    rows: dict[object, Unordered] = {}
    followers = turned_around({node.name: [*map(node_of, node.inputs)] for node in step.nodes})
    for start in range(0, len(several), AT_ONCE):
        some = several[start : start + AT_ONCE]
        own, earlier = paths(step.before, (node.name for name in some for node, _ in found[name]))
        for name in some:
            for (one, does), (other, changes) in conflicts(found[name]):
                ordered = earlier[one.name] & own[other.name] or earlier[other.name] & own[one.name]
                key = name, one.line or one.name, does, other.line or other.name
                if ordered or key in rows or {one.name, other.name} <= in_branches:
                    continue
                reached = reach([one.name], followers) if does in ("reads", "takes") else ()
                rows[key] = Unordered(
                    name,
                    Access(one.name, does, one.line),
                    Access(other.name, changes, other.line),
                    tuple(fetch for fetch, node in results.items() if node in reached),
                )
    return tuple(rows.values())


def conflicts(
    found: Sequence[tuple[Node, str]],
) -> Iterator[tuple[tuple[Node, str], tuple[Node, str]]]:
    """Yield the pairs whose order matters; the second one changes what the first one finds."""
    for place, (other, changes) in enumerate(found):
        for index, (one, does) in enumerate(found if changes != "reads" else ()):
            alike = does == changes and index < place
            if alike and changes == "writes":
                alike = not (SUMS.fullmatch(one.op) and SUMS.fullmatch(other.op))
            if one is not other and (alike or (does, changes) == ("reads", "writes")):
                yield (one, does), (other, changes)


def paths(before: Edges, names: Iterable[str]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return a bit for each of these nodes, and for each node the bits of those with a path to
    it."""
    own = {name: 1 << bit for bit, name in enumerate(dict.fromkeys(names))}
    earlier, order, changed = dict(own), makers_first(before), True
    while changed:  # more than twice only if there are loops
        changed = False
        for name in order:
            bits = known = earlier.get(name, 0)
            for other in before[name]:
                bits |= earlier.get(other, 0)
            if bits != known:
                earlier[name], changed = bits, True
    return own, earlier


def makers_first(before: Edges) -> list[str]:
    """Return the nodes, each after those that it waits for; in a loop, after most of them."""
    order: dict[str, None] = {}
    visited: set[str] = set()
    for start in before:
        waiting = [start]
        while waiting:
            name = waiting[-1]
            if name in visited or name not in before:
                order.setdefault(waiting.pop())
            else:
                visited.add(name)
                waiting.extend(other for other in before[name] if other not in visited)
    return [name for name in order if name in before]


def of_one_branch(
    nodes: Sequence[Node],
    functions: Iterable[Function],
    fetches: Sequence[str],
    feeds: Iterable[str] = (),
) -> tuple[BranchInput, ...]:
    """Return the nodes that run in every step although only one branch of a `tf.cond` uses them,
    without what is computed from constants before the step."""
    step = Step.of(nodes, fetches, feeds)
    branches = branches_of_inputs(step, Bodies(functions))
    if not branches:
        return ()
    first = [n.name for n in step.nodes if VARYING.fullmatch(n.op) or RANDOM.search(n.op)]
    waited_for = {name for node in step.nodes for name in node.control_inputs}
    working = with_dependents(step.nodes, first) - waited_for - step.in_branches()
    working -= {node_of(name) for name in fetches}
    inputs = []
    for node in step.nodes:
        uses = [branches.get((user.name, at)) for user, at in step.users.get(node.name, ())]
        taking = {branch for use in uses if use for branch in use}
        works = node.op not in IDLE and not HOLDERS.fullmatch(node.op)
        if node.name in working and works and None not in uses and len(taking) == 1:
            inputs.append(BranchInput(node.name, node.op, node.line, taking.pop()))
    return tuple(inputs)


def branches_of_inputs(step: Step, bodies: Bodies) -> dict[tuple[str, int], set[str]]:
    """Return, for each input that a node hands to branches, the branches that use it."""
    uses: dict[tuple[str, int], set[str]] = {}
    for node in step.nodes:
        if node.op in SWITCHES and step.is_switch(node):
            scope = node_of(node.inputs[-1]).removesuffix("/pred_id")
            taken = {t for user, _ in step.users.get(node.name, ()) for t in user.inputs}
            sides = ((f"{node.name}:1", "true"), (node.name, "false"))
            uses[node.name, 0] = {f"{side} branch of {scope}" for t, side in sides if t in taken}
        for role, body, first in bodies.calls(node, None) if node.op in BRANCHES else ():
            used = {node_of(t) for t in body.returns}
            used |= {node_of(t) for inner in body.nodes for t in inner.inputs}
            for index, argument in enumerate(body.nodes[: len(node.inputs) - first]):
                by = uses.setdefault((node.name, index + first), set())
                by.update([f"{role} of {node.name}"] if argument.name in used else ())
    return uses
