"""Steps of a session that are compiled, steps that are traced without their graphs, and settings of
what the runtime writes meanwhile."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflab.cli import interrupts
from tflab.runtime.private.corner import corner

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
    """Return a step that is compiled once: called with the values to feed, and `run_metadata=` if
    traced. It costs less than `Session.run`."""
    from tensorflow.core.protobuf.config_pb2 import CallableOptions

    options = CallableOptions(feed=feeds, fetch=fetches, target=targets, run_options=run_options)
    return session._make_callable_from_options(options)


@corner("steps that share a graph", "`_call_tf_sessionrun` in tensorflow/python/client/session.py")
def shared_step(
    session: Session, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> Callable[..., None]:
    """Return a step for traces whose options are given with each call: `run_options=`,
    `run_metadata=`.

    It is what `Session.run` ends in, and costs a little more than a compiled step. But a compiled
    step has a graph of its own, in which XLA numbers its clusters anew; here all options share one.
    """
    from tensorflow.python.client import pywrap_tf_session as client

    session._extend_graph()
    graph, call = session.graph, session._call_tf_sessionrun
    inputs = [graph.get_tensor_by_name(name)._as_tf_output() for name in feeds]
    outputs = [graph.get_tensor_by_name(name)._as_tf_output() for name in fetches]
    operations = [graph.get_operation_by_name(name)._c_op for name in targets]

    def run(*values: object, run_options: RunOptions, run_metadata: Any) -> None:
        options = client.TF_NewBufferFromString(run_options.SerializeToString())
        written = client.TF_NewBuffer()
        try:
            fed = dict(zip(inputs, values, strict=True))
            with ctrl_c_kept():
                call(options, fed, outputs, operations, written)
            run_metadata.ParseFromString(client.TF_GetBuffer(written))
        finally:
            client.TF_DeleteBuffer(options)
            client.TF_DeleteBuffer(written)

    return run


@contextmanager
def ctrl_c_kept() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C came during a step that then failed.

    Python handles it while the failure becomes an exception, and pybind11 makes a RuntimeError of
    the two (`error_already_set` in pybind11/pytypes.h, as of TensorFlow 2.21.0).
    """
    try:
        yield
    except RuntimeError as error:
        kinds = (KeyboardInterrupt, interrupts.SignalError)
        if any(f"REPLACED BY {kind.__name__}" in str(error) for kind in kinds):
            raise KeyboardInterrupt from error
        raise


# The graphs that the runtime dumps while it prepares a step


@cache
def dumper() -> Callable[[], object] | None:
    """Return what lets the runtime read the environment variables of its dumps again; None if it
    cannot be found under the names that compilers on Linux and macOS give it.

    `DebugDataDumper::Global` and `DebugDataDumper::LoadEnvvars` in
    tensorflow/core/util/debug_data_dumper.cc, TensorFlow 2.21.0.
    """
    from tensorflow.python.client import session

    package = Path(session.__file__).parents[2]
    (file, *_) = [*package.glob("libtensorflow_framework.*"), None]
    try:
        library = ctypes.PyDLL(str(file))  # no other thread of Python runs meanwhile
        the_dumper = library._ZN10tensorflow15DebugDataDumper6GlobalEv
        load = library._ZN10tensorflow15DebugDataDumper11LoadEnvvarsEv
    except (OSError, AttributeError):
        return None
    the_dumper.argtypes, the_dumper.restype = (), ctypes.c_void_p
    load.argtypes, load.restype = (ctypes.c_void_p,), None
    return lambda: load(the_dumper())


def read_dump_settings() -> bool:
    """Let the runtime read the environment variables of its dumps again, which it usually reads
    once, before its first step; return whether it did. No graph may be prepared in another thread
    meanwhile."""
    load = dumper()
    if load is not None:
        load()
    return load is not None
