"""Verdicts: what independent observations of a ratio allow to say."""

from math import exp, inf, log

import numpy as np
import pytest
from scipy.stats import mstats

from tflab.analysis import verdicts
from tflab.records.measured import Verdict

STILL = (0.99, 1.0, 1.01, 1.0)  # a control: its interval is 1 within 2.4 %


def words(*groups, control=STILL):
    return [verdict.word for verdict in verdicts.of_race([(group, control) for group in groups])]


def test_a_verdict_is_the_geometric_mean_with_students_interval_and_the_controls():
    (verdict,) = verdicts.of_race([([1.2, 1.3, 1.25, 1.22], [1.0, 1.1, 1.05, 1.02])])
    # By hand: the logarithms' mean is 0.216670, their standard error 0.017386; t(3, 0.995) = 5.8409
    # Of the control: 0.040976 and 0.020697; t(3, 0.95) = 2.3534
    assert verdict == Verdict(
        ratio=pytest.approx(exp(0.216670), rel=1e-5),
        low=pytest.approx(exp(0.216670 - 5.8409 * 0.017386), rel=1e-4),
        high=pytest.approx(exp(0.216670 + 5.8409 * 0.017386), rel=1e-4),
        control_low=pytest.approx(exp(0.040976 - 2.3534 * 0.020697), rel=1e-4),
        control_high=pytest.approx(exp(0.040976 + 2.3534 * 0.020697), rel=1e-4),
        observations=4,
        word="slower",  # 1.12 is clear of 1 and of the control's 1.09
    )


def test_of_seven_observations_the_least_and_the_largest_do_not_count():
    ratios = [1.0, 1.1, 1.2, 1.3, 1.4, 1.15, 9.0]
    (verdict,) = verdicts.of_race([(ratios, STILL)])
    middle = np.log([1.1, 1.15, 1.2, 1.3, 1.4]).mean()
    assert log(verdict.ratio) == pytest.approx(middle)
    # SciPy's error has n and h * h for the n - 1 and h * (h - 1) of Tukey and McLaughlin
    low, high = mstats.trimmed_mean_ci(np.log(ratios), (1 / 7, 1 / 7), alpha=0.01)
    wider = (6 / 7 * 5 / 4) ** 0.5
    assert log(verdict.low) - middle == pytest.approx((low - middle) * wider)
    assert log(verdict.high) - middle == pytest.approx((high - middle) * wider)


SLOW, FAST = [1.2, 1.21, 1.19, 1.2], [0.8, 0.81, 0.79, 0.8]
NEAR = [1.2, 1.3, 1.25, 1.22]  # p = 0.0011


@pytest.mark.parametrize(
    ("groups", "control", "said"),
    [
        ([[2.0, 2.01, 1.99, 2.0]], STILL, "slower"),
        ([[0.5, 0.51, 0.49, 0.5]], STILL, "faster"),
        ([[1.01, 0.99, 1.0, 1.005, 0.995]], STILL, "alike"),
        ([[1.0, 1.5, 0.7, 1.2]], STILL, "cannot tell"),
        # A difference that the control shows as well is none
        ([SLOW, FAST], STILL, "slower, faster"),
        ([SLOW, FAST], [1.18, 1.2, 1.22, 1.2], "cannot tell, faster"),
        ([SLOW, FAST], [0.78, 0.8, 0.82, 0.8], "slower, cannot tell"),
        # Two observations say nothing
        ([[2.0, 2.0]], STILL, "cannot tell"),
        ([[2.0] * 4], [1.0, 1.0], "cannot tell"),
        # Equal observations have no width
        ([[1.0, 1.0, 1.0], [1.5, 1.5, 1.5]], STILL, "alike, slower"),
        # Several verdicts at once are stricter: 0.01 / 10 is less than p
        ([NEAR], STILL, "slower"),
        ([NEAR, *[[1.0, 1.2, 0.9]] * 9], STILL, ", ".join(["cannot tell"] * 10)),
    ],
)
def test_what_can_be_said(groups, control, said):
    assert words(*groups, control=control) == said.split(", ")


def test_two_observations_have_no_interval():
    (race,) = verdicts.of_race([([2.0, 2.0], STILL)])
    (files,) = verdicts.of_files([([100, 100], [200, 201, 199])])
    for verdict in (race, files):
        assert (verdict.low, verdict.high, verdict.word) == (0.0, inf, "cannot tell")


