"""Toggles: what a graph pass is worth, seen by switching it off. No TensorFlow in here."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median

from tflab.analysis.step_times import spread
from tflab.records import FateChange, Placement, Race, Toggle

SIGNIFICANCE = 0.01  # the chance, at most, of calling noise a difference


def compare(usual: Placement, now: Placement, without: Sequence[str]) -> Toggle:
    """What changed in the ledger when passes were switched off."""
    fates = {fate.name: fate.fate for fate in now.ledger}
    return Toggle(
        without=tuple(without),
        usual_node_count=len(usual.nodes),
        node_count=len(now.nodes),
        changes=tuple(
            FateChange(fate.name, fate.fate, fates[fate.name])
            for fate in usual.ledger
            if fates[fate.name] != fate.fate
        ),
    )


def race(usual_ns: Sequence[int], without_ns: Sequence[int]) -> Race:
    """Two ways to run the same step, measured in turn: pair by pair the machine was the same.

    Whether they differ is told by the sign test (Dixon and Mood 1946): how likely would so
    uneven a split of the pairs be if each were as likely to be faster?
    """
    pairs = list(zip(usual_ns, without_ns, strict=True))
    slower = sum(b > a for a, b in pairs)
    unequal = sum(b != a for a, b in pairs)
    p_value = sign_test(slower, unequal)
    return Race(
        pairs=len(pairs),
        usual_step_ns=spread(usual_ns),
        without_step_ns=spread(without_ns),
        ratio=median(b / a for a, b in pairs),
        p_value=p_value,
        significant=p_value < SIGNIFICANCE,
    )


def sign_test(successes: int, trials: int) -> float:
    """The two-sided probability of a split at least as uneven as this one, of fair coins."""
    rarer = min(successes, trials - successes)
    return min(1.0, 2 * sum(comb(trials, k) for k in range(rarer + 1)) / 2**trials)
