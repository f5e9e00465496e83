"""Amounts: on how many images a comparison works, and the graph that runs at each batch size."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import lcm

from tflab.analysis import ledger
from tflab.errors import RefusedError, UsageError
from tflab.lifecycle import placement
from tflab.records import Backward, Options, Placement
from tflab.records.options import BATCH_SIZES

SPLITS = {"inference": "test", "training": "train"}  # phase -> the data it works on
TRAINING_IMAGES = 2_000  # of the training split: enough steps, and over in a few seconds


def amount(backward: Backward, phase: str, batch_sizes: Sequence[int], images: int | None) -> int:
    """How many images to work on at each batch size; UsageError where it cannot be."""
    program = backward.program
    if phase == "training" and not trains(backward):
        lacks = "loss to train with" if program.model.loss is None else "optimiser to train with"
        raise UsageError(f"The model '{program.name}' has no {lacks}; compare its inference.")
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
            f"{asked}, of {usual:,} {dataset.unit}s: those of the {dataset.split} split of "
            f"{dataset.name} that are taken where no number is given. Give smaller batches with "
            "--batch-sizes."
        )
    if count > dataset.size or batch_sizes[-1] > count:
        raise UsageError(
            f"{count:,} {dataset.unit}s were asked for, and batches of up to "
            f"{batch_sizes[-1]:,}; the {dataset.split} split of {dataset.name} has "
            f"{dataset.size:,}. Give a batch size and a number of {dataset.unit}s within that."
        )
    return count


def trains(backward: Backward) -> bool:
    """Whether a step of the program updates variables: by the model's optimiser, or because what
    the model fetches depends on updates that it made itself."""
    program = backward.program
    if program.train_op:
        return True
    needed = ledger.nodes_needed(backward.nodes, program.model.fetches, ())
    return not needed.isdisjoint(backward.update_nodes)


def placements(
    backward: Backward,
    phase: str,
    batch_sizes: Sequence[int],
    images: int,
    options: Options,
    known: Collection[int] = (),
) -> tuple[dict[int, Placement], tuple[str, ...]]:
    """The graph that runs at each batch size, and for the smaller batch that the data end with,
    but for sizes that are `known`; and a sentence for each batch size that the runtime refused.

    Raises RefusedError where it refused all of them.
    """
    fetches = (backward.program.model.output.name,) if phase == "inference" else ()
    rests = {images % size for size in batch_sizes} - {0}
    placed: dict[int, Placement] = {}
    refused: dict[int, RefusedError] = {}
    for size in sorted(rests.union(batch_sizes).difference(known)):
        sized = replace(options, batch_size=size, fetches=fetches)
        try:
            placed[size] = placement.place_once(backward, sized)
        except RefusedError as error:
            refused[size] = error
    asked = [size for size in batch_sizes if size in refused]
    if refused and not any(size in placed or size in known for size in batch_sizes):
        raise refused[asked[0]]
    return placed, tuple(f"A batch of {size} is not compared. {refused[size]}" for size in asked)


def placeable(images: int, batch_sizes: Sequence[int], placed: Collection[int]) -> int:
    """As many of the images as end with a batch that the runtime took, at all batch sizes."""
    if all(images % size in (0, *placed) for size in batch_sizes):
        return images
    return max(images // lcm(*batch_sizes), 1) * lcm(*batch_sizes)
