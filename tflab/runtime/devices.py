"""Devices: why each node is where it is, by which kernel it is computed there, and the devices of
this machine."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

import tensorflow as tf
from tensorflow.compat.v1 import GraphDef, NodeDef
from tensorflow.core.framework.kernel_def_pb2 import KernelDef

from tflab.cli import environment
from tflab.errors import TflabError
from tflab.records.graph import Node, Source
from tflab.records.placed import Assignment, Fate, Kernel, Origin
from tflab.runtime import nodes, private
from tflab.units import CLUSTER_JOBS, size

Types = tuple[tuple[str, tuple[int, ...]], ...]  # of the attributes of a node
SPLIT, CLUSTER = "--devices", "--cluster"  # who requests a device if the model itself does not
IMPORTER = "importer.py"  # of TensorFlow: it requests what the file of a graph says


def assignments(
    graph: tf.Graph,
    executed: Iterable[Node],
    origins: Iterable[Origin],
    ledger: Iterable[Fate],
) -> Iterator[Assignment]:
    """Yield the device of every executed node, with the reason.

    For a user's node that is its own request, colocation or resource; a node that the runtime made
    is where the pass put it.
    """
    origin_of = {origin.name: origin.origin for origin in origins}
    user = {fate.name for fate in ledger}
    for node in executed:
        if node.name in user:
            reason = reason_of(graph.get_operation_by_name(node.name), node)
            yield Assignment(node.name, node.device, reason)
        elif node.name in origin_of:
            reason = f"created there by the runtime ({origin_of[node.name]})"
            yield Assignment(node.name, node.device, reason)


def reason_of(op: tf.Operation, node: Node) -> str:
    """Return why a node runs on its device, in the order in which the placer decides
    (core/common_runtime/colocation_graph.cc)."""
    device = node.device
    groups = (group.decode().removeprefix("loc:@") for group in op.colocation_groups())
    if mate := next((name for name in groups if name != op.name), None):
        return f"colocated with {mate}"
    if op.device:
        reason = f"requested {requester(op, node.source)}"
        if matches(op.device, device):
            return reason
        request = op.device.rpartition("device:")[2]
        return f"{reason}: {request}, which soft placement replaced"
    resources = [tensor.op.name for tensor in op.inputs if tensor.dtype.base_dtype == tf.resource]
    if resources:
        return f"where its resource {resources[0]} is"
    kinds = {kernel.device_type for kernel in registered(op.type)}
    if kinds & {"CPU", "GPU", "DEFAULT"} == {device_type(device)}:
        return f"only the {device_type(device)} has a kernel"
    return "the default device"


def requester(op: tf.Operation, source: Source | None) -> str:
    """Return who requested an op's device: `by train.py:12`, the line of the innermost `tf.device`.

    In a graph from a file the file requested it, at the line that made the node, if the file has
    lines.
    """
    if op.device.startswith(CLUSTER_JOBS):
        return f"by {CLUSTER}"
    requests = private.device_requests(op)
    if not requests:
        return f"by {SPLIT}"
    users = [place for place in requests if not nodes.includes(place[0])]
    file, line = (users or requests)[0]
    if not users and os.path.basename(file) == IMPORTER:
        return "in the file" + (f" ({place_of(source.file, source.line)})" if source else "")
    place = place_of(file, line)
    return f"by {place}" if users else f"by TensorFlow itself ({place})"


def place_of(file: str, line: int) -> str:
    return f"{os.path.basename(file)}:{line}"


def matches(request: str, device: str) -> bool:
    """Return whether a device fits a request, which may omit parts of the name."""
    asked, got = tf.DeviceSpec.from_string(request), tf.DeviceSpec.from_string(device)
    same_type = asked.device_type in (None, got.device_type)
    return same_type and asked.device_index in (None, got.device_index)


# Kernels: an operator becomes the implementation that its device has registered


def chosen_kernels(graphs: Iterable[GraphDef], user_graph: tf.Graph) -> Iterator[Kernel]:
    """Yield for each node of the partition graphs the registration that fits its device and types.

    The rule is that of core/framework/op_kernel.cc: device type, type constraints and label must
    fit, and the highest priority wins. What a GPU would run is determined in the same way from the
    type that the user wrote; it does not run here.
    """
    ops = {op.name: op for op in user_graph.get_operations()}
    for node in (node for graph in graphs for node in graph.node):
        written = ops[node.name].node_def if node.name in ops else node
        registrations, constraints = fitting(*traits(node), device_type(node.device))
        _, on_gpu = fitting(*traits(written), "GPU")
        types = ", ".join(
            f"{name}={tf.dtypes.as_dtype(value.type).name}"
            for name, value in sorted(node.attr.items())
            if value.type
        )
        yield Kernel(
            name=node.name,
            op=node.op,
            device=node.device,
            types=types,
            registrations=registrations,
            constraints=constraints or "",
            on_gpu=on_gpu,
        )


def traits(node: NodeDef) -> tuple[str, str, Types]:
    """Return what decides which kernels may run a node: its op, its label, and its types."""
    label = node.attr["_kernel"].s.decode() if "_kernel" in node.attr else ""
    given = ((name, tuple(value.list.type) or (value.type,)) for name, value in node.attr.items())
    return node.op, label, tuple(sorted((name, types) for name, types in given if any(types)))


@functools.cache
def fitting(op: str, label: str, types: Types, device_type: str) -> tuple[int, str | None]:
    """Return how many registered kernels may run an op with these traits on a type of device, and
    the conditions of the kernel with the highest priority: `CPU, T in float32`.

    Those that are registered for every device (`DEFAULT`) count only if it has none of its own.
    """
    given = dict(types)
    possible = [
        kernel
        for kernel in registered(op)
        if kernel.label == label
        and all(
            {*given.get(constraint.name, ())} <= {*constraint.allowed_values.list.type}
            for constraint in kernel.constraint
        )
    ]
    own = [kernel for kernel in possible if kernel.device_type == device_type]
    kernels = own or [kernel for kernel in possible if kernel.device_type == "DEFAULT"]
    if not kernels:
        return 0, None
    kernel = max(kernels, key=lambda kernel: kernel.priority)
    parts = ["any device" if kernel.device_type == "DEFAULT" else kernel.device_type]
    for constraint in kernel.constraint:
        names = [tf.dtypes.as_dtype(t).name for t in constraint.allowed_values.list.type]
        parts.append(f"{constraint.name} in {'|'.join(names)}")
    parts += [f"label {kernel.label}"] if kernel.label else []
    parts += [f"priority {kernel.priority}"] if kernel.priority else []
    return len(kernels), ", ".join(parts)


@functools.cache
def registered(op: str) -> tuple[KernelDef, ...]:
    return private.registered_kernels(op)


def device_type(device: str) -> str:
    """Return `CPU` of `/job:localhost/replica:0/task:0/device:CPU:0`, or a bare type as it is."""
    return device.rpartition("device:")[2].partition(":")[0]


# The machine, from the system and from TensorFlow


def gpus() -> int:
    """Return the number of GPUs that the runtime has."""
    return len(tf.config.list_physical_devices("GPU"))


def inspected() -> list[tuple[str, str]]:
    """Return (property, value) for each line of the environment table."""
    about = environment.describe()
    packages = dict(about["packages"])
    framework = packages.pop("tensorflow")
    return [
        ("(v)CPUs", f"{about['cpus']} ({about['processor']})"),
        ("Memory", memory()),
        ("GPUs", gpu_names()),
        ("Operating system", about["os"]),
        ("Framework", f"tensorflow {framework}"),
        ("oneDNN", onednn()),
        ("Python", about["python"]),
        ("CUDA", cuda()),
        ("Other packages", ", ".join(f"{name} {has}" for name, has in packages.items() if has)),
    ]


def memory() -> str:
    try:
        return size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows; a system without this information
        return "not known"


def gpu_names() -> str:
    """Return `2 x NVIDIA A100`, or "none" without one that TensorFlow can use."""
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    names = Counter(gpu.get("device_name", "unnamed") for gpu in details)
    return ", ".join(f"{count} x {name}" for name, count in names.items()) or "none"


def cuda() -> str:
    """Return the version of CUDA that TensorFlow was built for, and whether it is in use."""
    built = tf.sysconfig.get_build_info().get("cuda_version")
    use = "in use" if gpus() else "not in use, there is no GPU"
    return f"built for {built}; {use}" if built else "none: this TensorFlow is built without it"


def onednn() -> str:
    """Return `on` if TensorFlow uses the kernels of oneDNN in this process, otherwise `off`."""
    given = os.environ.get(environment.ONEDNN)
    with suppress(TflabError):
        on = "on" if private.onednn_is_on() else "off"
        return f"{on} ({environment.ONEDNN}={given})" if given else on
    return "not known"
