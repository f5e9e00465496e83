"""Graphs: what the ops of a graph record (gradients, lines, devices, functions), and `corner`, the
error for a private part of TensorFlow that is not as expected."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from tflab.cli import environment
from tflab.errors import TflabError

CHECKED = "2.21.0"  # the version with which everything was checked
StackFrame = tuple[str, int, str]  # file, line, function

if TYPE_CHECKING:
    from tensorflow import Graph, IndexedSlices, Operation, Tensor
    from tensorflow.core.framework.kernel_def_pb2 import KernelDef
    from tensorflow.core.framework.op_def_pb2 import OpDef

    Gradient: TypeAlias = Tensor | IndexedSlices | None

    Kept = tuple[weakref.ref[Graph], str]  # an op, by a weak reference to its graph, and its name
    Note = Callable[[Operation, Sequence[Gradient], Sequence[Gradient]], None]
    KeptOps = WeakKeyDictionary[Graph, dict[str, Kept]]

# graph -> the node of a gradient -> the op to whose gradient function it was first passed
ADDERS: KeptOps = WeakKeyDictionary()
# graph of a function's gradient -> its node -> the forward op in the function. The original
# op is unknown there, because it is in another graph.
DERIVED: KeptOps = WeakKeyDictionary()


@contextmanager
def corner(what: str, file: str) -> Iterator[None]:
    """Raise a TflabError if `what` in this file of TensorFlow is not as tflab expects, in a `with`
    block or a decorated function."""
    try:
        yield
    except (AttributeError, ImportError) as error:
        raise moved(what, file, str(error)) from error


def moved(what: str, file: str, reason: str) -> TflabError:
    return TflabError(
        f"{what[0].upper()}{what[1:]} cannot be used as in TensorFlow {CHECKED} ({file}): "
        f"{reason.rstrip('.')}. This is TensorFlow {environment.version('tensorflow')}. "
        f"Everything works with tensorflow=={CHECKED}."
    )


@corner("the forward op of a gradient op", "`_original_op` in tensorflow/python/framework/ops.py")
def original_op(op: Operation) -> Operation | None:
    """Return the forward op from which `tf.gradients` derived this one; None for any other."""
    return op._original_op


def derived_from(op: Operation) -> Operation | None:
    """Return the forward op that this op differentiates, or whose output's gradients it adds up;
    None for any other, such as the op that starts the gradients."""
    original = original_op(op) or live_op(DERIVED.get(op.graph, {}).get(op.name))
    if original is None and (adders := ADDERS.get(op.graph)) and op.name in adders:
        return live_op(adders[op.name]) if is_made_in(op, gradients_file()) else None
    return original


def live_op(reference: Kept | None) -> Operation | None:
    """Return the op; None if its graph is gone."""
    graph = reference[0]() if reference else None
    return graph.get_operation_by_name(reference[1]) if reference and graph is not None else None


@contextmanager
def derivations(
    note: Note = lambda *call: None, broke: Callable[[Exception], None] | None = None
) -> Iterator[None]:
    """Record, while this is open, which ops gradient functions derive from ops of another graph,
    and which ops add up gradients. `note` is called with each call of such a function: the op, the
    gradients that it received and those that it returned; `broke` with an error in this."""
    with corner(
        "the calls of gradient functions",
        "`_LogOpGradients` in tensorflow/python/ops/gradients_util.py",
    ):
        import tensorflow as tf
        from tensorflow.python.ops import gradients_util

        log = gradients_util._LogOpGradients

    seen: WeakKeyDictionary[Graph, int] = WeakKeyDictionary()  # graph -> its ops at the last call
    file = gradients_file()

    def keep(op: Operation, given: Sequence[Gradient]) -> None:
        reference = weakref.ref(op.graph), op.name
        made_in = tf.compat.v1.get_default_graph()
        adders = ADDERS.setdefault(made_in, {})
        if made_in is not op.graph:
            every = made_in.get_operations()
            new = every[seen.get(made_in, 0) :]
            seen[made_in] = len(every)
            derived = DERIVED.setdefault(made_in, {})
            derived |= {made.name: reference for made in new if is_made_in(made, file)}
        for gradient in given:
            parts = getattr(gradient, "values", gradient), getattr(gradient, "indices", None)
            for tensor in parts:
                if tensor is not None:
                    adders.setdefault(tensor.op.name, reference)

    def noted(op: Operation, given: Sequence[Gradient], returned: Sequence[Gradient]) -> None:
        try:
            keep(op, given)
            note(op, given, returned)
        except Exception as error:
            if broke is None:
                raise
            broke(error)
        log(op, given, returned)

    gradients_util._LogOpGradients = noted
    try:
        yield
    finally:
        gradients_util._LogOpGradients = log


@corner("the differentiation of graphs", "tensorflow/python/ops/gradients_util.py")
def gradients_file() -> str:
    """Return the file that walks the graph and calls the gradient functions."""
    from tensorflow.python.ops import gradients_util

    return str(gradients_util.__file__)


def is_made_in(op: Operation, file: str) -> bool:
    """Return whether this file is in the Python stack of the creation of an op."""
    return any(frame[0] == file for frame in stack(op))


@corner("the Python lines of ops", "tensorflow/python/util/tf_stack.py")
def stack(op: Operation) -> list[StackFrame]:
    """Return each frame of the Python stack at the making of an op, the innermost first. An
    imported op has none. `Operation.traceback` is public, what its frames are is not."""
    listed = reversed(list(op.traceback or ()))
    return [(frame.filename, frame.lineno, frame.name) for frame in listed]


@corner("the setter of an op's device", "`_set_device` in tensorflow/python/framework/ops.py")
def set_device(op: Operation, device: str) -> None:
    """Request a device for an existing op."""
    op._set_device(device)


@corner("the functions of a graph", "`_functions` in tensorflow/python/framework/ops.py")
def traced_graphs(graph: Graph) -> dict[str, Graph | None]:
    """Return for each function of a graph the graph in which this process traced it; None where it
    was imported (`AtomicFunction._cached_graph` in
    tensorflow/python/eager/polymorphic_function/atomic_function.py)."""
    from tensorflow.python.framework.function import _DefinedFunction as Imported

    return {
        name: None if isinstance(function, Imported) else function._cached_graph
        for name, function in graph._functions.items()
    }


# Op types


@corner("the definitions of op types", "tensorflow/python/framework/op_def_registry.py")
def op_def(op: str) -> OpDef | None:
    """Return the OpDef of a type, with its arguments' names and types; None if it is unknown."""
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(op)


@corner("the registry of kernels", "tensorflow/python/framework/kernels.py")
def registered_kernels(op: str) -> tuple[KernelDef, ...]:
    """Return the KernelDefs of a type, on all devices; none for an unknown type."""
    from tensorflow.python.framework import kernels

    return tuple(kernels.get_registered_kernels_for_op(op).kernel)


@corner("the registry of gradient functions", "tensorflow/python/framework/ops.py")
def gradient_function(op: Operation) -> Callable[..., Gradient | list[Gradient]] | None:
    """Return the registered gradient function of an op; None if its type is registered as not
    differentiable. Raises LookupError if it is not registered at all."""
    from tensorflow.python.framework import ops

    return ops.get_gradient_function(op)


@corner("whether oneDNN is on", "tensorflow/python/util/_pywrap_util_port")
def onednn_is_on() -> bool:
    """Return whether this TensorFlow has oneDNN's kernels and uses them."""
    from tensorflow.python.util import _pywrap_util_port

    return bool(_pywrap_util_port.IsMklEnabled())
