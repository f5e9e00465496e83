"""A step has a fixed cost and a cost for each image, so larger batches help.

Calling the runtime, starting each kernel and passing results on cost the same for one image as for
many. Look at how little longer a step takes while the batch is small, at the share of fixed cost,
and at the batch size above which a larger batch helps little.
"""

from __future__ import annotations

from functools import partial

import lesson
import numpy as np

from tflab import lifecycle
from tflab.records.options import Options
from tflab.records.stages import Frontend
from tflab.runtime import measure, session
from tflab.units import percent, time

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
ROUNDS = 80


def main() -> None:
    *_, built = lifecycle.walk("lenet", stop="frontend")
    assert isinstance(built, Frontend)
    model, graph = built.program.model, built.program.graph
    step = session.Step(feeds=("images:0",), fetches=(model.output.name,), targets=())
    noise = np.random.default_rng(1).normal(size=(max(SIZES), 32, 32, 1))  # costs what digits cost
    images = noise.astype(np.float32)
    with session.opened(graph, Options()) as live:
        run = step.callable(live)
        times = lesson.in_turn([partial(run, images[:size]) for size in SIZES], ROUNDS)

    medians = np.array([measure.spread(all_ns).median for all_ns in times])
    # Weights 1 / time: 1 % off counts as much in a short step as in a long one.
    image_ns, fixed_ns = np.polyfit(SIZES, medians, 1, w=1 / medians)
    line = fixed_ns + image_ns * np.array(SIZES)
    rows = [
        (
            size,
            *lesson.spread(all_ns),
            time(median / size),
            f"{1e9 * size / median:,.0f}",
            percent(fixed_ns / fitted),
        )
        for size, all_ns, median, fitted in zip(SIZES, times, medians, line, strict=True)
    ]
    lesson.show(
        lesson.table(
            f"Inference with LeNet, {ROUNDS} steps of each batch size in turn",
            ("batch", "a step", "p10", "p90", "an image", "images a second", "fixed share"),
            rows,
        ),
        f"A straight line through the medians: {time(fixed_ns)} a step and {time(image_ns)} an "
        f"image. It misses them by up to {percent(np.abs(line / medians - 1).max())}.",
        f"At a batch of {fixed_ns / image_ns:.0f} the images cost as much as the step itself. "
        "Above that, even the largest batch could at most double the images per second.",
    )


if __name__ == "__main__":
    lesson.give(main)
