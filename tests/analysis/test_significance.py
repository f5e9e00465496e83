"""Toggles: what changed without a pass, and whether a difference in time is one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import significance
from tflab.records import Fate, FateChange, Node, Placement, Race, Spread, Toggle


def placement(*fates: Fate, nodes: int = 0) -> Placement:
    return Placement(None, tuple(Node(f"n{i}", "Op") for i in range(nodes)), ledger=fates)


EXECUTED = Fate("mul", "executed", None, "mul")
FOLDED = Fate("half", "folded", "constant_folding", "mul")
FUSED = Fate("add", "fused", "remapper", "mul")


# Compare


def test_a_node_whose_fate_is_another_is_a_change():
    usual = placement(EXECUTED, FOLDED, FUSED, nodes=3)
    now = placement(Fate("half", "executed", None, "half"), FUSED, EXECUTED, nodes=4)
    assert significance.compare(usual, now, ["constant_folding"]) == Toggle(
        without=("constant_folding",),
        usual_node_count=3,
        node_count=4,
        changes=(FateChange("half", "folded", "executed"),),
    )


def test_another_pass_to_the_same_fate_is_no_change():
    now = placement(Fate("add", "fused", "tfg_optimizer", "other"))
    assert significance.compare(placement(FUSED), now, ["remapper"]).changes == ()


def test_changes_stand_in_the_order_of_the_ledger():
    now = placement(*(Fate(name, "executed", None, name) for name in ("add", "half")))
    found = significance.compare(placement(FOLDED, FUSED), now, ["grappler"])
    assert [change.name for change in found.changes] == ["half", "add"]


# Race


def test_a_race_is_told_by_its_pairs():
    assert significance.race([100, 100, 200], [150, 300, 200]) == Race(
        pairs=3,
        usual_step_ns=Spread(100, 100, 180),
        without_step_ns=Spread(200, 160, 280),
        ratio=1.5,
        p_value=0.5,  # two unequal pairs, both the same way: one chance in two
        significant=False,
    )


def test_a_pair_at_a_time_tells_a_difference_that_the_drift_of_the_machine_hides():
    usual = [1_000 * (1 + index) for index in range(10)]
    found = significance.race(usual, [ns + 10 for ns in usual])
    assert (found.p_value, found.significant) == (2 / 2**10, True)


def test_it_is_as_significant_the_other_way():
    there, back = significance.race([1] * 10, [2] * 10), significance.race([2] * 10, [1] * 10)
    assert (there.p_value, there.significant) == (back.p_value, back.significant)
    assert (there.ratio, back.ratio) == (2, 0.5)


@pytest.mark.parametrize("pairs, significant", [(7, False), (8, True)])
def test_eight_pairs_that_all_agree_are_the_fewest_that_are_significant(pairs, significant):
    assert significance.race([1] * pairs, [2] * pairs).significant is significant


def test_equal_times_are_no_difference():
    assert significance.race([5] * 50, [5] * 50) == Race(
        50, Spread(5, 5, 5), Spread(5, 5, 5), ratio=1, p_value=1, significant=False
    )


def test_equal_noise_is_called_a_difference_less_often_than_the_significance():
    rng = np.random.default_rng(0)
    noise = rng.lognormal(12, 0.3, (1_000, 2, 50))
    called = sum(significance.race(usual, now).significant for usual, now in noise.tolist())
    assert called / len(noise) <= significance.SIGNIFICANCE


def test_a_few_percent_beyond_the_noise_are_a_difference():
    usual, now = np.random.default_rng(0).lognormal(12, 0.02, (2, 50))
    assert significance.race(usual.tolist(), (1.03 * now).tolist()).significant


def test_times_that_are_no_pairs_cannot_race():
    with pytest.raises(ValueError):
        significance.race([1, 2], [1])


# Sign test


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.integers(1, 2_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_sign_test_is_that_of_scipy(split):
    from scipy.stats import binomtest  # which takes a while to import

    successes, trials = split
    expected = binomtest(successes, trials, 0.5).pvalue
    assert significance.sign_test(successes, trials) == pytest.approx(
        expected, rel=1e-9, abs=1e-300
    )


def test_without_unequal_pairs_nothing_is_told():
    assert significance.sign_test(0, 0) == 1
