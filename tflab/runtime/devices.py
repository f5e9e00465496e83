"""Devices: why each node is where it is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import tensorflow as tf

from tflab.cli import environment
from tflab.errors import TflabError
from tflab.records.graph import Node
from tflab.records.placed import Assignment, Fate, Origin
from tflab.runtime import kernels, nodes, private
from tflab.units import CLUSTER_JOBS

SPLIT, CLUSTER = "--devices", "--cluster"  # who requests a device if the model itself does not


def gpus() -> int:
    """The number of GPUs that the runtime has."""
    return len(tf.config.list_physical_devices("GPU"))


def gpu_names() -> str:
    """`2 x NVIDIA A100`, or that there are none that TensorFlow can use."""
    gpus = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, gpus)
    names = Counter(gpu.get("device_name", "unnamed") for gpu in details)
    return ", ".join(f"{count} x {name}" for name, count in names.items()) or "none"


def cuda() -> str:
    """The version of CUDA that TensorFlow was built for, and whether it is in use."""
    built = tf.sysconfig.get_build_info().get("cuda_version")
    if not built:
        return "none: this TensorFlow is built without it"
    return f"built for {built}; {'in use' if gpus() else 'not in use, there is no GPU'}"


def onednn() -> str:
    """Whether TensorFlow uses the kernels of oneDNN in this process."""
    try:
        on = private.onednn_is_on()
    except TflabError:
        return "not known"
    given = os.environ.get(environment.ONEDNN)
    return f"{'on' if on else 'off'}{f' ({environment.ONEDNN}={given})' if given else ''}"


def assignments(
    graph: tf.Graph,
    executed: Iterable[Node],
    origins: Iterable[Origin],
    ledger: Iterable[Fate],
) -> Iterable[Assignment]:
    """The device of every executed node, with the reason.

    For a user's node that is its own request, colocation or resource; a node that the runtime made
    is where the pass put it.
    """
    origin_of = {origin.name: origin.origin for origin in origins}
    user = {fate.name for fate in ledger}
    for node in executed:
        if node.name in origin_of and node.name not in user:
            reason = f"created there by the runtime ({origin_of[node.name]})"
            yield Assignment(node.name, node.device, reason)
        elif node.name in user:
            reason = reason_of(graph.get_operation_by_name(node.name), node.device)
            yield Assignment(node.name, node.device, reason)


def reason_of(op: tf.Operation, device: str) -> str:
    """In the order in which the placer decides (core/common_runtime/colocation_graph.cc)."""
    if mates := [name for name in colocated_with(op) if name != op.name]:
        return f"colocated with {mates[0]}"
    if op.device:
        reason = f"requested by {requester(op)}"
        if matches(op.device, device):
            return reason
        request = op.device.rpartition("device:")[2]
        return f"{reason}: {request}, which soft placement replaced"
    resources = [tensor.op.name for tensor in op.inputs if tensor.dtype.base_dtype == tf.resource]
    if resources:
        return f"where its resource {resources[0]} is"
    kinds = {kernel.device_type for kernel in kernels.registered(op.type)}
    if kinds & {"CPU", "GPU", "DEFAULT"} == {kernels.device_type(device)}:
        return f"only the {kernels.device_type(device)} has a kernel"
    return "the default device"


def colocated_with(op: tf.Operation) -> list[str]:
    return [group.decode().removeprefix("loc:@") for group in op.colocation_groups()]


def requester(op: tf.Operation) -> str:
    """The line of the innermost `tf.device`."""
    if op.device.startswith(CLUSTER_JOBS):
        return CLUSTER
    requests = private.device_requests(op)
    if not requests:
        return SPLIT
    users = [(file, line) for file, line in requests if not file.startswith(nodes.LIBRARIES)]
    file, number = (users or requests)[0]
    line = f"{os.path.basename(file)}:{number}"
    return line if users else f"TensorFlow itself ({line})"


def matches(request: str, device: str) -> bool:
    """Whether a device fits a request, which may omit parts of the name."""
    requested, got = tf.DeviceSpec.from_string(request), tf.DeviceSpec.from_string(device)
    return requested.device_type in (None, got.device_type) and requested.device_index in (
        None,
        got.device_index,
    )
