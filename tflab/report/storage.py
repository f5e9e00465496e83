"""Storage: a life as plain data, for pages and other processes, and in the logdir of its run, for
TensorBoard's tab.

The file is gzip-compressed JSON of bounded size. It may come from a stranger, so its content is
checked, and every text is escaped.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable
from itertools import islice, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

from tflab.cli import environment
from tflab.errors import TflabError, reason
from tflab.follow import view
from tflab.records.blocks import Block, Column, Table
from tflab.records.placed import Fate
from tflab.records.stages import NodeHistory
from tflab.report import html, viewer_data
from tflab.report.contents import DrawnGraph

PLACE = ("plugins", "life")
NAME = "life.json.gz"
KIND, FORMAT = "tflab life", 4
MOST_NODES = 20_000  # limit for a graph; the page of 15,000 opens in two seconds
MOST_BYTES = 2**23  # of a file
MOST_TEXT = 2**26  # of its JSON
LEVEL = 6  # of compression: the highest takes twice as long, for a tenth fewer bytes
MOST_STATES = 1_000
MOST_FOLDERS, SEARCH_S = 20_000, 2.0  # of a logdir that are searched, and for how long
HOLDS = {"stage": str, "graph": dict, "parts": dict, "nodes": dict}
DAMAGED = "The file of this run is damaged: "

Life = dict[str, Any]


def life(stage: str, graph: DrawnGraph, parts: Iterable[tuple[str, Iterable[Block]]]) -> Life:
    """Return a graph up to a stage: its drawing, its blocks by title, and data for comparisons."""
    message = {
        "stage": stage,
        "graph": viewer_data.graph_data(graph),
        "parts": {title: list(map(block, blocks)) for title, blocks in parts},
        "nodes": {name: signature(history) for name, history in graph.histories.items()},
    }
    readable: Life = html.readable(message)
    return readable


def signature(history: NodeHistory) -> list[str | None]:
    """Return the properties of a node to compare with the previous life: its kind; its op, inputs
    and outputs; its fate."""
    inputs = (*history.inputs, *(f"^{name}" for name in history.control_inputs))
    outputs = [f"{out.dtype} {list(out.shape or ())}" for out in history.outputs]
    signed = f"{history.op}({', '.join(inputs)}) -> {', '.join(outputs)}"
    return [history.kind, signed, with_heir(history.fate) if history.fate else None]


def with_heir(fate: Fate) -> str:
    """Return `merged with Const`: the fate, and the node that took over, if it is another one."""
    if fate.into in (None, fate.name):
        return fate.fate
    return f"{fate.fate} {view.PREPOSITIONS[fate.fate]} {fate.into}"


def block(part: Block) -> object:
    """Return a block as data, from which `read_block` makes it again."""
    if isinstance(part, Table):
        columns = [[column.header, column.right] for column in part.columns]
        rows = [list(cells) for cells in part.cells()]
        return {"table": part.title, "columns": columns, "rows": rows, "more": part.more}
    return part


def read_block(part: Any) -> Block:
    """Return a block from the data of `block`. Raises the usual exceptions for wrong types."""
    if isinstance(part, str):
        return part
    columns = tuple(
        Column(str(header), itemgetter(place), right=bool(right))
        for place, (header, right) in enumerate(part["columns"])
    )
    rows = tuple(map(texts, part["rows"]))
    return Table(str(part["table"]), columns, rows, more=int(part["more"]))


def texts(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(str, values))


# In the logdir of its run


def keep(folder: Path, nodes: int, life: Callable[[], Life | None]) -> str:
    """Write the life of a run with this many nodes, if it has one; return a sentence if that is not
    possible."""
    try:
        environment.require("TensorBoard's tab Life", "igraph")
        if nodes > MOST_NODES:
            raise too_large(f"it has {nodes:,} nodes; the limit is {MOST_NODES:,}")
        if made := life():
            write(folder, made)
    except TflabError as error:
        return str(error)
    return ""


def write(folder: Path, life: Life) -> None:
    """Write a life to the folder of its run. Raises TflabError if it is too large."""
    content = {"kind": KIND, "format": FORMAT, **life}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    packed = gzip.compress(text, LEVEL, mtime=0)
    if len(text) > MOST_TEXT or len(packed) > MOST_BYTES:
        raise too_large("its data are too large")
    place = folder.joinpath(*PLACE)
    place.mkdir(parents=True)
    (place / NAME).write_bytes(packed)


def too_large(why: str) -> TflabError:
    return TflabError(f"TensorBoard's Life does not show this graph: {why}.")


def read(path: Path) -> Life:
    """Return the life in a file. Raises TflabError with a sentence for the tab if there is none."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise TflabError(f"The file of this run cannot be read: {reason(error)}.") from error
    unzip = zlib.decompressobj(wbits=31)
    try:
        text = unzip.decompress(packed, MOST_TEXT)
        content = json.loads(text) if unzip.eof else None
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise TflabError(f"{DAMAGED}it has no graph that tflab wrote.")
        if content.get("format") != FORMAT:
            raise TflabError("Another version of tflab wrote this run. Write it again to see it.")
        if not all(isinstance(content.get(name), kind) for name, kind in HOLDS.items()):
            raise TflabError(f"{DAMAGED}parts of it are missing.")
        life: Life = html.readable({name: content[name] for name in HOLDS})
        check(life["graph"])
    except (zlib.error, LookupError, TypeError, ValueError, RecursionError) as error:
        raise TflabError(f"{DAMAGED}its drawing makes no sense.") from error
    return life


def check(graph: Life) -> None:
    """Refuse a drawing that would keep a browser busy forever: each box lies in at most one box,
    which comes before it. Raises ValueError or the usual exceptions for wrong types."""
    boxes = graph["boxes"]
    parents = [box["parent"] for box in boxes]
    inner = [
        (number, entry)
        for number, box in enumerate(boxes)
        for row in box["rows"]
        for entry in row
        if isinstance(entry, int)
    ]
    right = (
        len(graph["nodes"]) <= MOST_NODES
        and len(boxes) <= 3 * MOST_NODES
        and 0 < len(graph["states"]) <= MOST_STATES
        and all(p is None or 0 <= p < number for number, p in enumerate(parents))
        and all(parents[entry] == number for number, entry in inner)
        and len({entry for _, entry in inner}) == len(inner)
    )
    if not right:
        raise ValueError("boxes are not in boxes before them")


def runs(logdir: str | Path) -> dict[str, Path]:
    """Return the runs below a logdir that have a life: the name of each, and its file.

    Links to folders are not followed. In a huge or slow logdir the search ends before it is
    complete.
    """
    end = time.monotonic() + SEARCH_S
    folders = takewhile(lambda _: time.monotonic() < end, islice(os.walk(logdir), MOST_FOLDERS))
    paths = (Path(folder, NAME) for folder, _, names in folders if NAME in names)
    lives = [path for path in paths if path.parts[-3:-1] == PLACE and path.is_file()]
    return dict(sorted((os.path.relpath(path.parents[2], logdir), path) for path in lives))
