"""Reasons: every rule with its whole sentence, from steps made by hand, and silence short of it."""

from dataclasses import replace

import pytest

from tests.examples.evidence import COMPUTING, config, only, step, transposes, work
from tflab.compare import CONFIGURATIONS, DEFAULT, findings
from tflab.compare.findings import Work
from tflab.records.verdicts import Diagnosis

# Ops that compute nothing


def test_ops_of_a_line_that_only_move_data_are_named_with_their_cost():
    # 300 of 800 us of all ops, which ran for 800 us of an untraced step
    assert only(step(*COMPUTING, *transposes())) == Diagnosis(
        "30.0 % of a median step at batch 16 (300 us of 1.00 ms) is "
        "mine.py:19, 3 ops of type Transpose "
        "that only move or convert data: 100 us a call for 4.00 KiB read and "
        "written, 0.04 GB/s. Try to avoid them, or to use fewer and larger ones.",
        cost_ns=300_000,
        share=0.3,
        batch_size=16,
        kind="movement",
    )


def test_without_lines_it_is_the_ops_of_a_type_and_how_often_they_run():
    nodes = [replace(node, line="", calls=2, call_ns=50_000) for node in transposes()]
    slices = work("s", 20, op="Slice", moves=True)
    assert only(step(*COMPUTING, *nodes, slices)).sentence == (
        "29.3 % of a median step at batch 16 (293 us of 1.00 ms) is "
        "3 ops of type Transpose, 6 calls that only move or convert data: 50.0 us a call for 4.00 "
        "KiB read and written, "
        "0.08 GB/s. Try to avoid them, or to use fewer and larger ones."
    )


def test_bytes_are_told_only_where_all_are_known():
    first, *others = transposes()
    unknown = replace(first, bytes=None)
    sentence = only(step(*COMPUTING, unknown, *others)).sentence
    assert "only move or convert data: 100 us a call. Try" in sentence


def test_a_tenth_of_a_step_is_not_too_much_movement():
    # 100 of 800 us are an eighth of the ops and a tenth of the step
    nodes = (work("a", 350), work("b", 350), work("t", 100, moves=True, line="mine.py:19"))
    assert only(step(*nodes)).kind == "none"
    more = (*nodes[:2], work("t", 101, moves=True, line="mine.py:19"))
    assert only(step(*more)).kind == "movement"


def test_two_lines_are_two_reasons_and_the_one_that_costs_more_is_first():
    other = work("c", 150, op="ConcatV2", line="mine.py:30", moves=True)
    first, second = findings.diagnose([step(other, *COMPUTING, *transposes())])
    assert "mine.py:19" in first.sentence and "mine.py:30" in second.sentence
    assert first.share > second.share


def test_transposes_between_data_formats_are_one_reason_whatever_their_lines():
    one, two, three = transposes(moves_channels=True)
    nodes = [one, replace(two, line="mine.py:21"), replace(three, line="")]
    assert only(step(*COMPUTING, *nodes)) == Diagnosis(
        "30.0 % of a median step at batch 16 (300 us of 1.00 ms) is 3 ops of type Transpose at "
        "mine.py:19, mine.py:21, (no line) that only move the channels of images to another "
        "axis, where neighbouring ops use them: 100 us a call for 4.00 KiB read and written, "
        "0.04 GB/s. Try to keep the whole network in the data format of the input.",
        cost_ns=300_000,
        share=0.3,
        batch_size=16,
        kind="format",
    )


def test_beyond_three_lines_the_others_are_counted():
    lines = ("m.py:10", "", "m.py:9", "m.py:11", "a.py:99", "m.py:9")
    nodes = [work(f"n{number}", 1, line=line) for number, line in enumerate(lines)]
    assert findings.places(nodes) == "a.py:99, m.py:9, m.py:10 and 2 other lines"
    assert findings.places(nodes[:2]) == "m.py:10, (no line)"


