"""Over tasks: a model's step in this process alone, then on more and more tasks of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflab import lifecycle
from tflab.errors import TflabError
from tflab.records import Frontend, Options
from tflab.records.options import BATCH_SIZES
from tflab.records.scaling import Tasks
from tflab.report.contents import OneStep, OverTasks
from tflab.runtime import quiet_import
from tflab.units import plural

STEPS = 20  # at each number of tasks
BATCH_SIZE = BATCH_SIZES[-1]  # there is most to share


def called(tasks: Tasks) -> str:
    return plural(count(tasks), "task")


def count(tasks: Tasks) -> int:
    return tasks if isinstance(tasks, int) else len(tasks)


def plan(model: str, tasks: Tasks, split: str, options: Options) -> OverTasks:
    """What will be measured, of a training step where there is a loss.

    Raises UsageError for a model that cannot be cut that way, TflabError where there is no task at
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
    """What goes wrong with a task is said in the result, beside what was measured until then.

    Raises KeyboardInterrupt as soon as it was interrupted.
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
    if most.execution.network is None:
        return replace(begun, scaling=compared)
    shown = clusters[len(series.measured) - 2]  # the first measurement is of none
    step = OneStep(shown, most.placement, most.execution, most.execution.network)
    return replace(begun, scaling=compared, shown=step)


def fewer(tasks: Tasks) -> Iterator[Tasks]:
    """1, 2, 4 and so on up to all of the tasks, and these."""
    number = 1
    while number < count(tasks):
        yield number if isinstance(tasks, int) else tasks[:number]
        number *= 2
    yield tasks
