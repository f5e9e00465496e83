"""Compare what the ops of a step cost at several batch sizes, and under several configurations. All
batch sizes process the same images, in alternating traced and untraced steps, after warm-up.

    python -m tflab.compare --model lenet --batch-sizes 1 16 64
    python -m tflab.compare before.json after.json --fail-if-slower 10
    python -m tflab.compare old.py new.py --steps 500 --fail-if-slower 5
    python -m tflab.compare train.py -- --batch 32 -- --batch 64
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path

from tflab import models
from tflab.analysis import row_labels
from tflab.cli import arguments, command, confined, environment, interrupts, output_paths, terminal
from tflab.compare import CONFIGURATIONS, DEFAULT, PASSES, WHAT, SweepOptions, compare_batch_sizes
from tflab.errors import RefusedError, UsageError
from tflab.escaping import visible
from tflab.records.options import Options
from tflab.runtime import dumps, tf_import

PHASES = ("inference", "training")
FORMATS = ("text", "json", "csv", "markdown")
OF_FILES = ("files", "fail_if_slower", "top", "full", "format")  # options that go with files
OF_PROGRAMS = (*OF_FILES, "steps", "save")
USAGE = """python -m tflab.compare [OPTION ...]
       python -m tflab.compare [OPTION ...] FILE [FILE] [-- ARGUMENT ...]..."""


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(sys.argv[1:] if argv is None else argv))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("compare", __doc__)
    parser.usage = USAGE
    group = parser.add_argument_group("what to measure")
    arguments.model(group, models.MODELS)
    arguments.add(group, "--batch-sizes")
    arguments.choice(group, "--phase", "phase", PHASES, "kind of step: ")
    amount = group.add_mutually_exclusive_group()
    amount.add_argument(
        "--images",
        type=command.count("number of images"),
        metavar="N",
        help="images to measure (default: the test set; in training 2,000)",
    )
    amount.add_argument(
        "--steps",
        type=command.count("number of steps"),
        metavar="N",
        help="steps at the largest batch size, or of each run of a program",
    )
    group.add_argument(
        "--configs",
        nargs="+",
        default=[DEFAULT],
        type=command.one_of("configuration", (*CONFIGURATIONS, PASSES)),
        metavar="C",
        help=f"{', '.join(list(CONFIGURATIONS)[1:])}, passes; up to 5 min",
    )
    arguments.add(group, "--cluster", "--data-dir")

    group = parser.add_argument_group("how it is shown")
    arguments.choice(group, "--by", "grouping", row_labels.KEYS, "what a row is: ")
    group.add_argument(
        "--top",
        default=10,
        type=command.count("number of rows"),
        metavar="N",
        help="rows of a table (default: 10)",
    )
    group.add_argument("--full", action="store_true", help="show every table")
    group.add_argument(
        "--plots", metavar="DIR", help="draw the tables into a new folder, as PNG and SVG"
    )
    arguments.choice(group, "--format", "format", FORMATS)

    group = parser.add_argument_group("saved comparisons, and programs")
    group.add_argument("files", nargs="*", metavar="FILE", help="saved comparisons or programs")
    group.add_argument(
        "--save", metavar="FILE", help="write what --format json prints to a new file"
    )
    group.add_argument(
        "--fail-if-slower",
        type=command.count("slowdown in percent", 0, 1_000),
        metavar="PERCENT",
        help="exit 1 if a step of the second is slower by more, 3 if undecided",
    )
    arguments.saved(parser)
    return parser


def run(argv: Sequence[str]) -> int:
    own, *lists = split(argv)
    args = parser().parse_args(own)
    if lists or any(name.endswith(".py") for name in args.files):
        check_options(args, OF_PROGRAMS)
        from tflab.run import turns

        return turns.run(args, lists)
    if args.files:
        check_options(args, OF_FILES)
        from tflab.compare import saved

        return saved.run(args)
    if args.fail_if_slower is not None:
        raise UsageError(
            "--fail-if-slower compares two saved comparisons, or two programs; give their files."
        )
    if args.plots:
        environment.require("--plots", "matplotlib")
    sizes = sorted(args.batch_sizes)
    if len(set(sizes)) < len(sizes):
        raise UsageError(f"The batch sizes {sizes} contain duplicates; list each once.")
    arguments.check_cluster(args)
    if confined.is_wanted(models.is_file(args.model), args.trust):
        given = (("--plots", args.plots, "folder"), ("--save", args.save, WHAT))
        places = {option: output_paths.place(Path(name), of) for option, name, of in given if name}
        return confined.run("compare", argv, args, places)
    dumps.prepare()  # before the model imports TensorFlow
    models.find(args.model, arguments.saved_of(args))
    if args.save and not confined.CONFINED:
        output_paths.check(Path(args.save), WHAT)
    if not args.cluster:
        return run_on(args, sizes, ())
    tf_import.load()
    from tflab.runtime import cluster

    with cluster.tasks(args.cluster) as addresses:
        return run_on(args, sizes, addresses)


def split(argv: Sequence[str]) -> list[list[str]]:
    """Return the arguments before, between and after each `--`."""
    ends = [-1, *(at for at, word in enumerate(argv) if word == "--"), len(argv)]
    return [[*argv[start + 1 : end]] for start, end in pairwise(ends)]


def run_on(args: argparse.Namespace, sizes: Sequence[int], tasks: tuple[str, ...]) -> int:
    configs = tuple(dict.fromkeys([DEFAULT, *args.configs]))
    chosen = SweepOptions(args.phase, args.by, args.images, args.steps, configs=configs)
    options = Options(
        data_dir=args.data_dir,
        saved=arguments.saved_of(args),
        cluster=tasks,
        soft_placement=models.is_file(args.model),  # the devices were another machine's
    )
    place: AbstractContextManager[output_paths.Run | None] = nullcontext()
    if args.plots:
        place = output_paths.new(Path(args.plots), "folder", "--plots", folder=True)
    with terminal.phase(args.model), interrupts.held():
        with place as folder:  # created before anything is measured
            comparison = compare_batch_sizes(args.model, sizes, chosen, options=options)
            from tflab.compare import saved, view
            from tflab.exporters import csv

            title = f"{comparison.model} by batch size"
            shown = view.blocks(comparison, args.top, args.full)
            saved.show(args, title, comparison, shown, lambda: csv.comparison(comparison))
            if folder:
                from tflab.exporters import plots

                for size, rows in comparison.tables.items():
                    bars = plots.op_bars.draw(rows, comparison.by)
                    plots.save(bars, folder.work / f"batch-{size}-{comparison.by}s")
                if len(comparison.tables) > 1:
                    plots.save(plots.batch_sizes.draw(comparison), folder.work / "batch_sizes")
        if folder:
            with command.reader_may_leave():
                notes = sys.stdout if args.format == "text" else sys.stderr
                terminal.say(f"\nThe plots are in {visible(str(folder.final))}", notes)
        saved.save(args, comparison)  # if that fails, the plots are there
    if comparison.failure:
        raise RefusedError(comparison.failure)
    return command.INTERRUPTED if comparison.interrupted else 0


def check_options(args: argparse.Namespace, known: Sequence[str]) -> None:
    """Refuse the options that do not go with files."""
    for name, value in vars(args).items():
        if name not in known and value != parser().get_default(name):
            raise UsageError(
                f"--{name.replace('_', '-')} applies to a new measurement of a model; give either "
                "files or measuring options."
            )


if __name__ == "__main__":
    sys.exit(main())
