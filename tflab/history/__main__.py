"""The same thing over time: a line for the step and each op, from kept measurements.

    python -m tflab.history monday.json.gz tuesday.json.gz friday.json.gz --plot history.svg

The files are what `python -m tflab.compare --save FILE` wrote; they are put in the order in which
they were measured. Each time is that of several processes, with its 99 % interval.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tflab.cli import arguments, command, new_files
from tflab.errors import UsageError
from tflab.records import OverTime

FORMATS = ("text", "json", "markdown")
PICTURES = (".png", ".svg")
PICTURE = "picture"


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("history", __doc__)
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="measurements that compare --save kept")
    add(
        "--batch-sizes",
        nargs="+",
        default=[],
        type=command.count("batch size", several=True),
        metavar="N",
        help="only these (default: all that every file has)",
    )
    add(
        "--top",
        default=5,
        type=command.count("number of ops"),
        metavar="N",
        help="ops that have a line, those that cost most (default: %(default)s)",
    )
    add("--plot", type=picture, metavar="FILE", help="draw it into a new file, .svg or .png")
    add("--other-graph", action="store_true", help="also where the model's graph is another")
    arguments.output_format(parser, FORMATS)
    return parser


def picture(text: str) -> str:
    """An argparse type: the name of a picture."""
    if Path(text).suffix not in PICTURES:
        raise UsageError(f"The picture '{text}' has to end in {' or '.join(PICTURES)}.")
    return text


def run(args: argparse.Namespace) -> int:
    from tflab.compare import kept
    from tflab.history import lines

    if args.plot:
        new_files.check(Path(args.plot), PICTURE)
    found = lines.over_time(kept.read_all(args.files), args.batch_sizes, args.top, args.other_graph)
    show(found, args.format)
    if args.plot:
        draw(found, Path(args.plot))
        stream = sys.stdout if args.format == "text" else sys.stderr
        print(f"\nThe picture is in {args.plot}", file=stream)
    return 0


def show(found: OverTime, form: str) -> None:
    from tflab.cli import environment
    from tflab.exporters import json, markdown, text
    from tflab.history import view

    blocks = view.blocks(found)
    if form == "json":
        print(json.document(**json.plain(found)))
    elif form == "markdown":
        title = f"{found.contrast.model} over time"
        print(markdown.page(title, environment.describe(), blocks))
    else:
        out = text.console()
        for block in blocks:
            text.show_block(out, block)


def draw(found: OverTime, path: Path) -> None:
    from tflab.exporters import plots

    plots.save(plots.over_time.draw(found), path.with_suffix(""), (path.suffix.lstrip("."),))


if __name__ == "__main__":
    sys.exit(main())
