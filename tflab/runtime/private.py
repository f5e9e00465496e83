"""Private: the corners of TensorFlow that are not public, a function for each. Nobody else of tflab
touches them.

TensorFlow promises to keep only what its API documents. What a graph's ops were made for, which
kernel fits them and what the runtime did to them stands behind that. Each function here says what
it does and in which file of TensorFlow it was looked up; all were checked with CHECKED. Where
another version keeps it elsewhere, a TflabError says so, and what still works.

TensorFlow is imported where it is needed: the variables for dumps have to be set before it is.
The names of graph dumps are known to `dump_names`, XLA's own flags and dumps to `tflab.xla`.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tflab.cli import environment
from tflab.errors import TflabError

CHECKED = "2.21.0"  # the version that all of this was looked up in


@contextmanager
def corner(what: str, file: str, works: str) -> Iterator[None]:
    """Say in a sentence that `what` is no longer in the file where tflab looks for it, and what
    still works without it."""
    try:
        yield
    except (AttributeError, ImportError) as error:
        raise moved(what, file, works, str(error)) from error


def moved(what: str, file: str, works: str, reason: str) -> TflabError:
    return TflabError(
        f"{what[0].upper()}{what[1:]} cannot be had as in TensorFlow {CHECKED} ({file}): "
        f"{reason.rstrip('.')}. This is TensorFlow {environment.version('tensorflow')}. {works} "
        f"All works with tensorflow=={CHECKED}."
    )


# Types of ops


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
    """The registered gradient function of an op; None where its type is registered as not
    differentiable, LookupError where it is not registered at all.

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


def flops(graph: Any, node_def: Any) -> float | None:
    """The FLOPs of a node of the graph; None where no function that counts is registered.

    The registry is in tensorflow/python/framework/ops.py, the functions that count in
    tensorflow/python/profiler/internal/flops_registry.py, TensorFlow 2.21.0.
    """
    with corner(
        "the registry that counts FLOPs",
        "tensorflow/python/profiler/internal/flops_registry.py",
        "The four stages and training work without it; the tables of compare do not.",
    ):
        from tensorflow.python.framework import ops
        from tensorflow.python.profiler.internal import flops_registry  # noqa: F401  (registers)

        get = ops.get_stats_for_node_def
    return get(graph, node_def, "flops").value


# Ops of a graph


def original_op(op: Any) -> Any:
    """The forward op from which `tf.gradients` derived this one; None for any other.

    `Operation._original_op` in tensorflow/python/framework/ops.py, TensorFlow 2.21.0.
    """
    with corner(
        "the forward op of a gradient op",
        "`_original_op` in tensorflow/python/framework/ops.py",
        "Recorded traces can still be converted.",
    ):
        return op._original_op


@contextmanager
def gradient_calls() -> Iterator[list[tuple[Any, Sequence[Any], Sequence[Any]]]]:
    """While it lasts, `tf.gradients` adds to the list, for each op whose gradient function it
    calls: the op, the gradients that the function was given and those that it returned.

    `_LogOpGradients` in tensorflow/python/ops/gradients_util.py, TensorFlow 2.21.0, is called with
    them to log them.
    """
    calls: list[tuple[Any, Sequence[Any], Sequence[Any]]] = []
    with corner(
        "the calls of gradient functions",
        "`_LogOpGradients` in tensorflow/python/ops/gradients_util.py",
        "The stage frontend works without it: give --stage frontend.",
    ):
        from tensorflow.python.ops import gradients_util

        log = gradients_util._LogOpGradients

    def note(op: Any, given: Sequence[Any], returned: Sequence[Any]) -> None:
        calls.append((op, tuple(given), tuple(returned)))
        log(op, given, returned)

    gradients_util._LogOpGradients = note
    try:
        yield calls
    finally:
        gradients_util._LogOpGradients = log


