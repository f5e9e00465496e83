"""Command line: the arguments of a comparison."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tflab import models
from tflab.analysis import row_labels
from tflab.cli import arguments, command
from tflab.compare.configurations import CONFIGURATIONS, DEFAULT

PHASES = ("inference", "training")
FORMATS = ("text", "json", "csv", "markdown")
OF_FILES = ("files", "fail_if_slower", "top", "format")  # options that go with files
WHAT = "comparison"  # the name of a saved file in errors


USAGE = """python -m tflab.compare [OPTION ...]
       python -m tflab.compare A.json B.json [--fail-if-slower PERCENT]"""


def build_parser(about: str | None) -> argparse.ArgumentParser:
    parser = command.parser("compare", about)
    parser.usage = USAGE
    add_measured(parser.add_argument_group("what to measure"))
    add_shown(parser.add_argument_group("how it is shown"))
    add_files(parser.add_argument_group("saved comparisons"))
    arguments.saved(parser)
    return parser


def add_measured(group: Any) -> None:
    arguments.model(group, models.MODELS)
    arguments.batch_sizes(group)
    group.add_argument(
        "--phase",
        default="inference",
        choices=PHASES,
        type=command.one_of("phase", PHASES),
        metavar="PHASE",
        help="inference or training (default: inference)",
    )
    amount = group.add_mutually_exclusive_group()
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
        help="as many images as N steps at the largest batch size",
    )
    group.add_argument(
        "--configs",
        nargs="+",
        default=["default"],
        type=command.one_of("configuration", tuple(CONFIGURATIONS)),
        metavar="C",
        help=f"also under {', '.join(name for name in CONFIGURATIONS if name != DEFAULT)}",
    )
    arguments.experiments(group)
    arguments.cluster(group)
    arguments.without(group, "switch these graph passes off; without remapper, no ops are fused")
    arguments.data_dir(group)


def add_shown(group: Any) -> None:
    group.add_argument(
        "--by",
        default="op",
        choices=row_labels.KEYS,
        type=command.one_of("grouping", row_labels.KEYS),
        metavar="ROW",
        help=f"what a row is: {', '.join(row_labels.KEYS)} (default: op)",
    )
    group.add_argument(
        "--top",
        default=10,
        type=command.count("number of rows"),
        metavar="N",
        help="rows of a table (default: 10)",
    )
    group.add_argument("--full", action="store_true", help="show every table")
    group.add_argument(
        "--plots",
        type=command.folder("folder for plots"),
        metavar="DIR",
        help="draw the tables into a new folder, as PNG and SVG",
    )
    arguments.output_format(group, FORMATS)


def add_files(group: Any) -> None:
    group.add_argument("files", nargs="*", metavar="FILE", help="two files to compare")
    group.add_argument(
        "--save",
        type=command.file("comparison's file"),
        metavar="FILE",
        help="write what --format json prints to a new file",
    )
    group.add_argument(
        "--fail-if-slower",
        type=command.percentage("slowdown", 1_000),
        metavar="PERCENT",
        help="exit 1 if a step of the second is slower by more, 3 if undecided",
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
