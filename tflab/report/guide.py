"""Guide: a sentence for each state of a graph, about what to look at in its drawing.

Names and numbers come from the records of the walk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tflab.records.graph import Node, node_of
from tflab.report.drawn import State
from tflab.report.stops import PLACER, titles
from tflab.units import plural, short_device, time

# Characters of a chain rule that fits on two lines of a screen with a sentence, or alone
SHORT, LONG = 90, 160


def sentences(
    states: Sequence[State],
    ns: Mapping[str, float],
    chain_rule: str = "",
    statistic: str = "median",
) -> Iterator[str]:
    """One for each state; `ns` has the time of each node that ran, and `chain_rule` is that of
    this graph, where it is known."""
    for state in states:
        if state.stage == "frontend":
            yield written(state)
        elif state.stage == "backward":
            yield differentiated(state, chain_rule)
        elif state.title == PLACER:
            yield placed(state)
        elif state.stage == "placement":
            yield rewritten(state)
        else:
            yield ran(ns, statistic)


def written(state: State) -> str:
    return (
        f"Follow the arrows down to {last_node(state.defined)}: each box is an op that a line of "
        f"the program created. Nothing has been computed yet."
    )


def last_node(nodes: Sequence[Node]) -> str:
    """The last node whose output no other node takes."""
    consumed = {node_of(tensor) for node in nodes for tensor in node.inputs}
    consumed.update(name for node in nodes for name in node.control_inputs)
    return next((node.name for node in reversed(nodes) if node.name not in consumed), "its end")


def differentiated(state: State, chain_rule: str) -> str:
    if not state.defined:
        return f"The drawing is the same as before. {state.about}"
    if SHORT < len(chain_rule) <= LONG:
        return f"{chain_rule}."
    if 0 < len(chain_rule) <= SHORT:
        return (
            f"{chain_rule}: follow the arrows up. The nodes beside each op multiply the gradient "
            "by its factor."
        )
    return (
        "Follow the arrows up: beside each op is its derivative, multiplied by the gradient "
        "from below. That is the chain rule."
    )


def placed(state: State) -> str:
    devices = Counter(short_device(node.device) for node in state.defined)
    if len(devices) == 1:
        return f"Each node now shows its device: all run on {next(iter(devices))}."
    counts = ", ".join(f"{plural(count, 'node')} on {name}" for name, count in devices.items())
    return f"The colours are devices: {counts}."


def rewritten(state: State) -> str:
    name, _ = titles(state)
    does = f"{name} {state.about}" if state.about else f"this is {name}"
    changes = [
        f"{words} ({plural(count, 'node')})"
        for words, count in (
            ("what goes", len(state.gone)),
            ("what changes", len(state.touched)),
        )
        if count
    ]
    if not changes:
        return f"Look at the arrows: {does}."
    return f"Look for {' and '.join(changes)}: {does}."


def ran(ns: Mapping[str, float], statistic: str = "median") -> str:
    spent = {name: amount for name, amount in ns.items() if amount}
    if not spent:
        return "These nodes ran."
    most = max(spent, key=spent.__getitem__)
    return (
        f"Stronger colours mean longer times. {most} took longest: "
        f"{time(spent[most])} in a traced step ({statistic})."
    )
