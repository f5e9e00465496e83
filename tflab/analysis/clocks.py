"""Clocks: how far the clocks of several machines are apart, from the messages between them.

A message cannot arrive before it was sent. So each one from a to b bounds how far b's clock can be
behind a's, and messages both ways bound the offset from both sides, as in NTP (Mills 1991,
"Internet time synchronization"); of many messages the fastest count. Where a task has exchanged
messages with a third one, that bounds it as well: the bounds are difference constraints, and the
tightest ones are shortest paths (Cormen et al., "Introduction to Algorithms", section 24.4). The
middles of the tightest bounds satisfy all constraints at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import inf

from tflab.records.cluster import Message, Offset

Bounds = dict[tuple[str, str], float]  # (a, b) -> the most that b's clock can be ahead of a's


def offsets(messages: Iterable[Message], reference: str) -> tuple[Offset, ...]:
    """The offset of every other clock that the messages name, in the order of their names.

    While no message arrives before it was sent, all clocks may be right, and none is corrected;
    else all are, because only together do the offsets satisfy every message. A clock that was set
    during the measurement, or runs fast, may satisfy no constant offset: then the middle of the
    contradicting bounds is given, and that it is not consistent. A clock with messages in one
    direction only has an infinite uncertainty.
    """
    direct = fastest(messages)
    clocks = sorted({clock for pair in direct for clock in pair} | {reference})
    tight = tightest(direct, clocks)
    consistent = all(tight[clock, clock] >= 0 for clock in clocks)
    bounds: Mapping[tuple[str, str], float] = tight if consistent else direct
    found = (
        offset(clock, bounds.get((reference, clock), inf), bounds.get((clock, reference), inf))
        for clock in clocks
        if clock != reference
    )
    wrong = any(bound < 0 for bound in direct.values())
    return tuple(replace(one, applied_ns=round(one.ahead_ns) if wrong else 0) for one in found)


def fastest(messages: Iterable[Message]) -> Bounds:
    """The bound that the fastest message of each direction sets."""
    bounds: Bounds = {}
    for message in messages:
        pair = message.from_clock, message.to_clock
        if pair[0] != pair[1]:
            took = message.received_ns - message.sent_ns  # with the offset in it
            bounds[pair] = min(bounds.get(pair, inf), took)
    return bounds


def tightest(direct: Bounds, clocks: Iterable[str]) -> Bounds:
    """All bounds that follow from these: shortest paths between all clocks (Floyd and Warshall)."""
    clocks = list(clocks)
    bounds = {(a, b): direct.get((a, b), inf) for a, b in product(clocks, clocks)}
    for clock in clocks:
        bounds[clock, clock] = 0
    for between, a, b in product(clocks, clocks, clocks):
        through = bounds[a, between] + bounds[between, b]
        bounds[a, b] = min(bounds[a, b], through)
    return bounds


def offset(clock: str, most: float, most_behind: float) -> Offset:
    """From the most that a clock can be ahead, and the most that it can be behind."""
    if inf in (most, most_behind):
        return Offset(clock, 0, inf)
    width = (most + most_behind) / 2
    return Offset(clock, (most - most_behind) / 2, abs(width), consistent=width >= 0)
