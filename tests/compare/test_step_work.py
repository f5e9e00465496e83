"""Step work: what nodes cost an untraced step, and what of it is spent outside of ops."""

import pytest

from tests.examples.evidence import step, work

LOOPED, ONCE = work("looped", 100, calls=3), work("once", 100)


def test_nodes_cost_their_share_of_all_ops_of_the_time_in_which_ops_ran():
    evidence = step(LOOPED, ONCE)  # 400 us of ops in 800 us of a step of 1 ms
    assert evidence.ops_ns == 400_000
    assert evidence.cost_ns([LOOPED]) == 600_000
    assert evidence.cost_ns([LOOPED, ONCE]) == 800_000
    assert evidence.cost_ns([]) == 0


def test_without_any_op_nothing_costs_anything():
    assert step().cost_ns([ONCE]) == 0


@pytest.mark.parametrize(
    "ops_span_ns, traced_outside_ns, outside_ns",
    [
        (800_000, 300_000, 200_000),
        (800_000, 150_000, 150_000),  # a traced step has no more
        (1_100_000, 300_000, 0),  # tracing made the ops longer than the untraced step
    ],
)
def test_outside_of_all_ops_is_what_both_an_untraced_and_a_traced_step_have(
    ops_span_ns, traced_outside_ns, outside_ns
):
    evidence = step(ONCE, ops_span_ns=ops_span_ns, traced_outside_ns=traced_outside_ns)
    assert evidence.outside_ns == outside_ns
