"""Functions that are watched: calls of a tf.function from eager code, and how it was traced.

Like sessions, the functions of TensorFlow are not wrapped: they get new code, with a call of the
watcher before and after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from tflab.runtime.private.corner import corner
from tflab.runtime.private.sessions import NOTED, WATCHER, exchanged, instrumented

FILE = "tensorflow/python/eager/polymorphic_function/atomic_function.py"
LONGEST = 80  # characters of the description of an argument

# Of AtomicFunction.call_flat, and of the function that traces a Python function
CALL = (f"{NOTED} = {WATCHER}.begin_function(self)", f"{WATCHER}.end({NOTED})")
TRACE = (
    f"{NOTED} = {WATCHER}.begin_tracing(function_type, tracing_options)",
    f"{WATCHER}.end_tracing({NOTED})",
)


def watch_functions(watcher: Any) -> Callable[[], None]:
    """Report all calls and tracings of functions to the watcher; returns a function that stops it.

    `AtomicFunction.call_flat` and `_create_concrete_function` in atomic_function.py and
    tracing_compilation.py of tensorflow/python/eager/polymorphic_function, TensorFlow 2.21.0.
    """
    with corner("the calls of a tf.function", FILE, "Functions run without being watched."):
        from tensorflow.python.eager.polymorphic_function import (
            atomic_function,
            tracing_compilation,
        )

        functions = {
            atomic_function.AtomicFunction.call_flat: CALL,
            tracing_compilation._create_concrete_function: TRACE,
        }
        watched = {
            function: instrumented(function, *calls) for function, calls in functions.items()
        }
    for module in (atomic_function, tracing_compilation):
        setattr(module, WATCHER, watcher)
    return exchanged(watched)


def called(function: Any) -> tuple[Any, Any] | None:
    """The name under which the runtime knows a function that eager code calls, and its graph; None
    where the call becomes a node of another graph.

    `AtomicFunction._bound_context` and `_cached_graph`, as above.
    """
    if not function._bound_context.executing_eagerly():
        return None
    return function.name, function._cached_graph


def arguments(function_type: Any) -> dict[str, str]:
    """What a function was traced for: each argument with its type, or its value.

    `FunctionType.parameters` in tensorflow/core/function/polymorphism/function_type.py,
    TensorFlow 2.21.0.
    """
    return {
        name: described(parameter.type_constraint)
        for name, parameter in function_type.parameters.items()
    }


def described(kind: Any) -> str:
    """`float32 (8, 4)`, `[float32 (8, 4), int64 (8,)]`, or a value of Python.

    `List`, `Tuple` and `Dict` in tensorflow/core/function/trace_type/default_types.py.
    """
    kind = getattr(kind, "components_tuple", kind)
    if hasattr(kind, "dtype") and hasattr(kind, "shape"):
        text = f"{kind.dtype.name} {kind.shape}"
    elif hasattr(kind, "components"):
        text = f"[{', '.join(map(described, kind.components))}]"
    elif hasattr(kind, "mapping"):
        pairs = (f"{key}: {described(value)}" for key, value in kind.mapping.items())
        text = f"{{{', '.join(pairs)}}}"
    else:
        text = str(getattr(kind, "value", kind))
    return text[:LONGEST]


def traced_name(options: Any) -> tuple[int, str]:
    """What tells one tf.function from the others that exist now, and its name (`TracingOptions`, as
    above)."""
    return id(options.function_cache), options.name


def is_new(options: Any) -> bool:
    """Whether a tf.function was never traced. An earlier one may have had the same id."""
    return not options.function_cache


def traced_code(options: Any) -> CodeType | None:
    """The code that the program gave to a tf.function, below all that TensorFlow wrapped it in."""
    function = options.python_function
    while inner := getattr(function, "__wrapped__", None) or getattr(function, "func", None):
        function = inner
    return getattr(function, "__code__", None)


class Profiling:
    """TensorFlow's own profiler around one call. There is one for the whole process.

    tensorflow/python/profiler/profiler_v2.py, TensorFlow 2.21.0.
    """

    def __init__(self, folder: str) -> None:
        with corner("the profiler", "profiler_v2.py", "Functions are timed without it."):
            from tensorflow.python.framework.errors import AlreadyExistsError
            from tensorflow.python.profiler import profiler_v2

            self._start, self._stop = profiler_v2.start, profiler_v2.stop
            self._busy = AlreadyExistsError
        self.folder = Path(folder, "profile")

    def start(self) -> bool:
        """Whether it could be started: the program may have its own."""
        try:
            self._start(str(self.folder))
        except self._busy:
            return False
        return True

    def stop(self) -> bytes:
        """The XSpace that it recorded."""
        self._stop()
        try:
            return next(self.folder.rglob("*.xplane.pb")).read_bytes()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def read_xspace(content: bytes) -> Any:
    """The XSpace that the profiler wrote (tensorflow/tsl/profiler/protobuf/xplane.proto)."""
    with corner("what the profiler recorded", "xplane_pb2.py", "Functions have no op times."):
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    return xplane_pb2.XSpace.FromString(content)
