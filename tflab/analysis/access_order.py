"""Access order: reads and writes of one variable, queue or table that nothing puts in an order.

The runtime runs two ops in an order only if a path of tensors and control dependencies leads from
one to the other. In a graph nothing adds such paths: automatic control dependencies exist only
inside of a tf.function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tflab.analysis.fates import MERGES, RANDOM, SHAPES, SWITCHES
from tflab.records.graph import (
    VARIABLES,
    Access,
    BranchInput,
    Function,
    Node,
    Unordered,
    graph_def_name,
    grouped,
    in_order,
    node_of,
    nodes_needed,
    reach,
    turned_around,
)

# What holds values from step to step. Of other queues the order of elements is random.
HOLDERS = re.compile(
    rf"{'|'.join(VARIABLES)}|(FIFOQueue|PaddingFIFOQueue|PriorityQueue)(V2)?"
    r"|(Mutable)?(Dense)?HashTable(OfTensors)?(V2)?"
)
REFERENCES = VARIABLES[1:]  # whose output is the value itself, not a handle
SUMS = re.compile(r"(Assign|(Resource)?Scatter(Nd)?)(Add|Sub)(VariableOp)?|\w*ApplyGradientDescent")
WRITES = re.compile(
    r"Assign(Add|Sub)?(VariableOp)?|(Resource)?(Sparse)?Apply\w+"
    r"|(Resource)?(Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)|StridedSliceAssign|CountUpTo)"
    r"|LookupTable(Insert|Remove|Import)(V2)?|InitializeTable\w*"
)
READS = re.compile(
    r"ReadVariable(Op|XlaSplitND)|ResourceGather(Nd)?|LookupTable(Find|Size|Export)(V2)?"
)
DOES = {
    "writes": WRITES,
    "reads": READS,
    "takes": re.compile(r"QueueDequeue(Many|UpTo)?(V2)?"),
    "puts": re.compile(r"QueueEnqueue(Many)?(V2)?"),
}
# Ops whose output is what they were given: a handle; with the prefix `Ref` the variable itself
HAND_ON = ("Identity", "Enter", "Exit", "Merge", "NextIteration", "Switch")
BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")  # their first input is the condition
CALLS = (*BRANCHES, "While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall")
CHANGES = ("writes", "adds")
VARYING = re.compile(rf"Placeholder|{'|'.join(VARIABLES)}|IteratorGetNext|QueueDequeue.*")
# Ops that do no work of a step, whoever uses them
IDLE = ("Const", "ReadVariableOp", "Identity", "Placeholder", "PlaceholderWithDefault", *SHAPES)

Users = Mapping[str, Sequence[tuple[Node, int]]]  # node -> its users, and the index of that input


class Step:
    """The nodes that some fetches need, and how they depend on one another."""

    def __init__(
        self, nodes: Sequence[Node], fetches: Collection[str], feeds: Iterable[str] = ()
    ) -> None:
        self.fed = fed = {graph_def_name(name) for name in feeds}
        needed = nodes_needed(nodes, fetches, fed)
        self.fetches = fetches
        self.results = {name: node_of(name) for name in fetches if ":" in name}
        self.nodes = [node for node in nodes if node.name in needed]
        self.before: dict[str, list[str]] = {}  # node -> those that it waits for
        self.users: dict[str, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            taken = [(node_of(t), place) for place, t in enumerate(node.inputs) if t not in fed]
            waits = (*(name for name, _ in taken), *node.control_inputs)
            self.before[node.name] = [name for name in waits if name in needed]
            for name, place in taken:
                self.users.setdefault(name, []).append((node, place))
        loops = {node.name for node in self.nodes if node.op == "LoopCond"}
        self.chosen = [  # ops that pass values on to branches; loops have Switch ops, too
            node
            for node in self.nodes
            if node.op in BRANCHES
            or (node.op in SWITCHES and node_of(node.inputs[-1]) not in loops)
        ]

    def in_branches(self) -> set[str]:
        """Return the nodes that run only if a branch is taken, and the nodes that choose one."""
        ends = {node.name for node in self.nodes if node.op in (*MERGES, *BRANCHES)}
        first = {node.name for node in self.chosen}
        return first | reach(first - ends, turned_around(self.before), stop=ends)

    def is_seen(self, node: Node, does: str) -> bool:
        """Return whether anything uses the value that a node reads."""
        used = any(user.op not in SHAPES for user, _ in self.users.get(node.name, ()))
        used |= node.name in self.results.values() or node.op in CALLS
        return does != "reads" or used or WRITES.fullmatch(node.op) is not None


class Bodies:
    """The functions that nodes call, and what these do with their arguments."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self.called = grouped(
            ((call.function, call.node), (call.attribute, function))
            for function in functions
            for call in function.called_by
        )
        self.known: dict[tuple[str, int], frozenset[str]] = {}

    def calls(self, node: Node, inside: str | None = None) -> Iterator[tuple[str, Function, int]]:
        """Yield the functions that a node calls, each with its role and the index of the input that
        is its first argument. For ops that `CALLS` lacks, the arguments are unknown."""
        for role, function in self.called.get((inside, node.name), ()):
            if node.op in CALLS or not role:
                yield role, function, int(node.op in BRANCHES)

    def of_argument(self, function: Function, index: int) -> frozenset[str]:
        key = function.name, index
        if key not in self.known and 0 <= index < len(function.nodes):
            self.known[key] = frozenset()  # functions may call each other in a circle
            tensors = (t if ":" in t else f"{t}:0" for t in function.returns)
            step = Step(function.nodes, (*tensors, *function.ends))
            found = accesses(function.nodes[index], step.users, self, function.name)
            self.known[key] = frozenset(does for node, does in found if step.is_seen(node, does))
        return self.known.get(key, frozenset())


