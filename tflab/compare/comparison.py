"""Comparison: one step at several batch sizes, from the sweep to rows, fits and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tflab.runtime import dumps, quiet

dumps.prepare()  # before what follows imports TensorFlow
quiet.load()

from tflab import lifecycle
from tflab.analysis import op_stats, op_table, quality
from tflab.cli import ending as signals
from tflab.compare import (
    amounts,
    batch_tables,
    diagnosis,
    evidence,
    findings,
    observing,
    race,
    sweep,
    view,
)
from tflab.errors import UsageError
from tflab.exporters import notebook
from tflab.lifecycle import experiments
from tflab.records import (
    Backward,
    Comparison,
    ConfigTimes,
    Diagnosis,
    Experiments,
    Load,
    Options,
    Peaks,
    Placement,
    Quality,
    StepTimes,
)
from tflab.runtime import costs, elsewhere, load, measure, session, trace

COLD = 5  # ops of the first step that are shown

notebook.show_as(Comparison, view.blocks)


def compare(
    model: str,
    batch_sizes: tuple[int, ...],
    *,
    phase: str = "inference",
    by: str = "op",
    images: int | None = None,
    trace_every: int = 1,
    configs: Sequence[str] = ("default",),
    configs_s: float = race.BUDGET_S,
    sweep_s: float | None = None,
    options: Options | None = None,
    load_average: float | None = None,
    keep_s: float | None = None,
) -> Comparison:
    """Measure a model's step at each batch size and say what the numbers mean.

    `images` counts from the start of the test split (training: of the training split). Of the
    steps one in `trace_every` is traced; all counts and totals are those of the traced ones.
    With `sweep_s` it takes as many of them as are over in about so many seconds.
    After `configs_s` seconds no further observation of the configurations begins.
    `load_average` is that of the machine before tflab itself kept it busy, where that was earlier.
    With `keep_s` the step is also observed in several processes, of which none begins after so many
    seconds: what it takes to be compared with measurements made elsewhere.
    Raises UsageError where there are fewer images than a batch needs, TflabError when a step
    fails.
    """
    if isinstance(batch_sizes, int) or not batch_sizes:
        raise UsageError(
            f"The batch sizes are {batch_sizes!r}; give whole numbers from 1 on in a sequence, "
            "such as (1, 16, 64)."
        )
    race.check(configs)
    before = load.load_average() if load_average is None else load_average
    options = options or Options()
    with signals.released():
        *_, backward = lifecycle.walk(model, options, stop="backward")
        assert isinstance(backward, Backward)
        program = backward.program
        batch_sizes = (program.model.fixed_batch,) if program.model.fixed_batch else batch_sizes
        images = amounts.amount(backward, phase, batch_sizes, images)
        placed, refused = amounts.placements(backward, phase, batch_sizes, images, options)
        batch_sizes = tuple(size for size in batch_sizes if size in placed)
        images = amounts.placeable(images, batch_sizes, placed)
        split, smallest = amounts.SPLITS[phase], batch_sizes[0]
        first = placed[smallest]
        step = session.step_of(program, first.fetches)
        if sweep_s is not None:
            images = sweep.affordable(sweep_s, program, step, batch_sizes, images, options, split)
            rests, _ = amounts.placements(backward, phase, batch_sizes, images, options, placed)
            placed |= rests
            images = amounts.placeable(images, batch_sizes, placed)
        values = next(session.feed_batches(program, smallest, split))
        job = measure.job_of(program, step, options)
        start = load.beginning(before)
        cold_step_ns, cold_runs = elsewhere.cold(job, values, smallest)
    of_nodes = [run for run in cold_runs if run.name != trace.EXECUTOR]
    cold = op_table.table(op_stats.fold(of_nodes), "node", steps=1, images=smallest)[:COLD]
    types = {node.name: node.op for node in first.nodes}
    swept = sweep.run(program, step, batch_sizes, images, options, split, types, trace_every)
    done, ending = swept.batches, swept.ending

    def tabulate(peaks: Peaks) -> batch_tables.Tables:
        return {
            size: batch_tables.table(batch, placed[size], by, peaks, placed.get(images % size))
            for size, batch in done.items()
        }

    tables, peaks = batch_tables.under_a_roof(tabulate)
    steps = {size: batch_tables.times(batch, tables[size]) for size, batch in done.items()}
    warm = {node.name: node.mean_ns for node in done[smallest].accumulator.stats(types, {}, {})}
    compared = batch_tables.side_by_side(tables, steps, by)
    raced: tuple[ConfigTimes, ...] = ()
    if len(configs) > 1 and ending == measure.Ending():
        try:
            with signals.released():
                raced = race.run(program, step, configs, batch_sizes, options, split, configs_s)
        except KeyboardInterrupt:
            ending = measure.Ending(interrupted=True)  # the sweep is kept
    made: dict[int, Experiments] = {}
    if options.experiments and ending == measure.Ending():
        share = replace(options, experiments=max(1, options.experiments // len(done)))
        for size, batch in done.items():
            of_size = once_more(batch, placed[size], replace(share, batch_size=size), split)
            if of_size is None:
                ending = measure.Ending(interrupted=True)
                break
            made[size] = of_size
    observed = None
    if keep_s is not None and not ending.interrupted:
        of_sweep = (trace_every, done, tables)
        observed, kept = observing.observe(program, step, options, split, *of_sweep, keep_s)
        ending = ending if ending.failure else kept
    judgement = judged(steps, placed, load.since(start), options.even_if_busy)
    withheld = quality.disturbed(judgement)
    if withheld:
        raced = race.undecided(raced)
    unit = program.dataset(split).unit
    return Comparison(
        model=observing.without_folders(model) if observed else model,
        phase=phase,
        by=by,
        data=program.dataset(split).name,
        unit=unit,
        warmup=options.warmup,
        batch_sizes=tuple(steps),
        rows=compared,
        tables=tables,
        steps=steps,
        configs=raced,
        findings=findings.sentences(compared, steps, by, raced, judgement, unit),
        cold=cold,
        cold_step_ns=cold_step_ns,
        uncovered=costs.uncovered(first),
        interrupted=ending.interrupted or signals.taken(),
        failure=" ".join([*refused, *([str(ending.failure)] if ending.failure else [])]) or None,
        images=images,
        trace_every=trace_every,
        without=options.without,
        warm_ns={row.key: warm[row.key] for row in cold if row.key in warm},
        experiments=made,
        peaks=peaks,
        quality=judgement,
        diagnosis=() if withheld else diagnosed(done, placed, peaks, raced, made),
        observed=observed,
    )


def diagnosed(
    done: Mapping[int, sweep.Measured],
    placed: Mapping[int, Placement],
    peaks: Peaks,
    raced: Sequence[ConfigTimes],
    made: Mapping[int, Experiments],
) -> tuple[Diagnosis, ...]:
    """Why a step is slow, from what was measured of every node at every batch size."""
    batches = [
        evidence.of_batch(
            batch,
            placed[size],
            batch_tables.table(batch, placed[size], "node", peaks),
            batch_tables.costs_of(placed[size]),
            peaks,
        )
        for size, batch in done.items()
    ]
    return diagnosis.diagnose(batches, raced, made)


def judged(
    steps: Mapping[int, StepTimes],
    placed: Mapping[int, Placement],
    during: Load,
    even_if_busy: bool,
) -> Quality:
    """Whether the machine was quiet enough to conclude anything from the times of the steps."""
    return quality.judge(
        during,
        [
            quality.Steps(
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


def once_more(
    batch: sweep.Measured, placed: Placement, options: Options, split: str
) -> Experiments | None:
    """What the largest ops of a batch size cost a step; None where Ctrl-C came."""
    types = {node.name: node.op for node in placed.nodes}
    stats = batch.accumulator.stats(types, {}, {})
    nodes = op_table.table(stats, "node", batch.accumulator.steps, batch.rows)
    try:
        with signals.released():
            return experiments.run(placed, nodes, options, split)
    except KeyboardInterrupt:
        return None