# Two files


def test_times_of_two_processes_are_compared_by_their_means_and_the_drift_within_each():
    (verdict,) = verdicts.of_files([([100, 102, 101], [150, 156, 153])])
    # By hand: the mean logarithms are 4.615088 and 5.030310; their variances 0.000098 and 0.000385
    # give a standard error of 0.012684; t(2, 0.995) = 9.9248
    assert verdict == Verdict(
        ratio=pytest.approx(exp(0.415222), rel=1e-5),
        low=pytest.approx(exp(0.415222 - 9.9248 * 0.012684), rel=1e-3),
        high=pytest.approx(exp(0.415222 + 9.9248 * 0.012684), rel=1e-3),
        control_low=pytest.approx(1 / 1.05),
        control_high=1.05,  # 156 / 150 is less
        observations=3,
        word="slower",
    )


def test_rounds_that_drift_within_a_file_hide_a_difference_of_that_size():
    still, slower = [100, 101, 100, 99, 100], [120, 121, 120, 119, 120]
    assert [made.word for made in verdicts.of_files([(still, slower)])] == ["slower"]
    drifting = [90, 101, 110, 99, 100]  # 110 / 90 is 1.22
    (verdict,) = verdicts.of_files([(drifting, slower)])
    assert (verdict.word, verdict.control_high) == ("cannot tell", pytest.approx(110 / 90))
    assert [made.word for made in verdicts.of_files([(still, still)])] == ["alike"]


def test_holm_rejects_from_the_smallest_until_one_is_too_large():
    assert verdicts.holm([0.02, 0.001, 0.3, 0.004], 0.05) == [True, True, False, True]
    assert verdicts.holm([0.02, 0.03], 0.03) == [False, False]
    assert verdicts.holm([], 0.01) == []


@pytest.mark.parametrize("control", [STILL, [0.97, 0.98, 0.96, 0.97], [1.1, 1.0, 1.2, 1.1]])
def test_a_slow_down_is_shown_from_the_smallest_ratio_on(control):
    varying = [0.98, 1.0, 1.03, 1.01, 0.99]
    least = verdicts.least_slower(varying, control, 1) / exp(np.log(varying).mean())
    for factor in (1.001, 0.999):
        found = words([ratio * least * factor for ratio in varying], control=control)
        assert (found == ["slower"]) == (factor > 1)
    far = [0.7, 0.7, 0.71]  # a control that is no obstacle
    assert verdicts.least_slower(varying, far, 10) > verdicts.least_slower(varying, far, 1)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("wild", [0.0, 0.1])
def test_of_identical_things_at_most_one_set_in_a_hundred_has_a_difference(wild):
    """Six comparisons at once, of ten observations each, some of which are far off."""
    rng = np.random.default_rng(7)
    shape = (1_000, 7, 10)
    sets = rng.normal(0, 0.03, shape) + rng.normal(0, 0.3, shape) * (rng.random(shape) < wild)
    called = [words(*groups[:6], control=groups[6]) for groups in np.exp(sets)]
    wrong = sum("slower" in found or "faster" in found for found in called)
    assert wrong <= 1_000 * 0.01


def test_a_tenth_is_found_although_one_observation_in_twenty_is_far_off():
    rng = np.random.default_rng(7)
    ratios = rng.normal(0, 0.04, (100, 2, 20)) + 0.3 * (rng.random((100, 2, 20)) < 0.05)
    found = [words(np.exp(slower + np.log(1.1)), control=np.exp(same)) for slower, same in ratios]
    assert found.count(["slower"]) >= 90


# Medians


def test_the_interval_of_a_median_is_between_the_kth_values_from_both_ends():
    """By the tables of the binomial distribution: 2 x P(fewer than k heads) is at most 0.05."""
    for count, k in ((6, 1), (8, 1), (9, 2), (12, 3), (20, 6), (25, 8)):
        values = list(range(1, count + 1))[::-1]
        assert verdicts.median_interval(values, 0.95) == (k, count + 1 - k)
    wild = [*range(1, 12), 10**9]  # one value, which does not move it
    assert verdicts.median_interval(wild, 0.95) == (3, 10)
    for count in (0, 1, 5):  # too few
        assert verdicts.median_interval([1.0] * count, 0.95) == (-inf, inf)
