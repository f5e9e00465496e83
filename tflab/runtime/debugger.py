"""Debugger: every tensor of the graph that runs, written by the runtime itself and read back.

The runtime's debugger (tfdbg) adds a copy and a debug node after each output, after all passes:
otherwise the same graph runs. It uses the name of a node as the path of a file, and ends the
process if that file cannot be opened or closed, so names and disk space are checked first. Paths
are read only for the order in time.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.records.graph import Node
from tflab.runtime import nodes, private
from tflab.units import size

MOST_BYTES = 2**30  # of all tensors of a step
MOST_FILES = 10_000  # one for each tensor, in a loop one for each time
LIMIT = "TFDBG_DISK_BYTES_LIMIT"  # the runtime's own limit, in bytes; read once in a process
FILE_BYTES = 2**12  # of a file in addition to its tensor
LONGEST = 180  # characters of a part of a name: the file's name is longer, and limited to 255
DEEPEST = 2_000  # characters of a whole name; paths are limited to 4096
FILE = re.compile(r"_DebugIdentity_(?P<us>\d+)(-(?P<again>\d+))?\Z")  # at the end of a name
SCRATCH = ("reserve_space", "workspace")  # prefixes of the names of such outputs
OWN = "_tfdbg_"  # prefix of the debugger's other files


@dataclass(frozen=True)
class Dumped:
    """One tensor at one moment. The array is None if its elements are not values but a handle."""

    node: str
    output: int
    us: int  # on the clock of `time.time_ns()`
    dtype: str
    shape: tuple[int, ...]
    array: np.ndarray | None
    path: str


def refusal(names: Iterable[str], bytes_: int, files: int, folder: str) -> str:
    """Why a step is not recorded; "" if it can be.

    `names` are all names that the runtime might use as paths, `bytes_` and `files` what it will
    write.
    """
    for name in names:
        if not is_safe(name):
            short = name if len(name) <= 80 else f"{name[:80]}..."
            return f"The runtime would use the name '{short}' as the path of a file."
    if bytes_ > MOST_BYTES:
        return f"Its tensors have {size(bytes_)}, but tflab records at most {size(MOST_BYTES)}."
    if files > MOST_FILES:
        return f"It computes {files:,} tensors, but tflab records at most {MOST_FILES:,}."
    free, needed = shutil.disk_usage(folder).free, 2 * (bytes_ + files * FILE_BYTES)
    if needed > free:
        return f"It needs {size(needed)} of disk space, and {folder} has {size(free)}."
    return ""


def is_safe(name: str) -> bool:
    """Whether the path made from a node's name stays in its folder and can be opened."""
    parts = name.split("/")
    return ".." not in parts and max(map(len, parts)) <= LONGEST and len(name) <= DEEPEST


def names_of(graph_def: Any) -> Iterator[str]:
    """The names in a graph from which the runtime may make others: nodes, and functions with
    their nodes, which it inlines."""
    yield from (node.name for node in graph_def.node)
    for function in graph_def.library.function:
        yield function.signature.name
        yield from (node.name for node in function.node_def)


def options(graph: tf.Graph, folder: str) -> Any:
    """The DebugOptions of a step that is to be recorded into a folder."""
    os.environ.setdefault(LIMIT, str(2 * MOST_BYTES))
    return private.debug_options(graph, folder)


def read(folder: str) -> Iterator[Dumped]:
    """What a step wrote, in the order of time. Raises TflabError if it cannot be understood."""
    yield from map(read_file, sorted(files(folder), key=moment))


def read_file(path: str) -> Dumped:
    """The content of one file."""
    with open(path, "rb") as file:
        event = tf1.Event.FromString(file.read())
    if len(event.summary.value) != 1:
        raise private.no_values("a file has no tensor")
    (value,) = event.summary.value
    node, output, _ = value.node_name.rsplit(":", 2)
    dtype = tf.dtypes.as_dtype(value.tensor.dtype)
    return Dumped(
        node=node,
        output=int(output),
        us=moment(path)[0],
        dtype=dtype.name,
        shape=tuple(dim.size for dim in value.tensor.tensor_shape.dim),
        array=None if dtype in (tf.resource, tf.variant) else tf.make_ndarray(value.tensor),
        path=path,
    )


def files(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        yield from (os.path.join(parent, name) for name in names if not name.startswith(OWN))


def moment(path: str) -> tuple[int, int]:
    """When a tensor was written, in us; and its index among those with the same name and time."""
    match = FILE.search(path)
    if match is None:
        raise private.no_values("the name of a file has no time")
    return int(match["us"]), int(match["again"] or 0)


def is_scratch(op: str, output: int) -> bool:
    """Whether an output is scratch memory for the op's gradient, which may never have been
    written: the reserved space of a batch norm, the workspace of a pool."""
    args = nodes.output_args(op)
    if any(arg.number_attr or arg.type_list_attr for arg in args) or output >= len(args):
        return False
    return args[output].name.startswith(SCRATCH)


def without_debug_nodes(graphs: Iterable[Any]) -> tuple[Node, ...]:
    """The nodes of GraphDefs as they would have run without the debugger."""
    node_defs = [node_def for graph_def in graphs for node_def in graph_def.node]
    # Each node of the debugger, and the tensor that it copies
    copied = {one.name: one.input[0] for one in node_defs if is_debug_node(one)}
    usual = (
        nodes.from_node_def(node_def, {}, {})
        for node_def in node_defs
        if node_def.name not in copied
    )
    return tuple(
        replace(
            node,
            inputs=tuple(copied.get(tensor, tensor) for tensor in node.inputs),
            control_inputs=tuple(name for name in node.control_inputs if name not in copied),
        )
        for node in usual
    )


def is_debug_node(node_def: Any) -> bool:
    return any(
        node_def.name.startswith(prefix) and node_def.op in ops
        for prefix, ops in private.DEBUG_NODES.items()
    )
