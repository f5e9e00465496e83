"""Watched: runs graphs at random in the current folder, each to its end or to its refusal.

    python -m tools.fuzz.watched SEED FIRST LAST [--wall FOLDER]

With --wall the kernel confines this process first: it writes to that folder alone, and reads what
Python and TensorFlow are made of.

Whoever watches this process from outside sees a path that begins with MARK before each graph. One
line is printed for each: its number, its op, where the op stands, and how far it came.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tflab.runtime import tf_import

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
tf_import.load()  # leaves out Keras, which no graph needs


from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tflab.cli import confined, landlock
from tflab.errors import TflabError
from tflab.lifecycle import frontend
from tflab.models import graph_file, saved
from tflab.records.options import Options, Saved
from tflab.runtime import session
from tools.fuzz.random_graphs import Maker

MARK = "/watched-graph-"
TRACEBACK = "ended in"
REFUSED, BLOCKED, RAN = "refused by the runtime", "not imported", "ran"
SECONDS = 2  # of one step; what waits for ever is given up


def main(seed: int, first: int, last: int, folder: Path) -> None:
    session.TIME_LIMIT_S = SECONDS
    # Only through a checkpoint is a MetaGraphDef restored
    (folder / "graph.index").touch()
    maker = Maker(seed)
    for number in range(first, last):
        op, place, meta = maker.graph(number)
        path = folder / "graph.meta"
        content = meta
        if place == "main op":
            content = SavedModel()
            content.meta_graphs.append(meta)
            path = folder / "saved_model.pb"
        path.write_bytes(content.SerializeToString())
        print(number, op, place, end=" | ", flush=True)
        os.path.exists(f"{MARK}{number}")
        print(outcome(path), flush=True)
        path.unlink()
    os.path.exists(f"{MARK}end")


def confine(folder: str) -> None:
    """Let this process write to a folder alone, and reach no network."""
    readable = (*confined.SYSTEM, *confined.installed(), "/proc/self/cmdline", folder)
    landlock.confine(readable, [folder, "/dev/null"])


def outcome(path: Path) -> str:
    """How far a graph came on the way of any graph from a file."""

    def build() -> Any:
        return saved.build(graph_file.read(path), Saved(trust=True))

    try:
        stage = frontend.build((str(path), build), Options())
        if stage.program is None:
            return BLOCKED
        step = session.step_of(stage.program, ("out:0",))
        start = session.start_of(stage.program)
        # Grappler would leave out what nobody takes the outputs of
        options = Options(without=("grappler",))
        with session.opened(stage.program.graph, options, start) as live:
            step.callable(live)()
    except TflabError:
        return REFUSED
    except Exception as error:  # that is not how tflab says what is wrong
        return f"{TRACEBACK} {type(error).__name__}: {str(error).splitlines()[0]}"
    return RAN


if __name__ == "__main__":
    wall = sys.argv[sys.argv.index("--wall") + 1] if "--wall" in sys.argv else ""
    if wall:
        confine(wall)
    main(*map(int, sys.argv[1:4]), folder=Path(wall or "."))
    # Threads of ops that wait for ever would keep the process from its end
    sys.stdout.flush()
    os._exit(0)
