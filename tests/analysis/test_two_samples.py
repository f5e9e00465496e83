"""Two samples: a verdict on measurements that share no disturbance."""

import random
from math import exp, inf, log
from statistics import stdev

import pytest

from tflab.analysis import two_samples
from tflab.records.verdicts import Verdict

A = (100.0, 102.0, 98.0, 101.0, 99.0)


def times(factor: float) -> tuple[float, ...]:
    return tuple(factor * ns for ns in A)


def words(*pairs) -> list[str]:
    return [verdict.word for verdict in two_samples.judge(pairs)]


def test_the_interval_is_that_of_cochran_and_cox_for_logarithms():
    usual, other = (exp(1), exp(2), exp(3)), (exp(5), exp(6), exp(7), exp(8))
    (verdict,) = two_samples.judge([(usual, other)])
    # Variances of the means 1 / 3 and 5 / 12, so weights 4 / 9 and 5 / 9 of an error of sqrt(0.75);
    # of tables: 99 % of Student's t lie within 9.92484 for 2 degrees of freedom, 5.84091 for 3.
    reach = 0.75**0.5 * (4 * 9.92484 + 5 * 5.84091) / 9
    assert list(map(log, (verdict.ratio, verdict.low, verdict.high))) == pytest.approx(
        [4.5, 4.5 - reach, 4.5 + reach], rel=1e-5
    )
    assert (verdict.observations, verdict.word) == (3, "cannot tell")
    # 95 % lie within 4.30265 and 3.18245: where a ratio is so far away, that is its chance.
    reach = 0.75**0.5 * (4 * 4.30265 + 5 * 3.18245) / 9
    chance = two_samples.p_value((usual, other), exp(4.5 - reach))
    assert chance == pytest.approx(0.05, rel=1e-4)


def test_of_samples_of_a_size_that_vary_alike_the_interval_is_student_s():
    (verdict,) = two_samples.judge([(A, times(1.2))])
    logs = list(map(log, A))
    # 99 % of Student's t lie within 4.6040949 for 4 degrees of freedom.
    reach = 4.6040949 * stdev(logs) * (2 / 5) ** 0.5
    assert (log(verdict.low), log(verdict.high)) == pytest.approx(
        (log(1.2) - reach, log(1.2) + reach)
    )


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


def test_a_chance_is_at_most_1():
    assert two_samples.p_value((A, (200.0, 200.0)), 1) == 1  # too few to tell
    assert two_samples.p_value((A, times(0.5)), 1) == 1  # it became faster
    (verdict,) = two_samples.judge([(A, A[::-1])])
    assert verdict.p_value == 1


def test_processes_that_agree_to_the_nanosecond_have_an_interval_of_no_length():
    (verdict,) = two_samples.judge([((100.0,) * 3, (120.0,) * 3)])
    assert (verdict.low, verdict.high, verdict.p_value) == pytest.approx((1.2, 1.2, 0))
    assert verdict.word == "slower"


def test_more_than_a_factor_is_proven_only_where_the_interval_is_above_it():
    slower = times(1.2)
    (verdict,) = two_samples.judge([(A, slower)])
    assert 1.1 < verdict.low < 1.2 < verdict.high
    assert two_samples.proven_slower([(A, slower)], verdict.low - 0.001) == [True]
    assert two_samples.proven_slower([(A, slower)], verdict.low + 0.001) == [False]


def test_the_more_pairs_the_stricter_each():
    pair = (A, times(1.2))
    factor = two_samples.judge([pair])[0].low - 0.001
    assert two_samples.proven_slower([pair], factor) == [True]
    assert two_samples.proven_slower([pair] + [(A, A)] * 9, factor) == [False] * 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "deviations"),
    [((3, 3), (1, 1)), ((10, 10), (1, 1)), ((3, 10), (1, 1)), ((3, 10), (3, 1)), ((3, 6), (3, 1))],
)
def test_equals_are_rarely_called_different_and_the_interval_holds_the_truth(counts, deviations):
    draw = random.Random(7)

    def sample(factor, count, deviation):
        return [factor * exp(draw.gauss(0, 0.04 * deviation)) for _ in range(count)]

    pairs = [tuple(map(sample, (1, 1.1), counts, deviations)) for _ in range(4_000)]
    held = [low <= 1.1 <= high for _, low, high in map(two_samples.interval, pairs)]
    assert sum(held) >= 0.987 * len(held)  # 99 in 100, but for two deviations of that
    proven = [two_samples.proven_slower([pair], 1.1)[0] for pair in pairs]
    assert sum(proven) <= 0.008 * len(proven)  # 1 in 200, for the interval has two sides
