"""Stages: a graph goes from one to the next. Each takes the result of the previous one.

built -> derived -> placed -> executed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflab import models
from tflab.cli import terminal
from tflab.exporters import notebook
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records.options import Options
from tflab.records.stages import Stage
from tflab.runtime import session
from tflab.views import stages as views

for record in views.STAGES:
    notebook.show_as(record, views.page)


def run_stages(model: str, options: Options, runs: bool) -> Iterator[Stage]:
    """The result of each stage, in order. Raises TflabError if a stage is impossible.

    If a step will run, its data are checked before the first stage is returned. A graph that cannot
    run is shown nevertheless, and the first stage that has to run it refuses it.
    """
    options = models.with_soft_placement(model, options)
    with terminal.phase("frontend"):
        built = frontend.of_model(model, options)
    if built.program and built.program.model.fixed_batch:
        options = replace(options, batch_size=built.program.model.fixed_batch)
    if runs and built.program and not built.program.model.unready:
        next(session.feed_batches(built.program, options.batch_size))
    yield built
    with terminal.phase("backward"):
        derived = backward.differentiate(built, options)
    yield derived
    with terminal.phase("placement"):
        placed = placement.place(derived, options)
    yield placed
    with terminal.phase("execution"):
        executed = execution.execute(placed, options)
    yield executed
