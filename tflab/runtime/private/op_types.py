"""What TensorFlow knows about op types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflab.runtime.private.corner import corner


def op_def(op: str) -> Any:
    """The OpDef of a type, with the names and types of its arguments; None for an unknown type.

    tensorflow/python/framework/op_def_registry.py, TensorFlow 2.21.0.
    """
    with corner(
        "the definitions of op types",
        "tensorflow/python/framework/op_def_registry.py",
        "Recorded traces without graphs can still be converted.",
    ):
        from tensorflow.python.framework import op_def_registry

        get = op_def_registry.get
    return get(op)


def registered_kernels(op: str) -> tuple[Any, ...]:
    """The KernelDefs that are registered for a type, on all devices; none for an unknown type.

    tensorflow/python/framework/kernels.py, TensorFlow 2.21.0.
    """
    with corner(
        "the registry of kernels",
        "tensorflow/python/framework/kernels.py",
        "The stages frontend and backward, and training, work without it.",
    ):
        from tensorflow.python.framework import kernels

        get = kernels.get_registered_kernels_for_op
    return tuple(get(op).kernel)


def gradient_function(op: Any) -> Callable[..., Any] | None:
    """The registered gradient function of an op; None if its type is registered as not
    differentiable. Raises LookupError if it is not registered at all.

    tensorflow/python/framework/ops.py, TensorFlow 2.21.0.
    """
    with corner(
        "the registry of gradient functions",
        "tensorflow/python/framework/ops.py",
        "The stage frontend works without it: give --stage frontend.",
    ):
        from tensorflow.python.framework import ops

        get = ops.get_gradient_function
    return get(op)


def onednn_is_on() -> bool:
    """Whether this TensorFlow was built with oneDNN, and its kernels are not switched off.

    tensorflow/python/util/_pywrap_util_port, TensorFlow 2.21.0.
    """
    with corner(
        "whether oneDNN is on",
        "tensorflow/python/util/_pywrap_util_port",
        "Everything works without it.",
    ):
        from tensorflow.python.util import _pywrap_util_port

        is_on = _pywrap_util_port.IsMklEnabled
    return bool(is_on())
