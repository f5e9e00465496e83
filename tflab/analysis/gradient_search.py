"""Gradient search: the gradients that a graph came with, found by its edges.

Gradients start at a tensor of ones, the gradient of a loss with respect to itself, and end at the
updates of variables. A gradient is a node that such an update needs and the loss does not need. A
node that also needs a variable which the loss does not need (a momentum, a count) belongs to the
optimiser.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tflab.records.graph import VARIABLES, Node, node_of, reach, turned_around

ASSIGNMENTS = re.compile(r"Assign(VariableOp)?")  # may also belong to an initialiser
OPTIMISERS = re.compile(r"(Resource)?(Sparse)?Apply\w+")
UPDATES = re.compile(
    rf"{OPTIMISERS.pattern}|Assign(Add|Sub)?(VariableOp)?"
    r"|(Resource)?Scatter(Nd)?(Add|Sub|Update|Div|Mul|Min|Max)"
)
SUMS = ("Add", "AddV2", "AddN")  # a loss may be the sum of others
STEPS = ("NoOp", "AssignAdd", "AssignAddVariableOp")  # the ops of a train op
SHAPES = ("Shape", "ShapeN", "Size", "Rank")
FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Training:
    """A loss, the nodes that update variables with its gradients, and the nodes that run them
    all."""

    loss: str | None  # None: the gradients wait in a queue or an accumulator
    updates: tuple[str, ...]
    train_ops: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    trainings: tuple[Training, ...]  # in the order of their losses
    gradients: tuple[str, ...]  # nodes that lead from a loss to an update, in the graph's order


def search(nodes: Sequence[Node], ones: Collection[str], sums: bool = True) -> Found:
    """The losses, their updates, and the gradients between them. The gradients of a sum are those
    of its terms, so a loss may be a sum or, unless `sums`, a term of one.

    Each node must come after its inputs, except in loops. `ones` are the constants of a float type
    all of whose elements are 1.
    """
    return Search(nodes, frozenset(ones), sums).found()


class Search:
    """The edges of a graph in both directions, and what follows from them."""

    def __init__(self, nodes: Sequence[Node], ones: frozenset[str], sums: bool = True) -> None:
        self.sums = sums
        self.order = {node.name: place for place, node in enumerate(nodes)}
        self.nodes = {node.name: node for node in nodes}
        self.ones = ones
        self.inputs = {
            node.name: [name for name in map(node_of, node.inputs) if name in self.nodes]
            for node in nodes
        }
        self.needs = {node.name: [*self.inputs[node.name], *node.control_inputs] for node in nodes}
        self.users = turned_around(self.inputs)
        self.followers = turned_around({node.name: node.control_inputs for node in nodes})
        self.updates = {
            node.name: self.inputs[node.name][1:]  # its inputs besides the variable
            for node in nodes
            if UPDATES.fullmatch(node.op) and self.inputs[node.name]
        }
        values = [name for inputs in self.updates.values() for name in inputs]
        self.leading = reach(values, self.inputs)  # nodes that lead to an update

    def found(self) -> Found:
        chosen: dict[str, set[str]] = {}  # loss -> its gradients, and the nodes that take them
        for fills in (True, False):
            for loss, after in self.candidates(fills):
                update_nodes = set().union(*chosen.values())
                if loss not in update_nodes and not after & chosen.keys():
                    chosen.setdefault(loss, set()).update(after)
            if chosen:
                break
        losses = sorted(chosen, key=self.order.__getitem__)
        names = self.between(set().union(*chosen.values()), reach(losses, self.needs))
        return Found(
            tuple(self.training(loss, self.led_to(loss, chosen[loss])) for loss in losses)
            or self.without_loss(),
            tuple(sorted(names, key=self.order.__getitem__)),
        )

    def candidates(self, fills: bool) -> list[tuple[str, set[str]]]:
        """(loss, all nodes that depend on its tensor of ones), the fewest nodes first: a loss has
        fewer gradients than there are nodes that depend on ones before it. Ones that another loss
        is computed from, as where a mean counts its terms, start no gradients."""
        pairs = [(self.loss_of(seed, after), after) for seed, after in self.seeds(fills)]
        known = [(loss, after) for loss, after in pairs if loss]
        starting = [
            (loss, after)
            for loss, after in known
            if not any(other in after and loss not in its for other, its in known)
        ]
        return sorted(starting, key=lambda pair: len(pair[1]))

    def taking(self, after: set[str]) -> list[str]:
        """The updates that take some of these values."""
        return [name for name, values in self.updates.items() if after.intersection(values)]

    def led_to(self, loss: str, after: set[str]) -> list[str]:
        """The updates that use these gradients, directly or through a variable of the optimiser."""
        needed = reach([loss], self.inputs)
        kept = {self.inputs[name][0] for name in self.taking(after)} - needed
        return self.taking(after | reach(kept, self.users))

    def without_loss(self) -> tuple[Training, ...]:
        """The updates of an optimiser whose loss was not found."""
        updates = [name for name in self.updates if OPTIMISERS.fullmatch(self.nodes[name].op)]
        return (self.training(None, updates),) if updates else ()

    def seeds(self, fills: bool) -> Iterator[tuple[str, set[str]]]:
        """The candidates for the gradient of a loss with respect to itself, each with all nodes
        that depend on it: nodes that fill a tensor with ones, or folded constants of ones."""
        for name, node in self.nodes.items():
            filled = node.op == "Fill" and self.inputs[name][-1] in self.ones
            is_seed = filled or node.op == "OnesLike" if fills else name in self.ones
            if is_seed and name in self.leading:
                yield name, reach([name], self.users)

    def loss_of(self, seed: str, after: set[str]) -> str | None:
        """The loss whose gradients start here: the first scalar that depends on most of the forward
        values that the gradients use. None if there is none, or if no variable that it depends on
        is updated."""
        ended = self.taking(after)
        behind = self.behind(self.marks(seed, after, ended))
        loss = self.shaped_like(seed)
        if loss is None:
            candidates = (name for name in behind if name not in after and self.may_be_loss(name))
            loss = max(candidates, key=lambda name: self.likeness(name, behind), default=None)
            if loss and self.sums:
                loss = self.with_other_terms(loss, seed, after, behind)
        if loss is None or loss in after or loss not in behind:
            return None
        needed = reach([loss], self.inputs)
        changed = (self.inputs[name][0] for name in self.led_to(loss, after))
        return loss if any(variable in needed for variable in changed) else None

    def marks(self, seed: str, after: set[str], ended: Sequence[str]) -> list[str]:
        """The forward values that identify a loss: those that its gradients use on their way to an
        update, and the variables, except those that may only be initialised."""
        way = (after & self.leading) - {seed} - self.updates.keys()
        consumed = {parent for name in way for parent in self.inputs[name]} - after
        counts = {name: self.inputs[name] for name, node in self.nodes.items() if counting(node)}
        changed = (name for name in ended if not ASSIGNMENTS.fullmatch(self.nodes[name].op))
        return sorted(
            (reach(consumed, counts) - counts.keys()) | {self.inputs[name][0] for name in changed}
        )

    def behind(self, marks: Sequence[str]) -> dict[str, int]:
        """For each node, the marks that it depends on, one bit for each. Shapes do not count:
        gradients use the shapes of forward tensors that are not their loss."""
        bits = {name: 1 << place for place, name in enumerate(marks)}
        behind: dict[str, int] = {}
        rounds = True
        while rounds:  # values that return through a loop are known in the next round
            rounds = False
            for name, parents in self.inputs.items():
                reached = 0
                for parent in parents if self.nodes[name].op not in SHAPES else ():
                    reached |= behind.get(parent, 0) | bits.get(parent, 0)
                if reached and reached != behind.get(name):
                    rounds = rounds or self.nodes[name].op == "NextIteration"
                    behind[name] = reached
        return behind

    def shaped_like(self, seed: str) -> str | None:
        """The tensor whose shape the ones have, if the graph says so."""
        first = next(iter(self.inputs[seed]), None)
        if first is None or self.nodes[seed].op == "OnesLike":
            return first
        return self.inputs[first][0] if self.nodes[first].op in SHAPES else None

    def may_be_loss(self, name: str) -> bool:
        """Whether it is a computed float scalar, or has an unknown shape."""
        node = self.nodes[name]
        outputs = node.outputs[:1] if node.inputs else ()
        return any(output.dtype in FLOATS and output.shape in ((), None) for output in outputs)

    def likeness(self, name: str, behind: dict[str, int]) -> tuple[int, bool, bool]:
        """How likely a node is to be a loss; without known shapes, a mean or sum is most likely."""
        node = self.nodes[name]
        return behind[name].bit_count(), node.outputs[0].shape == (), node.op in ("Mean", "Sum")

    def with_other_terms(
        self, loss: str, seed: str, after: set[str], behind: dict[str, int]
    ) -> str:
        """The sum that a loss is a term of: the gradients of a sum are those of its terms. Or its
        negative, if all gradients begin with one; those of a difference begin with both."""
        negated = {self.nodes[name].op for name in self.users.get(seed, ())} == {"Neg"}
        kinds = (*SUMS, "Neg") if negated else SUMS
        while True:
            sums = [
                user
                for user in self.users.get(loss, ())
                if self.nodes[user].op in kinds and user not in after and self.may_be_loss(user)
            ]
            if len(sums) != 1 or not all(name in behind for name in self.inputs[sums[0]]):
                return loss
            loss = sums[0]

    def between(self, after: set[str], needed: set[str]) -> set[str]:
        """The gradients: the nodes between a loss and the nodes of the optimiser."""
        states = [n.name for n in self.nodes.values() if n.op in VARIABLES and n.name not in needed]
        arithmetic = reach(states, self.users) | self.updates.keys()
        ends = {parent for name in arithmetic & after for parent in self.inputs[name]} & after
        return reach(ends - arithmetic, self.needs, needed | arithmetic)

    def training(self, loss: str | None, updates: Sequence[str]) -> Training:
        """The training of a loss: each update is run by the node that runs most of them."""
        steps = {  # a step counter adds a constant after the updates
            name: [
                user
                for user in (*self.followers.get(name, ()), *self.users.get(name, ()))
                if self.nodes[user].op in (*STEPS, "Const")
            ]
            for name in self.nodes
        }
        running = {update: reach([update], steps) for update in updates}
        counts = Counter(name for names in running.values() for name in names)
        last = (
            max(
                names,
                key=lambda name: (counts[name], self.nodes[name].op in STEPS, self.order[name]),
            )
            for names in running.values()
        )
        return Training(loss, tuple(updates), tuple(dict.fromkeys(last)))


def counting(node: Node) -> bool:
    """Whether it makes or transforms integers: sizes, axes, indices."""
    is_integer = all(output.dtype.startswith("int") for output in node.outputs)
    return is_integer or node.op == "Cast"


# Gradient names: the forward op of a gradient node, as far as its name tells.
#
# `tf.gradients` puts the gradient of an op into a scope with the op's name,
# `gradients/loss/Mean_grad/Tile`, inside the scope in which it is called. A `GradientTape` writes
# `gradient_tape/loss/Mean/Tile`.

SCOPE = re.compile(r"(?P<outer>(?:.*?/)??)gradients(?:_\d+)?/(?P<inner>.+)")
TAPE = re.compile(r"(?P<outer>(?:.*?/)??)gradient_tape/(?P<inner>.+)/[^/]+")
GRAD = re.compile(r"_grad(?:_\d+)?/")


def owners(names: Iterable[str], gradient_names: Collection[str] = ()) -> dict[str, str]:
    """Gradient node -> forward node, by the names of a graph. `gradient_names` were found in
    another way, and may be in a scope of any name."""
    all_names = list(names)
    by_name, by_structure = set(all_names), set(gradient_names)
    owned = {}
    for name in all_names:
        candidates = forward_names(name, name in by_structure)
        forward = next((text for text in candidates if text in by_name and text != name), None)
        if forward:
            owned[name] = forward
    return owned


def forward_names(name: str, is_gradient: bool) -> Iterator[str]:
    """The possible names of the forward op, the most likely first."""
    match = SCOPE.fullmatch(name)
    if match:
        for inner in before_grad(match["inner"]):
            yield from with_outer_scopes(match["outer"], inner)
        return
    match = TAPE.fullmatch(name)
    if match:
        yield from with_outer_scopes(match["outer"], match["inner"])
    elif is_gradient:
        for whole in before_grad(name):
            parts = whole.split("/")
            yield from ("/".join(parts[start:]) for start in range(len(parts)))


def before_grad(name: str) -> Iterator[str]:
    """The parts of a name before each `_grad/`, the last one first: the op may be a gradient
    itself."""
    for match in reversed(list(GRAD.finditer(name))):
        yield name[: match.start()]


def with_outer_scopes(outer: str, inner: str) -> Iterator[str]:
    """A name, also in each of the surrounding scopes: graphs are imported under new names."""
    yield inner
    scopes = outer.split("/")[:-1]
    for count in range(1, len(scopes) + 1):
        yield "/".join((*scopes[:count], inner))
