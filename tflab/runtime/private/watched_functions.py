"""Functions that are watched: calls of a tf.function from eager code, and how it was traced. As in
`sessions`, the functions of TensorFlow get new code."""

from __future__ import annotations

import inspect
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from tflab.runtime.private.graphs import corner
from tflab.runtime.private.sessions import NOTED, WATCHER, exchanged, instrumented

FILE = "tensorflow/python/eager/polymorphic_function/atomic_function.py"
LONGEST = 80  # characters of the description of an argument
WRAPPED = ("__wrapped__", "func", "_python_function", "__func__")  # where wrappers keep a function
MOST_PARTS = 100  # of an argument, to be compared one by one

# As in `sessions`, of AtomicFunction.call_flat, and of the function that traces a Python function
CALL = (
    f"{NOTED} = {WATCHER}.begin_function(self)",
    f"{WATCHER}.end({NOTED})",
    f"{WATCHER}.returned({NOTED}, None)",
)
# Of the Optional that Keras' step returns
GOT = ("", "", f"{WATCHER}.got(None)")
# Of Function.__call__, if calls are to run op by op
OUTER = (f"{NOTED} = {WATCHER}.enter_function(self._name)", f"{WATCHER}.leave_function({NOTED})")
TRACE = (
    f"{NOTED} = {WATCHER}.begin_tracing(function_type, tracing_options, func_graph)",
    f"{WATCHER}.end_tracing({NOTED})",
)


def watch_functions(calls: Any, tracings: Any, outer: Any = None) -> Callable[[], None]:
    """Report all calls and tracings of functions to these watchers by the calls above. Where a
    program itself calls a tf.function, report that to `outer`. Return a function that ends this.
    The `broke` of a watcher gets the errors of its other methods."""
    with corner("the calls of a tf.function", FILE):
        from tensorflow.python.data.ops import optional_ops
        from tensorflow.python.eager.polymorphic_function import (
            atomic_function,
            polymorphic_function,
            tracing_compilation,
        )

        functions: dict[Any, tuple[str, ...]] = {
            atomic_function.AtomicFunction.call_flat: CALL,
            tracing_compilation._create_concrete_function: TRACE,
            optional_ops._OptionalImpl.get_value: GOT,
        }
        if outer:
            functions[inspect.unwrap(polymorphic_function.Function.__call__)] = OUTER
        watched = {
            function: instrumented(function, *calls) for function, calls in functions.items()
        }
    for module in (atomic_function, optional_ops):
        setattr(module, WATCHER, calls)
    setattr(tracing_compilation, WATCHER, tracings)
    setattr(polymorphic_function, WATCHER, outer)
    return exchanged(watched)


def called(function: Any) -> tuple[Any, Any] | None:
    """Return the name under which the runtime knows a function that eager code calls, and its
    graph; None if the call becomes a node of another graph."""
    if not function._bound_context.executing_eagerly():
        return None
    return function.name, function._cached_graph


def results(function: Any) -> int:
    """Return how many tensors a function returns; 0 if none is a single real number."""
    kinds = function.function_type.flat_outputs
    single = any(kind.dtype.is_floating and kind.shape.rank == 0 for kind in kinds)
    return len(kinds) if single else 0


