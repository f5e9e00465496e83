"""What TensorFlow knows about op types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tflab.runtime.private.corner import corner

if TYPE_CHECKING:
    from tensorflow import IndexedSlices, Operation, Tensor
    from tensorflow.core.framework.kernel_def_pb2 import KernelDef
    from tensorflow.core.framework.op_def_pb2 import OpDef

    Gradient = Callable[..., Tensor | IndexedSlices | list[Tensor | IndexedSlices | None] | None]


@corner("the definitions of op types", "tensorflow/python/framework/op_def_registry.py")
def op_def(op: str) -> OpDef | None:
    """Return the OpDef of a type, with the names and types of its arguments; None for an unknown
    type."""
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(op)


@corner("the registry of kernels", "tensorflow/python/framework/kernels.py")
def registered_kernels(op: str) -> tuple[KernelDef, ...]:
    """Return the KernelDefs that are registered for a type, on all devices; none for an unknown
    type."""
    from tensorflow.python.framework import kernels

    return tuple(kernels.get_registered_kernels_for_op(op).kernel)


@corner("the registry of gradient functions", "tensorflow/python/framework/ops.py")
def gradient_function(op: Operation) -> Gradient | None:
    """Return the registered gradient function of an op; None if its type is registered as not
    differentiable. Raises LookupError if it is not registered at all."""
    from tensorflow.python.framework import ops

    return ops.get_gradient_function(op)


@corner("whether oneDNN is on", "tensorflow/python/util/_pywrap_util_port")
def onednn_is_on() -> bool:
    """Return whether this TensorFlow was built with oneDNN, and its kernels are not switched
    off."""
    from tensorflow.python.util import _pywrap_util_port

    return bool(_pywrap_util_port.IsMklEnabled())
