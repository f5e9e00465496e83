"""Devices: by which kernel each node is computed, and the devices of this machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache

import tensorflow as tf
from tensorflow.compat.v1 import GraphDef

from tflab.cli import environment
from tflab.errors import TflabError
from tflab.records.placed import Kernel
from tflab.runtime.private import graphs
from tflab.units import size

Types = tuple[tuple[str, tuple[int, ...]], ...]  # of the attributes of a node


# Kernels: an operator becomes the implementation that its device has registered


def chosen_kernels(partitions: Iterable[GraphDef]) -> Iterator[Kernel]:
    """Yield for each node of the partition graphs the registration that fits its device type, types
    and label, by the rule of core/framework/op_kernel.cc: the highest priority wins."""
    for node in (node for graph in partitions for node in graph.node):
        label = node.attr["_kernel"].s.decode() if "_kernel" in node.attr else ""
        given = ((name, tuple(attr.list.type) or (attr.type,)) for name, attr in node.attr.items())
        types = tuple(sorted((name, types) for name, types in given if any(types)))
        # `CPU` of `/job:localhost/replica:0/task:0/device:CPU:0`
        device_type = node.device.rpartition("device:")[2].partition(":")[0]
        constraints = fitting(node.op, label, types, device_type)
        yield Kernel(node.name, node.op, node.device, constraints)


@cache
def fitting(op: str, label: str, types: Types, device_type: str) -> str:
    """Return the conditions of the kernel that is chosen for such an op: `CPU, float32`; "" if
    there is none. A kernel for every device (`DEFAULT`) counts if the device itself has none."""
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
        return ""
    kernel = max(kernels, key=lambda kernel: kernel.priority)
    parts = ["any device" if kernel.device_type == "DEFAULT" else kernel.device_type]
    for constraint in kernel.constraint:
        names = [tf.dtypes.as_dtype(t).name for t in constraint.allowed_values.list.type]
        parts.append(f"{constraint.name} in " * (constraint.name != "T") + "|".join(names))
    parts += [f"priority {kernel.priority}"] if kernel.priority else []
    return ", ".join(parts)


registered = cache(graphs.registered_kernels)


# The machine, from the system and from TensorFlow


def gpus() -> int:
    """Return the number of GPUs that the runtime has."""
    return len(tf.config.list_physical_devices("GPU"))


def inspected() -> list[tuple[str, str]]:
    """Return (property, value) for each line of the environment table."""
    about = environment.describe()
    packages = dict(about["packages"])
    framework = packages.pop("tensorflow")
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    names = Counter(gpu.get("device_name", "unnamed") for gpu in details)
    cuda = tf.sysconfig.get_build_info().get("cuda_version")
    use = "in use" if gpus() else "not in use, there is no GPU"
    cuda = f"built for {cuda}; {use}" if cuda else "none: this TensorFlow is built without it"
    return [
        ("(v)CPUs", f"{about['cpus']} ({about['processor']})"),
        ("Memory", memory()),
        ("GPUs", ", ".join(f"{count} x {name}" for name, count in names.items()) or "none"),
        ("Operating system", about["os"]),
        ("Framework", f"tensorflow {framework}"),
        ("oneDNN", onednn()),
        ("Python", about["python"]),
        ("CUDA", cuda),
        ("Other packages", ", ".join(f"{name} {has}" for name, has in packages.items() if has)),
    ]


def memory() -> str:
    try:
        return size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows; a system without this information
        return "not known"


def onednn() -> str:
    """Return `on` if TensorFlow uses the kernels of oneDNN in this process, otherwise `off`."""
    given = os.environ.get(environment.ONEDNN)
    with suppress(TflabError):
        on = "on" if graphs.onednn_is_on() else "off"
        return f"{on} ({environment.ONEDNN}={given})" if given else on
    return "not known"
