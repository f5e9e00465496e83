"""Saving: a graph as a file that other commands read, with the program's line of each node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tflab.cli import new_files
from tflab.records import Node
from tflab.runtime import private

WHAT = "graph"


def save_graph(path: str, graph: Any = None) -> None:
    """Write the default graph, or another one, as a GraphDef with the lines of its nodes in a
    GraphDebugInfo: a file for `lifecycle --model` and `convert --graph`.

    Raises UsageError where there is such a file already, or none can be written.
    """
    import tensorflow as tf

    from tflab.runtime import nodes

    graph = graph or tf.compat.v1.get_default_graph()
    content = graph.as_graph_def(add_shapes=True)
    content.debug_info.CopyFrom(debug_info(nodes.from_graph(graph)))
    new_files.write(Path(path), content.SerializeToString(), WHAT)


def debug_info(nodes: tuple[Node, ...]) -> Any:
    """The line of each node, as a stack of one frame."""
    info = private.debug_info()
    files: dict[str, int] = {}
    frames: dict[Any, int] = {}
    for node in nodes:
        made = node.source
        if made is None:
            continue
        number = frames.setdefault(made, len(frames) + 1)
        info.name_to_trace_id[node.name] = number
        if number in info.traces_by_id:
            continue
        frame = info.frames_by_id[number]
        frame.file_index = files.setdefault(made.file, len(files))
        frame.line, frame.func, frame.code = made.line, made.function, made.code
        info.traces_by_id[number].frame_id.append(number)
    info.files.extend(files)
    return info