def accesses(
    holder: Node, users: Users, bodies: Bodies, inside: str | None = None
) -> Iterator[tuple[Node, str]]:
    """Yield the nodes that read or change a variable, queue or table, and what each does."""
    is_reference = holder.op in REFERENCES
    waiting, visited = [holder.name], {holder.name}
    while waiting:
        for user, place in users.get(waiting.pop(), ()):
            kind = user.op.removeprefix("Ref")
            passes = kind in HAND_ON and is_reference == (kind != user.op)
            done = {does for does, ops in DOES.items() if ops.fullmatch(user.op)}
            done = {"adds"} if SUMS.fullmatch(user.op) else done  # in any order, but for rounding
            if is_reference and (not done or (place and "Apply" not in user.op)):
                ignored = passes or user.op in ("IsVariableInitialized", *SHAPES)
                done = set() if ignored else {"reads"}
            for _, function, first in bodies.calls(user, inside):
                done |= bodies.of_argument(function, place - first)
            yield from ((user, does) for does in done)
            passes |= is_reference and bool(done & {*CHANGES})
            if passes and user.name not in visited:
                visited.add(user.name)
                waiting.append(user.name)


def unordered(step: Step, functions: Iterable[Function]) -> tuple[Unordered, ...]:
    """Return the pairs of accesses that have no order in a step; of several pairs on the same
    lines, only one. Two accesses are left out if perhaps only one of them runs: both are in
    branches, or one is a read in a branch."""
    bodies = Bodies(functions)
    pairs: list[tuple[str, Node, str, Node, str]] = []
    for holder in (node for node in step.nodes if HOLDERS.fullmatch(node.op)):
        every = dict.fromkeys(accesses(holder, step.users, bodies))
        seen = [access for access in every if step.is_seen(*access)]
        pairs += [(holder.name, *pair) for pair in conflicts(seen)]
    if not pairs:
        return ()
    in_branches = step.in_branches()
    after = {name: [user.name for user, _ in each] for name, each in step.users.items()}
    own, earlier = paths(step.before, (end.name for pair in pairs for end in (pair[1], pair[3])))
    rows: dict[object, Unordered] = {}
    for name, one, does, other, its in pairs:
        ordered = earlier[one.name] & own[other.name] or earlier[other.name] & own[one.name]
        may_not_run = one.name in in_branches and (does == "reads" or other.name in in_branches)
        key = name, one.line or one.name, does, other.line or other.name
        if ordered or may_not_run or key in rows:
            continue
        reached = reach([one.name], after) if does in ("reads", "takes") else ()
        into = tuple(fetch for fetch, node in step.results.items() if node in reached)
        first, second = (
            Access(node.name, "writes" if kind == "adds" else kind, node.line)
            for node, kind in ((one, does), (other, its))
        )
        rows[key] = Unordered(name, first, second, into)
    return tuple(rows.values())


