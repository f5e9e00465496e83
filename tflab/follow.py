"""Follow one node through every stage: from the line that made it to the time that it took.

    python -m tflab.follow conv1/Conv2D --model lenet

A node that was fused into another lives on in that one: its device, its kernel and its times are
shown, and whose work it does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tflab import command, dumps, environment, models
from tflab.records import Life, Options

BATCH_SIZES = [1, 16, 64]
FORMATS = ("text", "json", "markdown")
NAMED = 3  # stages after which every name is known


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    defaults = Options()
    parser = command.Parser(
        prog="python -m tflab.follow",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("node", metavar="NODE", help="the name of a node, such as conv1/Conv2D")
    add(
        "--model",
        default="toy",
        metavar="M",
        help=f"{', '.join(models.MODELS)}, or package.module:function (default: toy)",
    )
    add(
        "--batch-size",
        default=defaults.batch_size,
        type=command.count("batch size"),
        metavar="N",
        help="rows of data in a step (default: %(default)s)",
    )
    add(
        "--batch-sizes",
        nargs="+",
        default=BATCH_SIZES,
        type=command.count("batch size"),
        metavar="N",
        help="for which its times are measured (default: 1 16 64)",
    )
    add(
        "--devices",
        default=defaults.devices,
        type=command.count("number of devices", most=64),
        metavar="N",
        help="split the model over N CPU devices (default: %(default)s)",
    )
    add("--xla", action="store_true", help="let XLA compile what it can, and show the code")
    add(
        "--format",
        default="text",
        choices=FORMATS,
        type=command.one_of("format", FORMATS),
        help="default: text",
    )
    add(
        "--data-dir",
        type=command.folder("data folder"),
        metavar="DIR",
        help="folder with the data set's files (default: $TFLAB_DATA_DIR, else a cache)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    options = Options(
        batch_size=args.batch_size, devices=args.devices, xla=args.xla, data_dir=args.data_dir
    )
    dumps.prepare()  # before the model imports TensorFlow
    models.find(args.model)
    from tflab import following, life, lifecycle

    stages = []
    for stage in lifecycle.walk(args.model, options):
        stages.append(stage)
        if len(stages) == NAMED:
            life.of(args.node, life.lives(stages))  # a wrong name is told before steps are run
    found = life.of(args.node, following.follow(stages, sorted(set(args.batch_sizes)), options))
    show(found, args)
    return 0


def show(found: Life, args: argparse.Namespace) -> None:
    from tflab.exporters import data, markdown, text
    from tflab.story import life as story

    about = environment.describe()
    if args.format == "json":
        whole = {"model": args.model, "environment": about, "life": data.plain(found)}
        print(json.dumps(whole, indent=1))
    elif args.format == "markdown":
        blocks = story.tell(found, args.batch_size)
        print(markdown.page(f"{args.node} of {args.model}", about, blocks), end="")
    else:
        out = text.console()
        for block in story.tell(found, args.batch_size):
            text.show_block(out, block)


if __name__ == "__main__":
    sys.exit(main())
