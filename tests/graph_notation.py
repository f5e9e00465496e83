"""A notation for graphs, and for what passes do to them.

A graph: `x; k=Const; a=Neg(k,x:1,^k)@CPU:1; b`. After `=` is the op, in parentheses are the inputs,
those that only control after `^`, after `@` is the device. Without an op it is an `Op`.
Several graphs: `x; a=Neg(x) => x; b`. A name alone is a node as it was before, if there was one.

What passes did: `fold: a folded f, b folded in f; prune: -k, k removed`. Before `: ` is the pass.
`a merged b`: b has the value of a. `a fused in b`: b computes something of it. `a replaced b`: the
pass made b to do the work of a. And of the graph: `+a` is new, `-a` is gone, `a Relu>Elu` has
another op, `~a` has other inputs, `@a` is on another device.
"""

import re
from collections.abc import Mapping

from tests.records_by_hand import a_pass
from tflab.records.graph import Node
from tflab.records.placed import Fate, Pass, Rewrite, Takeover

NODE = re.compile(r"([^=(@\s]+)(?:=(\w+))?(?:\(([^)]*)\))?(?:@(\S+))?")
TAKEOVER = re.compile(r"(\S+) (\w+)( in)?(?: (\S+))?")
REWRITE = re.compile(r"(\S+) (\w+)>(\w+)")


def parts(text: str, separator: str) -> list[str]:
    """Split a text, without the space around the parts and without empty parts."""
    return [" ".join(part.split()) for part in text.split(separator) if part.strip()]


def matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not in the notation of graphs")
    return match


def node(text: str) -> Node:
    name, op, inputs, device = matched(NODE, text).groups()
    tensors = parts(inputs or "", ",")
    return Node(
        *(name, op or "Op", tuple(tensor for tensor in tensors if tensor[0] != "^")),
        control_inputs=tuple(tensor[1:] for tensor in tensors if tensor[0] == "^"),
        device=device or "",
    )


def graph(text: str, before: Mapping[str, Node] | None = None) -> tuple[Node, ...]:
    known = before or {}
    return tuple(known.get(part) or node(part) for part in parts(text, ";"))


def graphs(text: str) -> list[tuple[Node, ...]]:
    known: dict[str, Node] = {}
    read = []
    for part in text.split("=>"):
        read.append(graph(part, known))
        known |= {node.name: node for node in read[-1]}
    return read


def takeover(text: str) -> Takeover:
    name, fate, inside, into = matched(TAKEOVER, text).groups()
    replaced = fate == "replaced"
    return Takeover(
        *(name, "removed" if replaced else fate, into), has_value=not inside, replaced=replaced
    )


def takeovers(text: str) -> tuple[Takeover, ...]:
    return () if text.strip() == "nothing" else tuple(map(takeover, parts(text, ",")))


def named(text: str) -> tuple[str, str]:
    """The name of a pass, or "", and what it did."""
    name, colon, changes = text.partition(": ")
    return (name, changes) if colon else ("", text)


def one_pass(
    text: str,
    before: int = 0,
    after: int = 0,
    iteration: int | None = None,
    definitions: tuple[Node, ...] = (),
) -> Pass:
    """A pass by what it did, between graphs of so many nodes."""
    name, changes = named(text)
    signs: dict[str, list[str]] = {sign: [] for sign in "+-~@"}
    rewritten, taken = [], []
    for change in parts(changes, ","):
        if change[0] in signs:
            signs[change[0]].append(change[1:])
        elif rewrite := REWRITE.fullmatch(change):
            rewritten.append(Rewrite(*rewrite.groups()))
        else:
            taken.append(takeover(change))
    added, removed, rewired, moved = map(tuple, signs.values())
    return a_pass(
        *(name, iteration, before, after),
        *(added, removed, tuple(rewritten), rewired, moved, tuple(taken)),
        definitions=definitions,
    )


def passes(text: str) -> list[Pass]:
    return [one_pass(part) for part in parts(text, ";")]


def fates(text: str) -> list[Fate]:
    """Fates of nodes, each with the pass responsible: `fold: a folded b, c folded b; d removed`."""
    return [
        Fate(taken.name, taken.fate, by or None, *list(vars(taken).values())[2:])
        for by, changes in map(named, parts(text, ";"))
        for taken in takeovers(changes)
    ]
