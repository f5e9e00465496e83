"""Two samples: whether a step takes another time in one measurement than in another that was made
elsewhere, or later. No TensorFlow in here.

Such measurements share no disturbance, so their observations make no pairs: the ratio of their
means has the interval of Welch ("The generalization of Student's problem when several different
population variances are involved", 1947), for logarithms, as in `verdicts`. It covers what differs
from process to process. What a machine changes of itself from one day to the next, such as its
clock, is not in it, so only what is proven to differ by more than DRIFT is called different.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from scipy.special import stdtr, stdtrit

from tflab.analysis import verdicts
from tflab.records import Verdict

DRIFT = 1.05  # times as long: what two measurements of the same may differ by

Sample = Sequence[float]  # an observation of each process, above 0
Pair = tuple[Sample, Sample]  # the usual one, and the one that is held against it


def judge(pairs: Sequence[Pair]) -> tuple[Verdict, ...]:
    """A verdict for each pair, made together: how many times as long the second takes."""
    slower = proven(pairs, DRIFT)
    faster = proven([(other, usual) for usual, other in pairs], DRIFT)
    return tuple(map(verdict, pairs, slower, faster))


def proven(pairs: Sequence[Pair], factor: float) -> list[bool]:
    """For which pairs the second is proven to take more than `factor` times as long, so that in 99
    of 100 such calls none is wrong. The interval is then above it, too."""
    return verdicts.holm([p_value(pair, factor) for pair in pairs], verdicts.ERROR)


def verdict(pair: Pair, slower: bool, faster: bool) -> Verdict:
    ratio, low, high = interval(pair)
    if slower or faster:
        word = "slower" if slower else "faster"
    elif low >= 1 / DRIFT and high <= DRIFT:
        word = "alike"
    else:
        word = "cannot tell"
    p = min(1.0, p_value(pair, 1), p_value(pair[::-1], 1))
    return Verdict(ratio, low, high, p, min(map(len, pair)), word)


def interval(pair: Pair) -> tuple[float, float, float]:
    """The ratio, and the ends of what holds the true one in 99 of 100 comparisons."""
    mean = difference(pair)
    if not enough(pair):
        return exp(mean), 0.0, inf
    error, freedom = welch(pair)
    reach = float(stdtrit(freedom, 1 - verdicts.ERROR / 2)) * error if error else 0.0
    return exp(mean), exp(mean - reach), exp(mean + reach)


def p_value(pair: Pair, factor: float) -> float:
    """How likely such a ratio is where the true one is `factor` or less. It is twice that of one
    side, as is the interval, which misses the truth on either side."""
    if not enough(pair):
        return 1.0
    above = difference(pair) - log(factor)
    error, freedom = welch(pair)
    if error == 0:
        return 0.0 if above > 0 else 1.0
    return min(1.0, 2 * float(stdtr(freedom, -above / error)))


def enough(pair: Pair) -> bool:
    return min(map(len, pair)) >= verdicts.LEAST


def difference(pair: Pair) -> float:
    usual, other = (fmean(map(log, sample)) for sample in pair)
    return other - usual


def welch(pair: Pair) -> tuple[float, float]:
    """The standard error of the difference, and its degrees of freedom."""
    parts = [variance(list(map(log, sample))) / len(sample) for sample in pair]
    if not sum(parts):
        return 0.0, inf
    rest = sum(
        part**2 / (len(sample) - 1) for part, sample in zip(parts, pair, strict=True) if part
    )
    return sqrt(sum(parts)), sum(parts) ** 2 / rest
