"""Comparison: a step at several batch sizes and under several configurations, with findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from tflab.analysis import slow_steps
from tflab.analysis.passes import BETWEEN
from tflab.cli import interrupts
from tflab.compare import (
    PASSES,
    WITHOUT,
    SweepOptions,
    configurations,
    findings,
    prepare,
    sweep,
    view,
)
from tflab.compare.prepare import Prepared
from tflab.errors import RefusedError, TflabError
from tflab.exporters import text
from tflab.lifecycle import placement
from tflab.records.measured import ChangingPass, Comparison, ConfigTimes, Rounds
from tflab.records.options import SWITCHES, Options
from tflab.records.placed import FirstRun, Pass
from tflab.runtime import measure, session

PYTHON = "The step calls a Python function, which the processes of --configs do not have."

text.show_as(Comparison, view.blocks)


def compare(
    model: str, batch_sizes: Sequence[int], chosen: SweepOptions, options: Options
) -> Comparison:
    """Measure a model's step and draw conclusions; `compare_batch_sizes` says what it raises."""
    chosen = replace(chosen, configs=configurations.changing(chosen.configs))
    with interrupts.released():
        prepared = with_each_pass_off(prepare.prepare(model, batch_sizes, chosen, options))
    types = {node.name: node.op for node in prepared.placed[prepared.batch_sizes[0]].nodes}
    batches, ending = sweep.run(
        *(prepared.program, prepared.step, prepared.batch_sizes, prepared.images),
        *(prepared.options, prepared.split, types),
    )
    raced, ending = raced_in(prepared, batches, ending)
    chosen, options, placed = prepared.chosen, prepared.options, prepared.placed
    tables = {
        size: sweep.table(batch, placed[size], chosen.by, placed.get(prepared.images % size))
        for size, batch in batches.items()
    }
    steps = {size: sweep.times(batch, tables[size]) for size, batch in batches.items()}
    evidence = [
        sweep.evidence(batch, placed[size], sweep.table(batch, placed[size], "node"))
        for size, batch in batches.items()
        if not options.cluster  # the rules are about the ops and the pauses of one process
    ]
    compared = sweep.side_by_side(tables)
    dataset = prepared.program.dataset(prepared.split)
    return Comparison(
        model=prepared.model,
        phase=chosen.phase,
        by=chosen.by,
        data=dataset.name,
        unit=dataset.unit,
        warmup=options.warmup,
        batch_sizes=tuple(steps),
        rows=compared,
        tables=tables,
        steps=steps,
        configs=raced,
        passes=prepared.passes,
        findings=findings.sentences(compared, steps, dataset.unit, chosen.by),
        interrupted=ending.interrupted or interrupts.take(),
        failure=str(ending.failure) if ending.failure else prepared.refused,
        images=prepared.images,
        tasks=len(options.cluster),
        load=None if options.cluster else prepared.load(),  # tasks are not other programs
        diagnosis=slow_steps.costliest(evidence, 3),
        rounds={
            size: Rounds(
                step_ns=tuple(median(times) for times in batch.untraced_rounds()),
                rows_ns={
                    row.key: batch.accumulator.round_medians_ns(row.nodes, batch.rounds)
                    for row in tables[size]
                },
            )
            for size, batch in batches.items()
        },
    )


def raced_in(
    prepared: Prepared, batches: Mapping[int, sweep.MeasuredBatch], ending: measure.Outcome
) -> tuple[tuple[ConfigTimes, ...], measure.Outcome]:
    """Return the configurations, with verdicts if the sweep is complete, and how it ended."""
    if len(prepared.chosen.configs) < 2 or ending != measure.Outcome():
        return (), ending
    observed: list[configurations.Observed] = []
    try:
        with interrupts.released():
            step_ns = sum(median(batch.untraced_ns) for batch in batches.values())
            observed.extend(
                configurations.observe(prepared, step_ns)
            )  # keeps those before an error
    except KeyboardInterrupt:
        ending = measure.Outcome(interrupted=True)
    except TflabError as error:
        said = PYTHON if "callback with key=pyfunc_" in str(error) else str(error)
        ending = measure.Outcome(failure=RefusedError(said))
    if not observed:
        return (), ending
    places = configurations.opponents(configurations.processes_of(prepared.chosen.configs))
    against = {config: places[config] for config in prepared.chosen.configs}
    return configurations.judged(observed, against, prepared.batch_sizes), ending


# Each pass switched off in turn


def with_each_pass_off(one: Prepared) -> Prepared:
    """Return the sweep with PASSES replaced by a configuration for each pass that can be off."""
    configs = one.chosen.configs
    if PASSES not in configs:
        return one
    job = measure.job_of(one.program, one.step, one.options)
    values = next(session.feed_batches(one.program, one.batch_sizes[0], one.split))
    try:
        first = placement.first_run_of(job, values)
    except TflabError:
        first = FirstRun(0, ())
    found = changing(one.placed[one.batch_sizes[0]].passes, first)
    raced = [f"{WITHOUT}{each.name}" for each in found if each.has_switch]
    chosen = replace(one.chosen, configs=(*(each for each in configs if each != PASSES), *raced))
    return replace(one, chosen=chosen, passes=found)


def changing(log: Sequence[Pass], first: FirstRun) -> tuple[ChangingPass, ...]:
    """Return the passes of a log that changed the graph, in the order of their first change."""
    changed: dict[str, set[str]] = {}
    for step in log:
        if step.changed and step.name not in BETWEEN:
            changed.setdefault(step.name, set()).update(step.changed)
    return tuple(
        ChangingPass(name, len(nodes), first.of_pass(name), name in SWITCHES)
        for name, nodes in changed.items()
    )
