"""Prepare: a model's step for a sweep: its data, and its graph at each batch size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tflab import datasets, models
from tflab.cli import terminal
from tflab.compare import SweepOptions
from tflab.errors import RefusedError, UsageError
from tflab.lifecycle import backward as gradients
from tflab.lifecycle import frontend, placement
from tflab.records.graph import nodes_needed
from tflab.records.measured import ChangingPass, Load
from tflab.records.options import Options, Program
from tflab.records.stages import Backward, Placement
from tflab.records.timed import StepTime
from tflab.runtime import machine_load, measure, session

SPLITS = {"inference": "test", "training": "train"}  # phase -> split of its data
TRAINING_IMAGES = 2_000  # of the training split: enough steps, but done in a few seconds


@dataclass(frozen=True)
class Prepared:
    """A model's step, placed at each batch size."""

    model: str
    chosen: SweepOptions
    options: Options
    program: Program
    step: session.Step
    split: str
    batch_sizes: tuple[int, ...]
    images: int
    placed: Mapping[int, Placement]  # by batch size, including the smaller batch at the end
    load: Callable[[], Load]  # since the beginning
    passes: tuple[ChangingPass, ...] | None = None  # that changed the graph, if asked for
    refused: str | None = None  # which other batch sizes the runtime refused, and why


def prepare(
    model: str, batch_sizes: Sequence[int], chosen: SweepOptions, options: Options
) -> Prepared:
    """Build, differentiate and place a model's step at each batch size. Raise UsageError if there
    are too few images, TflabError if a step fails at every batch size."""
    options = models.with_soft_placement(model, options)
    backward = with_gradients(model, options)
    program, split = backward.program, SPLITS[chosen.phase]
    fixed = program.model.fixed_batch
    batch_sizes = (fixed,) if fixed else tuple(batch_sizes)
    image_count(backward, batch_sizes, chosen)  # raises an error before a step runs
    fetches = (program.model.output.name,) if chosen.phase == "inference" else ()

    def place(size: int) -> Placement:
        usual = replace(options, fetches=fetches, explained=False)
        return placement.place(backward, replace(usual, batch_size=size))

    placed: dict[int, Placement] = {}
    refused: dict[int, RefusedError] = {}
    for size in batch_sizes:
        try:
            placed[size] = place(size)
        except RefusedError as error:
            refused[size] = error
    if not placed:
        raise refused[batch_sizes[0]]
    batch_sizes = tuple(placed)
    images = image_count(backward, batch_sizes, chosen)
    step = session.step_of(program, placed[batch_sizes[0]].fetches)
    job = measure.job_of(program, step, options)
    if chosen.seconds is not None:
        columns = list(session.feed_columns(program, split).values())
        images = affordable(chosen.seconds, job, columns, batch_sizes, images)
    if fixed:
        images -= images % fixed
    rests = {images % size for size in batch_sizes} - {0, *placed}
    placed |= {size: place(size) for size in sorted(rests)}
    return Prepared(
        model=model,
        chosen=chosen,
        options=options,
        program=program,
        step=step,
        split=split,
        batch_sizes=batch_sizes,
        images=images,
        placed=placed,
        load=machine_load.begin(),
        refused=" ".join(f"Batch size {size}: {error}" for size, error in refused.items()) or None,
    )


def affordable(
    seconds: float,
    job: measure.Job,
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    rows: int,
) -> int:
    """Return for how many rows, in whole largest batches, these seconds suffice at all sizes."""
    fastest: dict[tuple[int, bool], int] = {}

    def observe(turn: measure.Turn, timed: StepTime, _: measure.Recorded) -> None:
        kind = turn.batch_size, turn.traced
        fastest[kind] = min(timed.wall_ns, fastest.get(kind, timed.wall_ns))

    measure.run(job, measure.trial(columns, batch_sizes), observe).check(kept=False)
    largest = max(batch_sizes)
    row_ns = sum(ns / size for (size, _), ns in fastest.items())
    whole_batches = int(seconds * 1e9 / row_ns) // largest * largest
    return min(rows, max(largest, whole_batches))


def with_gradients(model: str, options: Options) -> Backward:
    """Build the model's graph, with gradients and updates if it has a loss."""
    with terminal.phase("frontend"):
        built = frontend.of_model(model, options)
    with terminal.phase("backward"):
        return gradients.grow(built, options)[0]


def image_count(backward: Backward, batch_sizes: Sequence[int], chosen: SweepOptions) -> int:
    """Return how many images to process. Raise UsageError if data or model do not allow it."""
    program, largest = backward.program, batch_sizes[-1]
    if chosen.phase == "training" and not trains(backward):
        lacks = "loss" if program.model.loss is None else "optimiser"
        why = f" {program.model.not_trained}" if program.model.not_trained else ""
        raise UsageError(
            f"The model '{program.name}' names no {lacks} for tflab to train with; compare its "
            f"inference.{why}"
        )
    dataset = program.dataset(SPLITS[chosen.phase])
    most = max(TRAINING_IMAGES, largest) if chosen.phase == "training" else dataset.size
    usual = min(most, dataset.size)
    count = chosen.steps * largest if chosen.steps else chosen.images or usual
    if (few := min(count, dataset.size)) < largest:
        enough = f"--images of {largest:,} to {dataset.size:,}, or " * (largest <= dataset.size)
        raise UsageError(
            f"{few:,} {dataset.unit}s are fewer than one batch of {largest:,}; give {enough}"
            "smaller --batch-sizes."
        )
    if count > dataset.size:
        whole = f"The {dataset.split} split has {dataset.size:,} {dataset.unit}s"
        raise UsageError(f"{whole}; give fewer --images or --steps.")
    return count


def trains(backward: Backward) -> bool:
    """Return whether a step of the program updates variables."""
    needed = nodes_needed(backward.nodes, backward.program.model.fetches, ())
    return bool(backward.program.train_op) or not needed.isdisjoint(backward.update_nodes)
