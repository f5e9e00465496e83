"""The benchmark of verdicts: what it counts, and which times each verdict is made from."""

from collections.abc import Iterator

import pytest

from benchmarks import verdicts
from benchmarks.verdicts import KINDS, Trial, Tried
from tests.records_by_hand import verdict


def trial(kind: int, way: str, size: int, word: str, ratio: float = 1.0) -> Trial:
    made = verdict(ratio, word in ("slower", "faster"))
    return Trial(KINDS[kind], way, size, made)


TRIED = Tried(
    data="MNIST",
    copied={1: ("conv1/Relu", 0.12), 16: ("pool", 0.1), 64: ("dense", 0.085)},
    trials=[
        *(trial(0, "same", 1, "cannot tell"), trial(0, "same", 1, "faster", 0.9)),
        *(trial(0, "same", 16, "cannot tell"), trial(1, "same", 64, "slower", 1.1)),
        *(trial(0, "slower", 1, "slower", 1.1), trial(0, "slower", 1, "slower", 1.2)),
        *(trial(0, "slower", 16, "cannot tell", 1.02), trial(1, "slower", 64, "faster", 0.9)),
    ],
)


def test_equals_count_whichever_way_they_are_called_different_and_a_tenth_only_as_slower():
    assert verdicts.summary(TRIED) == {
        "same": {"tests": 4, "called_different": 2},
        "slower_by_a_tenth": {"tests": 4, "found": 2},
    }


def test_every_kind_and_batch_size_has_its_row():
    (table,) = verdicts.blocks(TRIED)
    within, own = KINDS
    assert [*table.cells()] == [
        (within, "1", "1 of 2", "2 of 2", "1.150", "1.120", "conv1/Relu"),
        (within, "16", "0 of 1", "0 of 1", "1.020", "1.100", "pool"),
        (within, "64", "0 of 0", "0 of 0", "", "1.085", "dense"),
        (own, "1", "0 of 0", "0 of 0", "", "1.120", "conv1/Relu"),
        (own, "16", "0 of 0", "0 of 0", "", "1.100", "pool"),
        (own, "64", "1 of 1", "0 of 1", "0.900", "1.085", "dense"),
    ]


def raced(budget_s: float, starting_s: float, needed: bool = False) -> tuple[list[float], float]:
    """How many seconds each observation measures where processes start in so many, and when all
    have ended."""
    now = [100.0]

    def observe(most_s: float, numbers: Iterator[int]) -> list[float]:
        observed = []
        for _ in numbers:
            now[0] += starting_s + most_s
            observed.append(most_s)
        return observed

    seconds = verdicts.raced(observe, budget_s, "race", needed, clock=lambda: now[0])
    return seconds, now[0] - 100


@pytest.mark.tensorflow
def test_a_race_measures_for_as_long_as_its_budget_allows_and_ends_within_it():
    assert raced(300, 6) == ([2.0, *[15.0] * 9], 197.0)
    assert raced(120, 6) == ([2.0, *[pytest.approx(5.2)] * 9], pytest.approx(108.8))
    assert raced(40, 6) == ([2.0, *[2.0] * 4], 40.0)
    assert raced(31, 6) == ([2.0, *[pytest.approx(4.35)] * 2], pytest.approx(28.7))


@pytest.mark.tensorflow
def test_a_race_that_does_not_fit_is_given_up_after_one_observation_unless_it_is_the_only_one():
    assert raced(23, 6) == ([], 8.0)
    assert raced(23, 6, needed=True) == ([2.0, 2.0, 2.0], 24.0)


def numbers(budget_s: float, *lasting_s: float) -> int:
    """How many observations there are of those that would take so long."""
    now = [100.0]
    made = verdicts.within(budget_s, len(lasting_s), lambda: now[0])
    taken = 0
    for seconds, _ in zip(lasting_s, made, strict=False):
        now[0] += seconds
        taken += 1
    return taken


def test_no_observation_begins_that_may_not_end_within_the_budget():
    assert numbers(120, *[15.0] * 10) == 8
    assert numbers(119, *[15.0] * 10) == 7
    assert numbers(119, *[11.0] * 9, 11.0) == 10
    assert numbers(100, 30.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0) == 6  # as the longest so far
    assert numbers(5, *[15.0] * 10) == 2  # with the first one, the least that a verdict takes


@pytest.mark.tensorflow
def test_the_first_race_leaves_half_of_the_time_and_none_takes_more_than_compare_does():
    assert [verdicts.share_of(240, 0), verdicts.share_of(125, 1)] == [120, 125]
    assert [verdicts.share_of(1800, 0), verdicts.share_of(1500, 1)] == [300, 300]
    assert [verdicts.share_of(300, 2), verdicts.share_of(299, 2)] == [300, 299]


@pytest.mark.tensorflow
def test_at_each_batch_size_the_step_that_was_slowed_for_it_is_judged():
    usual = {size: [100] for size in verdicts.SIZES}
    observed = [
        {
            "default": usual,
            "same": {size: [100 + number] for size in verdicts.SIZES},
            **{
                f"slower {size}": {other: [size * 1000 + other] for other in verdicts.SIZES}
                for size in verdicts.SIZES
            },
        }
        for number in (-1, 0, 1)
    ]
    trials = list(verdicts.judged(KINDS[1], verdicts.SIZES, observed))
    assert {made.kind for made in trials} == {KINDS[1]}
    ratios = {made.batch_size: made.verdict.ratio for made in trials if made.way == "slower"}
    assert ratios == pytest.approx({1: 10.01, 16: 160.16, 64: 640.64})
    assert {made.batch_size for made in trials if made.way == "same"} == set(verdicts.SIZES)
