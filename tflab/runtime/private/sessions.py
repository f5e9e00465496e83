"""Sessions: what tflab uses of TensorFlow's sessions, and how a watcher learns of their runs.

All ways to run a graph end in a few functions of `BaseSession`. They are not wrapped, because a
wrapper would be in every traceback. They get new code: that of TensorFlow, on its own lines, with a
call of the watcher before and after it.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import linecache
from _thread import allocate_lock, get_ident
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from textwrap import indent
from types import CodeType
from typing import TYPE_CHECKING, Any

from tflab.cli import interrupts
from tflab.errors import TflabError
from tflab.runtime.private.graphs import corner

FILE = "tensorflow/python/client/session.py"
ALIGNMENT = 64  # bytes
WATCHER = "__tflab__"  # the name of the watcher in these modules
# Local variables: the result of the first call, for the second one, and an error of the watcher
NOTED, ERROR = "tflab_noted", "tflab_error"

# Code for methods of BaseSession: at the start, at the end, and for a result, in the place of None
RUN = (f"{NOTED} = {WATCHER}.enter()", f"{WATCHER}.leave({NOTED})")
STEP = (
    f"{NOTED} = {WATCHER}.begin(self, options, feed_dict, fetch_list, target_list)\n"
    f"if {NOTED} and {NOTED}.trace: options, run_metadata = {NOTED}.trace\n"
    f"if {NOTED} and {NOTED}.fetches: fetch_list = {NOTED}.fetches",
    f"{WATCHER}.end({NOTED}, self)",
    f"{WATCHER}.results({NOTED}, self, None)",
)
COMPILED = (f"{NOTED} = {WATCHER}.begin_compiled(self._session)", f"{WATCHER}.end({NOTED})")


def watch(watcher: Any) -> Callable[[], None]:
    """Report the runs of all sessions, and the making of ops, to the watcher by the calls above;
    return a function that ends this. `watcher.broke` gets the errors of its other methods."""
    with corner("the runs of a session", FILE):
        from tensorflow.python.client import session

        base = session.BaseSession
        watched = {
            base.run: instrumented(base.run, *RUN),
            base._call_tf_sessionrun: instrumented(base._call_tf_sessionrun, *STEP),
            base._Callable.__call__: instrumented(base._Callable.__call__, *COMPILED),
        }
    with corner("the Python lines of ops", "tensorflow/python/util/tf_stack.py"):
        from tensorflow.python.util import tf_stack

        keep_stack = f"{WATCHER}.keep_stack()"
        watched[tf_stack.extract_stack] = instrumented(tf_stack.extract_stack, keep_stack)
    for module in (session, tf_stack):
        setattr(module, WATCHER, watcher)
    return exchanged(watched)


class Building:
    """Whether a thread builds a graph: `Graph.as_default` and `eager_mode` put themselves on a
    list, `_ContextSwitchStack`. Other threads can ask once the thread itself has asked."""

    def __init__(self, thread: int) -> None:
        with corner("the building of a graph", "tensorflow/python/eager/context.py"):
            from tensorflow.python.eager import context

            _ = context.default_execution_mode, context.GRAPH_MODE, context._context
            self.eager, _ = context.eager_mode, context.Context.context_switches
        self.context, self.thread = context, thread
        self.switches: list[Any] = []  # of the thread, once it has asked

    def __call__(self) -> bool:
        made = self.context._context
        if not self.switches and made is not None and get_ident() == self.thread:
            self.switches = made.context_switches.stack
        always = self.context.default_execution_mode == self.context.GRAPH_MODE
        switches = tuple(self.switches)  # at this moment
        # The first may be from before the program switched eager execution off
        return switches[-1].enter_context_fn is not self.eager if switches[always:] else always


def exchanged(codes: Mapping[Any, CodeType]) -> Callable[[], None]:
    """Give functions other code. Return a function that restores their own."""
    before = {function: function.__code__ for function in codes}
    for function, code in codes.items():
        function.__code__ = code

    def restore() -> None:
        for function, code in before.items():
            function.__code__ = code

    return restore


def is_watched() -> bool:
    """Return whether a watcher gets reports of the runs of this process."""
    from tensorflow.python.client import session

    return WATCHER in session.BaseSession.run.__code__.co_names


def instrumented(function: Any, first: str, last: str = "", result: str = "") -> CodeType:
    """Return a function's code between the calls `first` and `last`, on the lines and columns that
    it had. The call `result` gets what the function returns as its last argument."""
    code = function.__code__
    number = code.co_firstlineno
    # Not inspect.getsourcelines: that looks at the files of all modules first
    lines = inspect.getblock(linecache.getlines(code.co_filename)[number - 1 :])
    above = "if True:\n" if lines[0][0].isspace() else "\n"  # under which a method may be indented
    tree = ast.parse("".join([above, *lines]))
    ast.increment_lineno(tree, number - 2)
    definition = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for node in ast.walk(definition) if result else ():
        if isinstance(node, ast.Return) and node.value:
            (statement,) = on_line(number, result)
            assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            statement.value.args[-1] = node.value
            node.value = statement.value
    documented = ast.get_docstring(definition) is not None
    body: list[ast.stmt] = definition.body[documented:]
    if last:
        after = on_line(number, guarded(last))
        tried = ast.Try(body=body, handlers=[], orelse=[], finalbody=after)
        body = [ast.copy_location(tried, body[0])]
    before = on_line(number, guarded(first)) if first else []
    definition.body[documented:] = [*before, *body]
    # The module is not executed: names in the function's line are unknown here
    constants = compile(tree, code.co_filename, "exec", dont_inherit=True).co_consts
    codes = (constant for constant in constants if isinstance(constant, CodeType))
    return next(code for code in codes if code.co_name == definition.name)


def guarded(call: str) -> str:
    """Return a call that passes its own errors to the watcher instead of raising them."""
    return (
        f"try:\n{indent(call, ' ')}\n"
        f"except Exception as {ERROR}:\n {NOTED} = {WATCHER}.broke({ERROR})"
    )


def on_line(number: int, source: str) -> list[ast.stmt]:
    """Return the statements of a text, all with this line number."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.excepthandler):
            node.lineno = node.end_lineno = number
    return tree.body


