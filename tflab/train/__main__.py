"""Train a model, with curves for TensorBoard and checkpoints.

    python -m tflab.train --model lenet

Options that you omit take the model's defaults. Ctrl-C saves and stops; --resume continues from
the last checkpoint, and says what it does not restore.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tflab import models
from tflab.cli import arguments, command, interrupts, output_paths, terminal
from tflab.escaping import visible
from tflab.records.options import Options, Saved

if TYPE_CHECKING:
    from rich.progress import Progress

    from tflab.train.checkpoints import Checkpoint
    from tflab.train.history import Settings, TimedStep
    from tflab.train.trainer import Trainer

SEED = 1  # of the initial weights and of the order of the rows
SETTINGS = ("model", "batch_size", "epochs")  # options that are settings
RECENT = 50  # steps; the progress bar shows their mean


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("train", __doc__)
    add = parser.add_argument
    add(
        "--model",
        metavar="M",
        help=f"{', '.join(models.MODELS)}, or package.module:function (default: {arguments.MODEL})",
    )
    add(
        "--epochs",
        type=command.count("number of epochs"),
        metavar="N",
        help="number of passes over the training data (default: the model's)",
    )
    add(
        "--batch-size",
        type=command.count("batch size"),
        metavar="N",
        help="rows of data in each step (default: the model's)",
    )
    add(
        "--resume",
        action="store_true",
        help="continue the training in --logdir, or the model's newest training in runs/",
    )
    add(
        "--logdir",
        type=command.folder("logdir"),
        metavar="DIR",
        help="folder of the results for TensorBoard (default: runs/<model>-train-<time>)",
    )
    arguments.data_dir(parser)
    arguments.trust(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    from tflab.train import checkpoints, history

    if args.resume:
        folder = checkpoints.find_training(
            Path(args.logdir or output_paths.RUNS), args.model or arguments.MODEL
        )
        saved = history.settings(folder / history.NAME)
        if not args.model:
            checkpoints.check_own_model(folder, saved)
        trainer, settings = prepare(args, saved)
        checkpoints.check_same_settings(folder, saved, settings)
        start, going_on = checkpoints.checkpoint_to_resume(folder, settings)
        note(going_on)
    else:
        trainer, settings = prepare(args, None)
        folder, start = checkpoints.begin_training(args.logdir, trainer.program, settings), None
    status = 0
    try:
        if start is None or start.step < settings.steps:
            train(trainer, settings, folder, start)
    except KeyboardInterrupt:
        status = command.INTERRUPTED
    finally:
        with interrupts.held():
            show(folder)
    if status:
        note(f"Interrupted. To continue:  {resuming(settings, folder, args.trust)}")
    return status


def resuming(settings: Settings, folder: Path, trust: bool) -> str:
    again = ["--resume", "--model", settings.model, "--logdir", str(folder)]
    again += ["--trust"] if trust else []
    return f"python -m tflab.train {shlex.join(again)}"


def prepare(args: argparse.Namespace, saved: Settings | None) -> tuple[Trainer, Settings]:
    """The graph and the settings: those given, else those saved before, else the recipe's."""
    from tflab.train.history import Settings

    settings_given = {
        name: getattr(args, name) for name in SETTINGS if getattr(args, name) is not None
    }
    model = args.model or (saved.model if saved else arguments.MODEL)
    seed = saved.seed if saved else SEED
    function = models.find(model, Saved(trust=args.trust))
    from tflab.train import trainer

    options = Options(data_dir=args.data_dir, saved=Saved(trust=args.trust))
    ready = trainer.prepare(model, function, seed, options)
    train, test = map(ready.program.dataset, ("train", "test"))
    data = {"data": train.name, "train_rows": train.size, "test_rows": test.size}
    defaults = {
        "model": model,
        "batch_size": ready.recipe.batch_size,
        "epochs": ready.recipe.epochs,
        "seed": seed,
    }
    return ready, Settings(**{**(asdict(saved) if saved else defaults), **settings_given, **data})


def train(trainer: Trainer, settings: Settings, folder: Path, start: Checkpoint | None) -> None:
    """Train, with a progress bar on stderr for the steps and a line on stdout for every epoch."""
    from tflab.exporters import text
    from tflab.records.trained import Epoch
    from tflab.train import loop, view

    out = text.console()
    out.print(visible(view.plan_line(settings)))
    done = start.step if start else 0
    recent: deque[TimedStep] = deque(maxlen=RECENT)
    of_epoch: list[TimedStep] = []
    with (
        closing(loop.train(trainer, settings, folder, start)) as records,
        progress_bar() as bar,
        terminal.phase("training", settings.steps) as phase,
    ):
        task = bar.add_task("", total=settings.steps, completed=done, about="")
        for record in records:
            if isinstance(record, Epoch):
                bar.stop()  # clears the bar's line
                out.print(visible(view.epoch_line(record, settings.epochs, of_epoch)))
                bar.start()
                of_epoch.clear()
                continue
            phase.done = record.step
            of_epoch.append(record)
            if not bar.disable:
                recent.append(record)
                bar.update(task, completed=record.step, about=view.progress_line(settings, recent))


def progress_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        BarColumn(),
        TextColumn("{task.fields[about]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=False,
    )


def show(folder: Path) -> None:
    """Print a table of all epochs, and how to open the training in TensorBoard."""
    from tflab.exporters import text
    from tflab.train import history, view

    text.show_blocks(view.blocks(history.read(folder / history.NAME)))
    terminal.say_command("\nOpen it in TensorBoard:", output_paths.opening_line(folder))


def note(sentence: str) -> None:
    terminal.say(visible(sentence), sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
