"""Towers: a model once for each task, each with its part of the batch.

Synchronous data parallelism in one graph. What was written is tower 0; the others are copies of it
that read the same variables, which task 0 keeps. The loss is the mean over the rows of all towers,
so its gradient is the mean of theirs, and the step computes what it does on one machine. A loss
that is no mean over rows, and what depends on the whole batch (the statistics of a batch norm, a
mask that is drawn for its shape), differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import UsageError
from tflab.records import Model, Options
from tflab.runtime import cluster, nodes, private

SCOPE = "towers"  # of what cuts the batch and puts the results together
VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


def built(name: str, model: Model, graph: tf.Graph, options: Options) -> tuple[Model, dict]:
    """The model over all towers, and the task of each node.

    Raises UsageError where the model or the batch cannot be cut.
    """
    tasks = len(options.cluster)
    if not model.feeds or model.loss is None:
        raise UsageError(
            f"--split batch cuts the rows that are fed, and averages a loss; the model '{name}' "
            f"has no {'loss' if model.feeds else 'feeds'}. Give --split layers."
        )
    if options.batch_size < tasks:
        raise UsageError(
            f"A batch of {options.batch_size} cannot be cut for {tasks} tasks; give a "
            f"--batch-size of {tasks} or more, or --split layers."
        )
    written = graph.get_operations()
    fed = {tensor: rows_of(tensor) for tensor in model.feeds}
    if not any(fed.values()):
        raise UsageError(
            f"--split batch cuts the rows that are fed, and no feed of the model '{name}' has an "
            "open first dimension. Give --split layers."
        )
    copied = needed([model.loss, model.output], [*model.feeds])
    with graph.as_default():
        with tf1.name_scope(SCOPE):
            parts = [cut(tensor, tasks) if fed[tensor] else [tensor] * tasks for tensor in fed]
            share = shares(next(tensor for tensor in fed if fed[tensor]), tasks)
        client = [op.name for op in graph.get_operations() if op not in set(written)]
        places = dict.fromkeys(client, cluster.client_device())
        definition = graph.as_graph_def()
        outcomes = [(model.loss, model.output)]
        for task in range(1, tasks):
            replaced = {t.name: part[task] for t, part in zip(fed, parts, strict=True)}
            tower = copy(graph, definition, copied, replaced, task, outcomes[0])
            outcomes.append(tower)
        feed_part(written, {t.name: part[0] for t, part in zip(fed, parts, strict=True)})
        losses, outputs = zip(*outcomes, strict=True)
        with tf1.name_scope(SCOPE):
            weighted = [loss * part for loss, part in zip(losses, share, strict=True)]
            loss = tf.add_n(weighted, name="loss")
            output = model.output
            if rows_of(output):
                output = tf.concat(outputs, axis=0, name="output")
    places |= {t.op.name: cluster.client_device() for t in fed}
    lines = dict(model.lines)
    for op in graph.get_operations():
        number, _, original = op.name.removeprefix("tower_").partition("/")
        if op.name.startswith("tower_") and original in copied:
            places[op.name] = cluster.device_of(int(number))
            source = nodes.source_of(graph.get_operation_by_name(original))
            if source:
                lines[None, op.name] = source
    return replace(model, loss=loss, output=output, lines=lines, notes=notes(model, tasks)), places


def notes(model: Model, tasks: int) -> tuple[str, ...]:
    said = (
        f"The model stands in the graph {tasks} times, a tower for each task, and the loss is the "
        "mean over the rows of all of them.",
    )
    moving = "Moving averages are those of tower 0, from its part of the batch."
    return (*model.notes, *said, *((moving,) if model.updates else ()))


def rows_of(tensor: tf.Tensor) -> bool:
    """Whether the first dimension of a tensor is that of the batch."""
    return tensor.shape.rank not in (None, 0) and tensor.shape[0] is None


def bounds(tensor: tf.Tensor, tasks: int) -> list[tf.Tensor]:
    rows = tf.shape(tensor)[0]
    return [rows * part // tasks for part in range(tasks + 1)]


def cut(tensor: tf.Tensor, tasks: int) -> list[tf.Tensor]:
    """The rows of each tower; their numbers differ by one at most."""
    edges = bounds(tensor, tasks)
    return [tensor[edges[i] : edges[i + 1]] for i in range(tasks)]


def shares(tensor: tf.Tensor, tasks: int) -> list[tf.Tensor]:
    """The share of the batch that each tower has."""
    edges = [tf.cast(edge, tf.float32) for edge in bounds(tensor, tasks)]
    return [(edges[i + 1] - edges[i]) / edges[-1] for i in range(tasks)]


def needed(results: Iterable[tf.Tensor], feeds: Sequence[tf.Tensor]) -> set[str]:
    """The nodes that compute the results from what is fed and from variables, without these."""
    fed = {tensor.op.name for tensor in feeds}
    waiting = [tensor.op for tensor in results]
    names: set[str] = set()
    while waiting:
        op = waiting.pop()
        if op.name in names or op.name in fed or op.type in VARIABLES:
            continue
        names.add(op.name)
        waiting.extend(tensor.op for tensor in op.inputs)
        waiting.extend(op.control_inputs)
    return names


def copy(
    graph: tf.Graph,
    definition: Any,
    names: set[str],
    replaced: dict[str, tf.Tensor],
    task: int,
    results: tuple[tf.Tensor, tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor]:
    """A copy of these nodes as a tower; it reads the variables that are there."""
    part = tf1.GraphDef(versions=definition.versions, library=definition.library)
    for node in definition.node:
        if node.name in names:
            append(part, node)
    outside = {
        f"{op.name}:0": op.outputs[0] for op in graph.get_operations() if op.type in VARIABLES
    }
    used = {source.partition(":")[0].lstrip("^") for node in part.node for source in node.input}
    mapped = {key: value for key, value in (outside | replaced).items() if key[:-2] in used}
    return tuple(
        tf.import_graph_def(
            part,
            input_map=mapped,
            return_elements=[tensor.name for tensor in results],
            name=f"tower_{task}",
        )
    )


def append(graph_def: Any, node: Any) -> None:
    """The node in another graph, where its mates are not."""
    added = graph_def.node.add()
    added.CopyFrom(node)
    added.attr.pop("_class", None)


def feed_part(written: Iterable[tf.Operation], parts: dict[str, tf.Tensor]) -> None:
    """Let what was written take the rows of tower 0 instead of all that are fed."""
    for op in written:
        for index, tensor in enumerate(op.inputs):
            if tensor.name in parts and parts[tensor.name] is not tensor:
                private.rewire(op, index, parts[tensor.name])
