"""Findings: each sentence from a table made by hand, and silence where there is nothing to say."""

from dataclasses import replace

import pytest

from tests.records_by_hand import config_times, op_at_size, verdict
from tflab.compare import findings
from tflab.records.measured import Compared, ConfigTimes, Fit, OpStats, StepTimes
from tflab.records.timed import Spread

SIZES = (1, 16, 64)
CALLS = 10  # of a row, and steps, unless a test says otherwise


def cell(mean: float = 100, share: float = 0.5) -> OpStats:
    return op_at_size(CALLS, round(CALLS * mean), mean, mean, share, requested_bytes=0, gflops=None)


def row(key: str = "Conv2D", fit: Fit | None = None, **cells: OpStats) -> Compared:
    """A row with a cell for each batch size: `b16=cell(...)`."""
    by_size = {int(name[1:]): value for name, value in cells.items()}
    return Compared(key, (key,), (), by_size, fit)


def steps(images_per_second: float = 100, wall: float = 100, ops: float = 100) -> StepTimes:
    spread = Spread(wall, wall, wall)
    return StepTimes(CALLS, 640, spread, spread, images_per_second, ops)


def steps_of(*sizes: int) -> dict[int, StepTimes]:
    return {size: steps() for size in sizes}


# Growth


def growth(rows, sizes=SIZES):
    return list(findings.growth(rows, sizes))


def test_the_rows_whose_shares_change_most_are_named_with_all_their_shares():
    rows = [
        row("Conv2D", b1=cell(share=0.4), b16=cell(share=0.65), b64=cell(share=0.75)),
        row("MatMul", b1=cell(share=0.1), b16=cell(share=0.1), b64=cell(share=0.11)),
        row("MaxPool", b1=cell(share=0.5), b16=cell(share=0.25), b64=cell(share=0.14)),
    ]
    assert growth(rows) == [
        "The share of Conv2D rises from 40.0 % at batch 1 to 75.0 % at 64, via 65.0 % at 16.",
        "The share of MaxPool falls from 50.0 % at batch 1 to 14.0 % at 64, via 25.0 % at 16.",
    ]


@pytest.mark.parametrize(
    "last, said",
    [
        (0.6, "The share of Conv2D rises from 50.0 % at batch 1 to 60.0 % at 16."),
        (0.4, "The share of Conv2D falls from 50.0 % at batch 1 to 40.0 % at 16."),
    ],
)
def test_one_row_is_named_once(last, said):
    assert growth([row(b1=cell(share=0.5), b16=cell(share=last))], (1, 16)) == [said]


@pytest.mark.parametrize("last", [0.5, 0.54, 0.46])
def test_shares_that_hardly_change_neither_rise_nor_fall(last):
    assert growth([row(b1=cell(share=0.5), b16=cell(share=last))], (1, 16)) == []


def test_a_row_that_is_missing_at_a_batch_size_has_no_growth():
    rows = [
        row("Const", b1=cell(share=0.1), b64=cell(share=0.9)),
        row("Mul", b1=cell(share=0.5), b16=cell(share=0.5), b64=cell(share=0.6)),
    ]
    assert growth(rows) == [
        "The share of Mul rises from 50.0 % at batch 1 to 60.0 % at 64, via 50.0 % at 16."
    ]


@pytest.mark.parametrize("rows, sizes", [([], SIZES), ([row(b1=cell())], (1,)), ([], ())])
def test_without_rows_or_a_second_batch_size_there_is_no_growth(rows, sizes):
    assert growth(rows, sizes) == []


# Longer calls


def longer(rows, sizes=SIZES, by="op"):
    return list(findings.longer(rows, steps_of(*sizes), sizes, by))


def test_calls_are_compared_from_each_batch_size_to_the_next():
    assert longer([row(b1=cell(100), b16=cell(230), b64=cell(460))]) == [
        "Conv2D: from 1 to 16 a call takes 2.30 x as long for 16 x the images; "
        "from 16 to 64 a call takes 2.00 x as long for 4 x the images."
    ]


def test_batch_sizes_that_do_not_divide_have_a_fraction_more_work():
    assert longer([row(b2=cell(100), b5=cell(100))], (2, 5)) == [
        "Conv2D: from 2 to 5 a call takes 1.00 x as long for 2.5 x the images."
    ]


def test_where_a_row_is_missing_its_calls_are_not_compared():
    assert longer([row("Const", b1=cell(), b64=cell()), row("NoOp", b16=cell())]) == []
    assert longer([row(b16=cell(100), b64=cell(200))]) == [
        "Conv2D: from 16 to 64 a call takes 2.00 x as long for 4 x the images."
    ]


