"""Measurements by hand: of a step at batch 4 and 16 with two ops, in as many processes as asked."""

from collections.abc import Sequence
from dataclasses import replace

from tests.records_by_hand import op_stats
from tflab.records.measured import (
    Compared,
    Comparison,
    Fingerprint,
    Observed,
    ObservedProcess,
    StepTimes,
)
from tflab.records.measurements import Measurement
from tflab.records.timed import Spread
from tflab.records.verdicts import Quality

QUIET = Quality(True, (), 2, 0.5, 0.0, 1.5, 0.9)
MODEL = Fingerprint(
    graph="0123456789abcdef",
    nodes=3,
    edges=2,
    ops={"Conv2D": 1, "MaxPool": 1, "Placeholder": 1},
    feeds=("images:0 float32 [?, 32, 32, 1]",),
    data="fedcba9876543210",
    weights=None,
)
HERE = {"(v)CPUs": "2 (Some CPU)", "GPUs": "none", "Framework": "tensorflow 2.21.0"}


def process(us: float, conv_us: float, pool_us: float) -> ObservedProcess:
    """Two turns of three untraced steps and one of two traced ones; at batch 16 all takes twice as
    long. The middle step of each turn is what counts."""
    ns = round(1_000 * us)
    turns = ((ns - 10, ns, 9 * ns), (ns // 9, ns, ns + 10))
    return ObservedProcess(
        untraced_ns={4: turns, 16: tuple(tuple(2 * step for step in turn) for turn in turns)},
        traced_ns={4: ((2 * ns, 2 * ns),), 16: ((4 * ns, 4 * ns),)},
        rows_ns={
            size: {"Conv2D": factor * 1_000 * conv_us, "MaxPool": factor * 1_000 * pool_us}
            for size, factor in ((4, 1), (16, 2))
        },
    )


def row(key: str, step_ns: float, share: float):
    times = {"calls": 5, "total_ns": round(5 * step_ns), "self_ns": round(5 * step_ns)}
    rest = {"mean_ns": step_ns, "median_ns": step_ns, "p95_ns": step_ns, "std_ns": 1.5}
    counted = {"cumulative_share": 1.0, "requested_bytes": 256, "step_ns": step_ns}
    return op_stats(key, ops=(key,), nodes=(key.lower(),), share=share, **times, **rest, **counted)


TABLES = {
    4: (row("Conv2D", 60_000.0, 0.75), row("MaxPool", 20_000.0, 0.25)),
    16: (row("Conv2D", 120_000.0, 0.75), row("MaxPool", 40_000.0, 0.25)),
}
STEPS = {
    size: StepTimes(
        steps=5,
        images=5 * size,
        untraced_ns=Spread(1e5, 9e4, 2e5),
        traced_ns=Spread(2e5, 1e5, 3e5),
        mean_images_per_second=1e9 * size / 1e5,
        ops_ns=8e4,
        untraced_steps=5,
        peak_bytes=512,
    )
    for size in TABLES
}
COMPARISON = Comparison(
    model="lenet",
    phase="inference",
    by="op",
    data="MNIST",
    warmup=3,
    batch_sizes=(4, 16),
    rows=tuple(
        Compared(key, (key,), (), {size: TABLES[size][place] for size in TABLES}, None)
        for place, key in enumerate(("Conv2D", "MaxPool"))
    ),
    steps=STEPS,
    configs=(),
    findings=("Batch 16 does more.",),
    cold=(TABLES[4][0],),
    cold_step_ns=5_000_000,
    uncovered={},
    tables=TABLES,
    images=80,
    quality=QUIET,
)
US = (100.0, 101.0, 99.0, 100.5, 99.5)  # of the steps of five processes


def measurement(times: Sequence[float] = US, factor: float = 1, **changes) -> Measurement:
    """Processes whose steps take so many us, times a factor; ops take 60 and 20 % of that."""
    processes = tuple(process(us * factor, 0.6 * us * factor, 0.2 * us * factor) for us in times)
    turns = ((100_000, 100_000, 100_000, 90_000, 200_000),)
    both = dict.fromkeys((4, 16), turns)
    whole = Measurement(
        tflab="1.0",
        when="2026-03-01T12:00:00Z",
        environment=HERE,
        options={"graph passes off": "none"},
        comparison=COMPARISON,
        observed=Observed(MODEL, both, both, processes),
    )
    return replace(whole, **changes)


def changed(measurement: Measurement, **changes) -> Measurement:
    """With other fields of its comparison."""
    return replace(measurement, comparison=replace(measurement.comparison, **changes))


def of_graph(measurement: Measurement, **changes) -> Measurement:
    """With another fingerprint."""
    other = replace(measurement.observed.fingerprint, **changes)
    return replace(measurement, observed=replace(measurement.observed, fingerprint=other))
