"""Values in a node's history: its outputs in the recorded step, and their gradient.

The values of a node are those that the program defines, with the name of the tensor of the graph
that ran that has the same value. If the node of this name in the graph that ran computes something
else, both are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tflab.analysis.branches import SWITCHES
from tflab.analysis.gradient_graph import gradient_name
from tflab.records.gradients import GradientNode
from tflab.records.graph import Node, graph_def_name, node_of
from tflab.records.node_history import NodeHistory
from tflab.records.values import COMPUTED, CONSTANT, FED, VARIABLE, Defined, Value
from tflab.units import plural
from tflab.views import values as view

CARRIED = ("fused", "compiled", "merged")  # fates of a node whose work another node does
MOST = 4  # inputs or outputs of a node whose values are shown

# The nodes of its name and in its place were compared, other nodes were not
ALONE = "in a step without graph passes (no node that took its place has this value)"
OTHER = "a node with this name ran, but with other inputs"

Sentence = tuple[str, tuple[str, ...], str]  # text, nodes, and text after them


def with_values(
    histories: Mapping[str, NodeHistory],
    gradient_nodes: Sequence[GradientNode],
    recorded: Sequence[Value],
    reference: Sequence[Defined],
    nodes: Iterable[Node],
) -> dict[str, NodeHistory]:
    """The same histories with the purpose of each gradient node, and with the values of the
    recorded step, those of the reference step, and the nodes of the graph that ran."""
    meanings = {node.name: node for node in gradient_nodes}
    ran = {node.name: node for node in nodes}
    outputs, defined = by_node(recorded), by_node(reference)
    computing: dict[str, list[str]] = {}
    for node in gradient_nodes:
        if node.towards and node.complete and node.used:
            computing.setdefault(node.towards, []).append(node.name)
    consumed = inputs(ran.values(), recorded)
    computed = {value.node for value in recorded if value.kind in (CONSTANT, COMPUTED)}
    known = {}
    for name, history in histories.items():
        own = outputs.get(name, ())
        other = any(value.agrees is False for value in own)
        values: Sequence[Value] = defined.get(name, ())
        if not values and not other:  # a node of the runtime, a feed, or a variable
            values = own
        not_run = False if history.carrier in computed else history.not_run
        known[name] = replace(
            history,
            meaning=meanings.get(name),
            values=tuple(values),
            other_inputs=ran[name].inputs if other and name in ran else None,
            own_values=tuple(own) if other else (),
            not_run=not_run,
            taken=() if not_run is not False else consumed.get(history.carrier or "", ()),
            carrier_values=tuple(outputs.get(carrier_of(history), ())),
            gradient=gradient(
                values, [defined.get(one, ()) for one in computing.get(gradient_name(name), ())]
            ),
        )
    return known


AnyValue = TypeVar("AnyValue", bound=Value)


def by_node(values: Iterable[AnyValue]) -> dict[str, list[AnyValue]]:
    """The values of each node; a feed is also a value of the program's placeholder."""
    outputs: dict[str, list[AnyValue]] = {}
    for value in values:
        outputs.setdefault(value.node, []).append(value)
        if value.kind == FED and node_of(value.tensor) != value.node:
            outputs.setdefault(node_of(value.tensor), []).append(value)
    return outputs


def inputs(ran: Iterable[Node], values: Iterable[Value]) -> dict[str, tuple[Value, ...]]:
    """The recorded inputs of each node of the graph that ran."""
    by_tensor = {tensor_of(value): value for value in values if value.node}
    return {
        node.name: tuple(by_tensor[tensor] for tensor in node.inputs if tensor in by_tensor)
        for node in ran
    }


def tensor_of(value: Value) -> str:
    """The tensor under the name that its consumers use: feeds and variables have users' names."""
    return value.node if value.kind in (FED, VARIABLE) else graph_def_name(value.tensor)


def carrier_of(history: NodeHistory) -> str:
    """The other node that does the work of this one; "" if there is none."""
    fate = history.fate.fate if history.fate else ""
    other = history.carrier not in (None, history.name)
    return (history.carrier or "") if other and fate in CARRIED else ""


def gradient(own: Sequence[Value], computed: Sequence[Sequence[Defined]]) -> Defined | None:
    """The last of the nodes that compute a gradient, by definition; it has as many elements as
    the forward tensor."""
    for outputs in reversed(computed):
        if len(outputs) == 1 and (not own or view.elements(outputs[0]) == view.elements(own[0])):
            return outputs[0]
    return None


def only_value(history: NodeHistory) -> Value | None:
    """The value of a node with one output."""
    return history.values[0] if len(history.values) == 1 else None


def sentences(history: NodeHistory) -> Iterator[Sentence]:
    """The inputs of a node, the values of its outputs, those of a variable before and after the
    step, and the gradient of the loss with respect to them."""
    for value in history.taken[:MOST]:
        name = graph_def_name(value.tensor)
        yield "took ", (name,), f" in the recorded step: {view.amounts_of(value, value.shape)}"
    if len(history.taken) > MOST:
        yield f"and {plural(len(history.taken) - MOST, 'more input')}", (), ""
    for value in history.carrier_values[:MOST]:
        yield f"{description(value)}: {view.amounts_of(value, value.shape)}", (), ""
    for value in history.values[:MOST]:
        before, nodes, after = whose(value)
        yield before, nodes, f"{after}: {view.amounts_of(value, value.shape)}"
        if value.after is not None:
            yield f"after the recorded step: {view.amounts_of(value.after, value.shape)}", (), ""
    if len(history.values) > MOST:
        yield f"and {plural(len(history.values) - MOST, 'more output')}", (), ""
    if history.other_inputs is not None:
        of = " of " if history.other_inputs else ""
        yield f"{OTHER}: it ran as {history.ran_as}{of}", history.other_inputs, ""
        for value in history.own_values[:MOST]:
            yield f"{description(value)}: {view.amounts_of(value, value.shape)}", (), ""
    if history.gradient is not None:
        amounts = view.amounts_of(history.gradient, history.gradient.shape)
        yield (
            f"{gradient_name(history.name)}, computed by ",
            (history.gradient.node,),
            f"{' in the recorded step' if history.gradient.held_by else f' {ALONE}'}: {amounts}",
        )


def whose(value: Value) -> Sentence:
    """Where the numbers are from: the step that ran, or the reference step alone."""
    if not isinstance(value, Defined):
        return description(value), (), ""
    if value.held_by is None:
        return f"{graph_def_name(value.tensor)} {ALONE}", (), ""
    if value.held_by == graph_def_name(value.tensor):
        return description(value), (), ""
    return (
        f"{graph_def_name(value.tensor)}, held in the recorded step by ",
        (value.held_by,),
        "",
    )


def description(value: Value) -> str:
    """What the recorded numbers are."""
    if value.kind == VARIABLE:
        return "before the recorded step"
    again = f", the last time of {value.calls:,}" if value.calls > 1 else ""
    verb = "fed to" if value.kind == FED else "held by"
    return f"{verb} {graph_def_name(value.tensor)} in the recorded step{again}"


def missing(history: NodeHistory) -> str | None:
    """Why a node of the user's graph has no values: its fate."""
    fate = history.fate.fate if history.fate else "executed"
    return None if history.values or not history.outputs or fate == "executed" else fate


def done_by(history: NodeHistory) -> str:
    """What the carrier did for the node: for a folded or removed node it does no work."""
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
