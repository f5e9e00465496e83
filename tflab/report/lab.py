"""Lab: all measurements for a report, part by part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from tflab import lifecycle, models
from tflab.cli import environment, interrupts, temporary, terminal
from tflab.compare import DEFAULT, SweepOptions, compare_batch_sizes
from tflab.errors import TflabError
from tflab.follow import measurement, node_history
from tflab.records.measured import Comparison
from tflab.records.options import BATCH_SIZES, Options, Saved
from tflab.records.stages import Execution, Frontend
from tflab.records.trained import Epoch, History, Settings, TrainingStep, history
from tflab.report import selection
from tflab.report.contents import EPOCHS, Lab, Walked
from tflab.report.selection import TOY
from tflab.runtime import devices, machine_load
from tflab.train import loop, trainer

STEPS = 50  # measured steps of each walk
EXPERIMENTS_S = 30  # for what the largest ops cost a step

SWEEP_S = 60  # for inference at all batch sizes; a slow model processes fewer images
TRAINING_S = 180  # after which a training for the report is stopped

Announce = Callable[[str], None]  # receives the name of each part before it starts
# The needs that a part fulfils, the lab's field for it, and its result
Measured = tuple[Set[str], str, Any]


@dataclass(frozen=True)
class Wanted:
    """The contents of the requested report."""

    model: str
    chapters: tuple[str, ...]
    data_dir: str | None = None
    trust: bool = False  # whether a graph from a file runs in this process


def measure(wanted: Wanted, announce: Announce) -> Lab:
    """Walk, train and compare a model, as far as the chapters need it.

    A signal ends it: the lab then has the measurements so far, and names what is missing. Raises
    TflabError if a part fails, KeyboardInterrupt if a signal came before any part was complete.
    """
    needs = selection.needs(wanted.chapters)
    options = Options(
        steps=STEPS,
        data_dir=wanted.data_dir,
        soft_placement=models.is_file(wanted.model),  # the devices were another machine's
        saved=Saved(trust=wanted.trust),
        race=False,
    )
    # Fields of the lab
    measured: dict[str, Any] = dict.fromkeys(("toy", "walked", "history", "compared"))
    done: set[str] = set()  # needs that are fulfilled
    try:
        for names, field_name, value in interrupts.interruptible(
            parts(wanted, needs, options, announce)
        ):
            done |= names
            measured[field_name] = value
        interrupted = False
    except KeyboardInterrupt:
        if not done:
            raise
        interrupted = True
    return Lab(
        **measured,
        model=wanted.model,
        environment=[("Date", environment.now()), *devices.inspected()],
        interrupted=interrupted,
        missing=needs - done if interrupted else frozenset(),
    )


def parts(
    wanted: Wanted, needs: frozenset[str], options: Options, announce: Announce
) -> Iterator[Measured]:
    """Each part when it is measured. A part that a signal ended is returned as far as it got,
    followed by the KeyboardInterrupt."""
    load_before = machine_load.average()  # before tflab itself loads the machine
    model = wanted.model
    walked = None
    for names, field_name, value in walks(model, needs, options, announce):
        walked = value if field_name == "walked" else walked
        yield names, field_name, value
    if "training" in needs:
        curves: History | None = None
        complete = True
        if has_loss(model, walked, options):
            announce(f"training {model} for {EPOCHS} epochs, at most {TRAINING_S} s")
            curves, complete = train(model, options, walked)
        yield {"training"}, "history", curves
        if not complete:
            raise KeyboardInterrupt
    if "sweep" in needs:
        sweep = SweepOptions(seconds=SWEEP_S, load_before=load_before)
        compared = compare(wanted, "configurations" in needs, sweep, options, announce)
        yield of_comparison(compared), "compared", compared
        if compared.interrupted:
            raise KeyboardInterrupt


def walks(
    model: str, needs: frozenset[str], options: Options, announce: Announce
) -> Iterator[Measured]:
    """The walks through the stages: of the model, and of the toy."""
    if "walk" in needs:
        announce(f"the stages of {model}")
        seconds = EXPERIMENTS_S if "experiments" in needs else 0
        walking = replace(options, experiments=seconds)
        for walked, names in walk(model, walking, "histories" in needs):
            yield names, "walked", walked
    if "toy" in needs:
        announce("the stages of x*y + z")
        for toy, names in walk(TOY, options, "histories" in needs):
            yield (names - {"walk"}) | {"toy"}, "toy", toy
    if "two devices" in needs:
        announce("x*y + z on two devices")
        yield {"two devices"}, "toy_on_two", place_only(TOY, replace(options, devices=2))


def of_comparison(compared: Comparison) -> set[str]:
    """Which needs a comparison fulfils: all of them, unless it was interrupted."""
    complete = not compared.interrupted
    by_name = {
        "sweep": True,
        "configurations": complete or bool(compared.configs),
    }
    return {name for name, measured in by_name.items() if measured}


def compare(
    wanted: Wanted, raced: bool, sweep: SweepOptions, options: Options, announce: Announce
) -> Comparison:
    """Inference at all batch sizes, and under other configurations."""
    configs = configurations() if raced else (DEFAULT,)
    others = ", ".join(configs[1:])
    then = f", then under {others} for about {selection.CONFIGS_S} s" if others else ""
    announce(f"{wanted.model} at batch sizes {', '.join(map(str, BATCH_SIZES))}{then}")
    chosen = replace(sweep, configs=configs, race_s=selection.CONFIGS_S)
    compared = compare_batch_sizes(wanted.model, BATCH_SIZES, chosen, options=options)
    if compared.failure:
        raise TflabError(compared.failure)
    return compared


def configurations() -> tuple[str, ...]:
    """Return the default configuration and the others, including a GPU if there is one."""
    others = (*selection.CONFIGS, "gpu") if devices.gpus() else selection.CONFIGS
    return (DEFAULT, *others)


def place_only(model: str, options: Options) -> Walked:
    """A walk that ends before anything runs."""
    stages = tuple(lifecycle.walk(model, options, "placement"))
    return Walked(model, stages, node_history.histories(stages))


def walk(
    model: str, options: Options, with_pictures: bool = True
) -> Iterator[tuple[Walked, frozenset[str]]]:
    """A walk through all stages, and which needs it fulfils; if its graph is drawn, also with
    times at each batch size."""
    stages = tuple(lifecycle.walk(model, options))
    walked = Walked(model, stages, node_history.histories(stages))
    done = frozenset({"walk", "histories"})
    if not walked.execution.interrupted:
        done |= {"experiments"}
    yield walked, done
    if walked.execution.interrupted:
        raise KeyboardInterrupt
    if with_pictures:
        followed = measurement.follow(stages, BATCH_SIZES, options)
        yield Walked(model, stages, followed.histories), done
        if followed.interrupted:
            raise KeyboardInterrupt


def has_loss(model: str, walked: Walked | None, options: Options) -> bool:
    stages = walked.stages if walked else lifecycle.walk(model, options, "frontend")
    frontend = next(stage for stage in stages if isinstance(stage, Frontend))
    return frontend.live.model.loss is not None


def on_fewer_rows(settings: Settings, step: Execution) -> Settings:
    """The settings with as many training rows as half of TRAINING_S suffices for: without a whole
    epoch there would be no test. A row takes as long as in the step that was measured."""
    row_ns = step.untraced_step_ns.median / step.batch_size
    rows = max(settings.batch_size, int(1e9 * TRAINING_S / 2 / settings.epochs / row_ns))
    if rows >= settings.train_rows:
        return settings
    data = f"{settings.data}, the first {rows:,} training rows"
    return replace(settings, train_rows=rows, data=data)


def train(model: str, options: Options, walked: Walked | None) -> tuple[History, bool]:
    """Train like `python -m tflab.train`, but at most TRAINING_S, after which there may be fewer
    epochs. Also return False if a signal ended the training after its first step."""
    ready = trainer.prepare(model, models.find(model, options.saved), options=options)
    settings = ready.settings(EPOCHS)
    if walked:
        settings = on_fewer_rows(settings, walked.execution)
    records: list[TrainingStep | Epoch] = []
    complete, stop = True, time.monotonic() + TRAINING_S
    with temporary.folder("training") as folder:
        try:
            with closing(loop.train(ready, settings, folder)) as steps:
                for record in terminal.track("training", steps, settings.steps + settings.epochs):
                    records.append(record)
                    if time.monotonic() > stop:
                        break
        except KeyboardInterrupt:
            if not records:
                raise
            complete = False
    return history(settings, records), complete
