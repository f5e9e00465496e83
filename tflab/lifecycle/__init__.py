"""The four stages of a graph: built, differentiated, placed, executed.

Each stage takes the result of the previous one: Frontend -> Backward -> Placement -> Execution.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from tflab.records.options import STAGES, Options
from tflab.records.stages import Stage


def walk(model: str, options: Options | None = None, stop: str = STAGES[-1]) -> Iterator[Stage]:
    """Yield the result of each stage, up to and including `stop`. Raises TflabError if a stage is
    impossible.

    `model` is a name in `models.MODELS`, `package.module:function`, or the path of a saved graph.
    If a step will run, its data are checked before the first stage is returned.
    """
    # Not at the top: a command that leaves the work to a confined process needs none of these
    from tflab import models
    from tflab.cli import terminal
    from tflab.runtime import dumps, tf_import

    dumps.prepare()  # before the stages import TensorFlow
    tf_import.load()
    from tflab.lifecycle import backward, execution, frontend, placement
    from tflab.runtime import session

    if "IPython" in sys.modules:
        from tflab.exporters import text
        from tflab.views import stages as views

        for record in views.STAGES:
            text.show_as(record, views.page)
    options = models.with_soft_placement(model, options or Options())
    with terminal.phase("frontend"):
        built = frontend.of_model(model, options)
    if built.program and built.program.model.fixed_batch:
        options = replace(options, batch_size=built.program.model.fixed_batch)
    if stop in STAGES[2:] and built.program and not built.program.model.unready:
        next(session.feed_batches(built.program, options.batch_size))
    yield built
    if stop == STAGES[0]:
        return
    with terminal.phase("backward"):
        derived = backward.differentiate(built, options)
    yield derived
    if stop == STAGES[1]:
        return
    with terminal.phase("placement"):
        placed = placement.place(derived, options)
    yield placed
    if stop == STAGES[2]:
        return
    with terminal.phase("execution"):
        executed = execution.execute(placed, options)
    yield executed
