"""Graphs for traces: from anything that `--model` of the other commands accepts, as nodes.

A GraphDef is read without TensorFlow. A SavedModel, a MetaGraphDef, a Keras file, a registered
model or a model function is loaded, but not run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tflab import untrusted
from tflab.convert import event_files, protos
from tflab.convert.fields import DamagedError
from tflab.errors import TflabError, UsageError


def read(name: str) -> list[Any]:
    """The GraphDefs of a file (of a RunMetadata, its partition graphs) or of a model.

    Raises UsageError if there is no such file or model, or it has no graph.
    """
    if os.path.isfile(name):
        with opened(name) as file:
            kind, text = protos.recognised(file)
            if kind == "GraphDef":
                graph = protos.read_graph(file, text)
                if all(node.name and node.op for node in graph.node):
                    return [graph]
            elif kind:
                return partition_graphs(name, list(protos.read_trace(file, kind, text).graphs))
            elif event_files.recognised(file):
                return partition_graphs(name, in_event_files([name]))
    return [of_model(name)]


def partition_graphs(name: str, graphs: list[Any]) -> list[Any]:
    if not graphs:
        raise UsageError(
            f"'{name}' is not a GraphDef. Give the output of "
            "graph.as_graph_def().SerializeToString(), its text form, or anything that --model of "
            "the other commands takes."
        )
    return graphs


def in_event_files(names: Sequence[str]) -> list[Any]:
    """The graphs in event files, as the program built them."""
    found = []
    for name in names:
        with opened(name) as file:
            if event_files.recognised(file):
                found += [protos.read_graph(graph, False) for graph in event_files.graphs(file)]
    return found


def of_model(name: str) -> Any:
    """The graph of a file that TensorFlow reads, or of a model with its training step."""
    from tflab import models

    path = Path(name)
    if models.is_file(name):
        from tflab.saved_graphs import graph_files

        graph_def = graph_files.read(path).graph_def
    else:
        graph_def = built(models.find(name))
    return protos.message("GraphDef").FromString(graph_def.SerializeToString())


def built(function: Any) -> Any:
    """The graph that a model function builds, with gradients and updates if it has an optimiser."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        model = function()
        if model.loss is not None and model.optimizer is not None:
            pairs = model.optimizer.compute_gradients(model.loss)
            model.optimizer.apply_gradients(pairs, name="train")
    return graph.as_graph_def()


BUFFER = 1 << 16  # bytes of a file


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file at a path. Errors become sentences."""
    try:
        with untrusted.opened(path, BUFFER) as file:
            yield file
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except DamagedError as error:
        raise TflabError(f"'{path}' {error}.") from error
