"""Stops: the stages at which a drawing pauses, each with its states; and a sentence for each state.

A stop may have many states, because there is one after every pass that changed the graph; their
names are next to the stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tflab.records.graph import Node, node_of
from tflab.report import graph_states
from tflab.report.contents import State
from tflab.units import plural, short_device, time

# Characters of a chain rule that fits on two lines of a screen with a sentence, or alone
SHORT, LONG = 90, 160
PLACER = "placer"  # the pass that gives every node its device


@dataclass(frozen=True)
class Stop:
    name: str
    title: str
    colour: str  # the meaning of colours here, unless the reader chooses another
    first: int  # number of its first state
    last: int

    @property
    def entry(self) -> int:
        """The state to show first: for rewriting passes the first, otherwise the last."""
        return self.first if self.name == "rewritten" else self.last


@dataclass(frozen=True)
class Tick:
    """A state of a stop, with the pass that made it."""

    state: int
    title: str
    again: str  # `iteration 2` of a pass that runs more than once
    change: str  # in the number of nodes


TITLES = {
    "frontend": "Written",
    "backward": "With gradients",
    "placed": "Placed",
    "rewritten": "Rewritten",
    "execution": "Ran",
}
COLOURS = {"placed": "device", "execution": "time"}  # default: the kind of a node


def stops(states: Sequence[State]) -> tuple[Stop, ...]:
    """The stops of these states, in order."""
    groups = groupby(enumerate(names(states)), key=lambda pair: pair[1])
    spans = [(name, [number for number, _ in members]) for name, members in groups]
    return tuple(
        Stop(name, TITLES[name], COLOURS.get(name, "kind"), numbers[0], numbers[-1])
        for name, numbers in spans
    )


def names(states: Sequence[State]) -> Iterator[str]:
    """The stop of each state: passes before the placer prepare for it, the others rewrite."""
    placed = max((n for n, state in enumerate(states) if state.title == PLACER), default=-1)
    for number, state in enumerate(states):
        if state.stage != "placement":
            yield state.stage
        else:
            yield "placed" if number <= placed else "rewritten"


def last_made(states: Sequence[State]) -> int:
    """The last state before the runtime changes the graph."""
    return max(n for n, state in enumerate(states) if state.stage in ("frontend", "backward"))


def ticks(states: Sequence[State], stop: Stop) -> tuple[Tick, ...]:
    """The states of a stop with more than one."""
    if stop.first == stop.last:
        return ()
    counts = [0, *graph_states.node_counts(states, graph_states.versions(states))]
    return tuple(
        Tick(number, *titles(states[number]), count_change(counts[number], counts[number + 1]))
        for number in range(stop.first, stop.last + 1)
    )


def titles(state: State) -> tuple[str, str]:
    """`constant_folding`, `iteration 2`."""
    title, _, again = state.title.partition(", ")
    return title, again


def count_change(before: int, after: int) -> str:
    """The change in the number of nodes: `+2`, 13 fewer, or none."""
    if before == after:
        return "±0"
    return f"+{after - before:,}" if after > before else f"\N{MINUS SIGN}{before - after:,}"


# A sentence for each state, about what to look at in its drawing. Names and numbers come from the
# records of the walk.


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
