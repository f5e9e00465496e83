"""A local page: change the program on the left, and see all four stages move on the right.

    python -m tflab.explore
    python -m tflab.explore FILE.py

A program is plain graph code: lines that build nodes. The tensor named `loss`, or else the last
scalar, is differentiated; `feeds = {x: values}` says what is fed. The page runs the program with
your rights, so only this machine can reach it, and only at the address that is printed here. With
FILE.py, the page follows the file. Ctrl-C ends the page.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tflab import models
from tflab.cli import command, environment, terminal
from tflab.errors import UsageError
from tflab.escaping import visible

if TYPE_CHECKING:
    from tflab.explore.markup import FirstContent
    from tflab.explore.request import Source

MOST_PORT = 65535
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # with one of them set, a browser can open


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("explore", __doc__)
    add = parser.add_argument
    add(
        "file",
        nargs="?",
        metavar="FILE.py",
        help="program to show; the page follows the changes of the file",
    )
    add(
        "--model",
        metavar="M",
        help=f"show the file of a model instead: {', '.join(models.MODELS)}, or "
        "package.module:function",
    )
    add(
        "--port",
        default=0,
        type=command.count("port", 0, MOST_PORT),
        metavar="N",
        help="port to listen on (default: any free port)",
    )
    add("--no-browser", action="store_true", help="only print the address")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.file and args.model:
        raise UsageError("A page shows one program: give FILE.py or --model, not both.")
    environment.require("The live page", "igraph")
    from tflab.explore import server, worker_pool

    path = Path(args.file) if args.file else None
    start, source = opening(path, args.model)
    with (
        server.listening(args.port) as listener,
        closing(worker_pool.WorkerProcess(source)) as process,
    ):
        app = server.App(process, start, path, listener.getsockname()[1])
        answering = server.served(app, listener)
        terminal.say("Only this machine can open the page; Ctrl-C ends it:")
        print(f"  {app.address}", flush=True)  # never folded
        screen = sys.platform != "linux" or any(map(os.environ.get, SCREENS))
        if not args.no_browser and not (screen and webbrowser.open(app.address)):
            terminal.say("No browser can be opened here: open the address yourself.", sys.stderr)
        try:
            answering.serve_forever()
        finally:
            answering.server_close()
    print("\ntflab: the server of the page has stopped.", file=sys.stderr)
    return command.INTERRUPTED


def opening(path: Path | None, model: str | None) -> tuple[FirstContent, Source]:
    """Return the first program of the page, and where it comes from."""
    from tflab.explore import markup, request
    from tflab.explore.request import Source

    if path:
        if path.suffix != ".py":
            raise UsageError(f"'{path}' is not a Python file; give one whose name ends with .py.")
        text = request.text_of(path)
        first = markup.FirstContent(path.name, text, request.mark(text))
        return first, Source(path.name, str(path.resolve().parent))
    if model:
        file, function = source_of(model)
        first = markup.FirstContent(file.name, request.text_of(file))
        return first, Source(file.name, function=function)
    return markup.FirstContent("program.py", request.TOY), Source("program.py")


def source_of(model: str) -> tuple[Path, str]:
    """Return the file of a model, and its function. No code of the file is run."""
    name = models.MODELS.get(model, model)
    module, _, function = name.partition(":")
    if not function or models.is_file(model):
        raise UsageError(
            f"'{visible(model)}' has no lines to show. Choose from {', '.join(models.MODELS)}, or "
            "give package.module:function; `python -m tflab.lifecycle` takes saved graphs."
        )
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise UsageError(f"There is no module '{visible(module)}' whose file could be shown.")
    return Path(spec.origin), function


if __name__ == "__main__":
    sys.exit(main())
