"""Gradient names: the forward op of a gradient node, as far as its name tells.

`tf.gradients` puts the gradient of an op into a scope with the op's name,
`gradients/loss/Mean_grad/Tile`, inside the scope in which it is called. A `GradientTape` writes
`gradient_tape/loss/Mean/Tile`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

SCOPE = re.compile(r"(?P<outer>(?:.*?/)??)gradients(?:_\d+)?/(?P<inner>.+)")
TAPE = re.compile(r"(?P<outer>(?:.*?/)??)gradient_tape/(?P<inner>.+)/[^/]+")
GRAD = re.compile(r"_grad(?:_\d+)?/")


def owners(names: Iterable[str], found: Collection[str] = ()) -> dict[str, str]:
    """Gradient node -> forward node, by the names of a graph. Nodes that were `found` to be
    gradients by other means may be in a scope of any name."""
    known = list(names)
    there, by_structure = set(known), set(found)
    owned = {}
    for name in known:
        candidates = forward_names(name, name in by_structure)
        forward = next((text for text in candidates if text in there and text != name), None)
        if forward:
            owned[name] = forward
    return owned


def forward_names(name: str, is_gradient: bool) -> Iterator[str]:
    """The possible names of the forward op, the most likely first."""
    match = SCOPE.fullmatch(name)
    if match:
        for inner in before_grad(match["inner"]):
            yield from within(match["outer"], inner)
        return
    match = TAPE.fullmatch(name)
    if match:
        yield from within(match["outer"], match["inner"])
    elif is_gradient:
        for whole in before_grad(name):
            parts = whole.split("/")
            yield from ("/".join(parts[start:]) for start in range(len(parts)))


def before_grad(name: str) -> Iterator[str]:
    """The parts of a name before each `_grad/`, the last one first: the op may be a gradient
    itself."""
    for match in reversed(list(GRAD.finditer(name))):
        yield name[: match.start()]


def within(outer: str, inner: str) -> Iterator[str]:
    """A name, also in each of the surrounding scopes: graphs are imported under new names."""
    yield inner
    scopes = outer.split("/")[:-1]
    for count in range(1, len(scopes) + 1):
        yield "/".join((*scopes[:count], inner))
