"""Values in a node's history: those of its inputs and outputs, and their gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tflab.analysis.branches import SWITCHES
from tflab.analysis.gradient_graph import gradient_name
from tflab.records.gradients import GradientNode
from tflab.records.graph import graph_def_name, node_of
from tflab.records.node_history import NodeHistory
from tflab.records.values import FED, VARIABLE, Value
from tflab.units import plural
from tflab.views import values as view

MOST = 4  # inputs or outputs of a node whose values are shown

Sentence = tuple[str, tuple[str, ...], str]  # text, nodes, and text after them


def with_values(
    histories: Mapping[str, NodeHistory],
    gradient_nodes: Sequence[GradientNode],
    values: Iterable[Value],
) -> dict[str, NodeHistory]:
    """Return the histories with the purposes of gradient nodes and with the program's values."""
    meanings = {node.name: node for node in gradient_nodes}
    outputs: dict[str, list[Value]] = {}
    by_tensor: dict[str, Value] = {}
    for value in values:
        outputs.setdefault(value.node, []).append(value)
        by_tensor[graph_def_name(value.tensor)] = value
    computing: dict[str, list[str]] = {}
    for node in gradient_nodes:
        if node.towards and node.complete and node.used:
            computing.setdefault(node.towards, []).append(node.name)
    return {
        name: replace(
            history,
            meaning=meanings.get(name),
            values=tuple(outputs.get(name, ())),
            taken=tuple(by_tensor[tensor] for tensor in history.inputs if tensor in by_tensor),
            gradient=gradient(
                outputs.get(name, ()),
                [outputs.get(one, ()) for one in computing.get(gradient_name(name), ())],
            ),
        )
        for name, history in histories.items()
    }


def gradient(own: Sequence[Value], computed: Sequence[Sequence[Value]]) -> Value | None:
    """Return the value of the last node that computes a gradient; it has as many elements as the
    forward tensor."""
    for outputs in reversed(computed):
        if len(outputs) == 1 and (not own or view.elements(outputs[0]) == view.elements(own[0])):
            return outputs[0]
    return None


def only_value(history: NodeHistory) -> Value | None:
    """Return the value of a node with one output."""
    return history.values[0] if len(history.values) == 1 else None


def sentences(history: NodeHistory) -> Iterator[Sentence]:
    """Yield the values of a node's inputs and outputs, those of a variable before and after the
    step, and the gradient of the loss with respect to them."""
    for value in history.taken[:MOST]:
        name = graph_def_name(value.tensor)
        yield "input ", (name,), f": {view.amounts_of(value, value.shape)}"
    if len(history.taken) > MOST:
        yield f"and {plural(len(history.taken) - MOST, 'more input')}", (), ""
    for value in history.values[:MOST]:
        yield f"{description(value)}: {view.amounts_of(value, value.shape)}", (), ""
        if value.after is not None:
            yield f"after the step: {view.amounts_of(value.after, value.shape)}", (), ""
    if len(history.values) > MOST:
        yield f"and {plural(len(history.values) - MOST, 'more output')}", (), ""
    if history.gradient is not None:
        amounts = view.amounts_of(history.gradient, history.gradient.shape)
        yield (
            f"{gradient_name(history.name)}, computed by ",
            (history.gradient.node,),
            f": {amounts}",
        )


def description(value: Value) -> str:
    """Return what a value is: `fed`, `before the step`, `value`, `value of split:1`."""
    if value.kind == FED:
        return "fed"
    if value.kind == VARIABLE:
        return "before the step"
    first = graph_def_name(value.tensor) == node_of(value.tensor)
    return "value" if first else f"value of {value.tensor}"


def missing(history: NodeHistory) -> str | None:
    """Return why a node of the user's graph has no values: its fate."""
    fate = history.fate.fate if history.fate else "executed"
    return None if history.values or not history.outputs or fate == "executed" else fate


def done_by(history: NodeHistory) -> str:
    """Return what the carrier did for the node: for a folded or removed node it does no work."""
    fate = history.fate.fate if history.fate and not history.fate.replaced else ""
    if history.fate and fate == "folded" and not history.fate.has_value:
        return "it was used before the steps to compute the constant "
    if fate == "folded":
        return "it was computed before the steps; its value is stored in "
    if fate == "removed" and history.ran_as in SWITCHES:  # no step may have taken that output
        return "it did not run; its consumers take their value from "
    if fate == "removed":
        return "it did not run; its consumers took the value from "
    return "its computation was done by "
