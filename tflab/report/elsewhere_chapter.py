"""The chapter of other machines and days: this report's steps compared with kept measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tflab.errors import UsageError
from tflab.measurements import contrast, view
from tflab.records import Measurement
from tflab.report.contents import TOP, Part, Recipe

HERE = "this report"  # what its own measurement is called


def parts(here: Measurement, others: Mapping[str, Measurement]) -> Iterator[Part]:
    try:
        held = contrast.contrast({HERE: here, **others})
    except UsageError as error:
        yield f"These measurements cannot be compared. {error}"
        return
    yield (
        "The same step, measured elsewhere or at another time: first the differences in set-up, "
        "then the difference in time of each step and op."
    )
    yield from view.parts(held, TOP)
    yield recipe(here)


def recipe(here: Measurement) -> Recipe:
    comparison, count = here.comparison, len(here.observed.processes)
    sizes = " ".join(map(str, comparison.batch_sizes))
    return Recipe(
        f"{count} process{'' if count == 1 else 'es'} one after the other; each process is one "
        "observation. The command saves such a measurement on another machine.",
        f"python -m tflab.compare --model {comparison.model} --batch-sizes {sizes} "
        "--save there.json.gz",
    )
