"""Compare what the ops of a step cost at several batch sizes, and under several configurations.

    python -m tflab.compare --model lenet --batch-sizes 1 16 64

Inference runs over all test images (or --images N), training over the training images. Every
batch size works on the same images, traced and untraced in turn, warm.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tflab import models
from tflab.analysis import row_labels
from tflab.cli import arguments, command, environment, logdirs
from tflab.compare.configurations import CONFIGURATIONS
from tflab.errors import RefusedError, UsageError
from tflab.records import Comparison, Options, Saved
from tflab.records.options import SPLITS
from tflab.runtime import dumps, quiet

PHASES = ("inference", "training")
FORMATS = ("text", "json", "csv", "markdown")
THRESHOLD_PERCENT = 5.0
SCALING_STEPS = 20  # at each number of tasks


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("compare", __doc__)
    add = parser.add_argument
    arguments.model(parser, models.MODELS, "lenet")
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
        help="as many images as N steps of the largest batch take",
    )
    add(
        "--trace-every",
        default=1,
        type=command.count("distance between traced steps"),
        metavar="N",
        help="trace one step in N, which takes less time (default: 1, every step)",
    )
    add(
        "--by",
        default="op",
        choices=row_labels.KEYS,
        type=command.one_of("grouping", row_labels.KEYS),
        help="a row for each op type that ran, node, layer or source line (default: op)",
    )
    add(
        "--top",
        default=10,
        type=command.count("number of rows"),
        metavar="N",
        help="rows shown as text (default: 10)",
    )
    add(
        "--configs",
        nargs="+",
        default=["default"],
        type=command.one_of("configuration", tuple(CONFIGURATIONS)),
        metavar="C",
        help=f"compare the untraced step under: {', '.join(CONFIGURATIONS)}",
    )
    arguments.experiments(parser)
    add(
        "--plots",
        type=command.folder("folder for plots"),
        metavar="DIR",
        help="draw the tables, as PNG and SVG, into a folder that is not there yet; several "
        "batch sizes also against one another",
    )
    add(
        "--threshold",
        default=THRESHOLD_PERCENT,
        type=percentage,
        metavar="PERCENT",
        help="in the plot of --by layer, bars are red whose share of the time of all ops is above "
        "it (default: %(default)s)",
    )
    add(
        "--cluster",
        nargs="+",
        default=(),
        type=arguments.tasks,
        metavar="TASKS",
        help="instead: the same step on 1, 2 and 4 tasks, say, new processes on this machine or "
        "HOST:PORT,HOST:PORT, at the largest batch size (for --steps N steps, by default 20)",
    )
    arguments.way_to_split(parser)
    arguments.without(parser, "switch graph passes off: without remapper no layer is fused")
    arguments.output_format(parser, FORMATS)
    arguments.data_dir(parser)
    arguments.saved(parser)
    return parser


def percentage(text: str) -> float:
    """An argparse type: a share in percent."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise UsageError(f"The threshold is '{text}'; it has to be a percentage from 0 to 100.")
    return share


def run(args: argparse.Namespace) -> int:
    sizes = sorted(args.batch_sizes)
    if len(set(sizes)) < len(sizes):
        raise UsageError(f"The batch sizes {sizes} hold one twice; give each once.")
    dumps.prepare()  # before the model imports TensorFlow
    saved = arguments.saved_of(args)
    models.find(args.model, saved)
    arguments.check_cluster(args)
    if args.cluster:
        return scale(args, sizes[-1], saved)
    with plots_of(args) as folder:
        comparison = measured(args, sizes, saved)
        show(comparison, args)
        if folder:
            draw(comparison, folder, args.threshold / 100)
    if args.plots:
        stream = sys.stdout if args.format == "text" else sys.stderr
        print(f"\nThe plots are in {args.plots}", file=stream)
    if comparison.failure:
        raise RefusedError(comparison.failure)
    return command.INTERRUPTED if comparison.interrupted else 0


def plots_of(args: argparse.Namespace) -> AbstractContextManager[Path | None]:
    """The folder for the plots, made before anything is measured."""
    if not args.plots:
        return nullcontext()
    if not logdirs.takable(Path(args.plots)):
        raise UsageError(
            f"There is something in '{args.plots}' already; give --plots a new folder."
        )
    return logdirs.new_folder(Path(args.plots), "--plots")


def measured(args: argparse.Namespace, sizes: Sequence[int], saved: Saved) -> Comparison:
    from tflab.compare import comparison

    return comparison.compare(
        args.model,
        tuple(sizes),
        phase=args.phase,
        by=args.by,
        images=args.images or (args.steps and args.steps * sizes[-1]),
        trace_every=args.trace_every,
        configs=tuple(dict.fromkeys(["default", *args.configs])),
        options=Options(
            data_dir=args.data_dir,
            saved=saved,
            without=tuple(args.without),
            experiments=args.experiments or 0,
        ),
    )


def scale(args: argparse.Namespace, batch_size: int, saved: Saved) -> int:
    """Compare numbers of tasks in place of batch sizes."""
    if args.plots or args.format == "csv" or args.configs != ["default"]:
        raise UsageError(
            "--cluster compares numbers of tasks, as text, JSON or Markdown; leave out --plots, "
            "--configs and --format csv."
        )
    quiet.load()
    from tflab.compare import scaling, scaling_view
    from tflab.exporters import json, markdown, text

    options = Options(
        batch_size=batch_size,
        steps=args.steps or SCALING_STEPS,
        data_dir=args.data_dir,
        saved=saved,
        without=tuple(args.without),
        split=args.split or SPLITS[0],
    )
    result = scaling.compare(args.model, args.phase, args.cluster, options)
    about = environment.describe()
    if args.format == "json":
        print(json.document(environment=about, **json.plain(result)))
    elif args.format == "markdown":
        title = f"{args.model} by number of tasks"
        print(markdown.page(title, about, scaling_view.blocks(result)))
    else:
        out = text.console()
        for block in scaling_view.blocks(result):
            text.show_block(out, block)
    if result.failure:
        raise RefusedError(result.failure)
    return 0


def draw(comparison: Comparison, folder: Path, threshold: float) -> None:
    """Each batch size by itself, and all of them, if there are several, beside one another."""
    from tflab.exporters import plots

    peaks = comparison.peaks
    for size, rows in comparison.tables.items():
        if comparison.by == "layer":
            bars = plots.layers.draw(rows, threshold, comparison.quality)
            plots.save(bars, folder / f"batch-{size}-layers")
        else:
            plots.save(plots.top_ops.draw(rows), folder / f"batch-{size}-top_ops")
        if peaks:
            plots.save(plots.roofline.draw(rows, peaks), folder / f"batch-{size}-roofline")
    if len(comparison.tables) > 1:
        plots.save(plots.batch_sizes.draw(comparison), folder / "batch_sizes")


def show(comparison: Comparison, args: argparse.Namespace) -> None:
    from tflab.compare import view
    from tflab.exporters import csv, json, markdown, text

    about = environment.describe()
    if args.format == "json":
        print(json.comparison(comparison, about))
    elif args.format == "csv":
        print(csv.comparison(comparison), end="")
    elif args.format == "markdown":
        blocks = view.blocks(comparison, args.top)
        print(markdown.page(f"{args.model} by batch size", about, blocks))
    else:
        out = text.console()
        for block in view.blocks(comparison, args.top):
            text.show_block(out, block)


if __name__ == "__main__":
    sys.exit(main())
