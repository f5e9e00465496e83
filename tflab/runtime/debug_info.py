"""Debug info: the program's line for each node, in files that record it.

A GraphDef may contain a GraphDebugInfo, and a SavedModel may have one next to it (if it was saved
with `SaveOptions(save_debug_info=True)`): for each node the Python stack at its creation, the
outermost frame first (tensorflow/core/framework/graph_debug_info.proto). The source files that it
names are not opened, because the file may name any path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from tflab import untrusted
from tflab.cli import output_paths
from tflab.errors import TflabError
from tflab.records.graph import Lines, Node, Source
from tflab.runtime import private

BESIDE = Path("debug", "saved_model_debug_info.pb")  # in the folder of a SavedModel
LIBRARY = re.compile(r"(^|[/\\])(tensorflow|keras|tf_keras)[/\\](python|core|compiler|src)[/\\]")


def of_graph(graph_def: Any) -> Lines:
    return lines(graph_def.debug_info) if graph_def.HasField("debug_info") else {}


def of_saved_model(folder: Path) -> Lines:
    """The lines next to a SavedModel. Raises TflabError if they are damaged."""
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
    for key, trace in {**info.traces, **traces}.items():  # older versions wrote `traces`
        node, _, function = key.partition("@")
        for frame in reversed(list(frames(info, trace)) if trace else []):
            if not LIBRARY.search(frame.file):
                sources[function or None, node] = frame
                break
    return sources


def frames(info: Any, trace: Any) -> Iterator[Source]:
    """The frames of a stack that the file contains, the outermost first."""
    frames_of_trace = (
        info.frames_by_id[number] for number in trace.frame_id if number in info.frames_by_id
    )
    for frame in (*trace.file_line_cols, *frames_of_trace):
        if 0 <= frame.file_index < len(info.files):
            file = info.files[frame.file_index]
            yield Source(file, frame.line, frame.func, frame.code.strip())


# Saving a graph with its lines


def save_graph(path: str, graph: Any = None) -> None:
    """Write the default graph, or another one, as a GraphDef with the lines of its nodes in a
    GraphDebugInfo: a file for `lifecycle --model` and `convert --graph`.

    Raises UsageError if the file exists already or cannot be written.
    """
    import tensorflow as tf

    from tflab.runtime import nodes

    graph = graph or tf.compat.v1.get_default_graph()
    content = graph.as_graph_def(add_shapes=True)
    content.debug_info.CopyFrom(info_of(nodes.from_graph(graph)))
    output_paths.write(Path(path), content.SerializeToString(), "graph")


def info_of(nodes: tuple[Node, ...]) -> Any:
    """The line of each node, as a stack of one frame."""
    info = private.debug_info()
    files: dict[str, int] = {}
    numbers: dict[Any, int] = {}
    for node in nodes:
        source = node.source
        if source is None:
            continue
        number = numbers.setdefault(source, len(numbers) + 1)
        info.name_to_trace_id[node.name] = number
        if number in info.traces_by_id:
            continue
        frame = info.frames_by_id[number]
        frame.file_index = files.setdefault(source.file, len(files))
        frame.line, frame.func, frame.code = source.line, source.function, source.code
        info.traces_by_id[number].frame_id.append(number)
    info.files.extend(files)
    return info