def gradients_file() -> str:
    """The file whose lines walk the graph and call the gradient functions.

    tensorflow/python/ops/gradients_util.py, TensorFlow 2.21.0.
    """
    with corner(
        "the differentiation of graphs",
        "tensorflow/python/ops/gradients_util.py",
        "The stage frontend works without it: give --stage frontend.",
    ):
        from tensorflow.python.ops import gradients_util

        return gradients_util.__file__


def frame_within(op: Any, file: str) -> tuple[str, int, str, str] | None:
    """File, line, function and code of the last frame in one file, of the Python stack at the
    making of an op.

    As in `frame_outside`: tensorflow/python/util/tf_stack.py, TensorFlow 2.21.0.
    """
    return last_frame(op, lambda name: name == file)


def frame_outside(op: Any, folders: tuple[str, ...]) -> tuple[str, int, str, str] | None:
    """File, line, function and code of the last frame outside these folders, of the Python stack
    at the making of an op. An imported op has none.

    `Operation.traceback` is public, what its frames are is not
    (tensorflow/python/util/tf_stack.py, TensorFlow 2.21.0).
    """
    return last_frame(op, lambda name: not name.startswith(folders))


def last_frame(op: Any, wanted: Callable[[str], bool]) -> tuple[str, int, str, str] | None:
    """The last frame of an op's Python stack in a file that is wanted, with its line of code."""
    with corner(
        "the Python lines of ops",
        "tensorflow/python/util/tf_stack.py",
        "Recorded traces can still be converted.",
    ):
        for frame in reversed(list(op.traceback or ())):
            if wanted(frame.filename):
                code = frame.line or linecache.getline(frame.filename, frame.lineno)
                return frame.filename, frame.lineno, frame.name, code.strip()
    return None


def device_requests(op: Any) -> list[tuple[str, int]]:
    """File and line of each `tf.device` around the making of an op, the innermost first.

    `Operation._device_assignments` in tensorflow/python/framework/ops.py, TensorFlow 2.21.0.
    """
    with corner(
        "the lines of `tf.device`",
        "`_device_assignments` in tensorflow/python/framework/ops.py",
        "The stages frontend and backward, and training, work without it.",
    ):
        requests = [(request.filename, request.lineno) for request in op._device_assignments or ()]
    return [(file, line) for file, line in requests if file]


def set_device(op: Any, device: str) -> None:
    """Ask for a device after an op was made.

    `Operation._set_device` in tensorflow/python/framework/ops.py, TensorFlow 2.21.0.
    """
    with corner(
        "the setter of an op's device",
        "`_set_device` in tensorflow/python/framework/ops.py",
        "All works without it on one device: leave out --devices.",
    ):
        setter = op._set_device
    setter(device)


def traced_graphs(graph: Any) -> dict[str, Any]:
    """For each function of a graph the graph in which this process traced it; None where it was
    imported.

    `Graph._functions` in tensorflow/python/framework/ops.py and `AtomicFunction._cached_graph` in
    tensorflow/python/eager/polymorphic_function/atomic_function.py, TensorFlow 2.21.0.
    """
    with corner(
        "the functions of a graph",
        "`_functions` in tensorflow/python/framework/ops.py",
        "Recorded traces can still be converted.",
    ):
        from tensorflow.python.framework.function import _DefinedFunction as Imported

        return {
            name: None if isinstance(function, Imported) else function._cached_graph
            for name, function in graph._functions.items()
        }


# Sessions


def compiled_step(
    session: Any,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
    run_options: Any,
) -> Callable[..., Any]:
    """A step that is compiled once: called with the values to feed, and `run_metadata=` if traced.
    It costs less than `Session.run`.

    `Session._make_callable_from_options` in tensorflow/python/client/session.py, CallableOptions
    in tensorflow/core/protobuf/config.proto, TensorFlow 2.21.0.
    """
    with corner(
        "compiled steps",
        "`_make_callable_from_options` in tensorflow/python/client/session.py",
        "The stages frontend and backward work without them: give --stage backward.",
    ):
        from tensorflow.core.protobuf.config_pb2 import CallableOptions

        make = session._make_callable_from_options
    return make(CallableOptions(feed=feeds, fetch=fetches, target=targets, run_options=run_options))


