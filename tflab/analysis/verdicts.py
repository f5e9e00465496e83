"""Verdicts: whether two ways to run a step take different times.

A verdict compares observations. In a race, an observation is the ratio of two medians: of steps
that took turns in two new sessions, or of two processes that ran side by side. Steps of one session
are not independent, so any number of them is one observation (Kalibera and Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013). Of two files, an observation is a round.

The interval is that of the trimmed mean of the logarithms (Tukey and McLaughlin, "Less vulnerable
confidence and significance procedures for location", Sankhya A, 1963): twice and half as long weigh
the same, and the least and the largest seventh do not count, because now and then something else on
the machine makes one process much slower. With fewer than seven observations it is Student's. Its
ends, as ratios, contain the true ratio in 99 of 100 comparisons. Every comparison has a
control: the same thing compared with itself in the same turns. A step is called slower or faster
only if its interval is clear of 1 and clear of the control's interval: a busy machine widens both.
The interval of the control contains 1 in 90 of 100 comparisons without a disturbance: if it were as
wide as the other, only differences of twice its width would be found.
Several verdicts are made together, so that all of them err once in a hundred times (Holm, "A simple
sequentially rejective multiple test procedure", 1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import comb, exp, inf, log, sqrt
from statistics import fmean, variance
from typing import NamedTuple

from scipy.special import stdtr, stdtrit

from tflab.records.measured import Verdict

ERROR = 0.01  # for all verdicts made at once: the probability that any calls equals different
OF_CONTROL = 0.9  # confidence of the interval of a control
ALIKE = 0.05  # an interval within this of 1 means that there is no relevant difference
LEAST = 3  # observations that a verdict needs
TRIMMED = 7  # of so many observations, the least and the largest do not count
DRIFT = 1.05  # two processes of the same step differ by so much, also on a quiet machine

Ratios = Sequence[float]  # one of each observation, above 0
Pair = tuple[Sequence[float], Sequence[float]]  # times of the first thing, and of the other
Interval = tuple[float, float]  # of a ratio; from 0 to infinity for fewer than LEAST observations


class Estimate(NamedTuple):
    """The trimmed mean of the logarithms of ratios."""

    mean: float
    error: float  # its standard error
    observations: int

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom: one less than the observations that were not trimmed."""
        return self.observations - 2 * (self.observations // TRIMMED) - 1

    def interval(self, confidence: float = 1 - ERROR) -> Interval:
        """Return the interval of the true ratio, by Student's distribution."""
        if self.observations < LEAST:
            return 0.0, inf
        reach = stdtrit(self.freedom, (1 + confidence) / 2) * self.error
        return exp(self.mean - reach), exp(self.mean + reach)

    def p_value(self) -> float:
        """Return how probable it is that a mean is this far from 1 if there is no difference."""
        if self.observations < LEAST:
            return 1.0
        if self.error == 0:
            return 0.0 if self.mean else 1.0
        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))


def of_ratios(ratios: Ratios) -> Estimate:
    return Estimate(*log_mean(ratios), len(ratios))


def log_mean(values: Sequence[float]) -> tuple[float, float]:
    """Return the trimmed mean of the logarithms of values, and its standard error. For the error,
    each trimmed value is replaced by the nearest value that was kept."""
    ordered = sorted(map(log, values))
    cut = len(ordered) // TRIMMED
    kept = ordered[cut : len(ordered) - cut]
    if len(kept) < 2:
        return sum(kept), inf
    replaced = [*kept, *(cut * (kept[0], kept[-1]))]
    error = sqrt(variance(replaced) * (len(replaced) - 1) / len(kept) / (len(kept) - 1))
    return fmean(kept), error


def of_race(groups: Sequence[tuple[Ratios, Ratios]]) -> tuple[Verdict, ...]:
    """Return a verdict for each group: the observed ratios, and the ratios of its control."""
    return decided(
        [of_ratios(ratios) for ratios, _ in groups],
        [interval(control, OF_CONTROL) for _, control in groups],
    )


def of_files(pairs: Sequence[Pair]) -> tuple[Verdict, ...]:
    """Return a verdict for each pair of times that two processes took in their rounds. The control
    is the largest ratio of two rounds of one process, or DRIFT if that is larger."""
    drifts = (max(DRIFT, *(max(times) / min(times) for times in pair)) for pair in pairs)
    estimates = []
    for pair in pairs:
        (usual, usual_error), (other, other_error) = map(log_mean, pair)
        error = sqrt(usual_error**2 + other_error**2)
        # As many observations as the shorter one has: that never makes the interval too narrow
        estimates.append(Estimate(other - usual, error, min(map(len, pair))))
    return decided(estimates, [(1 / drift, drift) for drift in drifts])


def decided(estimates: Sequence[Estimate], controls: Sequence[Interval]) -> tuple[Verdict, ...]:
    """Return a verdict for each estimate and the interval of its control."""
    allowed = holm([estimate.p_value() for estimate in estimates], ERROR)
    made = []
    for estimate, control, different in zip(estimates, controls, allowed, strict=True):
        low, high = ends = estimate.interval()
        said = "alike" if low >= 1 - ALIKE and high <= 1 + ALIKE else "cannot tell"
        if different and low > max(1, control[1]):
            said = "slower"
        elif different and high < min(1, control[0]):
            said = "faster"
        made.append(Verdict(exp(estimate.mean), *ends, *control, estimate.observations, said))
    return tuple(made)


def interval(ratios: Ratios, confidence: float = 1 - ERROR) -> Interval:
    """Return the interval of the true ratio."""
    return of_ratios(ratios).interval(confidence)


def least_slower(ratios: Ratios, control: Ratios, tests: int) -> float:
    """Return the smallest mean ratio that would count as a slow-down, if the observations varied as
    much as these. `tests` is the number of verdicts that are made together."""
    centred = of_ratios(ratios)._replace(mean=0)
    alone, beside = (centred.interval(1 - error)[1] for error in (ERROR / tests, ERROR))
    return max(alone, beside * max(1, interval(control, OF_CONTROL)[1]))


def median_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the interval of the true median, from the k-th least to the k-th largest value;
    infinite if there are too few. It assumes no distribution (Hollander and Wolfe, "Nonparametric
    Statistical Methods", 1999, section 3.6): k is the largest number for which as many fair coins
    as values show fewer than k heads, or fewer than k tails, rarely enough."""
    ordered, count = sorted(values), len(values)
    missed = accumulate(2 * comb(count, k) / 2**count for k in range((count + 1) // 2))
    k = sum(probability <= 1 - confidence for probability in missed)
    return (ordered[k - 1], ordered[count - k]) if k else (-inf, inf)


def holm(p_values: Sequence[float], error: float) -> list[bool]:
    """Return which tests reject, so that the probability of any wrong one is at most `error`."""
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > error / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected
