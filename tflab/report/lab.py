"""Lab: all measurements for a report, part by part."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import closing
from dataclasses import replace

from tflab import lifecycle, models
from tflab.cli import environment, interrupts, temporary, terminal
from tflab.compare import DEFAULT, SweepOptions, compare_batch_sizes, configurations
from tflab.errors import TflabError
from tflab.follow import measurement, node_history
from tflab.records.measured import Epoch, Settings, TrainingStep, history
from tflab.records.options import BATCH_SIZES, Options, Program, Saved
from tflab.records.stages import Execution, Frontend, Stage
from tflab.report import contents
from tflab.report.contents import EPOCHS, Lab, Walked
from tflab.runtime import devices
from tflab.train import trainer

STEPS = 50  # measured steps of each walk
SWEEP_S = 60  # for inference at all batch sizes; a slow model processes fewer images
TRAINING_S = 180  # after which a training for the report is stopped

Announce = Callable[[str], None]  # receives the name of each part before it starts


def measure(
    model: str, chapters: Sequence[str], data_dir: str | None, trust: bool, announce: Announce
) -> Lab:
    """Walk, train and compare a model, as far as the chapters need it, or until a signal comes.
    Raises TflabError if a part fails, KeyboardInterrupt if a signal left no complete part."""
    options = Options(
        steps=STEPS,
        data_dir=data_dir,
        soft_placement=models.is_file(model),  # the devices were another machine's
        saved=Saved(trust=trust),
        first_run=False,
    )
    lab = empty = Lab(model, [("Date", environment.now()), *devices.inspected()])
    needs = {part for name in chapters for part in contents.NEEDS[name]}
    try:
        for measured in interrupts.interruptible(parts(lab, needs, options, announce)):
            lab = measured
    except KeyboardInterrupt:
        if lab is empty:
            raise
        return replace(lab, interrupted=True)
    return lab


def parts(lab: Lab, needs: Set[str], options: Options, announce: Announce) -> Iterator[Lab]:
    """Yield the lab after each part. If a signal ended a part, raise KeyboardInterrupt after it."""
    model = lab.model
    if "walked" in needs:
        announce(f"the stages of {model}")
        for walked in walk(model, options, "histories" in needs):
            lab = replace(lab, walked=walked)
            yield lab
    if "history" in needs and lab.walked and program_of(lab.walked.stages).model.loss is not None:
        announce(f"training {model} for {EPOCHS} epochs, at most {TRAINING_S} s")
        for trained in train(lab, options):
            lab = trained
            yield lab
    if "compared" in needs:
        configs: tuple[str, ...] = (DEFAULT,)
        if "configurations" in needs:
            others = contents.CONFIGS + ("gpu",) * bool(devices.gpus())
            configs += configurations.changing(others) or ("no-grappler",)
        turns = f", then under {', '.join(configs[1:])} for about {contents.CONFIGS_S} s"
        sizes = ", ".join(map(str, BATCH_SIZES))
        announce(f"{model} at batch sizes {sizes}{turns if configs[1:] else ''}")
        sweep = SweepOptions(seconds=SWEEP_S, configs=configs, race_s=contents.CONFIGS_S)
        compared = compare_batch_sizes(model, BATCH_SIZES, sweep, options=options)
        if compared.failure:
            raise TflabError(compared.failure)
        yield replace(lab, compared=compared)
        if compared.interrupted:
            raise KeyboardInterrupt


def walk(model: str, options: Options, drawn: bool) -> Iterator[Walked]:
    """Yield a walk of all stages; if its graph is drawn, also with times at each batch size."""
    stages = tuple(lifecycle.walk(model, options))
    trained = program_of(stages).graph.get_collection("trainable_variables")
    weights = Counter({each.op.name: each.shape.num_elements() for each in trained})
    walked = Walked(model, stages, node_history.histories(stages), weights)
    yield walked
    interrupted = walked.execution.interrupted
    if drawn and not interrupted:
        histories, interrupted = measurement.follow(stages, BATCH_SIZES, options)
        yield replace(walked, histories=histories)
    if interrupted:
        raise KeyboardInterrupt


def program_of(stages: Iterable[Stage]) -> Program:
    return next(stage for stage in stages if isinstance(stage, Frontend)).live


def affordable_rows(settings: Settings, step: Execution) -> int:
    """Return the number of training rows for which half of TRAINING_S suffices, at least a batch. A
    row is assumed to take as long as in the measured step."""
    row_ns = step.untraced_step_ns.median / step.batch_size
    return max(settings.batch_size, int(1e9 * TRAINING_S / 2 / settings.epochs / row_ns))


def train(lab: Lab, options: Options) -> Iterator[Lab]:
    """Train like `python -m tflab.train`, but for at most TRAINING_S."""
    ready = trainer.prepare(lab.model, models.find(lab.model, options.saved), options)
    model = program_of(lab.walked.stages).model if lab.walked else None
    optimizer, own = ready.optimizer, type(model.optimizer).__name__ if model else ""
    if model and model.optimizer and own != optimizer:
        optimizer += f"; in the graph with gradients {own}"
    lab = replace(lab, optimizer=optimizer, recipe_epochs=ready.recipe.epochs)
    settings = ready.settings(EPOCHS)
    if lab.walked:
        rows = affordable_rows(settings, lab.walked.execution)
        settings = ready.settings(EPOCHS, rows=rows)
    records: list[TrainingStep | Epoch] = []
    complete, stop = True, time.monotonic() + TRAINING_S
    with temporary.folder("training") as folder:
        try:
            with closing(trainer.train(ready, settings, folder)) as steps:
                for record in terminal.track("training", steps, settings.steps + settings.epochs):
                    records.append(record)
                    if time.monotonic() > stop:
                        break
        except KeyboardInterrupt:
            complete = False
    if records:
        yield replace(lab, history=history(settings, records))
    if not complete:
        raise KeyboardInterrupt
