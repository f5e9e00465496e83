"""Remote devices: devices of other machines, which a graph from a file may require.

Soft placement replaces a missing device by another one, but only within the same job. So the part
of the name of a device that gives the machine is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

HERE = (None, "localhost")  # jobs
LISTED = 3  # machines that the note lists


def here(graph_def: Any) -> tuple[Any, str]:
    """The graph with all devices on this machine, and a note about devices on other machines."""
    machines = Counter(filter(None, (machine(node.device) for node in node_defs(graph_def))))
    if not machines:
        return graph_def, ""
    moved = tf1.GraphDef()
    moved.CopyFrom(graph_def)
    for node in node_defs(moved):
        if machine(node.device):
            node.device = local(node.device)
    names = [name for name, _ in machines.most_common(LISTED)]
    more = f" and {len(machines) - LISTED} more" if len(machines) > LISTED else ""
    return moved, (
        f"Soft placement: {machines.total():,} nodes were placed on {', '.join(names)}{more}, and "
        "run on this machine instead."
    )


def node_defs(graph_def: Any) -> Iterator[Any]:
    """The nodes of a graph and of its functions."""
    bodies = (function.node_def for function in graph_def.library.function)
    return chain(graph_def.node, chain.from_iterable(bodies))


def machine(device: str) -> str:
    """`/job:worker/task:0` from the name of a device; "" for this machine."""
    if not device:
        return ""
    try:
        spec = tf.DeviceSpec.from_string(device)
    except ValueError:
        return f"'{device}'"
    if spec.job in HERE and not spec.replica and not spec.task:
        return ""
    return tf.DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task).to_string()


def local(device: str) -> str:
    """The same device on this machine; "" (any device) for an invalid name."""
    try:
        spec = tf.DeviceSpec.from_string(device)
    except ValueError:
        return ""
    return tf.DeviceSpec(device_type=spec.device_type, device_index=spec.device_index).to_string()
