"""Storage: a life as plain data, for pages and other processes, and in the logdir of its run, for
TensorBoard's tab.

The file is gzip-compressed JSON. It may come from a stranger, so every text is escaped.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

from tflab.cli import environment
from tflab.errors import TflabError
from tflab.records.blocks import Block, Column, Table
from tflab.records.stages import NodeHistory
from tflab.report import html, viewer_data
from tflab.report.contents import DrawnGraph

PLACE = ("plugins", "life")
NAME = "life.json.gz"
KIND, FORMAT = "tflab life", 4
MOST_NODES = 20_000  # limit for a graph; the page of 15,000 opens in two seconds
SEARCH_S = 2.0  # in a logdir
HOLDS = {"stage": str, "graph": dict, "parts": dict, "nodes": dict}
UNSHOWN = "The file of this run cannot be shown: "

Life = dict[str, Any]


def life(stage: str, graph: DrawnGraph, parts: Iterable[tuple[str, Iterable[Block]]]) -> Life:
    """Return a graph up to a stage: its drawing, its blocks by title, and data for comparisons."""
    made: Life = html.readable(
        {
            "stage": stage,
            "graph": viewer_data.graph_data(graph),
            "parts": {title: list(map(block, blocks)) for title, blocks in parts},
            "nodes": {name: signature(history) for name, history in graph.histories.items()},
        }
    )
    return made


def signature(history: NodeHistory) -> list[str]:
    """Return what is compared with the previous life: the kind; then op, inputs and outputs."""
    inputs = (*history.inputs, *(f"^{name}" for name in history.control_inputs))
    outputs = [f"{out.dtype} {list(out.shape or ())}" for out in history.outputs]
    return [history.kind, f"{history.op}({', '.join(inputs)}) -> {', '.join(outputs)}"]


def block(part: Block) -> object:
    """Return a block as data, from which `read_block` makes it again."""
    if isinstance(part, Table):
        columns = [[column.header, column.right] for column in part.columns]
        rows = [list(cells) for cells in part.cells()]
        return {"table": part.title, "columns": columns, "rows": rows, "more": part.more}
    return part


def read_block(part: Any) -> Block:
    """Return a block from the data of `block`. Raises KeyError, TypeError, ... for wrong data."""
    if isinstance(part, str):
        return part
    columns = tuple(
        Column(str(header), itemgetter(place), right=bool(right))
        for place, (header, right) in enumerate(part["columns"])
    )
    rows = tuple(tuple(map(str, cells)) for cells in part["rows"])
    return Table(str(part["table"]), columns, rows, more=int(part["more"]))


# In the logdir of its run


def keep(folder: Path, nodes: int, life: Callable[[], Life | None]) -> str:
    """Write the life of a run with this many nodes. Return a sentence if that fails, else ""."""
    try:
        environment.require("TensorBoard's tab Life", "igraph")
        if nodes > MOST_NODES:
            raise TflabError(
                f"TensorBoard's Life does not show this graph: it has {nodes:,} nodes; the limit "
                f"is {MOST_NODES:,}."
            )
        if made := life():
            write(folder, made)
    except TflabError as error:
        return str(error)
    return ""


def write(folder: Path, life: Life) -> None:
    """Write a life to the folder of its run."""
    content = {"kind": KIND, "format": FORMAT, **life}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    place = folder.joinpath(*PLACE)
    place.mkdir(parents=True)
    (place / NAME).write_bytes(gzip.compress(text, mtime=0))


def read(path: Path) -> Life:
    """Return the life in a file. Raises TflabError with a sentence for the tab if there is none."""
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise TflabError(f"{UNSHOWN}it has no graph that tflab wrote.")
        if content.get("format") != FORMAT:
            raise TflabError("Another version of tflab wrote this run. Write it again to see it.")
        if not all(isinstance(content.get(name), kind) for name, kind in HOLDS.items()):
            raise TflabError(f"{UNSHOWN}parts of it are missing.")
        life: Life = html.readable({name: content[name] for name in HOLDS})
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise TflabError(f"{UNSHOWN}it cannot be read or unpacked.") from error
    return life


def runs(logdir: str | Path) -> dict[str, Path]:
    """Return the runs below a logdir that have a life: the name of each, and its file. Links to
    folders are not followed, and in a huge or slow logdir the search ends early."""
    end = time.monotonic() + SEARCH_S
    folders = takewhile(lambda _: time.monotonic() < end, os.walk(logdir))
    paths = (Path(folder, NAME) for folder, _, names in folders if NAME in names)
    lives = [path for path in paths if path.parts[-3:-1] == PLACE and path.is_file()]
    return dict(sorted((os.path.relpath(path.parents[2], logdir), path) for path in lives))
