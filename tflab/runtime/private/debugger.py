"""How to make the runtime's debugger write the values of a step."""

from __future__ import annotations

from typing import Any

from tflab.errors import TflabError
from tflab.runtime.private.corner import corner, moved

DEBUG_NODES = {"__copy_": ("Copy", "CopyHost"), "__dbg_": ("DebugIdentity",)}  # prefix -> types


def debug_options(graph: Any, folder: str) -> Any:
    """The DebugOptions that make a step write each tensor of the graph that runs to a folder.

    `watch_graph` in tensorflow/python/debug/lib/debug_utils.py, TensorFlow 2.21.0. The runtime uses
    names of nodes as paths, and ends the process if it cannot write: see
    tensorflow/core/debug/debug_io_utils.cc and `tflab.runtime.debugger`.
    """
    with corner(
        "the runtime's debugger",
        "tensorflow/python/debug/lib/debug_utils.py",
        "Everything else works without it: give --no-values.",
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
    """The error if the debugger wrote something unexpected."""
    return moved(
        "the values of a step",
        "tensorflow/core/debug/debug_io_utils.cc",
        "Everything else works without them: give --no-values.",
        reason,
    )
