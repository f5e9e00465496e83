"""Clocks: the offsets between the clocks of several machines, from the messages between them.

A message cannot arrive before it was sent. So each message from a to b limits how far b's clock can
be behind a's, and messages in both directions bound the offset from both sides, as in NTP (Mills
1991, "Internet time synchronization"); of many messages the fastest counts. Messages with a third
task give further bounds: all bounds are difference constraints, and the tightest ones are shortest
paths (Cormen et al., "Introduction to Algorithms", section 24.4). The middles of the tightest
bounds satisfy all constraints at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import inf

from tflab.records.cluster import Message, Offset

Bounds = dict[tuple[str, str], float]  # (a, b) -> how far b's clock can be ahead of a's


def offsets(messages: Iterable[Message], reference: str) -> tuple[Offset, ...]:
    """The offset of every other clock in the messages, sorted by name.

    If no message arrives before it was sent, all clocks may be correct, and none is corrected.
    Otherwise all are, because only together do the offsets satisfy every message. If a clock was
    set or drifted during the measurement, no constant offset may satisfy them all: then the middle
    of the contradicting bounds is returned, marked as inconsistent. A clock with messages in one
    direction only has an infinite uncertainty.
    """
    direct = fastest(messages)
    clocks = sorted({clock for pair in direct for clock in pair} | {reference})
    tight = tightest(direct, clocks)
    consistent = all(tight[clock, clock] >= 0 for clock in clocks)
    bounds: Mapping[tuple[str, str], float] = tight if consistent else direct
    measured = (
        offset(clock, bounds.get((reference, clock), inf), bounds.get((clock, reference), inf))
        for clock in clocks
        if clock != reference
    )
    wrong = any(bound < 0 for bound in direct.values())
    return tuple(replace(one, applied_ns=round(one.ahead_ns) if wrong else 0) for one in measured)


def fastest(messages: Iterable[Message]) -> Bounds:
    """The bound that the fastest message of each direction sets."""
    bounds: Bounds = {}
    for message in messages:
        pair = message.from_clock, message.to_clock
        if pair[0] != pair[1]:
            took = message.received_ns - message.sent_ns  # includes the offset
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
    """The offset from its two bounds: how far the clock can be ahead, and how far it can be
    behind."""
    if inf in (most, most_behind):
        return Offset(clock, 0, inf)
    width = (most + most_behind) / 2
    return Offset(clock, (most - most_behind) / 2, abs(width), consistent=width >= 0)
