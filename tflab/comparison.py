"""Comparison: one step at several batch sizes, from the sweep to rows, fits and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import tensorflow as tf

from tflab import (
    configurations,
    costs,
    dumps,
    findings,
    lifecycle,
    machine,
    memory,
    placement,
    rows,
    session,
    sweep,
    tables,
)
from tflab.errors import UsageError
from tflab.records import (
    Backward,
    Cell,
    Compared,
    Comparison,
    ConfigTimes,
    Options,
    Peaks,
    Placement,
    Row,
    StepTimes,
)

TRAINING_IMAGES = 2_000  # of the training split: enough steps, and over in a few seconds
COLD = 5  # ops of the first step that are shown


def compare(
    model: str,
    batch_sizes: tuple[int, ...],
    *,
    phase: str = "inference",
    by: str = "op",
    images: int | None = None,
    configs: Sequence[str] = ("default",),
    options: Options | None = None,
) -> Comparison:
    """Measure a model's step at each batch size and say what the numbers mean.

    `images` counts from the start of the test split (training: of the training split). Raises
    UsageError where there are fewer than a batch needs, TflabError when a step fails.
    """
    dumps.prepare()
    configurations.check(configs)
    *_, backward = lifecycle.walk(model, options, stop="backward")
    assert isinstance(backward, Backward)
    options = options or Options()
    program = backward.program
    if phase == "training" and program.train_op is None:
        raise UsageError(f"The model '{model}' has no loss to train with; compare its inference.")
    split = "train" if phase == "training" else "test"
    available = program.dataset(split).size
    wanted = images or (min(TRAINING_IMAGES, available) if split == "train" else available)
    if wanted > available or batch_sizes[-1] > wanted:
        raise UsageError(
            f"{wanted:,} images were asked for, and batches of up to {batch_sizes[-1]:,}; the "
            f"{split} split of {program.dataset(split).name} has {available:,}. Give a batch size "
            "and a number of images within that."
        )
    fetches = (program.model.output.name,) if phase == "inference" else ()
    placed = {
        size: placement.place(backward, replace(options, batch_size=size, fetches=fetches))
        for size in batch_sizes
    }
    first = placed[batch_sizes[0]]
    step = session.step_of(program, first.fetches)
    cold_step_ns, cold_runs = configurations.cold(program, step, batch_sizes[0], split)
    peaks = machine.peaks()
    types = {node.name: node.op for node in first.nodes}
    swept = sweep.run(program, step, batch_sizes, wanted, options, split, types)
    done = {size: batch for size, batch in swept.batches.items() if batch.traced_ns}
    tabulated = {size: table(batch, placed[size], by, peaks) for size, batch in done.items()}
    steps = {size: times(batch, tabulated[size]) for size, batch in done.items()}
    compared = side_by_side(tabulated, steps)
    raced: tuple[ConfigTimes, ...] = ()
    if len(configs) > 1 and not (swept.interrupted or swept.failure):
        try:
            raced = configurations.race(program, step, configs, batch_sizes, options, split)
        except KeyboardInterrupt:
            swept.interrupted = True  # the sweep is kept
    return Comparison(
        model=model,
        phase=phase,
        by=by,
        data=program.dataset(split).name,
        warmup=options.warmup,
        batch_sizes=tuple(steps),
        rows=compared,
        tables=tabulated,
        steps=steps,
        configs=raced,
        findings=findings.sentences(compared, steps),
        cold=tables.top_ops(cold_runs)[:COLD],
        cold_step_ns=cold_step_ns,
        uncovered=tuple(costs.uncovered(shaped(first), first.nodes, first.ledger)),
        interrupted=swept.interrupted,
        failure=swept.failure,
    )


def table(batch: sweep.Measured, placed: Placement, by: str, peaks: Peaks) -> tuple[Row, ...]:
    """The rows of one batch size, with what is known of their costs."""
    devices = {node.name: node.device for node in placed.nodes}
    types = {node.name: node.op for node in placed.nodes}
    requested = {one.name: one.requested_bytes for one in memory.memory(batch.runs).per_op}
    return rows.rows(
        batch.tally.stats(types, devices, requested),
        by,
        batch.tally.steps,
        costs=costs.costs(shaped(placed), placed.nodes, placed.ledger),
        ledger=placed.ledger,
        sources={node.name: node.source for node in placed.user_nodes},
        peaks=peaks,
        quantile=batch.tally.quantile,
    )


def shaped(placed: Placement) -> tf.Graph:
    """The user's graph with the shapes of this placement's batch."""
    program, size = placed.program, placed.batch_size
    feeds = {t.name: [size, *t.shape.as_list()[1:]] for t in program.model.feeds}
    return costs.concrete(program.graph, feeds, placed.nodes)


def times(batch: sweep.Measured, rows: Sequence[Row]) -> StepTimes:
    untraced = tables.spread(batch.untraced_ns)
    return StepTimes(
        steps=len(batch.traced_ns),
        images=batch.rows,
        untraced_ns=untraced,
        traced_ns=tables.spread(batch.traced_ns),
        images_per_second=1e9 * batch.rows / sum(batch.untraced_ns[: len(batch.traced_ns)]),
        ops_ns=sum(row.self_ns for row in rows) / batch.tally.steps,
    )


def side_by_side(
    tabulated: Mapping[int, Sequence[Row]], steps: Mapping[int, StepTimes]
) -> tuple[Compared, ...]:
    """One row for each key, in the order of the largest batch, then of the others."""
    found: dict[str, dict[int, Row]] = {}
    for size in sorted(tabulated, reverse=True):
        for row in tabulated[size]:
            found.setdefault(row.key, {})[size] = row
    compared = []
    for key, by_size in found.items():
        cells = {size: cell(by_size[size], steps[size]) for size in sorted(by_size)}
        any_row = next(iter(by_size.values()))
        fitted = findings.fit(cells, steps)
        compared.append(Compared(key, any_row.ops, any_row.fused_from, cells, fitted))
    return tuple(compared)


def cell(row: Row, steps: StepTimes) -> Cell:
    return Cell(
        calls=row.calls,
        total_ns=row.total_ns,
        mean_ns=row.mean_ns,
        ns_per_image=row.self_ns / steps.images,
        share=row.share,
        bytes=row.requested_bytes,
        gflops=row.gflops,
    )
