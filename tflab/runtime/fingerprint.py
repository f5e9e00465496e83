"""Fingerprint: the identity of the model and data of a measurement.

It covers the nodes of the user's graph that a step needs, with their types, edges and attributes.
It omits everything that another run, folder or version may write differently: attributes at their
defaults, colocation hints, seeds, text such as names of files, and values that are weights.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf1

from tflab import datasets, untrusted
from tflab.records.graph import reach
from tflab.records.measured import Fingerprint
from tflab.records.options import Program, Start
from tflab.runtime import private, session

NOT_OF_THE_MODEL = ("_class", "_output_shapes", "container", "seed", "seed2", "shared_name")
SHORT = 16  # characters of a digest
LOOKED_AT = 1_000  # rows of the data
AXES = 64  # elements: larger integer tensors are data, such as an embedding


def of_step(program: Program, step: session.Step, split: str) -> Fingerprint:
    """Of the nodes that a step needs, and of the data of a split."""
    graph_def = program.graph.as_graph_def()
    nodes = needed(graph_def.node, (*step.fetches, *step.targets))
    called = [node for function in functions(graph_def, nodes) for node in function.node_def]
    columns = session.feed_columns(program, split)
    return Fingerprint(
        graph=digest(line for node in (*nodes, *called) for line in described(node)),
        nodes=len(nodes),
        edges=sum(len(node.input) for node in nodes),
        ops=dict(sorted(Counter(node.op for node in nodes).items())),
        feeds=tuple(fed(name, column) for name, column in columns.items()),
        data=digest(part for column in columns.values() for part in content(column)),
        weights=weights((*nodes, *called), session.start_of(program)),
    )


def digest(parts: Iterable[bytes]) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        # otherwise the end of one part could be the start of the next
        hashed.update(b"%d:" % len(part))
        hashed.update(part)
    return hashed.hexdigest()[:SHORT]


def needed(nodes: Iterable[Any], ends: Sequence[str]) -> list[Any]:
    """The nodes that these depend on, sorted by name."""
    by_name = {node.name: node for node in nodes}
    producers = {name: map(producer, node.input) for name, node in by_name.items()}
    return [
        by_name[name] for name in sorted(reach(map(producer, ends), producers) & by_name.keys())
    ]


def producer(tensor: str) -> str:
    return tensor.lstrip("^").partition(":")[0]


def functions(graph_def: Any, nodes: Iterable[Any]) -> list[Any]:
    """The functions that these nodes call, and those that their bodies call, sorted."""
    library = {function.signature.name: function for function in graph_def.library.function}
    inside = {name: list(function_names(body.node_def)) for name, body in library.items()}
    return [library[name] for name in sorted(reach(function_names(nodes), inside) & library.keys())]


def function_names(nodes: Iterable[Any]) -> Iterator[str]:
    """What may be names of functions in nodes: their types, and functions in attributes."""
    for node in nodes:
        yield node.op
        for value in node.attr.values():
            yield from (func.name for func in (value.func, *value.list.func))


def described(node: Any) -> Iterator[bytes]:
    """The parts of a node that are the same wherever it is built."""
    yield "\n".join((node.name, node.op, node.device, *node.input)).encode()
    definition = private.op_def(node.op)
    usual = {attr.name: attr.default_value for attr in definition.attr} if definition else {}
    for name in sorted(node.attr):
        value = node.attr[name]
        if name in NOT_OF_THE_MODEL or is_weight(value) or value == usual.get(name):
            continue
        if value.WhichOneof("value") != "s" or name in ("padding", "data_format"):
            yield name.encode() + b"=" + value.SerializeToString(deterministic=True)


def is_weight(value: Any) -> bool:
    """Whether an attribute is a tensor of weights: anything but a few integers, such as axes or
    shapes."""
    if value.WhichOneof("value") != "tensor":
        return False
    dtype = tf1.as_dtype(value.tensor.dtype)
    elements = prod(dim.size for dim in value.tensor.tensor_shape.dim)
    return not (dtype.is_integer or dtype.is_bool) or elements > AXES


def weights(nodes: Iterable[Any], start: Start) -> str | None:
    """Digest of the values that come with the graph; None if each run draws them anew."""
    parts = [
        node.name.encode() + node.attr["value"].tensor.SerializeToString(deterministic=True)
        for node in nodes
        if node.op == "Const" and is_weight(node.attr["value"])
        if node.attr["value"].tensor.dtype != tf1.string.as_datatype_enum
    ]
    given: Mapping[str, Any] = start.feeds
    parts += [name.encode() + part for name in sorted(given) for part in start_bytes(given[name])]
    return digest(parts) if parts else None


def start_bytes(value: Any) -> Iterator[bytes]:
    """An initial value of variables or tables; for the name of a file, the file's content."""
    if not isinstance(value, str):
        yield np.asarray(value).tobytes()
        return
    index = f"{value}.index"  # of a checkpoint: it has the checksum of every tensor
    names = [name for name in (index, value) if os.path.isfile(name)]
    for name in names[:1] or sorted(glob.glob(value)):  # in the oldest format, a pattern
        yield untrusted.content(Path(name))


def fed(name: str, column: datasets.Column) -> str:
    """`images:0 float32 [?, 32, 32, 1]`"""
    is_whole = isinstance(column, datasets.Whole)
    array = column.value if isinstance(column, datasets.Whole) else column
    dims = [str(size) for size in array.shape] if is_whole else ["?", *map(str, array.shape[1:])]
    return f"{name} {array.dtype} [{', '.join(dims)}]"


def content(column: datasets.Column) -> Iterator[bytes]:
    """Its size and its first rows, however many of them were processed."""
    array = column.value if isinstance(column, datasets.Whole) else column
    yield f"{array.dtype} {array.shape}".encode()
    yield (array if isinstance(column, datasets.Whole) else array[:LOOKED_AT]).tobytes()
