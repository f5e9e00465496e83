"""tflab: follow a TensorFlow graph from the Python line to the measured nanosecond."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = (
    False  # as in `typing`: a program that tflab watches imports little before it starts
)
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

__version__ = "0.2.0"


FROM_WITHIN = {  # public name -> its module
    "watch": "tflab.run.watch_block",
    "save_graph": "tflab.runtime.debug_info",
    "load_ipython_extension": "tflab.explore.notebook",
}


def __getattr__(name: str) -> Any:
    if name not in FROM_WITHIN:
        raise AttributeError(f"module 'tflab' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(FROM_WITHIN[name]), name)


def leave(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C before a command has begun, when there are no results to keep."""
    try:
        os.write(2, b"tflab: interrupted.\n")
    finally:
        os._exit(128 + number)


def is_command() -> bool:
    """Whether Python was started for a command of tflab, not for a program that uses it."""
    if sys.argv[:1] == ["-m"]:  # while Python looks for the module
        return any(word.partition(".")[0] == "tflab" for word in sys.orig_argv)
    return os.path.basename(sys.argv[0] if sys.argv else "") == "tflab"


def expect_ctrl_c() -> None:
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)


if is_command():
    expect_ctrl_c()
