"""Split: which layers of a model go to which device, or to which task of a cluster.

The layers, in the order in which they were built, are cut into consecutive parts with about equal
numbers of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import tensorflow as tf

from tflab.runtime import cluster, private


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
    """Return the task of each node, for consecutive layers; fed data come from this process.

    No devices are requested yet: until placement, the graph also runs in this process alone.
    """
    return {
        op.name: cluster.client_device() if op.type == "Placeholder" else cluster.device_of(part)
        for op, part in in_parts(graph, tasks)
    }


def in_parts(graph: tf.Graph, parts: int) -> Iterator[tuple[tf.Operation, int]]:
    """Yield each op and the number of its part."""
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
    """Return the other ops with which an op must be colocated."""
    groups = (group.decode().removeprefix("loc:@") for group in op.colocation_groups())
    return [group for group in groups if group != op.name]


def layers(graph: tf.Graph) -> list[list[tf.Operation]]:
    """Return the ops of a graph by top-level name scope, in the order of their first node.

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
