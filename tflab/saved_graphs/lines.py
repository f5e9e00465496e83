"""Lines: which line of a program made a node, where the file records it.

A GraphDef may hold a GraphDebugInfo, and a SavedModel may have one beside it (saved with
`SaveOptions(save_debug_info=True)`): for each node the Python stack when it was made, the outermost
frame first (tensorflow/core/framework/graph_debug_info.proto). The programs that it names are not
opened, because the file may name any path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from tflab import untrusted
from tflab.errors import TflabError
from tflab.records import Lines, Source
from tflab.runtime import private

BESIDE = Path("debug", "saved_model_debug_info.pb")  # in the folder of a SavedModel
LIBRARY = re.compile(r"(^|[/\\])(tensorflow|keras|tf_keras)[/\\](python|core|compiler|src)[/\\]")


def of_graph(graph_def: Any) -> Lines:
    return lines(graph_def.debug_info) if graph_def.HasField("debug_info") else {}


def of_saved_model(folder: Path) -> Lines:
    """The lines beside a SavedModel. Raises TflabError where they are damaged."""
    path = folder / BESIDE
    if not path.is_file():
        return {}
    try:
        info = private.debug_info()
        info.ParseFromString(untrusted.content(path))
        return lines(info)
    except (DecodeError, OSError) as error:
        raise TflabError(
            f"The lines of the nodes in '{path}' cannot be read: {' '.join(str(error).split())}. "
            "To show the graph without lines, remove that file."
        ) from error


def lines(info: Any) -> Lines:
    """The line of each (function or None, node); in the file a key is `node@function` or `node`."""
    traces = {name: info.traces_by_id.get(number) for name, number in info.name_to_trace_id.items()}
    sources = {}
    for key, trace in {**info.traces, **traces}.items():  # `traces` is how older versions wrote it
        node, _, function = key.partition("@")
        for frame in reversed(list(frames(info, trace)) if trace else []):
            if not LIBRARY.search(frame.file):
                sources[function or None, node] = frame
                break
    return sources


def frames(info: Any, trace: Any) -> Iterator[Source]:
    """The frames of a stack, as far as the file has them, the outermost first."""
    own = (info.frames_by_id[number] for number in trace.frame_id if number in info.frames_by_id)
    for frame in (*trace.file_line_cols, *own):
        if 0 <= frame.file_index < len(info.files):
            file = info.files[frame.file_index]
            yield Source(file, frame.line, frame.func, frame.code.strip())
