"""tflab: follow a TensorFlow graph from the Python line to the measured nanosecond."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `typing`: a program that tflab watches imports little at its start
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"


FROM_WITHIN = {  # public name -> its module
    "watch": "tflab.run.watch_block",
    "load_ipython_extension": "tflab.explore.notebook",
}


def __getattr__(name: str) -> Any:
    if name not in FROM_WITHIN:
        raise AttributeError(f"module 'tflab' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(FROM_WITHIN[name]), name)


def report(kind: type[BaseException], *error: Any) -> None:
    """Report an error as Python does, but a Ctrl-C during the import of a command in one line."""
    if kind is KeyboardInterrupt:
        print("tflab: interrupted.", file=sys.stderr)
    else:
        sys.__excepthook__(kind, *error)


if sys.argv[:1] == ["-m"] and "runpy" in sys.modules:  # `python -m tflab...`
    sys.excepthook = report
