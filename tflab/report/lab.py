"""Lab: all that a report needs, measured one part after another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tflab import lifecycle
from tflab.compare import comparison
from tflab.errors import TflabError
from tflab.follow import measurement, node_history
from tflab.records import History, Options
from tflab.records.options import BATCH_SIZES
from tflab.report import hardware
from tflab.report.contents import EPOCHS, TOY, Lab, Walked
from tflab.runtime import load
from tflab.train import history

STEPS = 50  # measured ones of each walk
EXPERIMENTS_S = 30  # for what the largest ops cost a step

Announce = Callable[[str], None]  # gets the name of each part before it begins


def measure(
    model: str, trained: History | None, logdir: str | None, data: str | None, announce: Announce
) -> Lab:
    """Walk, train and compare a model.

    `trained` is the history of a training that exists; without one the model is trained briefly.
    Raises TflabError when a part fails, KeyboardInterrupt as soon as any was interrupted.
    """
    load_average = load.load_average()  # before tflab itself keeps the machine busy
    options = Options(steps=STEPS, data_dir=data)
    announce(f"the life of {model}")
    walked = walk(model, replace(options, experiments=EXPERIMENTS_S))
    toy = walked
    if model != TOY:
        announce("the life of x*y + z")
        toy = walk(TOY, options)
    announce("x*y + z on two devices")
    toy_on_two = place(TOY, replace(options, devices=2))
    if trained is None and has_loss(walked):
        announce(f"training {model} for {EPOCHS} epochs")
        trained = train(model, data)
    announce(f"{model} at batch sizes {', '.join(map(str, BATCH_SIZES))}")
    compared = comparison.compare(
        model, BATCH_SIZES, options=Options(data_dir=data), load_average=load_average
    )
    if compared.interrupted:
        raise KeyboardInterrupt
    if compared.failure:
        raise TflabError(compared.failure)
    return Lab(
        model=model,
        environment=hardware.inspected(),
        toy=toy,
        walked=walked,
        history=trained,
        logdir=logdir,
        compared=compared,
        toy_on_two=toy_on_two,
    )


def place(model: str, options: Options) -> Walked:
    """A walk that ends before anything has run."""
    stages = tuple(lifecycle.walk(model, options, "placement"))
    return Walked(model, stages, node_history.histories(stages))


def walk(model: str, options: Options) -> Walked:
    stages = tuple(lifecycle.walk(model, options))
    walked = Walked(model, stages, measurement.follow(stages, BATCH_SIZES, options))
    if walked.execution.interrupted:
        raise KeyboardInterrupt
    return walked


def has_loss(walked: Walked) -> bool:
    return walked.execution.program.model.loss is not None


def train(model: str, data: str | None) -> History:
    """Train in a process of its own, as `python -m tflab.train` does it; only its history is
    kept."""
    with TemporaryDirectory(prefix="tflab-report-") as folder:
        logdir = Path(folder) / "run"
        command = [sys.executable, "-m", "tflab.train", "--model", model, "--epochs", str(EPOCHS)]
        command += ["--logdir", str(logdir), *(["--data-dir", data] if data else [])]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise TflabError(f"The training of '{model}' ended with status {done.returncode}.")
        return history.read(logdir / history.NAME)
