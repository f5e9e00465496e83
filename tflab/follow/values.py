"""Values in a node's history: what its outputs held in the recorded step, and their gradient.

No TensorFlow in here. The values are those of the graph that ran. A node that is not in it has
none of its own; its gradient may still be known, where another node computed the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from tflab.analysis.flowed import SAME_NUMBERS
from tflab.analysis.gradient_graph import gradient_name
from tflab.records import Fate, GradientNode, Node, NodeHistory, Value, node_of
from tflab.records.values import FED, VARIABLE
from tflab.units import plural
from tflab.views import values as view

CARRIED = ("fused", "compiled", "merged")  # fates of a node whose work another one does
MOST = 4  # inputs or outputs of a node whose values are shown

Sentence = tuple[str, tuple[str, ...], str]  # words, nodes, and words behind them


def with_values(
    histories: Mapping[str, NodeHistory],
    gradient_nodes: Sequence[GradientNode],
    values: Sequence[Value],
    ran: Iterable[Node],
) -> dict[str, NodeHistory]:
    """The same histories with what each gradient node is for, and with the recorded values; `ran`
    are the nodes of the graph that ran."""
    meanings = {node.name: node for node in gradient_nodes}
    outputs: dict[str, list[Value]] = {}
    for value in values:
        outputs.setdefault(value.node, []).append(value)
        if value.kind == FED and node_of(value.tensor) != value.node:
            outputs.setdefault(node_of(value.tensor), []).append(value)
    computing: dict[str, list[GradientNode]] = {}
    for node in gradient_nodes:
        if node.towards and node.complete:
            computing.setdefault(node.towards, []).append(node)
    taken = inputs(ran, values)
    return {
        name: replace(
            history,
            meaning=meanings.get(name),
            values=tuple(outputs.get(name, ())),
            taken=taken.get(history.carrier or "", ()),
            carrier_values=tuple(outputs.get(carrier_of(history), ())),
            gradient=gradient(
                outputs.get(name, ()),
                [
                    held(node, histories[node.name].fate, outputs)
                    for node in computing.get(gradient_name(name), ())
                    if node.name in histories
                ],
            ),
        )
        for name, history in histories.items()
    }


def inputs(ran: Iterable[Node], values: Iterable[Value]) -> dict[str, tuple[Value, ...]]:
    """What each node of the graph that ran took, as far as it was recorded."""
    known = {tensor_of(value): value for value in values if value.node}
    return {
        node.name: tuple(known[tensor] for tensor in node.inputs if tensor in known) for node in ran
    }


def tensor_of(value: Value) -> str:
    """The tensor as nodes name it that take it: what is fed and variables have names of users."""
    return value.node if value.kind in (FED, VARIABLE) else view.short(value.tensor)


def carrier_of(history: NodeHistory) -> str:
    """The other node that does the work of this one; "" where it does its own, or none does."""
    fate = history.fate.fate if history.fate else ""
    other = history.carrier not in (None, history.name)
    return (history.carrier or "") if other and fate in CARRIED else ""


def gradient(own: Sequence[Value], computed: Sequence[Sequence[Value]]) -> Value | None:
    """What the last of the nodes that compute a gradient held; it has as many elements as what it
    is the gradient of."""
    for outputs in reversed(computed):
        if len(outputs) == 1 and (not own or size(outputs[0]) == size(own[0])):
            return outputs[0]
    return None


def held(
    node: GradientNode, fate: Fate | None, outputs: Mapping[str, Sequence[Value]]
) -> Sequence[Value]:
    """The numbers of a gradient node, by itself or by the node that its users take them from.

    The gradient of the loss by itself is 1: folded, it is in a constant, if that is 1 and no more
    was folded into it.
    """
    if fate is None or fate.into is None:
        return outputs.get(node.name, ())
    if fate.fate == "folded" and node.formula == "1":
        constant = outputs.get(fate.into, ())
        return [value for value in constant if set(value.values or ()) == {1}]
    return outputs.get(fate.into if fate.fate in SAME_NUMBERS else node.name, ())


def of(history: NodeHistory, histories: Mapping[str, NodeHistory]) -> Value | None:
    """What a node held that has one output, by itself or by the node that stands in for it."""
    outputs = {name: other.values for name, other in histories.items()}
    known = history.values
    if history.meaning and not known:
        known = tuple(held(history.meaning, history.fate, outputs))
    return known[0] if len(known) == 1 else None


def size(value: Value) -> int:
    return prod(dim or 0 for dim in value.shape or ())


def sentences(history: NodeHistory) -> Iterator[Sentence]:
    """What a node took, the values of its outputs, of a variable those before and after the step,
    and the gradient of the loss by them."""
    for value in history.taken[:MOST]:
        name = view.short(value.tensor)
        yield "took ", (name,), f": {view.amounts_of(value, value.shape)}"
    if len(history.taken) > MOST:
        yield f"and {plural(len(history.taken) - MOST, 'input')} more", (), ""
    for value in history.carrier_values[:MOST]:
        yield f"{about(value)}: {view.amounts_of(value, value.shape)}", (), ""
    for value in history.values[:MOST]:
        yield f"{about(value)}: {view.amounts_of(value, value.shape)}", (), ""
        if value.after is not None:
            yield f"after the step: {view.amounts_of(value.after, value.shape)}", (), ""
    if len(history.values) > MOST:
        yield f"and {plural(len(history.values) - MOST, 'output')} more", (), ""
    if history.gradient is not None:
        amounts = view.amounts_of(history.gradient, history.gradient.shape)
        yield (
            f"{gradient_name(history.name)}, which ",
            (history.gradient.node,),
            f" held: {amounts}",
        )


def about(value: Value) -> str:
    """What the recorded numbers are."""
    if value.kind == VARIABLE:
        return "before the recorded step"
    again = f", the last time of {value.calls:,}" if value.calls > 1 else ""
    verb = "fed to" if value.kind == FED else "held by"
    return f"{verb} {view.short(value.tensor)} in the recorded step{again}"


def missing(history: NodeHistory) -> str | None:
    """Why a node of the user's graph has no values: what became of it."""
    if history.values or not history.outputs or history.fate is None:
        return None
    if history.fate.fate == "executed":
        return None
    return history.fate.fate


def recorded(histories: Iterable[NodeHistory]) -> bool:
    """Whether the values of a step are known."""
    return any(history.values for history in histories)
