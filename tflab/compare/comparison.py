"""Comparison: one step at several batch sizes, also under several configurations: from the sweep
to rows, fits and findings. `saved_measurements`
compares files of measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tflab.runtime import dumps, quiet_import

dumps.prepare()  # before the following modules import TensorFlow
quiet_import.load()

from tflab.analysis import op_table, quality
from tflab.cli import ending as signals
from tflab.compare import diagnosis, evidence, findings, observing, preparation, race, sweep, view
from tflab.compare.preparation import Prepared, SweepOptions
from tflab.compare.race import RaceOptions
from tflab.exporters import notebook
from tflab.lifecycle import experiments
from tflab.records.measured import Comparison, ConfigTimes, Observed, StepTimes
from tflab.records.options import Options
from tflab.records.stages import Placement
from tflab.records.verdicts import Diagnosis, Experiments, Load, Quality
from tflab.runtime import costs, load, measure

notebook.show_as(Comparison, view.blocks)


@dataclass(frozen=True)
class MeasuredStep:
    """The measurements of a step, complete or not."""

    batches: Mapping[int, sweep.MeasuredBatch]  # by batch size
    tables: sweep.Tables
    steps: Mapping[int, StepTimes]
    ending: measure.Outcome
    raced: tuple[ConfigTimes, ...] = ()
    experiments: Mapping[int, Experiments] = field(default_factory=dict)
    observed: Observed | None = None


def compare_batch_sizes(
    model: str,
    batch_sizes: tuple[int, ...],
    chosen: SweepOptions | None = None,
    *,
    options: Options | None = None,
) -> Comparison:
    """Measure a model's step at each batch size and draw conclusions.

    Raises UsageError if there are fewer images than a batch needs, TflabError if a step fails.
    """
    return compare_configurations(model, batch_sizes, chosen, options=options)


def compare_configurations(
    model: str,
    batch_sizes: tuple[int, ...],
    chosen: SweepOptions | None = None,
    configurations: RaceOptions | None = None,
    *,
    options: Options | None = None,
) -> Comparison:
    """Measure a model's step at each batch size, and then untraced under each configuration.

    Raises what `compare_batch_sizes` raises, and UsageError for a configuration that this machine
    does not support.
    """
    configurations = configurations or RaceOptions()
    race.check(configurations.names)
    with signals.released():
        prepared = preparation.prepare(
            model, batch_sizes, chosen or SweepOptions(), options or Options()
        )
    measured = swept(prepared)
    measured = with_configurations(prepared, measured, configurations)
    measured = with_experiments(prepared, measured)
    measured = with_processes(prepared, measured)
    return concluded(prepared, measured)


def swept(prepared: Prepared) -> MeasuredStep:
    """The step at each batch size, as tables."""
    chosen, placed, images = prepared.chosen, prepared.placed, prepared.images
    done = sweep.run(
        prepared.program,
        prepared.step,
        prepared.batch_sizes,
        images,
        prepared.options,
        prepared.split,
        types_of(prepared.first),
        chosen.trace_every,
    )

    tables = {
        size: sweep.table(batch, placed[size], chosen.by, placed.get(images % size))
        for size, batch in done.batches.items()
    }
    steps = {size: sweep.times(batch, tables[size]) for size, batch in done.batches.items()}
    return MeasuredStep(done.batches, tables, steps, done.ending)


def with_configurations(
    prepared: Prepared, measured: MeasuredStep, configurations: RaceOptions
) -> MeasuredStep:
    """The same with configurations, if other processes can run the step; Ctrl-C keeps the sweep."""
    alone = len(configurations.names) < 2 or prepared.calls_python
    if alone or measured.ending != measure.Outcome():
        return measured
    try:
        with signals.released():
            raced = race.run(prepared, configurations.names, configurations.budget_s)
    except KeyboardInterrupt:
        return replace(measured, ending=measure.Outcome(interrupted=True))
    return replace(measured, raced=raced)


def with_experiments(prepared: Prepared, measured: MeasuredStep) -> MeasuredStep:
    """The same with experiments on its largest ops, if seconds were given for them."""
    options = prepared.options
    if not options.experiments or measured.ending != measure.Outcome():
        return measured
    seconds = max(1, options.experiments // len(measured.batches))
    by_size: dict[int, Experiments] = {}
    for size, batch in measured.batches.items():
        share = replace(options, experiments=seconds, batch_size=size)
        of_size = largest_ops_once_more(batch, prepared.placed[size], share, prepared.split)
        if of_size is None:
            return replace(measured, experiments=by_size, ending=measure.Outcome(interrupted=True))
        by_size[size] = of_size
    return replace(measured, experiments=by_size)


def with_processes(prepared: Prepared, measured: MeasuredStep) -> MeasuredStep:
    """The same with measurements in separate processes, if the measurement is to be saved."""
    chosen, ending = prepared.chosen, measured.ending
    if chosen.keep_s is None or ending.interrupted or prepared.calls_python:
        return measured
    observed, kept = observing.observe(prepared, measured.batches, measured.tables, chosen.keep_s)
    return replace(measured, observed=observed, ending=ending if ending.failure else kept)


def concluded(prepared: Prepared, measured: MeasuredStep) -> Comparison:
    """The measurements with their conclusions."""
    chosen, options, placed = prepared.chosen, prepared.options, prepared.placed
    steps, ending, observed = measured.steps, measured.ending, measured.observed
    during = load.since(prepared.beginning)
    judgement = quality_of(steps, placed, during, options.even_if_busy)
    withheld = quality.disturbed(judgement)
    raced = race.undecided(measured.raced) if withheld else measured.raced
    # The rules are about the ops and the pauses of one process
    ruled = not (withheld or options.cluster)
    reasons = diagnosed(placed, replace(measured, raced=raced)) if ruled else ()
    compared = sweep.side_by_side(measured.tables, steps, chosen.by)
    smallest = measured.batches[prepared.batch_sizes[0]]
    stats = smallest.accumulator.stats(types_of(prepared.first), {}, {})
    warm = {node.name: node.mean_ns for node in stats}
    dataset = prepared.program.dataset(prepared.split)
    failures = [*prepared.refused, *([str(ending.failure)] if ending.failure else [])]
    return Comparison(
        model=observing.without_folders(prepared.model) if observed else prepared.model,
        phase=chosen.phase,
        by=chosen.by,
        data=dataset.name,
        unit=dataset.unit,
        warmup=options.warmup,
        batch_sizes=tuple(steps),
        rows=compared,
        tables=measured.tables,
        steps=steps,
        configs=raced,
        findings=findings.sentences(compared, steps, chosen.by, raced, judgement, dataset.unit),
        cold=prepared.cold,
        cold_step_ns=prepared.cold_step_ns,
        calls_python=prepared.calls_python,
        uncovered=costs.types_without_flops(prepared.first),
        interrupted=ending.interrupted or signals.take_pending(),
        failure=" ".join(failures) or None,
        images=prepared.images,
        trace_every=chosen.trace_every,
        without=options.without,
        tasks=len(options.cluster),
        warm_ns={row.key: warm[row.key] for row in prepared.cold if row.key in warm},
        experiments=measured.experiments,
        quality=judgement,
        diagnosis=reasons,
        observed=observed,
    )


def types_of(placed: Placement) -> dict[str, str]:
    return {node.name: node.op for node in placed.nodes}


def diagnosed(placed: Mapping[int, Placement], measured: MeasuredStep) -> tuple[Diagnosis, ...]:
    """Why a step is slow, from the measurements of every node at every batch size."""
    batches = [
        evidence.of_batch(
            batch,
            placed[size],
            sweep.table(batch, placed[size], "node"),
            sweep.costs_of(placed[size]),
        )
        for size, batch in measured.batches.items()
    ]
    return diagnosis.diagnose(batches, measured.raced, measured.experiments)


def quality_of(
    steps: Mapping[int, StepTimes],
    placed: Mapping[int, Placement],
    during: Load,
    even_if_busy: bool,
) -> Quality:
    """Whether the machine was quiet enough to draw conclusions from the step times."""
    return quality.judge(
        during,
        [
            quality.TakenTurns(
                size,
                row.untraced_steps,
                row.steps,
                row.untraced_ns,
                row.traced_ns,
                costs.fed_bytes(placed[size].nodes),
            )
            for size, row in steps.items()
        ],
        even_if_busy,
    )


def largest_ops_once_more(
    batch: sweep.MeasuredBatch, placed: Placement, options: Options, split: str
) -> Experiments | None:
    """What the largest ops of a batch size cost a step; None after Ctrl-C."""
    stats = batch.accumulator.stats(types_of(placed), {}, {})
    nodes = op_table.table(stats, "node", batch.accumulator.steps, batch.rows)
    try:
        with signals.released():
            return experiments.run(placed, nodes, options, split)
    except KeyboardInterrupt:
        return None
