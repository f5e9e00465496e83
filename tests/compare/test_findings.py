"""Findings: each sentence from a table made by hand, and silence where there is nothing to say."""

from collections.abc import Iterator
from dataclasses import replace

from tests.approval import approve
from tests.records_by_hand import op_at_size
from tflab.compare import findings
from tflab.records.measured import Compared, OpStats, StepTimes
from tflab.records.timed import Spread

SIZES = (1, 16, 64)
CALLS = 10  # of a row, and steps, unless a test says otherwise


def cell(mean: float = 100, share: float = 0.5) -> OpStats:
    return op_at_size(CALLS, round(CALLS * mean), mean, mean, share, requested_bytes=0, gflops=None)


def row(key: str = "Conv2D", **cells: OpStats) -> Compared:
    """A row with a cell for each batch size: `b16=cell(...)`."""
    by_size = {int(name[1:]): value for name, value in cells.items()}
    return Compared(key, (key,), (), by_size)


def shares(key: str, *percent: float) -> Compared:
    """A row with a share for each batch size."""
    cells = {f"b{n}": cell(share=share / 100) for n, share in zip(SIZES, percent, strict=False)}
    return row(key, **cells)


def steps(images_per_second: float = 100, wall: float = 100, ops: float = 100) -> StepTimes:
    spread = Spread(wall, wall, wall)
    rates = (images_per_second,) * 3
    return StepTimes(CALLS, 640, spread, spread, images_per_second, ops, 0, 0, rates)


# Of rounds: their logarithms have a deviation of 0.01, and so an interval of 4.604 * 0.01 /
# sqrt(5), which is 2 %, to either side
SWING = (1, 0.99, 1.01, 0.99, 1.01)


def throughput(*rates: float, swing=SWING) -> Iterator[str]:
    """What is said of these images a second; the rounds of every second batch size swing."""
    by_size = {
        size: replace(steps(rate), round_rates=tuple(rate * factor**odd for factor in swing))
        for size, rate, odd in zip(SIZES, rates, (0, 1, 0), strict=False)
    }
    return findings.throughput(by_size, sorted(by_size))


TABLE = [
    row("NoOp", b1=cell(10, share=0.1), b16=cell(10, share=0.01)),
    row("Conv2D", b1=cell(90, share=0.9), b16=cell(990, share=0.99)),
]
MEASURED = {16: steps(100), 1: steps(100, wall=900)}
ROW_16 = [row(b16=cell())]

SAID = {
    "the largest row, and those whose shares change most": findings.shares(
        [shares("Conv2D", 40, 65, 75), shares("MatMul", 10, 10, 11), shares("MaxPool", 50, 25, 14)],
        SIZES,
    ),
    "one row rises": findings.shares([shares("Conv2D", 50, 60)], (1, 16)),
    "one row falls": findings.shares([shares("Conv2D", 50, 40)], (1, 16)),
    "the largest row, if no share changes by 5 points": findings.shares(
        [shares("Relu", 40, 44), shares("Conv2D", 50, 54), shares("Mul", 10, 6)], (1, 16)
    ),
    "by line, with the lines that were fused into it": findings.shares(
        [
            replace(shares("a.py:3", 40, 60), fused_from=("a.py:2", "(no line)", "a.py:1")),
            replace(shares("a.py:9", 60, 62), fused_from=("a.py:8",)),
        ],
        (1, 16),
        "line",
    ),
    "one batch size": findings.sentences(ROW_16, {16: steps(wall=201)}),
    "a row that is missing at a batch size has no growth": findings.shares(
        [row("Const", b1=cell(share=0.1), b64=cell(share=0.9)), shares("Mul", 50, 50, 60)], SIZES
    ),
    "images per second from each batch size to the next": throughput(100, 600, 630),
    "a tenth more is worth a larger batch": throughput(100, 110),
    "half as many": throughput(100, 50),
    "as many": throughput(1_000, 996),
    "an interval from 0.4 to 2.5 says nothing": throughput(100, 100, swing=(1, 0.5, 2, 0.7, 1.4)),
    "rounds differ more than batch sizes": throughput(1_000, 960, swing=(1, 0.9, 1.1, 0.9, 1.1)),
    "slower, but rounds of one batch size differ by more": findings.throughput(
        {
            1: replace(steps(100), round_rates=(100, 70, 100, 70, 100)),
            16: replace(steps(90), round_rates=(90, 63, 90, 63, 90)),
        },
        (1, 16),
    ),
    "of two batch sizes, of which the headline has the gain": findings.sentences(TABLE, MEASURED),
    "all, in the order of a reader's questions: the gains first": findings.sentences(
        [shares("Conv2D", 40, 65, 75)], MEASURED | {64: steps(200)}
    ),
}
UNSAID = {
    "shares of no rows": findings.shares([], SIZES),
    "images per second of one batch size": throughput(100),
    "images per second of too few rounds for an interval": throughput(1, 5, swing=SWING[:2]),
}


def test_what_is_said():
    said = ("\n  ".join((name, *sentences)) for name, sentences in SAID.items())
    approve("findings.txt", "\n".join(said))


def test_what_is_not_said():
    assert {name: said for name, sentences in UNSAID.items() if (said := [*sentences])} == {}


def test_the_rounds_that_both_batch_sizes_have_are_compared():
    """A measurement that was interrupted ends in the middle of a round."""
    rates = ((2, 4, 5, 1), (6, 12, 15))
    by_size = {n: replace(steps(n), round_rates=own) for n, own in zip((1, 3), rates, strict=True)}
    (sentence,) = findings.throughput(by_size, (1, 3))
    assert "3.00 x [3.00, 3.00]" in sentence
