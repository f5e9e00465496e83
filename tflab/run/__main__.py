"""Run a program unchanged, and see where its time went, from its first line to its last.

    python -m tflab.run train.py --epochs 3
    python -m tflab.run --lines -m package.training

When the program has ended, tflab says on standard error where the time of the process went, and
which runs of graphs it saw. With --format json it writes an object to standard output.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tflab.cli import arguments, command, environment, temporary, terminal
from tflab.errors import TflabError, UsageError
from tflab.escaping import visible
from tflab.run import launch
from tflab.runtime import machine_load

if TYPE_CHECKING:
    from tflab.records.watched import Watched

FORMATS = ("text", "json")
WHAT, PAGE = "measurement", "page"
# Options that are followed by a value
VALUED = ("--values", "--steps", "--overhead", "--logdir", "--html", "--save", "--format")
THIRD = 3  # the run whose values are shown: after those that build and warm up
NOTHING = (
    "There is nothing for TensorBoard: no session ran, its graph is too large, --overhead is 0, or "
    "a signal ended the program."
)


def main(argv: Sequence[str] | None = None) -> int:
    read: list[argparse.Namespace] = []
    with ExitStack() as outputs:
        status = command.run(lambda: read_arguments(argv, read, outputs))
        return launch.leave(run(read[0], outputs)) if read else status


def parser() -> argparse.ArgumentParser:
    parser = command.parser("run", __doc__)
    parser.usage = "%(prog)s [options] SCRIPT|-m MODULE [its arguments]"
    add = parser.add_argument
    add(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT", help="a Python file and its arguments"
    )
    add("-m", nargs=argparse.REMAINDER, metavar="MODULE", help="a module instead of a file")
    add(
        "--steps",
        default=0,
        type=command.count("number of steps"),
        metavar="N",
        help="interrupt the program after N runs of the same graph and fetches",
    )
    add(
        "--overhead",
        default=5.0,
        type=command.count("overhead in percent", 0, 100),
        metavar="PERCENT",
        help="how much of the program's time tflab may use for watching (default: %(default)g)",
    )
    add(
        "--v1",
        action="store_true",
        help="give the program tensorflow.compat.v1 as tensorflow, and the tutorials' MNIST reader",
    )
    add("--lines", action="store_true", help="show the 15 most expensive lines of the program")
    add(
        "--values",
        nargs="?",
        const=THIRD,
        type=command.count("number of a run"),
        metavar="RUN",
        help="show the values of one run of the group that takes longest, and the origin of NaN "
        "and Inf (without RUN: run %(const)s)",
    )
    add(
        "--logdir",
        metavar="DIR",
        help="write the graph and some steps of the group that takes longest, for TensorBoard",
    )
    add(
        "--html",
        metavar="FILE",
        help="write a page: the program line by line beside the drawing of its graph",
    )
    add("--save", metavar="FILE", help="save the result as JSON")
    arguments.choice(parser, "--format", "format", FORMATS, "on standard error or output: ")
    return parser


def read_arguments(
    argv: Sequence[str] | None, read: list[argparse.Namespace], outputs: ExitStack
) -> int:
    """Read the arguments, and check that the requested outputs can be written."""
    words = numbered(sys.argv[1:] if argv is None else argv)
    args = parser().parse_args(words)
    args.line = shlex.join(("python", "-m", "tflab.run", *words))
    args.program = ["-m", *args.m] if args.m is not None else args.script
    if args.program in ([], ["-m"]):
        option, value = ["", "", *words][-2:]
        taken = f": '{value}' is the value of {option}" if option in VALUED else ""
        raise UsageError(f"There is no program to run{taken}; give the name of a Python file.")
    launch.check(*args.program[:1])
    temporary.process_folder()  # raises an error if there is none
    if args.html:
        environment.require("--html", "igraph")
    from tflab.cli import output_paths

    for name, what in ((args.save, WHAT), (args.html, PAGE)):
        if name:
            output_paths.check(Path(name), what)
    args.place = None
    if args.logdir:
        name = Path(args.program[args.m is not None]).stem
        args.place = outputs.enter_context(output_paths.new_run(args.logdir, name))
    read.append(args)
    return 0


def numbered(argv: Sequence[str]) -> list[str]:
    """Return the arguments, in which `--values` always has the number of a run: argparse would take
    the name of the program for it."""
    words, place = list(argv), 0
    while place < len(words) and words[place].startswith("-") and words[place] != "-m":
        has_number = words[place + 1 : place + 2] and words[place + 1].lstrip("-").isdecimal()
        if words[place] == "--values" and not has_number:
            words[place] = f"--values={THIRD}"
        place += 2 if words[place] in VALUED else 1
    return words


def run(args: argparse.Namespace, outputs: ExitStack) -> int:
    """Run the program and show the results. Returns the exit status of the program."""
    settings = {"OVERHEAD": str(args.overhead), "STEPS": str(args.steps)}
    given = {"V1": args.v1, "VALUES": args.values, "KEEP": args.html or args.save or args.place}
    given["LOGDIR"] = args.place and args.place.work.absolute()
    settings |= {name: str(value) for name, value in given.items() if value}
    with temporary.folder("run") as folder:
        load = machine_load.begin()
        ended, wall_ns = launch.run(args.program, folder, settings, import_rest)
        from tflab.run import program_graph, summary

        segment = summary.read(folder)
        graph, values = program_graph.read(folder)
        os.umask(0o077)  # lines and values of a program may be private
        status = 0 if segment["stopped"] else ended
        seen = summary.watched(args.program, segment, wall_ns, status, graph, values, load())
        shown = command.run(lambda: show(args, seen, outputs))
    return status or shown


def import_rest() -> None:
    """Import what reads and shows the results."""
    from tflab.exporters import json, text  # noqa: F401
    from tflab.run import program_graph, summary, view  # noqa: F401


def show(args: argparse.Namespace, seen: Watched, outputs: ExitStack) -> int:
    """Print and write the requested results."""
    from tflab.cli import output_paths
    from tflab.exporters import json, text
    from tflab.records import watched

    if args.format == "json":
        with command.reader_may_leave():
            print(json.document(**json.plain(seen)))
    else:
        from tflab.run import view

        out = text.console(sys.stderr)
        for block in view.blocks(seen, args.lines):
            text.show_block(out, block)
    if args.save:
        output_paths.write(Path(args.save), watched.as_text(seen).encode(), WHAT)
    if args.html:
        from tflab.report import html
        from tflab.run import page

        output_paths.write(Path(args.html), html.page(page.report(seen, args.line)).encode(), PAGE)
        terminal.say(f"\nThe page is in {visible(args.html)}", sys.stderr)
    if args.place and not args.place.work.is_dir():
        outputs.pop_all()
        raise TflabError(f"The logdir '{args.logdir}' was removed while the program ran.")
    written = args.place and any(args.place.work.iterdir())
    if written:
        from tflab.report import storage
        from tflab.run import page

        kept = args.place.work / watched.FILE
        kept.write_text(watched.as_text(seen), encoding="utf-8")
        nodes = len(seen.graph.nodes) if seen.graph else 0
        if sentence := storage.keep(args.place.work, nodes, lambda: page.life(seen)):
            terminal.say(sentence, sys.stderr)
    outputs.close()  # renames the logdir
    if written:
        line = output_paths.opening_line(args.place.final)
        terminal.say_command("Open it in TensorBoard:", line, sys.stderr)
    elif args.place:
        terminal.say(NOTHING, sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
