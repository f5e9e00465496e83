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
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from tflab import untrusted
from tflab.cli import environment
from tflab.errors import TflabError, reason
from tflab.follow import view
from tflab.records.blocks import Block, Column, Frame, Strip, Table
from tflab.records.node_history import NodeHistory
from tflab.records.placed import Fate
from tflab.report import html, viewer_data
from tflab.report.contents import DrawnGraph

PLACE = ("plugins", "life")
NAME = "life.json.gz"
KIND, FORMAT = "tflab life", 2
MOST_NODES = 20_000  # limit for a graph; the page of 15,000 opens in two seconds
MOST_BYTES = 2**23  # of a file
MOST_TEXT = 2**26  # of its JSON
LEVEL = 6  # of compression: the highest takes twice as long, for a tenth fewer bytes
MOST_STATES = 1_000
MOST_FOLDERS = 20_000  # of a logdir that are searched
MOST_RUNS = 1_000
SEARCH_S = 20.0  # time limit of a search, which then returns the runs so far
HOLDS = {"stage": str, "graph": dict, "parts": dict, "nodes": dict, "numbers": dict}

Life = dict[str, Any]
Numbers = Mapping[str, float | None]  # of the whole graph, by the names in `changes`


def life(
    stage: str, graph: DrawnGraph, parts: Iterable[tuple[str, Iterable[Block]]], numbers: Numbers
) -> Life:
    """A graph up to a stage: its drawing, its blocks by title, and data for comparisons."""
    message = {
        "stage": stage,
        "graph": viewer_data.graph_data(graph),
        "parts": {title: list(map(block, blocks)) for title, blocks in parts},
        "nodes": {name: signature(history) for name, history in graph.histories.items()},
        "numbers": dict(numbers),
    }
    readable: Life = html.readable(message)
    return readable


def signature(history: NodeHistory) -> list[Any]:
    """The properties of a node to compare with the previous life: its op, inputs and outputs, and
    its fate."""
    inputs = (*history.inputs, *(f"^{name}" for name in history.control_inputs))
    outputs = [f"{out.dtype} {list(out.shape or ())}" for out in history.outputs]
    fate = history.fate
    return [
        history.kind,
        f"{history.op}({', '.join(inputs)}) -> {', '.join(outputs)}",
        fate and with_heir(fate),
    ]


def with_heir(fate: Fate) -> str:
    """`merged with Const`: the fate, and the node that took over, if it is another one."""
    if fate.into in (None, fate.name):
        return fate.fate
    return f"{fate.fate} {view.PREPOSITIONS[fate.fate]} {fate.into}"


def block(part: Block) -> Any:
    """A block as data, from which `read_block` makes it again."""
    if isinstance(part, Table):
        return {
            "table": part.title,
            "columns": [[column.header, column.right] for column in part.columns],
            "rows": [list(cells) for cells in part.cells()],
            "more": part.more,
        }
    if isinstance(part, Strip):
        frames = [[frame.heading, frame.about, list(frame.lines)] for frame in part.frames]
        return {"strip": part.title, "frames": frames}
    return part


def read_block(part: Any) -> Block:
    """A block from the data of `block`. Raises the usual exceptions for wrong types."""
    if isinstance(part, str):
        return part
    if "strip" in part:
        frames = (
            Frame(str(head), str(about), texts(lines)) for head, about, lines in part["frames"]
        )
        return Strip(str(part["strip"]), tuple(frames))
    columns = tuple(
        Column(str(header), itemgetter(place), right=bool(right))
        for place, (header, right) in enumerate(part["columns"])
    )
    return Table(
        str(part["table"]), columns, tuple(map(texts, part["rows"])), more=int(part["more"])
    )


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))


# In the logdir of its run


class LargeError(TflabError):
    """A life is larger than the tab can show."""


def keep(folder: Path, nodes: int, life: Callable[[], Life | None]) -> str:
    """Write the life of a run with this many nodes, if it has one; return a sentence if that is not
    possible."""
    try:
        environment.require("TensorBoard's tab Life", "igraph")
        check_size(nodes)
        if made := life():
            write(folder, made)
    except TflabError as error:
        return str(error)
    return ""