def test_a_single_transpose_into_a_format_may_be_what_it_takes():
    turned = work("t", 300, op="Transpose", line="mine.py:19", moves=True, moves_channels=True)
    assert only(step(*COMPUTING, turned)).kind == "movement"


# Ops that are too small


def loop(us: float = 1.0, calls: int = 100) -> list[Work]:
    return [
        work("Tanh", us, calls, op="Tanh", line="mine.py:7"),
        work("Mul", us, calls, op="Mul", line="mine.py:8"),
        work("Add", us, calls, op="Add", line="mine.py:7"),
        work("Switch", 0.5, calls, op="Switch", hands_on=True),
    ]


def test_many_small_ops_of_a_loop_are_named_with_the_line_that_takes_most():
    # 350 of 850 us, of 800 us
    assert only(step(*COMPUTING, *loop())) == Diagnosis(
        "32.9 % of a median step at batch 16 (329 us of 1.00 ms) is 400 calls of small ops, "
        "mostly in a loop, where a node runs up to 100 times, mostly mine.py:7: 875 ns a call, "
        "while an op that only passes a value on takes 500 ns. Try fewer, larger ops (one op on "
        "a whole tensor); --configs xla measures whether XLA helps.",
        cost_ns=pytest.approx(350 / 850 * 800_000),
        share=pytest.approx(350 / 850 * 0.8),
        batch_size=16,
        kind="small ops",
    )


def test_small_ops_outside_of_loops_and_without_lines_are_counted():
    nodes = [work(f"n{n}", 1.5, op="Add") for n in range(300)]
    sentence = only(step(*COMPUTING, *nodes, work("arg", 0.5, hands_on=True))).sentence
    assert sentence.startswith(
        "37.9 % of a median step at batch 16 (379 us of 1.00 ms) is 301 calls of small ops: 1.50 "
        "us a call, while an op that only passes a value on takes 500 ns. Try"
    )


@pytest.mark.parametrize(
    "us, calls, kind",
    [
        (1.5, 100, "small ops"),
        (1.6, 100, "none"),  # more than three times as long as handing on
        (1.5, 12, "none"),  # 48 calls
        (0.5, 60, "none"),  # 120 us are less than a fifth
    ],
)
def test_few_or_longer_ops_or_a_small_share_are_not_too_small(us, calls, kind):
    assert only(step(*COMPUTING, *loop(us, calls))).kind == kind


@pytest.mark.parametrize("calls, kind", [(50, "small ops"), (49, "none")])
def test_fifty_calls_are_many(calls, kind):
    nodes = [work(f"n{n}", 1.0, op="Add") for n in range(calls - 1)]
    assert only(
        step(work("a", 20), work("b", 20), *nodes, work("arg", 1.0, hands_on=True))
    ).kind == (kind)


def test_without_an_op_that_hands_on_nobody_knows_what_is_small():
    nodes = [replace(node, hands_on=False) for node in loop()]
    assert only(step(*COMPUTING, *nodes)).kind == "none"


# One op


def test_an_op_that_takes_more_than_all_others_is_named_with_its_place():
    big = work("big", 700, op="Conv2D", line="mine.py:5")
    assert only(step(big, work("a", 100))) == Diagnosis(
        "70.0 % of a median step at batch 16 (700 us of 1.00 ms) is "
        "one op, big (Conv2D) at mine.py:5: it takes longer than all other ops together. Try to "
        "reduce its work, or another shape, data format or dtype for it; optimising other ops "
        "gains less.",
        cost_ns=700_000,
        share=0.7,
        batch_size=16,
        kind="one op",
    )


def test_an_op_that_takes_most_and_only_moves_data_is_told_as_that():
    assert only(step(work("big", 700, moves=True), work("a", 100))).kind == "movement"


def test_an_op_of_a_loop_has_its_calls():
    sentence = only(step(work("big", 70, 10), work("a", 100))).sentence
    assert "one op, big (MatMul) in 10 calls: it takes" in sentence


