"""Over tasks: a model's step in this process alone, then on increasing numbers of tasks of a
cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflab import lifecycle
from tflab.errors import TflabError
from tflab.records.cluster import Tasks
from tflab.records.options import BATCH_SIZES, Options
from tflab.records.stages import Frontend
from tflab.report.contents import OverTasks
from tflab.runtime import quiet_import
from tflab.units import plural

STEPS = 20  # at each number of tasks
BATCH_SIZE = BATCH_SIZES[-1]  # the largest, because it gives the tasks most work


def title(tasks: Tasks) -> str:
    return plural(count(tasks), "task")


def count(tasks: Tasks) -> int:
    return tasks if isinstance(tasks, int) else len(tasks)


def plan(model: str, tasks: Tasks, split: str, options: Options) -> OverTasks:
    """The measurement to make: of a training step if there is a loss.

    Raises UsageError for a model that cannot be split that way, TflabError if there is no task at
    an address.
    """
    addresses = ("",) * tasks if isinstance(tasks, int) else tasks
    options = replace(options, cluster=addresses, split=split, batch_size=BATCH_SIZE)
    stages = lifecycle.walk(model, options, "frontend")
    built = next(stage for stage in stages if isinstance(stage, Frontend)).live.model
    if not isinstance(tasks, int):
        from tflab.runtime import cluster

        with cluster.tasks(tasks):
            pass
    return OverTasks(
        clusters=tuple(fewer(tasks)),
        split=split,
        batch_size=built.fixed_batch or BATCH_SIZE,
        phase="inference" if built.loss is None else "training",
        steps=STEPS,
    )


def measure(model: str, begun: OverTasks, options: Options) -> OverTasks:
    """The measurement; the failure of a task is part of the result, next to the measurements so
    far.

    Raises KeyboardInterrupt immediately after an interruption.
    """
    quiet_import.load()
    from tflab.compare import scaling

    clusters, phase = begun.clusters, begun.phase
    options = replace(options, batch_size=begun.batch_size, steps=begun.steps, split=begun.split)
    try:
        series = scaling.measure(model, phase, clusters, options)
    except TflabError as error:
        return replace(begun, failure=str(error))
    if series.interrupted:
        raise KeyboardInterrupt
    compared = scaling.compare(model, phase, series, options)
    most = series.measured[-1]
    return replace(begun, scaling=compared, shown=most if most.execution.network else None)


def fewer(tasks: Tasks) -> Iterator[Tasks]:
    """1, 2, 4 and so on, and the number of all tasks."""
    number = 1
    while number < count(tasks):
        yield number if isinstance(tasks, int) else tasks[:number]
        number *= 2
    yield tasks
