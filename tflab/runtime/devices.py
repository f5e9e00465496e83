"""Devices: why each node is where it is, and which tensors are sent between devices."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tflab.cli import environment
from tflab.errors import TflabError
from tflab.records.graph import Node, Shape, Tensor
from tflab.records.placed import Assignment, Fate, Origin, Transfer
from tflab.runtime import costs, kernels, nodes, private
from tflab.units import CLUSTER_JOBS

SENDS, RECVS = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")  # the second ones: from host memory
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


# Tensors that are sent from one device to another, in the graphs that run


def transfers(
    graphs: Iterable[Any], shapes: Mapping[str, Shape], received: Mapping[str, int] | None = None
) -> Iterator[Transfer]:
    """One Transfer for each `_Send`; the `_Recv` with the same rendezvous name is its other end.

    `received` are the bytes that tasks recorded, by edge, for tensors whose size does not follow
    from a shape: of unknown shape, or of text.
    """
    node_defs = [node_def for graph in graphs for node_def in graph.node]
    receivers = {
        rendezvous(node_def): node_def.name for node_def in node_defs if node_def.op in RECVS
    }
    for node_def in node_defs:
        if node_def.op not in SENDS or node_def.attr["client_terminated"].b:
            continue  # or a fetch from a cluster
        dtype = tf.dtypes.as_dtype(node_def.attr["T"].type)
        shape = shapes.get(node_def.input[0])
        edge = node_def.attr["tensor_name"].s.decode()
        size = costs.tensor_bytes(Tensor(dtype.name, shape))
        yield Transfer(
            tensor=node_def.input[0],
            send=node_def.name,
            recv=receivers.get(rendezvous(node_def), ""),
            from_device=node_def.attr["send_device"].s.decode(),
            to_device=node_def.attr["recv_device"].s.decode(),
            dtype=dtype.name,
            shape=shape,
            bytes=(received or {}).get(edge) if size is None else size,
            edge=edge,
        )


def rendezvous(node_def: Any) -> tuple[bytes, ...]:
    """What a `_Send` and its `_Recv` have in common (rendezvous.h, `CreateKey`)."""
    return tuple(node_def.attr[key].s for key in ("send_device", "recv_device", "tensor_name"))
