"""Kernels: an operator becomes the implementation that its device has registered."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tflab.records.placed import Kernel
from tflab.runtime import private


def chosen(graphs: Iterable[Any], user_graph: tf.Graph) -> Iterable[Kernel]:
    """For each node of the partition graphs: the registration that fits its device and types.

    The rule is that of core/framework/op_kernel.cc: device type, type constraints and label must
    fit, and the highest priority wins. What a GPU would run is determined in the same way from the
    type that the user wrote; it does not run here.
    """
    node_defs = {op.name: op.node_def for op in user_graph.get_operations()}
    for graph in graphs:
        for node in graph.node:
            fitting = fitting_kernels(node, device_type(node.device))
            best = max(fitting, key=lambda kernel: kernel.priority, default=None)
            source = node_defs.get(node.name)
            yield Kernel(
                name=node.name,
                op=node.op,
                device=node.device,
                types=types_of(node),
                registrations=len(fitting),
                constraints="" if best is None else describe(best),
                on_gpu=gpu_choice(source if source is not None else node),
            )


def fitting_kernels(node: Any, device_type: str) -> tuple[Any, ...]:
    """The registered KernelDefs that may run a NodeDef on a type of device.

    Those registered for every device (`DEFAULT`) count only if the device has none of its own.
    """
    label = node.attr["_kernel"].s.decode() if "_kernel" in node.attr else ""
    types = [
        (name, types_in(node.attr[name])) for name in constrained(node.op) if name in node.attr
    ]
    return fitting(node.op, label, tuple(types), device_type)


@functools.cache
def fitting(
    op: str, label: str, types: tuple[tuple[str, frozenset[int]], ...], device_type: str
) -> tuple[Any, ...]:
    """Those of an op whose constrained attributes are these types."""
    given = dict(types)
    possible = [
        kernel
        for kernel in registered(op)
        if kernel.label == label
        and all(
            given.get(constraint.name, frozenset()) <= set(constraint.allowed_values.list.type)
            for constraint in kernel.constraint
        )
    ]
    on_device = tuple(kernel for kernel in possible if kernel.device_type == device_type)
    return on_device or tuple(kernel for kernel in possible if kernel.device_type == "DEFAULT")


@functools.cache
def registered(op: str) -> tuple[Any, ...]:
    return private.registered_kernels(op)


@functools.cache
def constrained(op: str) -> tuple[str, ...]:
    """The attributes that a kernel of this op constrains."""
    return tuple(dict.fromkeys(one.name for kernel in registered(op) for one in kernel.constraint))


def types_in(attribute: Any) -> frozenset[int]:
    """The DataTypes of an attribute that is a type or a list of types."""
    return frozenset(attribute.list.type) or frozenset((attribute.type,))


def types_of(node: Any) -> str:
    """`T=float32, Tidx=int32`: the type attributes of a node."""
    return ", ".join(
        f"{name}={tf.dtypes.as_dtype(value.type).name}"
        for name, value in sorted(node.attr.items())
        if value.type
    )


def describe(kernel: Any) -> str:
    """`CPU, T in float32`: the conditions of a registration."""
    parts = ["any device" if kernel.device_type == "DEFAULT" else kernel.device_type]
    for constraint in kernel.constraint:
        names = [tf.dtypes.as_dtype(t).name for t in constraint.allowed_values.list.type]
        parts.append(f"{constraint.name} in {'|'.join(names)}")
    if kernel.label:
        parts.append(f"label {kernel.label}")
    if kernel.priority:
        parts.append(f"priority {kernel.priority}")
    return ", ".join(parts)


def gpu_choice(node: Any) -> str | None:
    """The registration that a GPU would use for a node, as the user wrote it."""
    best = max(fitting_kernels(node, "GPU"), key=lambda kernel: kernel.priority, default=None)
    return None if best is None else describe(best)


def device_type(device: str) -> str:
    """`CPU` of `/job:localhost/replica:0/task:0/device:CPU:0`; a bare type stays as it is."""
    return device.rpartition("device:")[2].partition(":")[0]