@pytest.mark.parametrize("us, kind", [(400, "none"), (500, "none"), (510, "one op")])
def test_half_of_a_step_is_not_most_of_it(us, kind):
    # of 800 us of ops in a step of 1 ms
    assert (
        only(step(work("big", us), work("a", 400 - us / 2), work("b", 400 - us / 2))).kind == kind
    )


# Outside of all ops


def test_a_session_that_takes_longer_than_its_ops_is_named_with_how_much():
    assert only(step(*COMPUTING, step_ns=2_400_000)) == Diagnosis(
        "66.7 % of a median step at batch 16 (1.60 ms of 2.40 ms) is spent before the first op "
        "or after the last: the session takes 2.0 x as long as its ops, with 4.00 KiB fed to "
        "each step. Try a larger batch, or several steps per call.",
        cost_ns=1_600_000,
        share=pytest.approx(2 / 3),
        batch_size=16,
        kind="session",
    )


def test_how_much_longer_a_session_takes_is_of_an_untraced_step():
    slow = step(*COMPUTING, step_ns=1_000_000, ops_span_ns=500_000, traced_outside_ns=400_000)
    assert "(400 us of 1.00 ms)" in only(slow).sentence
    assert "the session takes 0.7 x as long as its ops" in only(slow).sentence


def test_large_feeds_are_named():
    large = step(*COMPUTING, step_ns=2_400_000, fed_bytes=2**20 + 1)
    assert only(large) == Diagnosis(
        "66.7 % of a median step at batch 16 (1.60 ms of 2.40 ms) is spent before the first op "
        "or after the last. Each step is fed 1.00 MiB. Try to feed less: feed only what the step "
        "uses, in a smaller dtype, and keep constant data in a variable.",
        cost_ns=1_600_000,
        share=pytest.approx(2 / 3),
        batch_size=16,
        kind="feeds",
    )
    assert only(replace(large, fed_bytes=2**20)).kind == "session"


def test_what_is_outside_is_no_more_than_in_a_traced_step():
    # 1.6 ms are left of an untraced step: it was disturbed
    disturbed = step(*COMPUTING, step_ns=2_400_000, traced_outside_ns=240_000)
    assert only(disturbed).sentence.endswith("and at least 10.0 % is spent outside of ops.")


@pytest.mark.parametrize("step_us, kind", [(1_140, "none"), (1_150, "session"), (700, "none")])
def test_less_than_three_tenths_is_what_a_session_takes(step_us, kind):
    assert only(step(*COMPUTING, step_ns=1_000 * step_us)).kind == kind


# Configurations


def test_a_faster_configuration_is_named_with_its_interval_and_how_to_have_it():
    configs = [config("default", 16, 810_000), config("no-onednn", 16, 405_000, 0.5)]
    (reason,) = findings.diagnose([step(*COMPUTING)], configs)
    assert reason == Diagnosis(
        "no-onednn is 2.00 x as fast as default on this machine, at batch 16 [1.82, 2.22] (405 "
        "us against 810 us). Try TF_ENABLE_ONEDNN_OPTS=0 in the environment before TensorFlow is "
        "imported.",
        cost_ns=405_000,
        share=0.5,
        batch_size=16,
        kind="configuration",
    )


@pytest.mark.parametrize(
    "other",
    [
        config("xla", 16, 400_000, 0.5, clear=False),
        config("xla", 16, 900_000, 1.2),
        config("xla", 16, 780_000, 0.95),
    ],
)
def test_a_configuration_that_is_slower_alike_or_unclear_is_not_named(other):
    configs = [config("default", 16, 810_000), other]
    (reason,) = findings.diagnose([step(*COMPUTING)], configs)
    assert reason.kind == "none"


@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name != DEFAULT])
def test_every_configuration_that_is_faster_says_how_to_have_it(name):
    default, other = config("default", 16, 810_000), config(name, 16, 405_000, 0.5)
    (reason,) = findings.faster([default, other])
    setting = CONFIGURATIONS[name].setting
    assert setting and reason.diagnosis.sentence.endswith(f". Try {setting}.")
