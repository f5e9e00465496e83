"""Prepare: a model's step for a sweep: its data, and its graph at each batch size."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import lcm

from tflab import datasets, models
from tflab.analysis import op_table, statistics
from tflab.cli import terminal
from tflab.compare import SweepOptions
from tflab.errors import RefusedError, UsageError
from tflab.lifecycle import backward as gradients
from tflab.lifecycle import frontend, placement
from tflab.lifecycle import split as over_tasks
from tflab.records.graph import UPDATE, node_of, nodes_needed
from tflab.records.measured import ChangingPass, OpStats
from tflab.records.options import BATCH_SIZES, Options, Program
from tflab.records.stages import Backward, Placement
from tflab.records.timed import StepTime
from tflab.runtime import machine_load, measure, nodes, processes, session, trace
from tflab.units import plural

CALLS_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
COLD = 5  # ops of the first step that are shown
SPLITS = {"inference": "test", "training": "train"}  # phase -> split of its data
TRAINING_IMAGES = 2_000  # of the training split: enough steps, but done in a few seconds


@dataclass(frozen=True)
class Prepared:
    """A model's step, placed at each batch size, after its first run."""

    model: str
    chosen: SweepOptions
    options: Options
    program: Program
    step: session.Step
    split: str
    batch_sizes: tuple[int, ...]  # those that the runtime accepted
    refused: tuple[str, ...]  # a sentence for each batch size that it did not accept
    images: int
    placed: Mapping[int, Placement]  # by batch size, including the smaller batch at the end
    beginning: machine_load.Beginning
    cold: tuple[OpStats, ...]  # the slowest ops of the first step
    cold_step_ns: int | None
    calls_python: str | None  # a node of the step: no other process can run it
    passes: tuple[ChangingPass, ...] | None = None  # that changed the graph, if asked for

    @property
    def first(self) -> Placement:
        """Return the placement at the smallest batch size."""
        return self.placed[self.batch_sizes[0]]


def prepare(
    model: str, batch_sizes: Sequence[int], chosen: SweepOptions, options: Options
) -> Prepared:
    """Build, differentiate and place a model's step at each batch size, and run it once.

    Raises UsageError if there are fewer images than a batch needs, TflabError if a step fails.
    """
    if isinstance(batch_sizes, int) or not batch_sizes:
        raise UsageError(
            f"The batch sizes are {batch_sizes!r}; give a sequence of whole numbers from 1, such "
            "as (1, 16, 64)."
        )
    options = models.with_soft_placement(model, options)
    before = machine_load.average() if chosen.load_before is None else chosen.load_before
    backward = with_gradients(model, replace(options, explained=False))
    if options.cluster:
        over_tasks.ask(backward.program.graph, backward.program.places)
    program, phase, split = backward.program, chosen.phase, SPLITS[chosen.phase]
    batch_sizes = (program.model.fixed_batch,) if program.model.fixed_batch else batch_sizes
    images = image_count(backward, batch_sizes, chosen)
    placed, refused = placements(backward, phase, batch_sizes, images, options)
    batch_sizes = tuple(size for size in batch_sizes if size in placed)
    images = placeable(images, batch_sizes, placed)
    first = placed[batch_sizes[0]]
    step = session.step_of(program, first.fetches)
    job = measure.job_of(program, step, options)
    caller = python_caller(job)
    if chosen.seconds is not None:
        columns = list(session.feed_columns(program, split).values())
        images = affordable(chosen.seconds, job, columns, batch_sizes, images)
        rests, _ = placements(backward, phase, batch_sizes, images, options, placed)
        placed |= rests
        images = placeable(images, batch_sizes, placed)
    values = next(session.feed_batches(program, batch_sizes[0], split))
    beginning = machine_load.beginning(before)
    cold_step_ns: int | None = None
    cold: tuple[OpStats, ...] = ()
    if caller is None:
        cold_step_ns, cold = first_step(job, values, batch_sizes[0])
    return Prepared(
        model=model,
        chosen=chosen,
        options=options,
        program=program,
        step=step,
        split=split,
        batch_sizes=batch_sizes,
        refused=refused,
        images=images,
        placed=placed,
        beginning=beginning,
        cold=cold,
        cold_step_ns=cold_step_ns,
        calls_python=caller,
    )


def affordable(
    seconds: float,
    job: measure.Job,
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    rows: int,
) -> int:
    """Return as many of the rows as take about this many seconds, at all batch sizes together."""
    fastest: dict[tuple[int, bool], int] = {}

    def observe(turn: measure.Turn, timed: StepTime, _: measure.Recorded) -> None:
        kind = turn.batch_size, turn.traced
        fastest[kind] = min(timed.wall_ns, fastest.get(kind, timed.wall_ns))

    measure.run([job], measure.trial(columns, batch_sizes), observe).check(kept=False)
    return rows_within(seconds, fastest, rows)


def rows_within(seconds: float, step_ns: Mapping[tuple[int, bool], int], rows: int) -> int:
    """Return whole batches of the largest size, at least one, and no more than there are; `step_ns`
    has the time of an untraced and a traced step by batch size."""
    largest = max(size for size, _ in step_ns)
    row_ns = sum(ns / size for (size, _), ns in step_ns.items())
    whole_batches = int(seconds * 1e9 / row_ns) // largest * largest
    return min(rows, max(largest, whole_batches))


