"""Command line: the arguments of a comparison."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tflab import models
from tflab.analysis import row_labels
from tflab.cli import arguments, command
from tflab.compare.configurations import CONFIGURATIONS

PHASES = ("inference", "training")
FORMATS = ("text", "json", "csv", "markdown")
OF_FILES = ("files", "fail_if_slower", "top", "format")  # options that go with files
WHAT = "comparison"  # the name of a saved file in errors


def build_parser(about: str | None) -> argparse.ArgumentParser:
    parser = command.parser("compare", about)
    add_sweep(parser)
    add_race(parser)
    add_output(parser)
    add_files(parser)
    arguments.cluster(parser)
    arguments.without(parser, "switch these graph passes off; without remapper no ops are fused")
    arguments.soft_placement(parser)
    arguments.output_format(parser, FORMATS)
    arguments.data_dir(parser)
    arguments.saved(parser)
    return parser


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """The amount of work at each batch size, and the rows of the tables."""
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="two files that --save wrote, to compare")
    arguments.model(parser, models.MODELS)
    arguments.batch_sizes(parser)
    add(
        "--phase",
        default="inference",
        choices=PHASES,
        type=command.one_of("phase", PHASES),
        help="default: inference",
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument(
        "--images",
        type=command.count("number of images"),
        metavar="N",
        help="default: all test images, or the first 2,000 training images",
    )
    amount.add_argument(
        "--steps",
        type=command.count("number of steps"),
        metavar="N",
        help="use as many images as N steps at the largest batch size",
    )
    add(
        "--trace-every",
        default=1,
        type=command.count("distance between traced steps"),
        metavar="N",
        help="trace only one step in N, which is faster (default: 1, every step)",
    )
    add(
        "--by",
        default="op",
        choices=row_labels.KEYS,
        type=command.one_of("grouping", row_labels.KEYS),
        help="one row per op type, node, layer or source line (default: op)",
    )
    add(
        "--top",
        default=10,
        type=command.count("number of rows"),
        metavar="N",
        help="number of rows shown (default: 10)",
    )
    add("--full", action="store_true", help="show every table instead of one screen")


def add_race(parser: argparse.ArgumentParser) -> None:
    """What the step is compared with in addition."""
    add = parser.add_argument
    add(
        "--configs",
        nargs="+",
        default=["default"],
        type=command.one_of("configuration", tuple(CONFIGURATIONS)),
        metavar="C",
        help=f"compare the untraced step under: {', '.join(CONFIGURATIONS)}",
    )
    arguments.experiments(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """The files that are written."""
    add = parser.add_argument
    add(
        "--plots",
        type=command.folder("folder for plots"),
        metavar="DIR",
        help="draw the tables into a new folder, as PNG and SVG, with a comparison of the batch "
        "sizes if there are several",
    )
    add(
        "--save",
        type=command.file("comparison's file"),
        metavar="FILE",
        help="write what --format json prints to a new file",
    )


def add_files(parser: argparse.ArgumentParser) -> None:
    """The comparison of saved files."""
    parser.add_argument(
        "--fail-if-slower",
        type=command.percentage("slowdown", 1_000),
        metavar="PERCENT",
        help="with two files: exit with 1 if a step of the second is slower by more than this, "
        "with 3 if that is undecided",
    )


def named_arguments(
    parser: argparse.ArgumentParser, argv: Sequence[str], args: argparse.Namespace
) -> list[str]:
    """The arguments that a command line names, including those that it sets to their default."""
    missing = object()
    # argparse keeps what a namespace contains, and sets only what is named
    blank = argparse.Namespace(**dict.fromkeys(vars(args), missing))
    values = vars(parser.parse_args(argv, blank))
    return [name for name, value in values.items() if value is not missing]


def as_typed(name: str) -> str:
    """An argument as a user types it: `--batch-sizes`."""
    return f"--{name.replace('_', '-')}"