def write(folder: Path, life: Life) -> None:
    """Write a life to the folder of its run. Raises LargeError."""
    content = {"kind": KIND, "format": FORMAT, **life}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    packed = gzip.compress(text, LEVEL, mtime=0)
    check_size(len(life["graph"]["nodes"]))
    if len(text) > MOST_TEXT or len(packed) > MOST_BYTES:
        raise LargeError("TensorBoard's Life does not show this graph: its data are too large.")
    place = folder.joinpath(*PLACE)
    place.mkdir(parents=True)
    (place / NAME).write_bytes(packed)


def check_size(nodes: int) -> None:
    """Raise LargeError for a graph that is not drawn."""
    if nodes > MOST_NODES:
        raise LargeError(
            f"TensorBoard's Life does not show this graph: it has {nodes:,} nodes; the limit is "
            f"{MOST_NODES:,}."
        )


def read(path: Path) -> Life:
    """The life in a file. Raises TflabError with a sentence for the tab if there is none."""
    try:
        packed = untrusted.content(path, MOST_BYTES)
    except OSError as error:
        raise TflabError(f"The file of this run cannot be read: {reason(error)}.") from error
    unzip = zlib.decompressobj(wbits=31)
    try:
        text = unzip.decompress(packed, MOST_TEXT)
        content = json.loads(text) if unzip.eof else None
    except (zlib.error, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise TflabError("The file of this run is damaged, or another program wrote it.")
    if content.get("format") != FORMAT:
        raise TflabError("Another version of tflab wrote this run. Write it again to see it.")
    if not all(isinstance(content.get(name), kind) for name, kind in HOLDS.items()):
        raise TflabError("The file of this run is damaged: parts of it are missing.")
    try:
        life: Life = html.readable({name: content[name] for name in HOLDS})
    except RecursionError as error:
        raise TflabError("The file of this run is damaged: it is nested too deeply.") from error
    check(life["graph"])
    return life


def check(graph: Mapping[str, Any]) -> None:
    """Refuse a drawing that would keep a browser busy forever: each box lies in at most one box,
    which comes before it."""
    nodes, boxes, states = (graph.get(name) for name in ("nodes", "boxes", "states"))
    right = (
        isinstance(nodes, list)
        and isinstance(boxes, list)
        and isinstance(states, list)
        and len(nodes) <= MOST_NODES
        and len(boxes) <= 3 * MOST_NODES
        and 0 < len(states) <= MOST_STATES
        and all(nested(boxes, number) for number in range(len(boxes)))
    )
    if not right:
        raise TflabError("The file of this run is damaged: its drawing makes no sense.")


def nested(boxes: list[Any], number: int) -> bool:
    """Whether a box lies in an earlier box or in none, and contains only its own boxes."""
    box = boxes[number]
    if not isinstance(box, dict) or not isinstance(box.get("rows"), list):
        return False
    parent = box.get("parent")
    if parent is not None and not (isinstance(parent, int) and 0 <= parent < number):
        return False
    rows = box["rows"]
    if not all(isinstance(row, list) for row in rows):
        return False
    inner = [entry for row in rows for entry in row if isinstance(entry, int)]
    return len({*inner}) == len(inner) and all(
        number < entry < len(boxes)
        and isinstance(boxes[entry], dict)
        and boxes[entry].get("parent") == number
        for entry in inner
    )


def runs(logdir: str | Path) -> dict[str, Path]:
    """The runs below a logdir that have a life: the name of each, and its file.

    Links to folders are not followed. In a huge logdir the search ends before it is complete.
    """
    run_folders: dict[str, Path] = {}
    end = time.monotonic() + SEARCH_S
    for number, folder in enumerate(folders(logdir)):
        if number >= MOST_FOLDERS or len(run_folders) >= MOST_RUNS or time.monotonic() > end:
            break
        path = Path(folder, NAME)
        if path.parts[-3:-1] == PLACE and path.is_file():
            name = os.path.relpath(path.parents[2], logdir)
            run_folders[name] = path
    return dict(sorted(run_folders.items()))


def folders(logdir: str | Path) -> Iterator[str]:
    for folder, inner, _ in os.walk(logdir):
        inner.sort()
        yield folder
