"""Gradient stops: the ops at which a gradient ends on its way from the loss to a node."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tflab.records.graph import Node, makers, reach, turned_around

MOST = 3  # stops that are named for one node
RETURNED_NONE = "its gradient function returned none"
ZEROS = "its gradient function returned only zeros"


@dataclass(frozen=True)
class Stops:
    """For each node that no gradient reaches: the ops at which its gradients end."""

    reasons: Mapping[str, str]  # why an op hands no gradient on
    ways: Mapping[str, Mapping[str, str]]  # node -> op at its end -> the next node on the way
    towards_loss: Mapping[str, str]  # node -> the next one on a shortest way to the loss

    def at(self, name: str) -> tuple[str, ...]:
        return tuple(end for end in self.ways.get(name, ()) if end in self.reasons)

    def path(self, name: str, stop: str) -> Iterator[str]:
        """Yield the nodes from this one to the op at which its gradient ends, and to the loss."""
        while name != stop:
            yield name
            name = self.ways[name][stop]
        while name:
            yield name
            name = self.towards_loss.get(name, "")


def stops(
    nodes: Sequence[Node],
    loss: str,
    without: Mapping[str, str],
    handed: Mapping[tuple[str, str], str],
) -> Stops:
    """Return where gradients stop in a graph. `without` says why ops have no gradient; `handed`
    says, by (op, node of the input), what is wrong with the gradient that a gradient function
    returned; "" if nothing is.

    If several ops without a gradient follow one another, the one nearest to the node counts:
    TensorFlow calls no gradient function beyond a result that is not a floating-point number.
    """
    inputs = makers(nodes)
    users = turned_around(inputs)
    given = {
        name: [at for at in before if handed.get((name, at)) == ""]
        for name, before in inputs.items()
    }
    reached = reach([loss], given)
    reasons = dict(without)
    ways: dict[str, dict[str, str]] = {}
    waiting: deque[str] = deque()
    for node in nodes:
        ends = [user for user in users.get(node.name, ()) if user in reached]
        if node.name not in reached and ends:
            ways[node.name] = dict(zip(ends[:MOST], ends, strict=False))
            waiting.append(node.name)
            wrongs = {end: handed.get((end, node.name)) for end in ends if end not in without}
            reasons |= {end: wrong for end, wrong in wrongs.items() if wrong}
    while waiting:
        name = waiting.popleft()
        ends = [name] if name in without else [*ways[name]]
        for before in dict.fromkeys(inputs.get(name, ())):
            if before in reached or before not in inputs:
                continue
            known = ways.setdefault(before, {})
            new = [end for end in ends if end not in known][: MOST - len(known)]
            if new:
                known |= dict.fromkeys(new, name)
                waiting.append(before)
    return Stops(reasons, ways, shortest(inputs, loss))


def shortest(inputs: Mapping[str, Sequence[str]], loss: str) -> dict[str, str]:
    """Return the next node on a shortest way to the loss."""
    towards = {loss: ""}
    waiting = deque(towards)
    while waiting:
        name = waiting.popleft()
        for before in inputs.get(name, ()):
            if before not in towards:
                towards[before] = name
                waiting.append(before)
    return towards
