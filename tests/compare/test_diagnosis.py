"""Diagnosis: which of the reasons are told, of which batch size, and what it says without one."""

from dataclasses import replace

import pytest

from tests.examples.evidence import COMPUTING, config, only, step, transposes, work
from tflab.compare import findings
from tflab.records.verdicts import Diagnosis, Experiment, Experiments


def test_reasons_are_ranked_by_their_share_of_a_step_and_three_are_told():
    configs = [config("default", 16, 100_000), config("xla", 16, 70_000, 0.7)]
    copies = work("c", 150, op="Slice", line="mine.py:30", moves=True)
    nodes = (copies, *transposes(), work("a", 175), work("b", 175))
    reasons = findings.diagnose([step(*nodes, step_ns=1_250_000)], configs)
    assert [(reason.kind, reason.share) for reason in reasons] == [
        ("session", 0.36),
        ("configuration", pytest.approx(0.3)),
        ("movement", 0.24),
    ]


def test_a_reason_is_told_of_the_batch_size_where_it_costs_most():
    batches = [
        step(*COMPUTING, *transposes(us), batch_size=size)
        for size, us in ((1, 50), (16, 150), (64, 100))
    ]
    assert (only(*batches).batch_size, only(*batches).kind) == (16, "movement")


def test_no_node_is_blamed_twice():
    small = [work(f"t{n}", 2.0, op="Transpose", moves=True) for n in range(100)]
    hands_on = work("arg", 1.0, hands_on=True)
    assert only(step(*COMPUTING, *small, hands_on, ops_span_ns=1_000_000)).kind == "small ops"


def test_without_a_reason_it_says_so_and_what_comes_closest():
    small, large = step(*COMPUTING, batch_size=4), step(*COMPUTING, work("c", 300), batch_size=64)
    assert only(large, small) == Diagnosis(
        "No single cause stands out: of a median step at batch 64 (1.00 ms), the most expensive "
        "op, c (MatMul), takes at most 30.0 %, and at least 20.0 % is spent outside of ops.",
        cost_ns=0,
        share=0,
        batch_size=64,
        kind="none",
    )


def test_a_lower_bound_of_nothing_is_not_told():
    """Traced ops took as long as the untraced step, so what is outside of them is unknown."""
    found = only(step(*COMPUTING, ops_span_ns=996_000))
    assert found.sentence == (
        "No single cause stands out: of a median step at batch 16 (1.00 ms), the most expensive "
        "op, a (MatMul), takes at most 49.8 %."
    )
    assert only(step(ops_span_ns=1_000_000)).sentence == "No single cause stands out."


def test_of_a_step_without_ops_only_what_is_outside_can_be_told():
    assert only(step(ops_span_ns=900_000)).sentence == (
        "No single cause stands out: of a median step at batch 16 (1.00 ms), at least 10.0 % is "
        "spent outside of ops."
    )
    assert "after the last: with 4.00 KiB fed" in only(step(ops_span_ns=0)).sentence


def test_of_too_few_steps_nothing_is_said():
    assert findings.diagnose([step(*COMPUTING, *transposes(), steps=4)]) == ()
    assert only(step(*COMPUTING, *transposes(), steps=5)).kind == "movement"


def test_what_was_run_once_more_is_told_with_its_interval():
    batch = step(*COMPUTING, *transposes())
    of_others = Experiment("a", "MatMul", 250e3, 240e3, 260e3, 9)
    ops = (of_others, Experiment("t2", "Transpose", 12_340.0, 11_000.0, 13_500.0, 9))
    made = {16: Experiments(ops, None, ()), 64: Experiments((of_others,), None, ())}
    usual = only(batch)
    (reason,) = findings.diagnose([batch], (), made)
    added = " Run a second time, t2 adds 12.3 us [11.0 us, 13.5 us] to a step."
    assert reason == replace(usual, sentence=usual.sentence + added)
    elsewhere = {1: made[16], 16: made[64]}
    assert findings.diagnose([batch], (), elsewhere) == (usual,)
