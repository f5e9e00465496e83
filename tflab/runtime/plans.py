"""Plans: which steps run in which order, so that everything that is compared runs under the same
conditions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, cycle, islice, pairwise
from math import ceil, inf

from tflab import datasets
from tflab.runtime.measure import Plan, Turn, Values

WARMUP_STEPS = 3  # a new batch size means new shapes: kernels choose their algorithms again
ROUNDS = 5  # of a sweep: each batch size has a turn in each


def observations(least: int, budget_s: float, most: float = inf) -> Iterator[int]:
    """The numbers of independent observations: `least` of them, and then more, up to `most`,
    until the time is over."""
    start = time.monotonic()
    for number in count():
        if number >= most or (number >= least and time.monotonic() - start > budget_s):
            return
        yield number


def pairs(batches: Iterator[Values], size: int, warmup: int, steps: int) -> Plan:
    """Untraced and traced steps in turn, both on the same values."""

    def rounds() -> Iterator[Sequence[Turn]]:
        for number, values in enumerate(islice(batches, warmup + steps), -warmup):
            turn = Turn(values, size, number, warmup=number < 0)
            yield turn, replace(turn, traced=True)

    return Plan("steps", rounds(), warmup + steps)


def rotation(batches: Iterator[Values], size: int, jobs: int, rounds: int) -> Plan:
    """Untraced steps of several jobs; the order is reversed every round."""

    def turns() -> Iterator[list[Turn]]:
        for number, values in enumerate(islice(batches, WARMUP_STEPS + rounds), -WARMUP_STEPS):
            order = range(jobs) if number % 2 else reversed(range(jobs))
            yield [Turn(values, size, number, job=at, warmup=number < 0) for at in order]

    return Plan("rounds", turns(), WARMUP_STEPS + rounds, traced=False)


def sweep(
    columns: Sequence[datasets.Column],
    rows: int,
    batch_sizes: Sequence[int],
    warmup: int,
    trace_every: int = 1,
) -> Plan:
    """The same rows of data at several batch sizes, each once untraced and once traced.

    The rows are cut into rounds, in which every batch size processes the same ones. If one step in
    `trace_every` is traced, those are spread evenly, beginning with the first, and the others of
    that pass are warm-ups. The last batch may be smaller.
    """
    rounds_of = {size: steps_of_rounds(rows, batch_sizes, size) for size in batch_sizes}
    in_all = len(rounds_of[batch_sizes[0]])

    def turns(steps: range, size: int) -> Iterator[Turn]:
        begin, end = steps.start * size, min(steps.stop * size, rows)
        for values in datasets.slices(columns, begin, end, size):
            yield Turn(values, size)
        for number, values in enumerate(datasets.slices(columns, begin, end, size), steps.start):
            traced = number % trace_every == 0
            yield Turn(values, size, number // trace_every, traced, warmup=not traced)

    def rounds() -> Iterator[Iterable[Turn]]:
        for size in batch_sizes:
            yield warmups(columns, rows, size, warmup)
        for number in range(in_all):
            for size in batch_sizes:
                yield turns(rounds_of[size][number], size)

    return Plan("measuring", rounds(), len(batch_sizes) * (1 + in_all))


def steps_of_rounds(rows: int, batch_sizes: Sequence[int], size: int) -> list[range]:
    """The step numbers of a batch size in each round of a sweep."""
    largest = max(batch_sizes)
    a_round = max(1, ceil(rows / ROUNDS / largest)) * largest
    bounds = [ceil(min(row, rows) / size) for row in range(0, rows + a_round, a_round)]
    return [range(*steps) for steps in pairwise(bounds)]


def trial(columns: Sequence[datasets.Column], batch_sizes: Sequence[int]) -> Plan:
    """A few steps of each batch size, untraced and traced, to see how long they take."""

    def turns(size: int) -> Iterator[Turn]:
        for values in islice(cycle(datasets.slices(columns, 0, size, size)), WARMUP_STEPS):
            yield Turn(values, size)
            yield Turn(values, size, traced=True)

    return Plan("trying", map(turns, batch_sizes), len(batch_sizes))


def warmups(columns: Sequence[datasets.Column], rows: int, size: int, count: int) -> Iterator[Turn]:
    """This many steps of every shape that will occur, because kernels choose anew for a new
    shape."""
    whole_batches = rows // size * size
    for start, stop in ((0, whole_batches), (whole_batches, rows)):
        for values in islice(cycle(datasets.slices(columns, start, stop, size)), count):
            yield Turn(values, size, warmup=True)
            yield Turn(values, size, traced=True, warmup=True)


def several_rotations(
    columns: Sequence[datasets.Column], batch_sizes: Sequence[int], jobs: int, rounds: int
) -> Plan:
    """A rotation at each batch size, one size after the other; the data may start again."""

    def turns(size: int) -> Iterator[Turn]:
        whole = len(columns[0]) // size * size if columns else size
        batches = cycle(datasets.slices(columns, 0, whole, size))
        for turns in rotation(batches, size, jobs, rounds).rounds:
            yield from turns

    return Plan("steps", map(turns, batch_sizes), len(batch_sizes), traced=False)
