"""Notebook: the life of a cell of graph code below the cell.

%load_ext tflab

%%tflab --stage placement
x = tf1.placeholder(tf.float32, [None], name="x")
...
"""

from __future__ import annotations

import argparse
import atexit
import shlex
from typing import Any

from markupsafe import escape

from tflab.errors import TflabError
from tflab.explore import markup, request
from tflab.explore.request import Source
from tflab.explore.worker_pool import WorkerProcess
from tflab.records.options import STAGES
from tflab.report import storage

SWITCHES = ("batch_size", "devices", "xla", "without")  # that a cell may have
CELL = "cell"  # how errors and lines call the program
SECONDS = 60.0  # of a stage: a notebook may wait longer than an editor
STORY = "In short"  # the part that is text beside the frame
FRAME = (
    '<iframe title="The life of the cell" sandbox="allow-scripts" srcdoc="{page}" '
    'style="width: 100%; height: 720px; border: 0"></iframe>'
)


def load_ipython_extension(shell: Any) -> None:
    """Add `%%tflab` to IPython, which calls this for `%load_ext tflab`."""
    shell.register_magic_function(Cells().tflab, "cell", "tflab")


class CellLife:
    """The life of a cell: a drawing in HTML, or else a short text."""

    def __init__(self, life: storage.Life) -> None:
        self.life = life

    def __repr__(self) -> str:
        from tflab.exporters import text

        story = text.as_text(map(storage.read_block, self.life["parts"][STORY]))
        return "\n".join(map(str.rstrip, story.strip("\n").splitlines()))

    def _repr_html_(self) -> str:
        parts = {title: rows for title, rows in self.life["parts"].items() if title != STORY}
        page = markup.page_of(self.life | {"parts": parts})
        return f"<pre>{escape(repr(self))}</pre>{FRAME.format(page=escape(page))}"


def parser() -> argparse.ArgumentParser:
    """Return the parser of a cell's options. Its errors are IPython's, without a traceback."""
    from IPython.core.magic_arguments import MagicArgumentParser

    parser: argparse.ArgumentParser = MagicArgumentParser("%%tflab")
    add = parser.add_argument
    defaults = request.ProgramRequest("")
    add("--stage", choices=STAGES, default=STAGES[-1])
    add("--batch-size", type=int, default=defaults.batch_size)
    add("--devices", type=int, default=defaults.devices)
    add("--xla", action="store_true")
    add("--without", nargs="+", default=[])
    return parser


class Cells:
    """The cells of a notebook. Their programs run in one process, which stays."""

    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        self.number = 0

    def tflab(self, line: str, cell: str) -> object:
        """Show the life of this cell, a program of graph code: lines that build nodes.

        `tf`, `tf1` and `np` are there; the tensor `loss` is differentiated. Options: --stage STAGE
        (the last one to show), --batch-size N, --devices N, --xla, --without PASS ...
        """
        from IPython.core.error import UsageError as NoTraceback

        try:
            return self.life(parser().parse_args(shlex.split(line)), cell)
        except TflabError as error:
            raise NoTraceback(str(error)) from None

    def life(self, given: argparse.Namespace, cell: str) -> CellLife:
        """Return the life of a cell. Raises TflabError for what the cell does wrong."""
        switches = {name: value for name, value in vars(given).items() if name in SWITCHES}
        # The line of the magic is the first of the cell
        wanted = request.read({"text": f"\n{cell}", **switches})
        if self.process is None:
            self.process = WorkerProcess(Source(CELL), SECONDS)
            atexit.register(self.process.close)
        self.number += 1
        life: storage.Life = {}
        for message in self.process.life(CELL, self.number, wanted):
            if "printed" in message:
                print(message["printed"], end="")
            if error := message.get("error"):
                where = f"Line {error['line']}: " if error["line"] else ""
                raise TflabError(f"{where}{error['message']}")
            if "stage" in message:
                life = message
            # What comes after the last stage has the values of a step
            if given.stage != STAGES[-1] and message.get("stage") == given.stage:
                break
        return CellLife(life)