def test_only_the_first_rows_are_spoken_of():
    rows = [row(key, b1=cell(), b16=cell()) for key in "abcd"]
    assert [said[0] for said in longer(rows, (1, 16))] == ["a", "b", "c"]


def test_calls_that_took_no_time_are_not_compared():
    assert longer([row(b1=cell(0), b16=cell(100))], (1, 16)) == []


# Of a batch of 16 a call takes twice as long, and a step makes twice as many
TWICE = {
    "b1": op_at_size(20, 2_000, 100, 0, 1, 0, None),
    "b16": op_at_size(40, 8_000, 200, 0, 1, 0, None),
}


@pytest.mark.parametrize("by", ["op", "node"])
def test_rows_of_one_kind_of_op_are_compared_by_call(by):
    assert longer([row(**TWICE)], (1, 16), by) == [
        "Conv2D: from 1 to 16 a call takes 2.00 x as long for 16 x the images."
    ]


@pytest.mark.parametrize("by", ["layer", "line"])
def test_rows_of_many_kinds_of_ops_are_compared_by_step(by):
    assert longer([row("conv1", **TWICE)], (1, 16), by) == [
        "conv1: from 1 to 16 a step takes 4.00 x as long for 16 x the images."
    ]


# Fixed costs


def fixed(rows, sizes=SIZES):
    return list(findings.fixed_costs(rows, sizes, "op"))


def test_a_row_of_mostly_fixed_cost_is_named_with_its_line_and_error():
    assert fixed([row(fit=Fit(90_000, 10_000, 0.087), b1=cell(100_000))]) == [
        "Conv2D: the time of a call fits 90.0 us + 10.0 us per image within 8.7 %, so at batch 1 "
        "about 90 % of it is fixed cost."
    ]


@pytest.mark.parametrize("error, count", [(0.1, 1), (0.101, 0), (0.34, 0)])
def test_nothing_is_concluded_from_a_line_that_does_not_fit(error, count):
    assert len(fixed([row(fit=Fit(90_000, 10_000, error), b1=cell(100_000))])) == count


@pytest.mark.parametrize(
    "fit",
    [
        None,
        Fit(500, 500, 0),  # half and no more
        Fit(0, 0, 0),
        Fit(-10, 100, 0.1),
        Fit(-100, 10, 1.1),  # at batch 1 the line is below 0
    ],
)
def test_where_fixed_cost_is_not_most_of_it_nothing_is_said(fit):
    assert fixed([row(fit=fit, b1=cell())]) == []


def test_a_row_that_did_not_run_at_the_smallest_batch_has_no_fixed_cost_there():
    assert fixed([row(fit=Fit(900, 1, 0), b16=cell(), b64=cell())]) == []


# Throughput


SWING = (1, 0.99, 1.01, 0.99, 1.01)  # of rounds: their logarithms have a deviation of 0.01, and so
# an interval of 4.604 * 0.01 / sqrt(5), which is 2 %, to either side


def throughput(*rates: float, swing=SWING) -> list[str]:
    """What is said of these images a second; the rounds of every second batch size swing."""
    by_size = {
        size: replace(steps(rate), round_rates=tuple(rate * factor**odd for factor in swing))
        for size, rate, odd in zip(SIZES, rates, (0, 1, 0), strict=False)
    }
    return list(findings.throughput(by_size, sorted(by_size)))


def test_the_rounds_that_both_batch_sizes_have_are_compared():
    """A measurement that was interrupted ends in the middle of a round."""
    small, large = (replace(steps(1), round_rates=rates) for rates in ((2, 4, 5), (6, 8)))
    assert findings.by_round(small, large) == [3, 2]


def test_images_per_second_are_compared_from_each_batch_size_to_the_next():
    assert throughput(100, 600, 630) == [
        "Batch 16 processes 6.00 x as many images per second as batch 1.",
        "From batch 16 to 64, images per second grow only to 1.05 x [1.03, 1.07] in 5 "
        "rounds: a larger batch no longer helps here.",
    ]


def test_a_tenth_more_is_worth_a_larger_batch():
    assert throughput(100, 110) == [
        "Batch 16 processes 1.10 x as many images per second as batch 1."
    ]


def test_fewer_images_per_second_are_a_loss():
    assert throughput(100, 50) == [
        "From batch 1 to 16, images per second fall to 0.50 x [0.49, 0.51] in 5 rounds: a larger "
        "batch is slower here."
    ]


