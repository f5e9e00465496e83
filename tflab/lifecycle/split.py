"""Split: which part of a model goes to which device, or to which task of a cluster.

By layers: the layers of a model, in the order in which they were built, are cut into consecutive
parts with about equal numbers of nodes.

By batch: each task has a copy of the model, a tower, and its part of the rows. This is synchronous
data parallelism in one graph. The original is tower 0; the others read the same variables, which
task 0 keeps. The loss is the mean over the rows of all towers, so its gradient is the mean of
theirs, and the step computes the same as on one machine. A loss that is not a mean over rows, and
values that depend on the whole batch (the statistics of a batch norm, a mask that is drawn for its
shape), differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import UsageError
from tflab.records.graph import VARIABLES
from tflab.records.options import Model, Options
from tflab.runtime import cluster, nodes, private

SCOPE = "towers"  # of the nodes that cut the batch and combine the results
Heads = Sequence[tf.Tensor]  # of a tower: loss, output, and the test loss if there is one


def over_devices(graph: tf.Graph, devices: int) -> None:
    """Request CPU:0, CPU:1, ... for consecutive layers.

    Nodes for which the model itself requests a device keep it. Nodes that must be colocated with
    another one follow it.
    """
    by_name = {op.name: op for op in graph.get_operations()}
    free = [op for op in by_name.values() if not op.device]
    for op, part in in_parts(graph, devices):
        if not op.device:
            private.set_device(op, f"/device:CPU:{part}")
    for op in free:
        for name in mates(op):
            if name in by_name:
                private.set_device(op, by_name[name].device)


def over_tasks(graph: tf.Graph, tasks: int) -> dict[str, str]:
    """The task of each node, for consecutive layers; fed data come from this process.

    No devices are requested yet: until placement, the graph also runs in this process alone.
    """
    return {
        op.name: cluster.client_device() if op.type == "Placeholder" else cluster.device_of(part)
        for op, part in in_parts(graph, tasks)
    }


def in_parts(graph: tf.Graph, parts: int) -> Iterator[tuple[tf.Operation, int]]:
    """Each op and the number of its part."""
    total, seen = len(graph.get_operations()), 0
    for ops in layers(graph):
        middle = seen + len(ops) / 2
        seen += len(ops)
        for op in ops:
            yield op, int(middle * parts / total)


def ask(graph: tf.Graph, places: Mapping[str, str]) -> None:
    """Request these places. Nodes that must be colocated follow others: a gradient its forward
    op, a read and an update their variable. All others follow their data, or go to task 0 if
    they have none."""
    device_of: dict[str, str] = {}
    for op in graph.get_operations():  # an op comes after its inputs
        leaders = [*mates(op), *(t.op.name for t in op.inputs if t.dtype.base_dtype == tf.resource)]
        before = [*(t.op.name for t in op.inputs), *(control.name for control in op.control_inputs)]
        place = next((device_of[name] for name in leaders if name in device_of), "")
        if not leaders:
            near = (device_of[name] for name in before if name in device_of)
            place = places.get(op.name) or next(near, cluster.device_of(0))
            if "/job:" not in op.device:
                private.set_device(op, place + op.device)
        device_of[op.name] = place or cluster.device_of(0)


def mates(op: tf.Operation) -> list[str]:
    """The other ops with which an op must be colocated."""
    groups = (group.decode().removeprefix("loc:@") for group in op.colocation_groups())
    return [group for group in groups if group != op.name]


def layers(graph: tf.Graph) -> list[list[tf.Operation]]:
    """The ops of a graph by top-level name scope, in the order of their first node.

    A scope without inputs from others, such as a variable or a placeholder, belongs to the layer
    that uses it first.
    """
    scopes: dict[str, list[tf.Operation]] = {}
    for op in graph.get_operations():
        scopes.setdefault(op.name.partition("/")[0], []).append(op)
    users: dict[str, str] = {}  # a scope -> the first other scope that uses it
    takers = set()
    for scope, ops in scopes.items():
        for tensor in (tensor for op in ops for tensor in op.inputs):
            giver = tensor.op.name.partition("/")[0]
            if giver != scope:
                users.setdefault(giver, scope)
                takers.add(scope)
    grouped: dict[str, list[tf.Operation]] = {}
    for scope, ops in scopes.items():
        home = scope if scope in takers else users.get(scope, scope)
        grouped.setdefault(home, []).extend(ops)
    return [grouped[scope] for scope in scopes if scope in grouped]


# By batch


def into_towers(name: str, model: Model, graph: tf.Graph, options: Options) -> tuple[Model, dict]:
    """The model over all towers, and the task of each node.

    Raises UsageError if the model or the batch cannot be cut.
    """
    tasks = len(options.cluster)
    check(name, model, options)
    written = graph.get_operations()
    heads = [model.loss, model.output, *([] if model.test_loss is None else [model.test_loss])]
    copied = needed(graph, heads, model.feeds)
    with graph.as_default():
        parts, share = cut_feeds(model, tasks)
        places = place_here([*graph.get_operations()[len(written) :], *(t.op for t in model.feeds)])
        towers = [heads, *copies(graph, copied, parts[1:], heads)]
        feed_part(written, parts[0])
        losses, outputs, *test_losses = zip(*towers, strict=True)
        with tf1.name_scope(SCOPE):
            loss = averaged(losses, share, "loss")
            test_loss = averaged(test_losses[0], share, "test_loss") if test_losses else None
            output = model.output
            if has_rows(output):
                output = tf.concat(outputs, axis=0, name="output")
    lines = dict(model.lines)
    for task in range(1, tasks):
        for original in copied:
            name = f"{tower(task)}/{original}"
            places[name] = cluster.device_of(task)
            if source := nodes.line_of_work(graph.get_operation_by_name(original)):
                lines[None, name] = source
    sentences = notes(model, tasks)
    return replace(
        model, loss=loss, output=output, test_loss=test_loss, lines=lines, notes=sentences
    ), places


def check(name: str, model: Model, options: Options) -> None:
    """Refuse a model or a batch that cannot be cut."""
    tasks = len(options.cluster)
    if not model.feeds or model.loss is None:
        raise UsageError(
            f"--split batch divides the fed rows and averages the loss, but the model '{name}' "
            f"has no {'loss' if model.feeds else 'feeds'}. Give --split layers."
        )
    if not any(map(has_rows, model.feeds)):
        raise UsageError(
            f"--split batch divides the fed rows, but no feed of the model '{name}' has an open "
            "first dimension. Give --split layers."
        )
    if options.batch_size < tasks:
        raise UsageError(
            f"A batch of {options.batch_size} cannot be split over {tasks} tasks. Give a "
            f"--batch-size of at least {tasks}, or --split layers."
        )


def tower(task: int) -> str:
    return f"tower_{task}"


def place_here(ops: Iterable[tf.Operation]) -> dict[str, str]:
    """Place these ops in this process, which has the data."""
    return dict.fromkeys((op.name for op in ops), cluster.client_device())


def notes(model: Model, tasks: int) -> tuple[str, ...]:
    sentences = (
        f"The graph contains the model {tasks} times, one tower for each task. The loss is the "
        "mean of the towers' losses, weighted by their rows: if each loss is a mean over rows, "
        "this is the mean over all rows.",
    )
    moving = "Moving averages come from tower 0 and its part of the batch."
    return (*model.notes, *sentences, *((moving,) if model.updates else ()))


def has_rows(tensor: tf.Tensor) -> bool:
    """Whether the first dimension of a tensor is that of the batch."""
    return tensor.shape.rank not in (None, 0) and tensor.shape[0] is None


def cut_feeds(model: Model, tasks: int) -> tuple[list[dict[str, tf.Tensor]], list[tf.Tensor]]:
    """The inputs of each tower that replace the feeds, and its share of the batch."""
    with tf1.name_scope(SCOPE):
        cuts = {
            tensor.name: cut(tensor, tasks) if has_rows(tensor) else [tensor] * tasks
            for tensor in model.feeds
        }
        share = shares(next(filter(has_rows, model.feeds)), tasks)
    return [{name: parts[task] for name, parts in cuts.items()} for task in range(tasks)], share


def cut(tensor: tf.Tensor, tasks: int) -> list[tf.Tensor]:
    """The rows of each tower; their numbers differ by at most one."""
    edges = bounds(tensor, tasks)
    return [tensor[edges[i] : edges[i + 1]] for i in range(tasks)]


def shares(tensor: tf.Tensor, tasks: int) -> list[tf.Tensor]:
    """The share of the batch that each tower has."""
    edges = [tf.cast(edge, tf.float32) for edge in bounds(tensor, tasks)]
    return [(edges[i + 1] - edges[i]) / edges[-1] for i in range(tasks)]


def bounds(tensor: tf.Tensor, tasks: int) -> list[tf.Tensor]:
    rows = tf.shape(tensor)[0]
    return [rows * part // tasks for part in range(tasks + 1)]


def averaged(losses: Heads, share: Iterable[tf.Tensor], name: str) -> tf.Tensor:
    """The mean over all rows. A tower without rows has no loss, because its mean is undefined."""
    weighted = [
        tf.math.multiply_no_nan(loss, tf.cast(part, loss.dtype))
        for loss, part in zip(losses, share, strict=True)
    ]
    return tf.add_n(weighted, name=name)


def needed(graph: tf.Graph, results: Iterable[tf.Tensor], feeds: Iterable[tf.Tensor]) -> set[str]:
    """The nodes that compute the results from feeds and variables, without these."""
    variables = {op.name for op in graph.get_operations() if op.type in VARIABLES}
    variables |= {tensor.op.name for tensor in feeds}
    return nodes.needed(graph, [tensor.op.name for tensor in results], variables) - variables


def copies(
    graph: tf.Graph, names: set[str], parts: Iterable[dict[str, tf.Tensor]], heads: Heads
) -> list[Heads]:
    """A copy of these nodes for each part of the batch; it reads the existing variables."""
    graph_def = graph.as_graph_def()
    part = tf1.GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        if node.name in names:
            append(part, node)
    variables = [op for op in graph.get_operations() if op.type in VARIABLES]
    outside = {f"{op.name}:0": op.outputs[0] for op in variables}
    used = {source.partition(":")[0].lstrip("^") for node in part.node for source in node.input}
    towers = []
    for task, fed in enumerate(parts, 1):
        known = {**outside, **fed}
        mapped = {key: value for key, value in known.items() if key.removesuffix(":0") in used}
        names_of_heads = [tensor.name for tensor in heads]
        towers.append(tf.import_graph_def(part, mapped, names_of_heads, name=tower(task)))
    return towers


def append(graph_def: Any, node: Any) -> None:
    """Append the node to another graph, without colocation with nodes that are not there."""
    added = graph_def.node.add()
    added.CopyFrom(node)
    added.attr.pop("_class", None)


def feed_part(written: Iterable[tf.Operation], parts: dict[str, tf.Tensor]) -> None:
    """Let the original take the rows of tower 0 instead of all fed rows."""
    for op in written:
        for index, tensor in enumerate(op.inputs):
            if tensor.name in parts and parts[tensor.name] is not tensor:
                private.rewire(op, index, parts[tensor.name])
