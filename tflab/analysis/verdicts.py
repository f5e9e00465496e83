"""Verdicts: whether two ways to run a step take different times.

A verdict compares observations. In a race, an observation is the ratio of two medians: of steps
that took turns in two new sessions, or of two processes that ran side by side. Steps of one session
are not independent, so any number of them is one observation (Kalibera and Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013). Of two files, an observation is a round.

The interval is Student's for the mean of the logarithms, so that twice and half as long weigh the
same; its ends, as ratios, contain the true ratio in 99 of 100 comparisons. Every comparison has a
control: the same thing compared with itself in the same turns. A step is called slower or faster
only if its interval is clear of 1 and clear of the control's interval: a busy machine widens both.
The interval of the control contains 1 in 90 of 100 comparisons without a disturbance: if it were as
wide as the other, only differences of twice its width would be found.
Several verdicts are made together, so that all of them err once in a hundred times (Holm, "A simple
sequentially rejective multiple test procedure", 1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, exp, inf, log, sqrt
from statistics import fmean, stdev, variance

from scipy.special import stdtr, stdtrit

from tflab.records.verdicts import Verdict

ERROR = 0.01  # for all verdicts made at once: the probability that any calls equals different
OF_CONTROL = 0.9  # confidence of the interval of a control
ALIKE = 0.05  # an interval within this of 1 means that there is no relevant difference
LEAST = 3  # observations that a verdict needs
DRIFT = 1.05  # two processes of the same step differ by so much, also on a quiet machine

Ratios = Sequence[float]  # one of each observation, above 0
Pair = tuple[Sequence[float], Sequence[float]]  # times of the first thing, and of the other


def of_race(groups: Sequence[tuple[Ratios, Ratios]]) -> tuple[Verdict, ...]:
    """Return a verdict for each group: the observed ratios, and those of its control."""
    allowed = holm([p_value(ratios) for ratios, _ in groups], ERROR)
    return tuple(
        Verdict(
            exp(fmean(map(log, ratios))),
            *interval(ratios),
            *interval(control, OF_CONTROL),
            len(ratios),
            word(interval(ratios), interval(control, OF_CONTROL), different),
        )
        for (ratios, control), different in zip(groups, allowed, strict=True)
    )


def of_files(pairs: Sequence[Pair]) -> tuple[Verdict, ...]:
    """Return a verdict for each pair of times that two processes took in their rounds.

    Rounds of different processes share no disturbance, so they form no pairs. The control is the
    largest ratio of two rounds of one process, or DRIFT if that is larger.
    """
    allowed = holm([p_value_of_pair(pair) for pair in pairs], ERROR)
    made = []
    for pair, different in zip(pairs, allowed, strict=True):
        ends, drift = (
            interval_of_pair(pair),
            max(DRIFT, *(max(times) / min(times) for times in pair)),
        )
        control = (1 / drift, drift)
        observations = min(map(len, pair))
        made.append(
            Verdict(
                exp(difference(pair)), *ends, *control, observations, word(ends, control, different)
            )
        )
    return tuple(made)


def word(ends: tuple[float, float], control: tuple[float, float], different: bool) -> str:
    """Return what the interval and the control's allow to say, if a test finds a difference."""
    low, high = ends
    if different and low > max(1, control[1]):
        return "slower"
    if different and high < min(1, control[0]):
        return "faster"
    return "alike" if low >= 1 - ALIKE and high <= 1 + ALIKE else "cannot tell"


def interval(ratios: Ratios, confidence: float = 1 - ERROR) -> tuple[float, float]:
    """Return the interval of the true ratio, from the interval of the logarithms' mean."""
    low, high = mean_interval(list(map(log, ratios)), confidence)
    return exp(low), exp(high)


def least_slower(ratios: Ratios, control: Ratios, tests: int) -> float:
    """Return from which mean ratio on observations that vary like these show a slow-down, whatever
    the other verdicts of so many are."""
    centre = exp(fmean(map(log, ratios)))
    alone, beside = (interval(ratios, 1 - error)[1] / centre for error in (ERROR / tests, ERROR))
    return max(alone, beside * max(1, interval(control, OF_CONTROL)[1]))


def difference(pair: Pair) -> float:
    usual, other = (fmean(map(log, times)) for times in pair)
    return other - usual


def error_of_pair(pair: Pair) -> float:
    """Return the standard error of the difference of the two means of logarithms."""
    return sqrt(sum(variance(list(map(log, times))) / len(times) for times in pair))


def interval_of_pair(pair: Pair) -> tuple[float, float]:
    """Return the interval of the ratio of the two means. Its quantile is that of the smaller
    number of times, which never makes it too narrow."""
    count = min(map(len, pair))
    if count < LEAST:
        return 0.0, inf
    reach = stdtrit(count - 1, 1 - ERROR / 2) * error_of_pair(pair)
    return exp(difference(pair) - reach), exp(difference(pair) + reach)


def p_value_of_pair(pair: Pair) -> float:
    count = min(map(len, pair))
    if count < LEAST:
        return 1.0
    return two_sided(difference(pair), error_of_pair(pair), count - 1)


def mean_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the interval of the true mean, by Student's distribution.

    It is infinite for fewer than LEAST values."""
    if len(values) < LEAST:
        return -inf, inf
    reach = stdtrit(len(values) - 1, (1 + confidence) / 2) * standard_error(values)
    return fmean(values) - reach, fmean(values) + reach


def median_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the interval of the true median, from the k-th least to the k-th largest value.

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


def p_value(ratios: Ratios) -> float:
    """Return the probability of a mean so far from 1 if there is no difference."""
    if len(ratios) < LEAST:
        return 1.0
    logarithms = list(map(log, ratios))
    return two_sided(fmean(logarithms), standard_error(logarithms), len(ratios) - 1)


def two_sided(mean: float, error: float, freedom: int) -> float:
    """Return the p-value of a two-sided t test."""
    if error == 0:
        return 0.0 if mean else 1.0
    return float(2 * stdtr(freedom, -abs(mean) / error))


def standard_error(values: Sequence[float]) -> float:
    return stdev(values) / sqrt(len(values))


def holm(p_values: Sequence[float], error: float) -> list[bool]:
    """Return which of several tests reject; any is wrong with at most this probability."""
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > error / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected
