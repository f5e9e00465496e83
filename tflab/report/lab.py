"""Lab: all that a report needs, measured one part after another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console

from tflab import folders, lifecycle
from tflab.cli import ending, environment
from tflab.compare import comparison, observing
from tflab.compare.configurations import DEFAULT
from tflab.errors import TflabError
from tflab.follow import measurement, node_history
from tflab.records import Comparison, Frontend, History, Measurement, Options
from tflab.records.options import BATCH_SIZES, SPLITS
from tflab.records.scaling import Tasks
from tflab.report import over_tasks, selection
from tflab.report.contents import EPOCHS, Lab, Walked
from tflab.report.selection import TOY
from tflab.runtime import devices, hardware, load
from tflab.train import history

STEPS = 50  # measured ones of each walk
EXPERIMENTS_S = 30  # for what the largest ops cost a step

SWEEP_S = 60  # for inference at all batch sizes; a model that takes longer has fewer images
KEEP_S = 60  # for processes that can be held against a kept measurement
TRAINING_S = 180  # after which a training for the report is ended where it stands

Announce = Callable[[str], None]  # gets the name of each part before it begins


@dataclass(frozen=True)
class Wanted:
    """What a report is to be of."""

    model: str
    chapters: tuple[str, ...]
    trained: History | None = None  # of a training that exists; else the model is trained briefly
    logdir: str | None = None  # of that training
    data_dir: str | None = None
    configs: tuple[str, ...] = ()  # beside the default one
    configs_s: int = selection.CONFIGS_S
    others: Mapping[str, Measurement] = field(default_factory=dict)  # to compare with
    soft_placement: bool = False
    cluster: Tasks = ()
    split: str = SPLITS[0]
    even_if_busy: bool = False


def measure(wanted: Wanted, announce: Announce) -> Lab:
    """Walk, train and compare a model, as far as the chapters need it.

    Raises TflabError when a part fails, KeyboardInterrupt as soon as any was interrupted.
    """
    load_average = load.load_average()  # before tflab itself keeps the machine busy
    model, needs = wanted.model, selection.needs(wanted.chapters, wanted.model)
    soft = wanted.soft_placement
    even = wanted.even_if_busy
    options = Options(steps=STEPS, data_dir=wanted.data_dir, soft_placement=soft, even_if_busy=even)
    several = None
    if "tasks" in needs and wanted.cluster:
        several = over_tasks.plan(model, wanted.cluster, wanted.split, options)
    walked = toy = toy_on_two = curves = compared = None
    if "walk" in needs or (model == TOY and "toy" in needs):
        announce(f"the life of {model}")
        seconds = EXPERIMENTS_S if "experiments" in needs else 0
        walked = walk(model, replace(options, experiments=seconds), "histories" in needs)
        toy = walked if model == TOY else None
    if "toy" in needs and toy is None:
        announce("the life of x*y + z")
        toy = walk(TOY, options, "histories" in needs)
    if "two devices" in needs:
        announce("x*y + z on two devices")
        toy_on_two = place(TOY, replace(options, devices=2))
    if "training" in needs:
        curves = wanted.trained
        if curves is None and has_loss(model, walked, options):
            announce(f"training {model} for {EPOCHS} epochs, {TRAINING_S} s at most")
            curves = train(model, options)
    if "sweep" in needs:
        kept_s = KEEP_S if "processes" in needs and wanted.others else None
        compared = compare(wanted, "configurations" in needs, kept_s, load_average, announce)
    if several:
        announce(f"{model} on {over_tasks.called(wanted.cluster)}, cut by {wanted.split}")
        several = over_tasks.measure(model, several, options)
    return Lab(
        model=model,
        environment=[("Date", environment.now()), *hardware.inspected()],
        toy=toy,
        walked=walked,
        history=curves,
        logdir=wanted.logdir,
        compared=compared,
        toy_on_two=toy_on_two,
        configs_s=wanted.configs_s,
        here=observing.measurement(compared, options) if compared and compared.observed else None,
        others=wanted.others,
        tasks=several,
        soft_placement=soft,
    )


def compare(
    wanted: Wanted,
    raced: bool,
    keep_s: float | None,
    load_average: float | None,
    announce: Announce,
) -> Comparison:
    """Inference at all batch sizes, and at these under other configurations."""
    configs = configurations(wanted.configs) if raced else (DEFAULT,)
    others = ", ".join(configs[1:])
    then = f", then under {others} for about {wanted.configs_s} s" if others else ""
    if keep_s is not None:
        then += f", then in several processes for about {keep_s} s"
    announce(f"{wanted.model} at batch sizes {', '.join(map(str, BATCH_SIZES))}{then}")
    compared = comparison.compare(
        wanted.model,
        BATCH_SIZES,
        configs=configs,
        configs_s=wanted.configs_s,
        sweep_s=SWEEP_S,
        options=Options(
            data_dir=wanted.data_dir,
            soft_placement=wanted.soft_placement,
            even_if_busy=wanted.even_if_busy,
        ),
        load_average=load_average,
        keep_s=keep_s,
    )
    if compared.interrupted:
        raise KeyboardInterrupt
    if compared.failure:
        raise TflabError(compared.failure)
    return compared


def configurations(names: Sequence[str]) -> tuple[str, ...]:
    """The default one and those that it is held against: where none is named, a GPU among them
    if there is one."""
    usual = (*selection.CONFIGS, "gpu") if devices.gpus() else selection.CONFIGS
    return tuple(dict.fromkeys((DEFAULT, *(names or usual))))


def place(model: str, options: Options) -> Walked:
    """A walk that ends before anything has run."""
    stages = tuple(lifecycle.walk(model, options, "placement"))
    return Walked(model, stages, node_history.histories(stages))


def walk(model: str, options: Options, drawn: bool = True) -> Walked:
    """A walk through all stages; where its graph is drawn, with times at each batch size."""
    stages = tuple(lifecycle.walk(model, options))
    if drawn:
        followed = measurement.follow(stages, BATCH_SIZES, options)
        histories, interrupted = followed.histories, followed.timed.interrupted
    else:
        histories, interrupted = node_history.histories(stages), False
    walked = Walked(model, stages, histories)
    if interrupted or walked.execution.interrupted:
        raise KeyboardInterrupt
    return walked


def has_loss(model: str, walked: Walked | None, options: Options) -> bool:
    stages = walked.stages if walked else lifecycle.walk(model, options, "frontend")
    frontend = next(stage for stage in stages if isinstance(stage, Frontend))
    return frontend.live.model.loss is not None


def train(model: str, options: Options) -> History:
    """Train in a process of its own, as `python -m tflab.train` does it; only its history is
    kept. What takes longer than TRAINING_S is ended, and then has fewer epochs."""
    with folders.temporary("training") as folder:
        logdir = folder / "run"
        command = [sys.executable, "-m", "tflab.train", "--model", model, "--epochs", str(EPOCHS)]
        command += ["--logdir", str(logdir)]
        command += ["--data-dir", options.data_dir] if options.data_dir else []
        command += ["--soft-placement"] if options.soft_placement else []
        variables = {**os.environ, "TMPDIR": str(folders.own())}
        with (
            subprocess.Popen(command, stdout=subprocess.DEVNULL, env=variables) as process,
            ending.child(process),
        ):
            try:
                status = process.wait(TRAINING_S)
            except subprocess.TimeoutExpired:
                process.kill()  # every step until then is in its history
                Console(stderr=True).show_cursor()  # its progress bar had hidden it
                status = 0
            except BaseException:
                process.kill()
                raise
        if status:
            raise TflabError(f"The training of '{model}' ended with status {status}.")
        return history.read(logdir / history.NAME)