def test_as_many_images_per_second_are_no_help_and_no_loss():
    assert throughput(1_000, 996) == [
        "From batch 1 to 16, images per second grow only to 1.00 x [0.98, 1.02] in 5 rounds: a "
        "larger batch no longer helps here."
    ]


def test_where_rounds_differ_more_than_batch_sizes_or_are_few_nothing_is_told():
    assert throughput(1_000, 960, swing=(1, 0.9, 1.1, 0.9, 1.1)) == [
        "From batch 1 to 16, images per second change to 0.96 x [0.78, 1.18] in 5 rounds: the "
        "measurement does not show whether a larger batch helps here."
    ]
    assert throughput(1_000, 500, swing=SWING[:2]) == [
        "From batch 1 to 16, images per second change to 0.50 x: the measurement does not show "
        "whether a larger batch helps here."
    ]


def test_one_batch_size_has_nothing_to_be_compared_with():
    assert throughput(100) == []


# Overhead


def test_a_step_of_more_than_twice_its_ops_is_mostly_python_and_session():
    by_size = {1: steps(wall=250_000, ops=100_000), 16: steps(wall=200_000, ops=100_000)}
    assert list(findings.overhead(by_size, (1, 16))) == [
        "At batch 1 an untraced step takes 250 us, but its ops take only 100 us: no op runs for "
        "more than half of the step."
    ]


# Configurations


def config(
    name: str, size: int, median: float, ratio: float = 1, significant: bool = True
) -> ConfigTimes:
    return config_times(name, size, median, median / ratio, verdict(ratio, significant))


USUAL = (config("default", 1, 100_000), config("default", 16, 200_000))


def test_a_configuration_that_differs_clearly_is_named_with_every_batch_size_where_it_does():
    others = (
        config("one-thread", 1, 32_000, 0.32),
        config("xla", 1, 300_000, 3.1),
        config("one-thread", 16, 120_000, 0.6),
        config("xla", 16, 200_000, 1.0, significant=False),
    )
    assert list(findings.configurations(USUAL + others)) == [
        "Compared with default, an untraced step under one-thread takes 0.32 x as long [0.29, "
        "0.35] at batch 1, 0.60 x as long [0.54, 0.66] at batch 16.",
        "Compared with default, an untraced step under xla takes 3.10 x as long [2.79, 3.41] at "
        "batch 1.",
    ]


@pytest.mark.parametrize(
    "other",
    [
        config("xla", 1, 50_000, 0.5, significant=False),
        config("xla", 1, 70_000, 0.95),  # faster, but by less than a tenth
    ],
)
def test_a_configuration_that_differs_little_or_by_chance_is_not_named(other):
    assert list(findings.configurations((*USUAL, other))) == []


# All together


def test_sentences_come_in_the_order_of_a_readers_questions_and_dear_rows_first():
    rows = [
        row("NoOp", Fit(9, 1, 0.05), b1=cell(10, share=0.1), b16=cell(10, share=0.01)),
        row("Conv2D", Fit(0, 90, 0.1), b1=cell(90, share=0.9), b16=cell(990, share=0.99)),
    ]
    by_size = {16: steps(100), 1: steps(100, wall=900)}
    raced = [config("default", 16, 900), config("xla", 16, 450, 0.5)]
    assert findings.sentences(rows, by_size, configs=raced) == (
        "The share of Conv2D rises from 90.0 % at batch 1 to 99.0 % at 16.",
        "The share of NoOp falls from 10.0 % at batch 1 to 1.0 % at 16.",
        "Conv2D: from 1 to 16 a call takes 11.00 x as long for 16 x the images.",
        "NoOp: from 1 to 16 a call takes 1.00 x as long for 16 x the images.",
        "NoOp: the time of a call fits 9 ns + 1 ns per image within 5.0 %, so at batch 1 about 90 "
        "% of it is fixed cost.",
        "From batch 1 to 16, images per second change to 1.00 x: the measurement does not show "
        "whether a larger batch helps here.",
        "At batch 1 an untraced step takes 900 ns, but its ops take only 100 ns: no op runs for "
        "more than half of the step.",
        "Compared with default, an untraced step under xla takes 0.50 x as long [0.45, 0.55] at "
        "batch 16.",
    )


def test_of_one_batch_size_only_the_overhead_can_be_told():
    assert findings.sentences([row(b16=cell())], {16: steps(wall=201)}) == (
        "At batch 16 an untraced step takes 201 ns, but its ops take only 100 ns: no op runs for "
        "more than half of the step.",
    )
    assert findings.sentences([row(b16=cell())], steps_of(16)) == ()
