"""Two samples: whether the times of a step differ between two measurements that were made in
different places or at different times.

Such measurements share no disturbance, so their observations form no pairs. The ratio of their
means has the interval of Cochran and Cox ("Experimental Designs", 1950), for logarithms, as in
`verdicts`. That of Welch (1947) is shorter, but with three processes compared with ten it misses
the truth three times as often as it states. The interval covers differences between processes. It
does not cover changes of the machine from one day to the next, such as its clock, so only a proven
difference of more than DRIFT counts as different.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from scipy.optimize import brentq
from scipy.special import stdtrit

from tflab.analysis import verdicts
from tflab.records.verdicts import Verdict

DRIFT = 1.05  # ratio by which two measurements of the same step may differ
RAREST = 1e-12  # a probability that counts as 0

Sample = Sequence[float]  # one observation per process, above 0
Pair = tuple[Sample, Sample]  # the baseline, and the sample that is compared with it
Part = tuple[float, int]  # the variance of a sample's mean, and the degrees of freedom


def judge(pairs: Sequence[Pair]) -> tuple[Verdict, ...]:
    """A verdict for each pair, made together: how many times as long the second takes."""
    slower = proven_slower(pairs, DRIFT)
    faster = proven_slower([(other, usual) for usual, other in pairs], DRIFT)
    return tuple(map(verdict, pairs, slower, faster))


def proven_slower(pairs: Sequence[Pair], factor: float) -> list[bool]:
    """The pairs whose second sample is proven to take more than `factor` times as long. In 99 of
    100 such calls none is wrong. The interval is then above `factor`, too."""
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
    """The ratio, and the ends of its 99 % interval."""
    mean = difference(pair)
    if not has_enough_observations(pair):
        return exp(mean), 0.0, inf
    reach = -null_quantile(list(map(part, pair)), verdicts.ERROR / 2)
    return exp(mean), exp(mean - reach), exp(mean + reach)


def p_value(pair: Pair, factor: float) -> float:
    """The probability of such a ratio if the true one is `factor` or less. It is twice that of one
    side, like the interval, which may miss the truth on either side."""
    if not has_enough_observations(pair):
        return 1.0
    parts = list(map(part, pair))
    above = difference(pair) - log(factor)
    if above <= 0:
        return 1.0

    def beyond(tail: float) -> float:
        return above + null_quantile(parts, tail)

    return 0.0 if beyond(RAREST) >= 0 else 2 * brentq(beyond, RAREST, 0.5)


def has_enough_observations(pair: Pair) -> bool:
    return min(map(len, pair)) >= verdicts.LEAST


def difference(pair: Pair) -> float:
    usual, other = (fmean(map(log, sample)) for sample in pair)
    return other - usual


def part(sample: Sample) -> Part:
    return variance(list(map(log, sample))) / len(sample), len(sample) - 1


def null_quantile(parts: Sequence[Part], tail: float) -> float:
    """The quantile below which this share of the observed differences lies if there is no true
    difference: Student's quantiles, each weighted by its sample's part of the error."""
    error = sum(of_mean for of_mean, _ in parts)
    if not error:
        return 0.0
    weighted = sum(of_mean * float(stdtrit(freedom, tail)) for of_mean, freedom in parts)
    return weighted / sqrt(error)