def tensor_name(output: Any) -> str:
    """Return the name of an operation, or of a tensor (`loss:0`), from the TF_Output by which the
    client knows it (tensorflow/python/client/pywrap_tf_session.py)."""
    from tensorflow.python.client import pywrap_tf_session as client

    oper = getattr(output, "oper", None)
    if oper is None:
        return client.TF_OperationName(output)
    return f"{client.TF_OperationName(oper)}:{output.index}"


def copied_bytes(fed: Iterable[Any]) -> int:
    """Return how many bytes of these arrays the client copies, because they are not aligned to
    EIGEN_MAX_ALIGN_BYTES: `TF_NewTensor` in tensorflow/c/tf_tensor.cc, TensorFlow 2.21.0."""
    return sum(
        array.nbytes
        for array in fed
        if array.dtype.kind in "biufc" and array.__array_interface__["data"][0] % ALIGNMENT
    )


def tensor_outputs(graph: Any, names: Iterable[str]) -> list[Any]:
    """Return the TF_Outputs by which a session's client fetches these tensors (`mul:0`)."""
    with corner("the outputs of nodes", "tensorflow/python/framework/ops.py"):
        return [graph.get_tensor_by_name(name)._as_tf_output() for name in names]


def fetch_alone(session: Any, output: Any) -> Any:
    """Return the value of a tensor in a run of its own that no watcher sees; None if it fails."""
    from tensorflow.python.client import pywrap_tf_session as client
    from tensorflow.python.framework import errors

    with (
        corner("a run of a session", "tensorflow/python/client/pywrap_tf_session.py"),
        suppress(errors.OpError),  # a variable that is not initialised
    ):
        return client.TF_SessionRun_wrapper(session._session, None, {}, [output], [], None)[0]
    return None


def build(session: Any, feeds: Sequence[str], fetches: Sequence[str]) -> None:
    """Let the runtime build the step of a run again, without running it. It is a second step, which
    shares the stateful kernels of the first. Raise TflabError if that fails."""
    from tensorflow.python.framework import errors

    tensors = [name for name in fetches if ":" in name]
    targets = [name for name in fetches if ":" not in name]
    try:
        compiled_step(session, feeds, tensors, targets, None)
    except errors.OpError as error:
        raise TflabError(f"The fates of nodes are not shown: {error.message}") from error


class TraceBuffers:
    """The buffers by which the client of a session asks for a trace and gets it."""

    def __init__(self) -> None:
        with corner("the traces of a session", "tensorflow/python/client/pywrap_tf_session.py"):
            from tensorflow.core.protobuf import config_pb2
            from tensorflow.python.client import pywrap_tf_session as client

            self._client, self._options = client, config_pb2.RunOptions
            # Makes a buffer for a RunMetadata, and a RunMetadata of its content
            self.metadata, self.parsed = client.TF_NewBuffer, config_pb2.RunMetadata.FromString
            _ = client.TF_NewBufferFromString, client.TF_GetBuffer, client.TF_DeleteBuffer

    def options(self, **fields: object) -> Any:
        """Return RunOptions with these fields, for any number of runs."""
        return self._client.TF_NewBufferFromString(self._options(**fields).SerializeToString())

    def content(self, buffer: Any) -> bytes:
        """Return what a buffer holds; nothing if its RunOptions ask for nothing."""
        return bytes(self._client.TF_GetBuffer(buffer))

    def taken(self, metadata: Any) -> bytes:
        """Return the RunMetadata that a run has written."""
        try:
            return self.content(metadata)
        finally:
            self._client.TF_DeleteBuffer(metadata)


@cache
def framework() -> ctypes.PyDLL:
    """Return the runtime's library. No other thread of Python runs during a call of it."""
    from tensorflow.python.client import session

    return ctypes.PyDLL(str(Path(session.__file__).parents[2] / "libtensorflow_framework.so.2"))