def numbers_of(tensors: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the single real numbers among tensors, by name. Those on another device than the CPU
    are left out, because Python would wait for that device."""
    for name, tensor in tensors.items():
        is_floating = getattr(getattr(tensor, "dtype", None), "is_floating", False)
        device = getattr(tensor, "backing_device", "") if is_floating else ""
        if "CPU" in device and tensor.ndim == 0:
            yield name, tensor._numpy()


def watch_ops(look: Callable[[str, Any, Any], None]) -> Callable[[], None]:
    """Call `look` with type, inputs and outputs of each op that eager code of this thread runs. The
    type of a function call is the function's name. Return a function that ends this."""
    with corner("the ops of eager code", "tensorflow/python/framework/op_callbacks.py"):
        from tensorflow.python.framework import op_callbacks

    def seen(
        op: Any, inputs: Any, _: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if graph is None and not str(op).startswith(("__", "b'")):
            look(op, inputs, outputs)

    def stop() -> None:
        with suppress(KeyError):  # callbacks are those of a thread, and this may be another one
            op_callbacks.remove_op_callback(seen)

    op_callbacks.add_op_callback(seen)
    return stop


def run_op_by_op(wanted: bool) -> None:
    """Run tf.functions as Python, op by op, from now on; as graphs again if not `wanted`."""
    with corner("running a function op by op", "eager_function_run.py"):
        from tensorflow.python.eager.polymorphic_function import eager_function_run

    eager_function_run.RUN_FUNCTIONS_EAGERLY = wanted


def is_eager() -> bool:
    """Return whether this thread runs ops at once, and functions as graphs."""
    from tensorflow.python.eager import context
    from tensorflow.python.eager.polymorphic_function import eager_function_run

    return bool(context.executing_eagerly() and not eager_function_run.RUN_FUNCTIONS_EAGERLY)


# Functions of TensorFlow 2.21.0, whose local variables say what an op is for: `op_name` and
# `outputs` of the op that is differentiated (tensorflow/python/eager/backprop.py), and `self`, the
# variable that is read (tensorflow/python/ops/resource_variable_ops.py)
DIFFERENTIATES, READS = "_gradient_function", "_read_variable_op"


def locals_of(function: str, frame: Any) -> dict[str, Any]:
    """Return the local variables of the nearest frame of this function, from a frame outwards."""
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame.f_locals if frame else {}


def arguments(function_type: Any) -> dict[str, str]:
    """Return what a function was traced for: the type of each argument, or its value. The parts of
    an argument are included as `x[0]`, `x[1]` and so on, unless they are many
    (tensorflow/core/function/polymorphism/function_type.py)."""
    parts: dict[str, str] = {}
    for name, parameter in function_type.parameters.items():
        of_argument = dict(islice(leaves(name, parameter.type_constraint), MOST_PARTS + 1))
        many = len(of_argument) > MOST_PARTS
        parts |= {name: f"{of_argument[name]} with many parts"} if many else of_argument
    return parts


def leaves(path: str, kind: Any) -> Iterator[tuple[str, str]]:
    """Yield a type and its parts, each with its path and described in words."""
    inner, kind = components(kind), getattr(kind, "_element_spec", kind)
    # Of a named tuple, the name of the type
    name = f"a {getattr(kind, 'type_name', type(kind).__name__.lower())}"
    yield path, described(kind) if inner is None else name
    for access, component in (inner or {}).items():
        yield from leaves(path + access, component)


def components(kind: Any) -> dict[str, Any] | None:
    """Return a structure's parts by how Python accesses them: `[0]` of a tuple, a list, or what an
    iterator gives, `['a']` of a dictionary, `.a` of a named tuple. Return None for a type without
    parts (tensorflow/core/function/trace_type/default_types.py)."""
    for within in ("_element_spec", "named_attributes", "components_tuple"):
        kind = getattr(kind, within, kind)
    if hasattr(kind, "attribute_names"):
        pairs = zip(kind.attribute_names, kind.attributes.components, strict=True)
        return {f".{name}": component for name, component in pairs}
    mapping = getattr(kind, "mapping", kind)
    if isinstance(mapping, dict):
        return {f"[{key!r}]": component for key, component in mapping.items()}
    sequence = getattr(kind, "components", kind)
    if isinstance(sequence, list | tuple):
        return {f"[{at}]": component for at, component in enumerate(sequence)}
    return None


def described(kind: Any) -> str:
    """Return `float32 (8, 4)`, `an object of Config`, or a value of Python."""
    reference = getattr(kind, "_ref", None)  # `Weakref`, as above
    if isinstance(reference, weakref.ref):
        return f"an object of {type(reference()).__name__}"
    if hasattr(kind, "dtype") and hasattr(kind, "shape"):
        name = type(kind).__name__.removesuffix("Spec")
        return f"{'' if name == 'Tensor' else f'{name} '}{kind.dtype.name} {kind.shape}"
    value = getattr(kind, "value", kind)
    text = "nan" if type(value) is object else str(value)  # `NanMarker`, as above
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def traced_function(options: Any) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return the name of a tf.function (`Model.step` for a method), and the file and first line of
    the Python function that the program gave to it, and of those that this closes over: Keras makes
    its steps of one code. No place if there is no Python (`TracingOptions`)."""
    name = options.name
    function, *others = python_of(options.python_function)
    code = getattr(function, "__code__", None)
    if code is None:
        return name, ()
    own = getattr(function, "__qualname__", code.co_name).rpartition("<locals>.")[2]
    method = own if own.endswith(f".{name}") else name  # another wrapper may have another name
    codes = [getattr(each, "__code__", code) for each in (function, *others)]
    return method, tuple((code.co_filename, code.co_firstlineno) for code in codes)


def python_of(function: Any, depth: int = 3) -> Iterator[Any]:
    """Yield a function without TensorFlow's wrappers, and so the functions that it closes over."""
    while inner := next(filter(None, (getattr(function, name, None) for name in WRAPPED)), None):
        function = inner
    yield function
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # it is empty
            if depth and isinstance(cell.cell_contents, FunctionType | MethodType):
                yield from python_of(cell.cell_contents, depth - 1)


class Profiling:
    """TensorFlow's own profiler around one call. There is one for the whole process."""

    def __init__(self, folder: str) -> None:
        with corner("the profiler", "tensorflow/python/profiler/profiler_v2.py"):
            from tensorflow.python.framework.errors import AlreadyExistsError
            from tensorflow.python.profiler import profiler_v2

            self._start, self._stop = profiler_v2.start, profiler_v2.stop
            self._busy = AlreadyExistsError
        self.folder = Path(folder, "profile")

    def start(self) -> bool:
        """Return whether it could be started: the program may have its own."""
        try:
            self._start(str(self.folder))
        except self._busy:
            return False
        return True

    def stop(self) -> bytes:
        """Return the XSpace that it recorded."""
        self._stop()
        try:
            return next(self.folder.rglob("*.xplane.pb")).read_bytes()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def xspace(content: bytes = b"") -> Any:
    """Return an XSpace, as the profiler writes it, from its bytes; an empty one without them
    (tensorflow/tsl/profiler/protobuf/xplane.proto)."""
    with corner("profiles", "xplane_pb2.py"):
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    return xplane_pb2.XSpace.FromString(content)
