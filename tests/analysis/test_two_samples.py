"""Two samples: a verdict on measurements that share no disturbance."""

import random
from math import exp, inf, log

import pytest
from scipy import stats

from tflab.analysis import two_samples
from tflab.records import Verdict

A = (100.0, 102.0, 98.0, 101.0, 99.0)


def times(factor: float) -> tuple[float, ...]:
    return tuple(factor * ns for ns in A)


def words(*pairs) -> list[str]:
    return [verdict.word for verdict in two_samples.judge(pairs)]


def test_the_interval_is_that_of_welch_for_logarithms():
    usual, other = (100.0, 104.0, 97.0), (130.0, 150.0, 141.0, 133.0)
    logs = [[log(ns) for ns in sample] for sample in (usual, other)]
    welch = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    low, high = welch.confidence_interval(0.99)
    (verdict,) = two_samples.judge([(usual, other)])
    mean = sum(logs[1]) / 4 - sum(logs[0]) / 3
    assert (verdict.ratio, verdict.low, verdict.high) == pytest.approx(
        (exp(mean), exp(low), exp(high))
    )
    assert verdict.p_value == pytest.approx(welch.pvalue)
    assert (verdict.observations, verdict.word) == (3, "slower")


def test_the_same_is_alike_and_a_fifth_more_or_less_is_told():
    assert words((A, A), (A, times(1.2)), (A, times(1 / 1.2))) == ["alike", "slower", "faster"]


def test_what_differs_by_no_more_than_machines_drift_is_not_called_different():
    precise = tuple(100 + ns / 1_000 for ns in A)
    assert words((precise, tuple(1.04 * ns for ns in precise))) == ["alike"]
    assert words((precise, tuple(1.06 * ns for ns in precise))) == ["slower"]


def test_of_fewer_processes_than_three_nothing_can_be_told():
    assert two_samples.judge([(A, (200.0, 200.0))]) == (
        Verdict(pytest.approx(2.0, rel=1e-3), 0.0, inf, 1.0, 2, "cannot tell"),
    )


def test_processes_that_agree_to_the_nanosecond_have_an_interval_of_no_length():
    (verdict,) = two_samples.judge([((100.0,) * 3, (120.0,) * 3)])
    assert (verdict.low, verdict.high, verdict.p_value) == pytest.approx((1.2, 1.2, 0))
    assert verdict.word == "slower"


def test_more_than_a_factor_is_proven_only_where_the_interval_is_above_it():
    slower = times(1.2)
    (verdict,) = two_samples.judge([(A, slower)])
    assert 1.1 < verdict.low < 1.2 < verdict.high
    assert two_samples.proven([(A, slower)], verdict.low - 0.001) == [True]
    assert two_samples.proven([(A, slower)], verdict.low + 0.001) == [False]


def test_the_more_pairs_the_stricter_each():
    pair = (A, times(1.2))
    factor = two_samples.judge([pair])[0].low - 0.001
    assert two_samples.proven([pair], factor) == [True]
    assert two_samples.proven([pair] + [(A, A)] * 9, factor) == [False] * 10


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 10])
def test_equals_are_rarely_called_different_and_the_interval_holds_the_truth(count):
    draw = random.Random(count)

    def sample(factor):
        return [factor * exp(draw.gauss(0, 0.04)) for _ in range(count)]

    pairs = [(sample(1), sample(1.1)) for _ in range(2_000)]
    held = [low <= 1.1 <= high for _, low, high in map(two_samples.interval, pairs)]
    assert sum(held) >= 0.985 * len(held)
    proven = [two_samples.proven([pair], 1.1)[0] for pair in pairs]
    assert sum(proven) <= 0.01 * len(proven)