def shared_step(
    session: Any, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> Callable[..., None]:
    """A step for traces whose options are given with each call: `run_options=`, `run_metadata=`.

    It is what `Session.run` ends in, and costs a little more than a compiled step. But a compiled
    step has a graph of its own, in which XLA numbers its clusters anew; here all options share
    one. `BaseSession._call_tf_sessionrun` in tensorflow/python/client/session.py, TensorFlow
    2.21.0.
    """
    with corner(
        "steps that share a graph",
        "`_call_tf_sessionrun` in tensorflow/python/client/session.py",
        "All works without them but --xla.",
    ):
        from tensorflow.python.client import pywrap_tf_session as client

        session._extend_graph()
        graph, call = session.graph, session._call_tf_sessionrun
        inputs = [graph.get_tensor_by_name(name)._as_tf_output() for name in feeds]
        outputs = [graph.get_tensor_by_name(name)._as_tf_output() for name in fetches]
        operations = [graph.get_operation_by_name(name)._c_op for name in targets]
        buffer, release, content, filled = (
            client.TF_NewBuffer,
            client.TF_DeleteBuffer,
            client.TF_GetBuffer,
            client.TF_NewBufferFromString,
        )

    def run(*values: Any, run_options: Any, run_metadata: Any) -> None:
        written, options = buffer(), filled(run_options.SerializeToString())
        try:
            fed = dict(zip(inputs, values, strict=True))
            call(options, fed, outputs, operations, written)
            run_metadata.ParseFromString(content(written))
        finally:
            release(options)
            release(written)

    return run


# The debugger

DEBUG_NODES = {"__copy_": ("Copy", "CopyHost"), "__dbg_": ("DebugIdentity",)}  # prefix -> types


def debug_options(graph: Any, folder: str) -> Any:
    """The DebugOptions that make a step write each tensor of the graph that runs to a folder.

    `watch_graph` in tensorflow/python/debug/lib/debug_utils.py, TensorFlow 2.21.0. The runtime
    makes paths of the names of nodes, and ends the process where it cannot write: see
    tensorflow/core/debug/debug_io_utils.cc and `tflab.runtime.debugger`.
    """
    with corner(
        "the runtime's debugger",
        "tensorflow/python/debug/lib/debug_utils.py",
        "All works without it: give --no-values.",
    ):
        from tensorflow.core.protobuf.config_pb2 import RunOptions
        from tensorflow.python.debug.lib import debug_utils

        options = RunOptions()
        debug_utils.watch_graph(
            options,
            graph,
            debug_urls=f"file://{folder}",
            tolerate_debug_op_creation_failures=True,
            reset_disk_byte_usage=True,
        )
        return options.debug_options


def no_values(reason: str) -> TflabError:
    """What to say where the debugger wrote something else than it does."""
    return moved(
        "the values of a step",
        "tensorflow/core/debug/debug_io_utils.cc",
        "All works without them: give --no-values.",
        reason,
    )


# Files


def saved_model() -> Any:
    """An empty SavedModel, the message in a saved_model.pb.

    tensorflow/core/protobuf/saved_model.proto, TensorFlow 2.21.0.
    """
    with corner(
        "the message of a SavedModel",
        "tensorflow/core/protobuf/saved_model.proto",
        "Models written in Python work without it.",
    ):
        from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

        return SavedModel()


def debug_info() -> Any:
    """An empty GraphDebugInfo, the lines of the nodes of a saved graph.

    tensorflow/core/framework/graph_debug_info.proto, TensorFlow 2.21.0.
    """
    with corner(
        "the message of a graph's lines",
        "tensorflow/core/framework/graph_debug_info.proto",
        "Graphs work without it where debug/saved_model_debug_info.pb is taken away.",
    ):
        from tensorflow.core.framework.graph_debug_info_pb2 import GraphDebugInfo

        return GraphDebugInfo()
