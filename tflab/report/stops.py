"""Stops: the stages at which a drawing halts, each with the states that lead through it.

A stop may have many states, as the graph has one after every pass that
rewrote it; these bear their names beside the stop.
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
    colour: str  # what the colours of the drawing say here, unless the reader chooses
    first: int  # of its states, by number
    last: int

    @property
    def entry(self) -> int:
        """The state to show first: of the passes that rewrite, the first; else what came of all."""
        return self.first if self.name == "rewritten" else self.last


@dataclass(frozen=True)
class Tick:
    """A state on the way through a stop, by the pass that made it."""

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
COLOURS = {"placed": "device", "execution": "time"}  # of all others: the kind of a node


def stops(states: Sequence[State]) -> tuple[Stop, ...]:
    """The stops that these states have, in their order."""
    groups = groupby(enumerate(names(states)), key=lambda pair: pair[1])
    spans = [(name, [number for number, _ in members]) for name, members in groups]
    return tuple(
        Stop(name, TITLES[name], COLOURS.get(name, "kind"), numbers[0], numbers[-1])
        for name, numbers in spans
    )


def names(states: Sequence[State]) -> Iterator[str]:
    """The stop of each state: what comes before the placer prepares for it, the rest rewrites."""
    placed = max((n for n, state in enumerate(states) if state.title == PLACER), default=-1)
    for number, state in enumerate(states):
        if state.stage != "placement":
            yield state.stage
        else:
            yield "placed" if number <= placed else "rewritten"


def last_made(states: Sequence[State]) -> int:
    """The last state before the runtime touches the graph."""
    return max(n for n, state in enumerate(states) if state.stage in ("frontend", "backward"))


def ticks(states: Sequence[State], stop: Stop) -> tuple[Tick, ...]:
    """The states of a stop that has more than one."""
    if stop.first == stop.last:
        return ()
    counts = [0, *pass_log.node_counts(states, pass_log.versions(states))]
    return tuple(
        Tick(number, *titles(states[number]), change(counts[number], counts[number + 1]))
        for number in range(stop.first, stop.last + 1)
    )


def titles(state: State) -> tuple[str, str]:
    """`constant_folding`, `iteration 2`."""
    title, _, again = state.title.partition(", ")
    return title, again


def change(before: int, after: int) -> str:
    """`+2` nodes or 13 fewer, or that as many are left."""
    if before == after:
        return "±0"
    return f"+{after - before:,}" if after > before else f"\N{MINUS SIGN}{before - after:,}"
