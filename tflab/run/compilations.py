"""Compilations: what XLA compiled in the runs of a program, by the dumps that it writes.

A dump begins when TensorFlow has handed the code over, so a compilation took a little longer than
its dump says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tflab.run.sampler import Line, place

FLAGS = "XLA_FLAGS"  # read by XLA when it first compiles
LEAST_NS = 10_000_000  # a call that took less compiled nothing
MOST = 1_000  # combinations of shapes that are kept
# The files and the head of a module; xla/service/dump.cc, TensorFlow 2.21.0
MODULE = re.compile(r"(module_\d+\.)(.+?)(?:__.*)?\.\d+\.before_optimizations\.txt")
INPUTS = re.compile(r"entry_computation_layout=\{\((.*?)\)->")
SHAPE = re.compile(r"\w+\[[\d,]*\]")
HEAD = 100_000  # bytes of a module that name its inputs


class Compilations:
    """The compilations so far, by the line of the call in which they happened."""

    def __init__(self, folder: str, wanted: bool = True) -> None:
        self.folder = Path(folder, "xla")
        # By function and line, the fields of `Compiled`
        self.made: dict[tuple[str, Line | None], dict[str, Any]] = {}
        self.given = os.environ.get(FLAGS)
        # Dumps that the user of the program requested are left alone.
        self.wanted = wanted and "xla_dump_to" not in (self.given or "")
        if self.wanted:
            self.folder.mkdir()
            os.putenv(FLAGS, f'{self.given or ""} --xla_dump_to="{self.folder}"'.strip())

    def look(self, line: Line | None) -> None:
        """Take in what was compiled since the last look, in a call of this line."""
        if self.wanted and (files := {path.name: path for path in self.folder.iterdir()}):
            for name, shapes, ns in modules(files):
                new = {"name": name, "place": place(*line) if line else "", "shapes": ()}
                made = self.made.setdefault((name, line), {**new, "compilations": 0, "ns": 0})
                made["compilations"] += 1
                made["ns"] += ns
                made["shapes"] = (*dict.fromkeys((*made["shapes"], shapes)),)[:MOST]
            for path in files.values():
                path.unlink(missing_ok=True)
            # XLA has read the flags: no process that the program starts shall write dumps
            os.putenv(FLAGS, self.given) if self.given else os.unsetenv(FLAGS)


def modules(files: dict[str, Path]) -> Iterator[tuple[str, str, int]]:
    """Yield function, shapes of the inputs, and the ns from the first file to the last."""
    for match in filter(None, map(MODULE.fullmatch, files)):
        with files[match[0]].open(encoding="utf-8", errors="replace") as file:
            inputs = INPUTS.search(file.read(HEAD))
        own = (path for name, path in files.items() if name.startswith(match[1]))
        written = [path.stat().st_mtime_ns for path in own]
        shapes = ", ".join(SHAPE.findall(inputs[1])) if inputs else ""
        name = re.sub(r"^a_inference_(.+)_\d+$", r"\1", match[2])  # `a_inference_step_12` is `step`
        yield name, shapes, max(written) - min(written)