def python_caller(job: measure.Job) -> str | None:
    """Return a node of the step, or of its start, that calls a Python function. The GraphDef has
    only the function's number, so another process cannot run the step."""
    ends = (*job.step.fetches, *job.step.targets, *job.start.targets)
    needed = nodes.needed(job.graph, [node_of(end) for end in ends])
    graph_def = job.graph.as_graph_def()
    of_functions = chain.from_iterable(f.node_def for f in graph_def.library.function)
    reached = chain((node for node in graph_def.node if node.name in needed), of_functions)
    return next((node.name for node in reached if node.op in CALLS_PYTHON), None)


def first_step(
    job: measure.Job, values: measure.Values, batch_size: int
) -> tuple[int, tuple[OpStats, ...]]:
    """Run the first step of a process; return its ns, and its slowest ops."""
    cold_here = "tflab.runtime.measure:cold_here"
    cold_step_ns, runs = processes.call(cold_here, job, values, batch_size)
    of_nodes = [run for run in runs if run.name != trace.EXECUTOR]
    rows = op_table.table(statistics.fold(of_nodes), "node", steps=1, images=batch_size)
    return cold_step_ns, rows[:COLD]


def with_gradients(model: str, options: Options) -> Backward:
    """Build the model's graph, with gradients and updates if it has a loss."""
    with terminal.phase("frontend"):
        built = frontend.of_model(model, options)
    with terminal.phase("backward"):
        return gradients.differentiate(built, options)


def image_count(backward: Backward, batch_sizes: Sequence[int], chosen: SweepOptions) -> int:
    """Return how many images to process at each batch size, or raise UsageError."""
    program, phase, steps = backward.program, chosen.phase, chosen.steps
    images = steps * batch_sizes[-1] if steps else chosen.images
    if phase == "training" and not trains(backward):
        raise not_trainable(backward)
    dataset = program.dataset(SPLITS[phase])
    usual = min(TRAINING_IMAGES, dataset.size) if phase == "training" else dataset.size
    count = images or usual
    if not images and batch_sizes[-1] > usual:
        default = " default" if tuple(batch_sizes) == BATCH_SIZES else ""
        raise UsageError(
            f"The largest{default} batch size is {batch_sizes[-1]:,}, but by default only "
            f"{usual:,} {dataset.unit}s of the {dataset.split} split of {dataset.name} are used. "
            "Give smaller batches with --batch-sizes."
        )
    if count > dataset.size or batch_sizes[-1] > count:
        size, unit = batch_sizes[-1], dataset.unit
        requested = f"{count:,} {unit}s in batches of up to {size:,}"
        if steps:
            requested = f"{plural(steps, 'step')} of {size:,} {unit}s = {count:,} {unit}s"
        fewer = "steps" if steps else f"{unit}s"
        raise UsageError(
            f"You requested {requested}, but the {dataset.split} split of {dataset.name} has "
            f"{dataset.size:,}. Give a smaller batch size or fewer {fewer}."
        )
    return count


def not_trainable(backward: Backward) -> UsageError:
    """Say why tflab cannot train a model, and what it can do."""
    model, name = backward.program.model, backward.program.name
    lacks = "loss" if model.loss is None else "optimiser"
    updates = {node.name for node in backward.nodes if node.phase == UPDATE}
    needed = nodes_needed(backward.nodes, [model.output.name], ())
    instead = "compare its inference."
    if not updates.isdisjoint(needed):
        instead = "compare its inference: its output runs a training step of its own."
    why = f" {model.not_trained}" if model.not_trained else ""
    return UsageError(
        f"The model '{name}' names no {lacks} for tflab to train with; {instead}{why}"
    )


def trains(backward: Backward) -> bool:
    """Return True if a step of the program updates variables, with the model's optimiser or
    through what the model fetches."""
    program = backward.program
    if program.train_op:
        return True
    needed = nodes_needed(backward.nodes, program.model.fetches, ())
    return not needed.isdisjoint(backward.update_nodes)


def placements(
    backward: Backward,
    phase: str,
    batch_sizes: Sequence[int],
    images: int,
    options: Options,
    known: Collection[int] = (),
) -> tuple[dict[int, Placement], tuple[str, ...]]:
    """Place the graph at each batch size, and for the smaller batch at the end of the data, except
    for sizes in `known`. Return also a sentence for each batch size that the runtime refused.

    Raises RefusedError if it refused all of them.
    """
    fetches = (backward.program.model.output.name,) if phase == "inference" else ()
    rests = {images % size for size in batch_sizes} - {0}
    placed: dict[int, Placement] = {}
    refused: dict[int, RefusedError] = {}
    for size in sorted(rests.union(batch_sizes).difference(known)):
        sized = replace(options, batch_size=size, fetches=fetches, explained=False)
        try:
            placed[size] = placement.place_once(backward, sized)
        except RefusedError as error:
            refused[size] = error
    asked = [size for size in batch_sizes if size in refused]
    if refused and not any(size in placed or size in known for size in batch_sizes):
        raise refused[asked[0]]
    return placed, tuple(f"A batch of {size} is not compared. {refused[size]}" for size in asked)


def placeable(images: int, batch_sizes: Sequence[int], placed: Collection[int]) -> int:
    """Return as many images as end with a batch that the runtime accepted, at all batch sizes."""
    if all(images % size in (0, *placed) for size in batch_sizes):
        return images
    return max(images // lcm(*batch_sizes), 1) * lcm(*batch_sizes)
