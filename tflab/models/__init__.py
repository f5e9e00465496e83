"""Models: programs whose life is shown. One file and one line in MODELS add another.

A model function takes no arguments, builds its forward graph in the default graph and returns a
`tflab.records.Model`.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import os
from collections.abc import Callable

from tflab.errors import UsageError
from tflab.records import Model, Saved

MODELS = {
    "toy": "tflab.models.toy:build",
    "lenet": "tflab.models.lenet:build",
    "cudnn-lenet": "tflab.models.cudnn_lenet:build",
    "convnet": "tflab.models.convnet:build",
    "resnet20": "tflab.models.resnet20:build",
}


def find(name: str, asked: Saved | None = None) -> Callable[[], Model]:
    """The model function that a registered name, `package.module:function` or the path of a saved
    graph stands for. `asked` is for a graph from a file.

    Raises UsageError where there is none.
    """
    path = MODELS.get(name, name)
    if name not in MODELS and os.path.exists(name) and not name.endswith(".py"):
        return functools.partial(from_file, name, asked or Saved())
    module_name, colon, function_name = path.partition(":")
    if module_name.endswith(".py") or "/" in module_name:
        importable = os.path.basename(module_name).removesuffix(".py")
        raise UsageError(
            f"'{module_name}' is a file; name the module instead, such as "
            f"{importable}:{function_name or 'build'}, from the folder that it is in."
        )
    if not (module_name and colon and function_name):
        nearest = difflib.get_close_matches(name, MODELS, n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        raise UsageError(
            f"No model named '{name}'.{hint} Choose from {', '.join(MODELS)}, "
            "or give package.module:function, or the path of a saved graph."
        )
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(
            f"The model '{name}' cannot be imported: {type(error).__name__}: {error}."
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if callable(value)]
        nearest = difflib.get_close_matches(function_name, functions, n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        raise UsageError(f"The module {module_name} has no function '{function_name}'.{hint}")
    return function


def from_file(path: str, asked: Saved) -> Model:
    """A saved graph, imported into the default graph."""
    from pathlib import Path

    from tflab.graphfiles import formats
    from tflab.models import saved

    return saved.build(formats.read(Path(path)), asked)
