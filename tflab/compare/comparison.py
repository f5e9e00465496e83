"""Comparison: one step at several batch sizes, also under several configurations: from the sweep
to rows, fits and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tflab.cli import interrupts
from tflab.compare import SweepOptions, configurations, findings, passes, prepare, sweep, view
from tflab.compare.prepare import Prepared
from tflab.errors import RefusedError, TflabError
from tflab.exporters import notebook
from tflab.records.measured import Comparison, ConfigTimes, OpStats, Rounds, StepTimes
from tflab.records.options import Options
from tflab.records.verdicts import Diagnosis
from tflab.runtime import costs, machine_load, measure

notebook.show_as(Comparison, view.blocks)


@dataclass(frozen=True)
class MeasuredStep:
    """The measurements of a step, complete or not."""

    batches: Mapping[int, sweep.MeasuredBatch]  # by batch size
    tables: sweep.Tables
    steps: Mapping[int, StepTimes]
    ending: measure.Outcome
    raced: tuple[ConfigTimes, ...] = ()


def compare(
    model: str, batch_sizes: Sequence[int], chosen: SweepOptions, options: Options
) -> Comparison:
    """Measure a model's step and draw conclusions; `compare_batch_sizes` says what it raises."""
    configurations.check(chosen.configs)
    chosen = replace(chosen, configs=configurations.changing(chosen.configs))
    with interrupts.released():
        prepared = passes.prepared(prepare.prepare(model, batch_sizes, chosen, options))
    return concluded(prepared, with_configurations(prepared, swept(prepared)))


def swept(prepared: Prepared) -> MeasuredStep:
    """Measure the step at each batch size, and make its tables."""
    placed, images = prepared.placed, prepared.images
    done = sweep.run(
        prepared.program,
        prepared.step,
        prepared.batch_sizes,
        images,
        prepared.options,
        prepared.split,
        sweep.types_of(prepared.first),
    )
    tables = {
        size: sweep.table(batch, placed[size], prepared.chosen.by, placed.get(images % size))
        for size, batch in done.batches.items()
    }
    steps = {size: sweep.times(batch, tables[size]) for size, batch in done.batches.items()}
    return MeasuredStep(done.batches, tables, steps, done.ending)


def with_configurations(prepared: Prepared, measured: MeasuredStep) -> MeasuredStep:
    """Add configurations, if other processes can run the step. Ctrl-C, or a process that fails,
    keeps the sweep and the observations so far."""
    alone = len(prepared.chosen.configs) < 2 or prepared.calls_python
    if alone or measured.ending != measure.Outcome():
        return measured
    observed, ending = [], measured.ending
    try:
        with interrupts.released():
            for observation in configurations.observe(prepared):
                observed.append(observation)
    except KeyboardInterrupt:
        ending = measure.Outcome(interrupted=True)
    except TflabError as error:
        ending = measure.Outcome(failure=RefusedError(str(error)))
    raced = configurations.race(prepared, observed) if observed else ()
    return replace(measured, raced=raced, ending=ending)


def concluded(prepared: Prepared, measured: MeasuredStep) -> Comparison:
    """Return the measurements with their conclusions."""
    chosen, options = prepared.chosen, prepared.options
    steps, ending = measured.steps, measured.ending
    # The rules are about the ops and the pauses of one process, and tasks are not other programs.
    reasons = () if options.cluster else diagnosed(prepared, measured)
    during = machine_load.since(prepared.beginning)
    if options.cluster:
        during = replace(during, during=None)
    compared = sweep.side_by_side(measured.tables, steps, chosen.by)
    smallest = measured.batches[prepared.batch_sizes[0]]
    stats = smallest.accumulator.stats(sweep.types_of(prepared.first), {}, {})
    warm = {node.name: node.mean_ns for node in stats}
    dataset = prepared.program.dataset(prepared.split)
    failures = [*prepared.refused, *([str(ending.failure)] if ending.failure else [])]
    return Comparison(
        model=prepared.model,
        phase=chosen.phase,
        by=chosen.by,
        data=dataset.name,
        unit=dataset.unit,
        warmup=options.warmup,
        batch_sizes=tuple(steps),
        rows=compared,
        tables=measured.tables,
        steps=steps,
        configs=measured.raced,
        passes=prepared.passes,
        findings=findings.sentences(compared, steps, chosen.by, dataset.unit),
        cold=prepared.cold,
        cold_step_ns=prepared.cold_step_ns,
        calls_python=prepared.calls_python,
        uncovered=costs.types_without_flops(prepared.first),
        interrupted=ending.interrupted or interrupts.take(),
        failure=" ".join(failures) or None,
        images=prepared.images,
        tasks=len(options.cluster),
        warm_ns={row.key: warm[row.key] for row in prepared.cold if row.key in warm},
        load=during,
        diagnosis=reasons,
        rounds={
            size: rounds_of(batch, measured.tables[size])
            for size, batch in measured.batches.items()
        },
    )


def rounds_of(batch: sweep.MeasuredBatch, table: Sequence[OpStats]) -> Rounds:
    """Return the median of each round of a sweep, of the step and of every row."""
    return Rounds(
        step_ns=tuple(median(times) for times in batch.untraced_rounds()),
        rows_ns={
            row.key: batch.accumulator.round_medians_ns(row.nodes, batch.rounds) for row in table
        },
    )


def diagnosed(prepared: Prepared, measured: MeasuredStep) -> tuple[Diagnosis, ...]:
    """Return why a step is slow, from the measurements of every node at every batch size."""
    placed = prepared.placed
    evidence = [
        sweep.evidence(
            batch,
            placed[size],
            sweep.table(batch, placed[size], "node"),
            sweep.costs_of(placed[size]),
        )
        for size, batch in measured.batches.items()
    ]
    return findings.diagnose(evidence, measured.raced)
