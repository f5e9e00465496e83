"""Stops: the stages at which a drawing pauses, each with its states.

A stop may have many states, because there is one after every pass that changed the graph; their
names are next to the stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tflab.report import pass_log
from tflab.report.drawn import State

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
    counts = [0, *pass_log.node_counts(states, pass_log.versions(states))]
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
