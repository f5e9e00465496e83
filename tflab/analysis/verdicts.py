"""Verdicts: whether two ways to run a step take different times.

Verdicts compare independent observations. Each is the ratio of two medians: of steps that took
turns in two new sessions, or of two processes that ran one after the other. Steps of one session
are not independent, so any number of them is one observation (Kalibera and Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013).

The interval is Student's for the mean of their logarithms, so that twice and half as long weigh the
same; its ends, as ratios, contain the true one in 99 of 100 comparisons. If several are made at
once, each has to differ from 1 more clearly, so that all of them together err once in a hundred
times (Holm, "A simple sequentially rejective multiple test procedure", 1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, exp, inf, log, sqrt
from statistics import fmean, stdev

from scipy.special import stdtr, stdtrit

from tflab.records.verdicts import Verdict

ERROR = 0.01  # for all verdicts made at once: the probability that any calls equals different
ALIKE = 0.05  # an interval within this of 1 means that there is no relevant difference
LEAST = 3  # observations that a verdict needs


def verdicts(groups: Sequence[Sequence[float]]) -> tuple[Verdict, ...]:
    """A verdict for each group of observed ratios, made together.

    Raises ValueError if a ratio is not above 0.
    """
    p_values = [p_value(ratios) for ratios in groups]
    allowed = holm(p_values, ERROR)
    return tuple(
        verdict(ratios, p, different)
        for ratios, p, different in zip(groups, p_values, allowed, strict=True)
    )


def verdict(ratios: Sequence[float], p: float, different: bool) -> Verdict:
    """The verdict on these observations, given whether the test distinguishes them from 1."""
    low, high = interval(ratios)
    ratio = exp(fmean(map(log, ratios)))
    if different and not low <= 1 <= high:
        word = "slower" if ratio > 1 else "faster"
    elif low >= 1 - ALIKE and high <= 1 + ALIKE:
        word = "alike"
    else:
        word = "cannot tell"
    return Verdict(ratio, low, high, p, len(ratios), word)


def interval(ratios: Sequence[float], confidence: float = 1 - ERROR) -> tuple[float, float]:
    """The interval of the true ratio, from the interval of the logarithms' mean."""
    low, high = mean_interval(list(map(log, ratios)), confidence)
    return exp(low), exp(high)


def mean_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of the true mean, by Student's distribution; infinite for fewer than LEAST
    values."""
    if len(values) < LEAST:
        return -inf, inf
    reach = stdtrit(len(values) - 1, (1 + confidence) / 2) * standard_error(values)
    return fmean(values) - reach, fmean(values) + reach


def median_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of the true median, from the k-th least to the k-th largest of the values.

    It assumes no distribution (Hollander and Wolfe, "Nonparametric Statistical Methods", 1999,
    section 3.6): k is the largest number for which that many fair coins show fewer than k heads, or
    k tails, rarely enough. With too few values (5, for 95 in 100) it is infinite.
    """
    ordered, count = sorted(values), len(values)
    missed, k = 0.0, 0
    while k < count / 2:
        missed += 2 * comb(count, k) / 2**count
        if missed > 1 - confidence:
            break
        k += 1
    return (ordered[k - 1], ordered[count - k]) if k else (-inf, inf)


def p_value(ratios: Sequence[float]) -> float:
    """The probability of a mean so far from 1 if there is no difference (two-sided t test)."""
    if len(ratios) < LEAST:
        return 1.0
    logarithms = list(map(log, ratios))
    error = standard_error(logarithms)
    if error == 0:
        return 0.0 if fmean(logarithms) else 1.0
    return float(2 * stdtr(len(ratios) - 1, -abs(fmean(logarithms)) / error))


def standard_error(values: Sequence[float]) -> float:
    return stdev(values) / sqrt(len(values))


def holm(p_values: Sequence[float], error: float) -> list[bool]:
    """Which of several tests reject, so that with at most the given probability any is wrong."""
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > error / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected
