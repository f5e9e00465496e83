"""Comparison: one step at several batch sizes, from the sweep to rows, fits and findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tflab import lifecycle
from tflab.analysis import batch_fit, memory, op_stats, op_table, quality, step_times
from tflab.compare import diagnosis, evidence, findings, race, sweep, view
from tflab.errors import UsageError
from tflab.exporters import notebook
from tflab.lifecycle import experiments, placement
from tflab.records import (
    Backward,
    Compared,
    Comparison,
    ConfigTimes,
    Costs,
    Diagnosis,
    Experiments,
    Load,
    OpRun,
    OpStats,
    Options,
    Peaks,
    Placement,
    Program,
    Quality,
    StepTimes,
)
from tflab.records.options import BATCH_SIZES
from tflab.runtime import costs, dumps, elsewhere, load, machine, measure, session, trace

SPLITS = {"inference": "test", "training": "train"}  # phase -> the data it works on
TRAINING_IMAGES = 2_000  # of the training split: enough steps, and over in a few seconds
COLD = 5  # ops of the first step that are shown

Tables = dict[int, tuple[OpStats, ...]]  # by batch size

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
) -> Comparison:
    """Measure a model's step at each batch size and say what the numbers mean.

    `images` counts from the start of the test split (training: of the training split). Of the
    steps one in `trace_every` is traced; all counts and totals are those of the traced ones.
    With `sweep_s` it takes as many of them as are over in about so many seconds.
    After `configs_s` seconds no further observation of the configurations begins.
    `load_average` is that of the machine before tflab itself kept it busy, where that was earlier.
    Raises UsageError where there are fewer images than a batch needs, TflabError when a step
    fails.
    """
    if isinstance(batch_sizes, int) or not batch_sizes:
        raise UsageError(
            f"The batch sizes are {batch_sizes!r}; give whole numbers from 1 on in a sequence, "
            "such as (1, 16, 64)."
        )
    dumps.prepare()
    race.check(configs)
    before = load.load_average() if load_average is None else load_average
    options = options or Options()
    *_, backward = lifecycle.walk(model, options, stop="backward")
    assert isinstance(backward, Backward)
    program = backward.program
    images = amount(program, phase, batch_sizes, images)
    split, smallest = SPLITS[phase], batch_sizes[0]
    placed = placements(backward, phase, batch_sizes, images, options)
    first = placed[smallest]
    step = session.step_of(program, first.fetches)
    if sweep_s is not None:
        images = sweep.affordable(sweep_s, program, step, batch_sizes, images, options, split)
        placed |= placements(backward, phase, batch_sizes, images, options, placed)
    values = next(session.feed_batches(program, smallest, split))
    job = measure.job_of(program, step, options)
    start = load.beginning(before)
    cold_step_ns, cold_runs = elsewhere.cold(job, values, smallest)
    of_nodes = [run for run in cold_runs if run.name != trace.EXECUTOR]
    cold = op_table.table(op_stats.fold(of_nodes), "node", steps=1, images=smallest)[:COLD]
    types = {node.name: node.op for node in first.nodes}
    swept = sweep.run(program, step, batch_sizes, images, options, split, types, trace_every)
    done, ending = swept.batches, swept.ending

    def tabulate(peaks: Peaks) -> Tables:
        return {
            size: table(batch, placed[size], by, peaks, placed.get(images % size))
            for size, batch in done.items()
        }

    tables, peaks = under_a_roof(tabulate)
    steps = {size: times(batch, tables[size]) for size, batch in done.items()}
    warm = {node.name: node.mean_ns for node in done[smallest].accumulator.stats(types, {}, {})}
    compared = side_by_side(tables, steps)
    raced: tuple[ConfigTimes, ...] = ()
    if len(configs) > 1 and ending == measure.Ending():
        try:
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
    judgement = judged(steps, placed, load.since(start))
    if not judgement.quiet:
        raced = race.undecided(raced)
    graph = costs.of_placement(first)
    return Comparison(
        model=model,
        phase=phase,
        by=by,
        data=program.dataset(split).name,
        warmup=options.warmup,
        batch_sizes=tuple(steps),
        rows=compared,
        tables=tables,
        steps=steps,
        configs=raced,
        findings=findings.sentences(compared, steps, by, raced, judgement),
        cold=cold,
        cold_step_ns=cold_step_ns,
        uncovered=tuple(costs.uncovered(graph, first.nodes, first.ledger)),
        interrupted=ending.interrupted,
        failure=str(ending.failure) if ending.failure else None,
        images=images,
        trace_every=trace_every,
        without=options.without,
        warm_ns={row.key: warm[row.key] for row in cold if row.key in warm},
        experiments=made,
        peaks=peaks,
        corrected=costs.corrected(graph, first.nodes, first.ledger),
        quality=judgement,
        diagnosis=diagnosed(done, placed, peaks, raced, made) if judgement.quiet else (),
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
            table(batch, placed[size], "node", peaks),
            costs_of(placed[size]),
            peaks,
        )
        for size, batch in done.items()
    ]
    return diagnosis.diagnose(batches, raced, made)


def judged(
    steps: Mapping[int, StepTimes], placed: Mapping[int, Placement], during: Load
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
    )


def once_more(
    batch: sweep.Measured, placed: Placement, options: Options, split: str
) -> Experiments | None:
    """What the largest ops of a batch size cost a step; None where Ctrl-C came."""
    types = {node.name: node.op for node in placed.nodes}
    stats = batch.accumulator.stats(types, {}, {})
    nodes = op_table.table(stats, "node", batch.accumulator.steps, batch.rows)
    try:
        return experiments.run(placed, nodes, options, split)
    except KeyboardInterrupt:
        return None


def under_a_roof(tabulate: Callable[[Peaks], Tables]) -> tuple[Tables, Peaks]:
    """Tables by batch size, and the peaks of the machine that they are held against.

    Where a row is above its roof, that is measured once more: it may have been too low.
    """
    peaks = machine.peaks()
    tables = tabulate(peaks)
    if any((row.roof_share or 0) > 1 for table in tables.values() for row in table):
        peaks = machine.measure_again(peaks)
        tables = tabulate(peaks)
    return tables, peaks


def amount(program: Program, phase: str, batch_sizes: Sequence[int], images: int | None) -> int:
    """How many images to work on at each batch size; UsageError where it cannot be."""
    if phase == "training" and program.train_op is None:
        raise UsageError(
            f"The model '{program.name}' has no loss to train with; compare its inference."
        )
    dataset = program.dataset(SPLITS[phase])
    usual = min(TRAINING_IMAGES, dataset.size) if phase == "training" else dataset.size
    count = images or usual
    if not images and batch_sizes[-1] > usual:
        largest = f"{batch_sizes[-1]:,}"
        asked = (
            f"A batch of {largest}, the largest of the default sizes, was to be taken"
            if tuple(batch_sizes) == BATCH_SIZES
            else f"A batch of {largest} was asked for"
        )
        raise UsageError(
            f"{asked}, of {usual:,} images: those of the {dataset.split} split of {dataset.name} "
            "that are taken where no number is given. Give smaller batches with --batch-sizes."
        )
    if count > dataset.size or batch_sizes[-1] > count:
        raise UsageError(
            f"{count:,} images were asked for, and batches of up to {batch_sizes[-1]:,}; the "
            f"{dataset.split} split of {dataset.name} has {dataset.size:,}. Give a batch size "
            "and a number of images within that."
        )
    return count


def placements(
    backward: Backward,
    phase: str,
    batch_sizes: Sequence[int],
    images: int,
    options: Options,
    known: Collection[int] = (),
) -> dict[int, Placement]:
    """The graph that runs at each batch size, and for the smaller batch that the data end with;
    but for sizes that are `known`."""
    fetches = (backward.program.model.output.name,) if phase == "inference" else ()
    rests = {images % size for size in batch_sizes} - {0}
    return {
        size: placement.place_once(backward, replace(options, batch_size=size, fetches=fetches))
        for size in sorted(rests.union(batch_sizes).difference(known))
    }


def table(
    batch: sweep.Measured,
    placed: Placement,
    by: str,
    peaks: Peaks,
    last: Placement | None = None,
) -> tuple[OpStats, ...]:
    """The rows of one batch size, with what is known of their costs.

    `last` is the placement of the smaller batch that the data end with, where there is one.
    """
    devices = {node.name: node.device for node in placed.nodes}
    types = {node.name: node.op for node in placed.nodes}
    requested = {node.name: node.requested_bytes for node in op_stats.fold(batch.runs)}
    runs_of: dict[str, list[OpRun]] = {}
    for run in batch.runs:
        runs_of.setdefault(run.name, []).append(run)
    return op_table.table(
        batch.accumulator.stats(types, devices, requested),
        by,
        batch.accumulator.steps,
        batch.rows,
        costs=mean_costs(batch, placed, last),
        ledger=placed.ledger,
        sources={node.name: node.source for node in (*placed.user_nodes, *placed.nodes)},
        peaks=peaks,
        quantile=batch.accumulator.quantile,
        step_std_ns=batch.accumulator.step_std_ns,
        step_median_ns=batch.accumulator.step_median_ns,
        peak_bytes=lambda names: peak_bytes(runs_of, names),
    )


def mean_costs(batch: sweep.Measured, placed: Placement, last: Placement | None) -> Iterator[Costs]:
    """What a call of each node does, as the mean over the steps: the last may be a smaller one."""
    whole = costs_of(placed)
    shorter = costs_of(last) if last and batch.rows % batch.batch_size else whole

    def mean(usual: int | None, once: int | None) -> int | None:
        if usual is None or once is None:
            return usual
        return round(usual + (once - usual) / batch.accumulator.steps)

    for name, cost in whole.items():
        once = shorter.get(name, cost)
        yield replace(cost, flops=mean(cost.flops, once.flops), bytes=mean(cost.bytes, once.bytes))


def costs_of(placed: Placement) -> dict[str, Costs]:
    known = costs.costs(costs.of_placement(placed), placed.nodes, placed.ledger)
    return {cost.name: cost for cost in known}


def peak_bytes(runs: Mapping[str, Sequence[OpRun]], nodes: Iterable[str]) -> int:
    """The most that these nodes had alive at once in any step."""
    return memory.memory(run for name in nodes for run in runs.get(name, ())).peak_bytes


def times(batch: sweep.Measured, rows: Sequence[OpStats]) -> StepTimes:
    held = memory.memory(batch.runs, batch.kept)
    worked_on = min(len(batch.untraced_ns) * batch.batch_size, batch.planned_rows)
    return StepTimes(
        steps=len(batch.traced_ns),
        images=batch.rows,
        untraced_ns=step_times.spread(batch.untraced_ns),
        traced_ns=step_times.spread(batch.traced_ns),
        images_per_second=1e9 * worked_on / sum(batch.untraced_ns),
        ops_ns=sum(row.self_ns for row in rows) / batch.accumulator.steps,
        untraced_steps=len(batch.untraced_ns),
        peak_bytes=held.peak_bytes,
        curve=held.curve,
    )


def side_by_side(tables: Tables, steps: Mapping[int, StepTimes]) -> tuple[Compared, ...]:
    """One row for each key, in the order of the largest batch, then of the others."""
    by_key: dict[str, dict[int, OpStats]] = {}
    for size in sorted(tables, reverse=True):
        for row in tables[size]:
            by_key.setdefault(row.key, {})[size] = row
    compared = []
    for key, by_size in by_key.items():
        cells = {size: by_size[size] for size in sorted(by_size)}
        of_largest = next(iter(by_size.values()))
        fit = batch_fit.fit(cells, steps)
        compared.append(Compared(key, of_largest.ops, of_largest.fused_from, cells, fit))
    return tuple(compared)
