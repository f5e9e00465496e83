"""Verdicts: what independent observations of a ratio allow to say."""

from math import exp, inf, log

import numpy as np
import pytest

from tflab.analysis import verdicts
from tflab.records.verdicts import Verdict


def words(*groups):
    return [verdict.word for verdict in verdicts.verdicts(groups)]


def test_a_verdict_is_the_geometric_mean_with_students_interval():
    ratios = [1.2, 1.3, 1.25, 1.22]
    (verdict,) = verdicts.verdicts([ratios])
    # By hand: the logarithms' mean is 0.216670, their standard error 0.017386; t(3, 0.995) = 5.8409
    assert verdict == Verdict(
        ratio=pytest.approx(exp(0.216670), rel=1e-5),
        low=pytest.approx(exp(0.216670 - 5.8409 * 0.017386), rel=1e-4),
        high=pytest.approx(exp(0.216670 + 5.8409 * 0.017386), rel=1e-4),
        p_value=pytest.approx(0.00111, abs=1e-5),
        observations=4,
        word="slower",
    )


def test_interval_and_p_value_are_those_of_scipy():
    ratios = [0.7, 0.75, 0.9, 0.8, 0.72]
    # scipy.stats.ttest_1samp(numpy.log(ratios), 0), and exp of its confidence_interval(0.99)
    assert verdicts.p_value(ratios) == pytest.approx(0.004355334173)
    assert verdicts.interval(ratios) == pytest.approx((0.62727432, 0.94726657))


def test_half_and_twice_as_long_weigh_the_same():
    (slow,) = verdicts.verdicts([[2.0, 2.1, 1.9]])
    (fast,) = verdicts.verdicts([[1 / 2.0, 1 / 2.1, 1 / 1.9]])
    assert (slow.ratio, slow.p_value) == pytest.approx((1 / fast.ratio, fast.p_value))
    assert (slow.low, slow.high) == pytest.approx((1 / fast.high, 1 / fast.low))


def test_what_can_be_said_depends_on_the_interval():
    assert words([2.0, 2.01, 1.99, 2.0]) == ["slower"]
    assert words([0.5, 0.51, 0.49, 0.5]) == ["faster"]
    assert words([1.01, 0.99, 1.0, 1.005, 0.995]) == ["alike"]
    assert words([1.0, 1.5, 0.7, 1.2]) == ["cannot tell"]


def test_two_observations_say_nothing():
    (verdict,) = verdicts.verdicts([[2.0, 2.0]])
    assert (verdict.low, verdict.high, verdict.word) == (0.0, inf, "cannot tell")


def test_equal_observations_have_no_width():
    assert words([1.0, 1.0, 1.0], [1.5, 1.5, 1.5]) == ["alike", "slower"]


def test_several_verdicts_at_once_are_stricter():
    ratios = [1.2, 1.3, 1.25, 1.22]  # p = 0.0011
    assert words(ratios) == ["slower"]
    assert words(ratios, *[[1.0, 1.2, 0.9]] * 9)[0] == "cannot tell"  # 0.01 / 10 is less


def test_holm_rejects_from_the_smallest_until_one_is_too_large():
    assert verdicts.holm([0.02, 0.001, 0.3, 0.004], 0.05) == [True, True, False, True]
    assert verdicts.holm([0.02, 0.03], 0.03) == [False, False]
    assert verdicts.holm([], 0.01) == []


@pytest.mark.slow
def test_of_identical_things_at_most_one_set_in_a_hundred_has_a_difference():
    rng = np.random.default_rng(7)
    sets = rng.normal(0, 0.05, (2_000, 6, 10))  # six comparisons at once, ten observations each
    wrong = sum("slower" in found or "faster" in found for found in map(words_of, np.exp(sets)))
    assert wrong <= 2_000 * 0.01 + 3 * (2_000 * 0.01) ** 0.5


def words_of(groups):
    return words(*groups)


def test_a_tenth_is_found_where_observations_vary_by_a_few_percent():
    rng = np.random.default_rng(8)
    ratios = np.exp(rng.normal(log(1.1), 0.03, (500, 10)))
    assert sum(words(group) == ["slower"] for group in ratios) >= 450


def test_a_mean_of_few_values_has_no_interval():
    assert verdicts.mean_interval([1.0, 2.0], 0.95) == (-inf, inf)
    low, high = verdicts.mean_interval([1.0, 2.0, 3.0], 0.95)
    assert (low, high) == pytest.approx((2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), rel=1e-5)


# Medians


@pytest.mark.parametrize(
    "count, k",
    # By the tables of the binomial distribution: 2 x P(fewer than k heads) is at most 0.05
    [(6, 1), (8, 1), (9, 2), (12, 3), (20, 6), (25, 8)],
)
def test_the_interval_of_a_median_is_between_the_kth_values_from_both_ends(count, k):
    values = list(range(1, count + 1))[::-1]
    assert verdicts.median_interval(values, 0.95) == (k, count + 1 - k)


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 5])
def test_of_too_few_values_the_interval_of_the_median_has_no_ends(values):
    assert verdicts.median_interval(values, 0.95) == (-inf, inf)


def test_one_wild_value_does_not_move_the_interval_of_the_median():
    assert verdicts.median_interval([*range(1, 12), 10**9], 0.95) == (3, 10)


def test_the_interval_of_the_median_holds_it_as_often_as_it_says():
    drawn = np.random.default_rng(1).lognormal(size=(4_000, 11))
    held = [
        low <= 1 <= high for low, high in (verdicts.median_interval(row, 0.95) for row in drawn)
    ]
    assert 0.95 <= sum(held) / len(held) <= 0.995
