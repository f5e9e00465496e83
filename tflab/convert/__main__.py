"""Convert traces that any TensorFlow program recorded. A RunMetadata file is one step; in an event
file of TensorBoard, each tag with RunMetadata is one step.

    python -m tflab.convert run_metadata.pb
    python -m tflab.convert run_metadata.pb --to chrome --out trace.json

Files may be from a CPU or a GPU, and from any version of TensorFlow since 2016.
Text, JSON and CSV go to standard output unless --out names a file. For --to xspace, --out is a
logdir of TensorBoard.
A Chrome trace opens in ui.perfetto.dev and chrome://tracing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tflab.cli import arguments, command, interrupts, output_paths, terminal
from tflab.errors import UsageError
from tflab.escaping import visible
from tflab.units import plural

if TYPE_CHECKING:
    from tflab.convert.read import Recording

DAY_NS = 24 * 3600 * 10**9
LONGEST_NS = 2**53  # 104 days; the picoseconds of an XSpace end at 106


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("convert", __doc__)
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="RUN_METADATA",
        help="files of RunMetadata, or event files; the steps keep this order",
    )
    add(
        "--graph",
        metavar="GRAPH",
        help="a file with the graph that ran, needed for the critical path (default: the "
        "partition graphs in the traces)",
    )
    arguments.choice(parser, "--to", "format", FORMATS, "what to write: ")
    add("--out", metavar="PATH", help="where to write it; existing files are never overwritten")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.to == "xspace":
        from tflab.exporters import xspace

        if not args.out:
            raise UsageError("An xspace goes into a logdir of TensorBoard; name one with --out.")
        with output_paths.new(Path(args.out), "folder", folder=True) as place:
            xspace.write(place.work, [recorded(args).capture()])
        terminal.say_command("Open it in TensorBoard:", output_paths.opening_line(place.final))
        return 0
    if not args.out:
        write(args.to, sys.stdout, recorded(args))
        return 0
    with (
        output_paths.new(Path(args.out), "file") as place,
        place.work.open("w", encoding="utf-8", newline="") as stream,
    ):
        write(args.to, stream, recorded(args))
    terminal.say(visible(args.out))
    return 0


def recorded(args: argparse.Namespace) -> Recording:
    from tflab.convert import read

    recorded = read.read(args.files, args.graph)
    for note in recorded.notes:
        terminal.say(f"tflab: {visible(note)}", sys.stderr)
    starts = [step.start_ns for step in recorded.steps]
    apart = max(starts) - min(starts)
    if args.to in ("xspace", "chrome") and apart > LONGEST_NS:
        raise UsageError(
            f"The steps are {plural(apart // DAY_NS, 'day')} apart, too far for one time axis. "
            "Convert them one by one."
        )
    return recorded


def write(to: str, stream: TextIO, recorded: Recording) -> None:
    from tflab.convert import conversion
    from tflab.exporters import chrome_trace, text

    with interrupts.held():  # half a JSON document is useless
        if to == "csv":
            conversion.write_csv(stream, recorded)
        elif to == "chrome":
            chrome_trace.write(stream, [recorded.capture()])
        elif to == "json":
            conversion.write_json(stream, conversion.convert(recorded))
        else:
            text.show_blocks([*conversion.blocks(conversion.convert(recorded))], stream)


FORMATS = ("text", "json", "csv", "xspace", "chrome")


if __name__ == "__main__":
    sys.exit(main())