class Log:
    """The runtime's log, which is Abseil's since TensorFlow 2.20. It is made quiet while a trace or
    a dump would write lines that the program would not have written, and detailed for files whose
    lines tflab reads, or that dump graphs only then."""

    # With the release of Abseil: that of TensorFlow 2.21, and that of 2.20
    SPACES = ("_ZN4absl12lts_20250814", "_ZN4absl12lts_20250127")

    def __init__(self) -> None:
        with corner("the level of the runtime's log", "libtensorflow_framework.so.2"):
            library = framework()
            levels = [f"{space}11MinLogLevelEv" for space in self.SPACES]
            level = next((name for name in levels if hasattr(library, name)), levels[0])
            space = level.removesuffix("11MinLogLevelEv")
            self._level = library[level]
            self._set = library[f"{space}14SetMinLogLevelENS0_18LogSeverityAtLeastE"]
            self._detail = library[
                f"{space}12log_internal14PrependVModuleESt17basic_string_viewIcSt11char_traitsIcEEi"
            ]
        self._before = self._quiet = 0  # the level, and how many want it to be quiet
        self._lock = allocate_lock()

    def quiet(self, level: int) -> None:
        """Log no lines below a level of `absl::LogSeverityAtLeast` until `usual`."""
        with self._lock:
            self._quiet += 1
            if self._quiet == 1:
                self._before = self._level()
            self._set(max(self._level(), level))

    def usual(self) -> None:
        with self._lock:
            self._quiet -= 1
            if not self._quiet:
                self._set(self._before)

    def detail(self, file: str, level: int) -> int:
        """Set how much a runtime file (`meta_optimizer`) logs; return how much it did before."""
        name = file.encode()
        before: int = self._detail(ctypes.c_size_t(len(name)), ctypes.c_char_p(name), level)
        return before

    @contextmanager
    def detailed(self, levels: Mapping[str, int]) -> Iterator[None]:
        """Let these files log in detail while this is open, whatever the level of the log."""
        usual, level = {file: self.detail(file, n) for file, n in levels.items()}, self._level()
        self._set(0)
        try:
            yield
        finally:
            self._set(level)
            for file, before in usual.items():
                self.detail(file, before)


# Steps

if TYPE_CHECKING:
    from tensorflow.compat.v1 import RunOptions, Session


@corner("compiled steps", "`_make_callable_from_options` in tensorflow/python/client/session.py")
def compiled_step(
    session: Session,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
    run_options: RunOptions,
) -> Callable[..., Any]:
    """Return a step that is compiled once. It is called with the values to feed, and with
    `run_metadata=` if it is traced. It costs less than `Session.run`."""
    from tensorflow.core.protobuf.config_pb2 import CallableOptions

    options = CallableOptions(feed=feeds, fetch=fetches, target=targets, run_options=run_options)
    return session._make_callable_from_options(options)


@corner("steps that share a graph", "`_call_tf_sessionrun` in tensorflow/python/client/session.py")
def shared_step(
    session: Session, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> Callable[..., None]:
    """Return a step whose options are given with each call: `run_options=`, `run_metadata=`. It
    costs a little more than a compiled step. But a compiled step has a graph of its own, in which
    XLA numbers its clusters anew; here all options share one."""
    from tensorflow.python.client import pywrap_tf_session as client

    session._extend_graph()
    graph, call = session.graph, session._call_tf_sessionrun
    inputs, outputs = tensor_outputs(graph, feeds), tensor_outputs(graph, fetches)
    operations = [graph.get_operation_by_name(name)._c_op for name in targets]

    def run(*values: object, run_options: RunOptions, run_metadata: Any) -> None:
        options = client.TF_NewBufferFromString(run_options.SerializeToString())
        written = client.TF_NewBuffer()
        try:
            with ctrl_c_kept():
                call(options, dict(zip(inputs, values, strict=True)), outputs, operations, written)
            run_metadata.ParseFromString(client.TF_GetBuffer(written))
        finally:
            client.TF_DeleteBuffer(options)
            client.TF_DeleteBuffer(written)

    return run


@contextmanager
def ctrl_c_kept() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C came during a step that then failed. Without this, pybind11
    makes one RuntimeError of the two (`error_already_set` in pybind11/pytypes.h)."""
    try:
        yield
    except RuntimeError as error:
        kinds = (KeyboardInterrupt, interrupts.SignalError)
        if any(f"REPLACED BY {kind.__name__}" in str(error) for kind in kinds):
            raise KeyboardInterrupt from error
        raise


# The graphs that the runtime dumps while it prepares a step


def read_dump_settings() -> None:
    """Let the runtime read the environment variables of its dumps again, which it usually reads
    once, before its first step. No graph may be prepared in another thread meanwhile."""
    with corner("the settings of graph dumps", "tensorflow/core/util/debug_data_dumper.cc"):
        the_dumper = framework()._ZN10tensorflow15DebugDataDumper6GlobalEv
        load = framework()._ZN10tensorflow15DebugDataDumper11LoadEnvvarsEv
    the_dumper.restype, load.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    load(the_dumper())
