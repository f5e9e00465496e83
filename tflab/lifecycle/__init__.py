"""The four stages of a graph: built, differentiated, placed, executed."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.records.options import STAGES, Options
from tflab.records.stages import Stage


def walk(model: str, options: Options | None = None, stop: str = STAGES[-1]) -> Iterator[Stage]:
    """Yield the result of each stage, up to and including `stop`.

    `model` is a name in `models.MODELS`, `package.module:function`, or the path of a saved graph.
    Raises TflabError if a stage is impossible.
    """
    # Not at the top: a command that leaves the work to a confined process needs none of these
    from tflab.runtime import dumps, tf_import
    from tflab.views.stages import name

    dumps.prepare()  # before the stages import TensorFlow
    tf_import.load()
    from tflab.lifecycle import stages

    for stage in stages.run_stages(model, options or Options(), runs=stop in STAGES[2:]):
        yield stage
        if name(stage) == stop:
            return