def conflicts(found: Sequence[tuple[Node, str]]) -> Iterator[tuple[Node, str, Node, str]]:
    """Yield the pairs of accesses of which the second changes what the first finds."""
    for place, (other, its) in enumerate(found):
        for index, (one, does) in enumerate(found if its != "reads" else ()):
            both = {does, its} <= {*CHANGES} or does == its
            matters = (both and index < place and {does, its} != {"adds"}) or (
                does == "reads" and its in CHANGES
            )
            if one is not other and matters:
                yield one, does, other, its


def paths(
    before: Mapping[str, Sequence[str]], names: Iterable[str]
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return two maps of bit sets: from each of these nodes to a bit of its own, and from every
    node to the bits of itself and of those of them that have a path to it."""
    own = {name: 1 << bit for bit, name in enumerate(dict.fromkeys(names))}
    order = in_order(before)
    earlier = dict.fromkeys(order, 0) | own
    known: dict[str, int] = {}
    while earlier != known:  # of a graph without loops, the second turn changes nothing
        known = dict(earlier)
        for name in order:
            for other in before[name]:
                earlier[name] |= earlier[other]
    return own, earlier


def of_one_branch(step: Step, functions: Iterable[Function]) -> tuple[BranchInput, ...]:
    """Return the nodes that run in every step although only one branch of a `tf.cond` uses them.
    Nodes that depend on constants alone are left out: passes compute them before the step."""
    if not step.chosen:
        return ()
    sources = {n.name for n in step.nodes if VARYING.fullmatch(n.op) or RANDOM.search(n.op)}
    takers = grouped((node_of(t), node.name) for node in step.nodes for t in node.inputs)
    varying = reach(sources | {*map(node_of, step.fed)}, takers)
    bodies = Bodies(functions)
    # By (node that chooses a branch, index of the input): the branches that use it. Branches whose
    # condition is constant are left out, because passes remove them
    branches: dict[tuple[str, int], set[str]] = {}
    for node in step.chosen:
        condition = node_of(node.inputs[0 if node.op in BRANCHES else -1])
        if condition not in varying:
            continue
        if node.op in SWITCHES:
            scope = condition.removesuffix("/pred_id")
            taken = {t for user, _ in step.users.get(node.name, ()) for t in user.inputs}
            sides = ((f"{node.name}:1", "true"), (node.name, "false"))
            branches[node.name, 0] = {
                f"{side} branch of {scope}" for t, side in sides if t in taken
            }
        for role, body, first in bodies.calls(node):
            used = {node_of(t) for t in body.returns}
            used |= {node_of(t) for inner in body.nodes for t in inner.inputs}
            for index, argument in enumerate(body.nodes[: len(node.inputs) - first]):
                by = branches.setdefault((node.name, index + first), set())
                by.update([f"{role} of {node.name}"] if argument.name in used else ())
    working = varying - step.in_branches() - set(map(node_of, step.fetches))
    working -= {name for node in step.nodes for name in node.control_inputs}
    inputs = []
    for node in step.nodes:
        uses = [branches.get((user.name, at)) for user, at in step.users.get(node.name, ())]
        taking = {branch for use in uses if use for branch in use}
        works = node.op not in IDLE and not HOLDERS.fullmatch(node.op)
        if node.name in working and works and None not in uses and len(taking) == 1:
            inputs.append(BranchInput(node.name, node.op, node.line, taking.pop()))
    return tuple(inputs)
