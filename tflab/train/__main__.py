"""Train a model, with curves for TensorBoard and checkpoints.

    python -m tflab.train --model lenet

A checkpoint is saved after each epoch; --resume continues from the last one.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tflab import models
from tflab.cli import arguments, command, interrupts, output_paths, terminal
from tflab.errors import TflabError, UsageError
from tflab.escaping import visible
from tflab.records.options import Options, Saved

if TYPE_CHECKING:
    from tflab.records.measured import Epoch, Settings, TrainingStep
    from tflab.train.checkpoints import Checkpoint
    from tflab.train.trainer import Trainer


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("train", __doc__)
    arguments.model(parser, models.MODELS)
    add = parser.add_argument
    add(
        "--epochs",
        type=command.count("number of epochs"),
        metavar="N",
        help="number of passes over the training data (default: 2)",
    )
    add(
        "--batch-size",
        type=command.count("batch size"),
        metavar="N",
        help="rows of data in each step (default: the model's)",
    )
    add(
        "--rows",
        type=command.count("number of rows"),
        metavar="N",
        help="only the first N rows of the training data",
    )
    add("--resume", action="store_true", help="continue the training in --logdir")
    add(
        "--logdir",
        metavar="DIR",
        help="folder of the results for TensorBoard (default: runs/<model>-train-<time>)",
    )
    arguments.add(parser, "--data-dir", "--trust")
    return parser


def run(args: argparse.Namespace) -> int:
    from tflab.records.measured import history
    from tflab.runtime import dumps

    dumps.prepare()  # before TensorFlow is imported
    from tflab.exporters import text
    from tflab.train import checkpoints, view

    if args.resume and not args.logdir:
        raise UsageError("--resume needs --logdir, the folder of the training to continue.")
    saved = checkpoints.read_settings(Path(args.logdir)) if args.resume else None
    trainer, settings = prepare(args, saved)
    start = None
    if saved:
        folder = Path(args.logdir)
        checkpoints.check_same_settings(folder, saved, settings)
        start = checkpoints.newest(folder)
        note(checkpoints.progress(folder, settings, start))
    else:
        folder = checkpoints.begin_training(args.logdir, trainer.program, settings)
    status, records = 0, []
    with interrupts.held():
        try:
            for record in train(trainer, settings, folder, start):
                records.append(record)
        except KeyboardInterrupt:
            status = command.INTERRUPTED
        finally:
            if records:
                print()
                text.show_blocks(view.blocks(history(settings, records)))
            terminal.say_command("\nIts scalars in TensorBoard:", output_paths.opening_line(folder))
        interrupts.take()  # there is nothing left to interrupt
    if start is None and not status:
        note(keep_life(args, settings, folder))
    if status:
        again = ["--resume", "--model", settings.model, "--logdir", str(folder)]
        again += ["--trust"] if args.trust else []
        note(f"Interrupted. To continue:  python -m tflab.train {shlex.join(again)}")
    return status


def prepare(args: argparse.Namespace, saved: Settings | None) -> tuple[Trainer, Settings]:
    """Return the graph and the settings: as given, else as saved, else the recipe's."""
    of_file = Saved(trust=args.trust)
    function = models.find(args.model, of_file)
    from tflab.train import trainer

    options = Options(data_dir=args.data_dir, saved=of_file)
    ready = trainer.prepare(args.model, function, options)
    usual = (saved.epochs, saved.batch_size, saved.train_rows) if saved else (None, None, None)
    given = (args.epochs, args.batch_size, args.rows)
    return ready, ready.settings(*(one or other for one, other in zip(given, usual, strict=True)))


def train(
    ready: Trainer, settings: Settings, folder: Path, start: Checkpoint | None
) -> Iterator[TrainingStep | Epoch]:
    """Train, with progress on stderr; yield every step and epoch."""
    from tflab.train import trainer, view

    left = settings.steps - (start.step if start else 0)
    if not left:
        return
    terminal.say(visible(view.plan_line(settings, ready.recipe.epochs)))
    with closing(trainer.train(ready, settings, folder, start)) as records:
        steps = interrupts.interruptible(records)
        first: list[TrainingStep | Epoch] = []
        for record in islice(steps, view.JUDGED):
            first.append(record)
            yield record
        if len(first) == view.JUDGED and (expected := view.expected(first, left)):
            terminal.say(expected)
        total = left + left // settings.epoch_steps - len(first)
        yield from terminal.track("training", steps, total, partial(view.progress, settings))


def keep_life(args: argparse.Namespace, settings: Settings, folder: Path) -> str:
    """Write the graph for TensorBoard's tab Life. Return a sentence if that fails, else ""."""
    from tflab.explore import stages_as_data
    from tflab.report import storage
    from tflab.train import trainer

    options = Options(settings.batch_size, data_dir=args.data_dir, saved=Saved(trust=args.trust))
    try:
        with terminal.phase("drawing the graph"):
            stages = trainer.stages(models.find(settings.model, options.saved), settings, options)
        nodes = max(len(stage.nodes) for stage in stages)
        return storage.keep(folder, nodes, lambda: stages_as_data.life_of(stages, settings.model))
    except TflabError as error:
        return f"TensorBoard's tab Life does not show this graph. {error}"


def note(sentence: str) -> None:
    if sentence:
        terminal.say(visible(sentence), sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
