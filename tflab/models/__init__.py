"""Models: the programs whose graphs are shown. One file and one line in MODELS add another.

A model function takes no arguments, builds its forward graph in the default graph and returns a
`tflab.records.Model`.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tflab.cli import command
from tflab.errors import UsageError, did_you_mean, reason
from tflab.records.options import Model, Options, Saved
from tflab.runtime import tf_import

MODELS = {
    "toy": "tflab.models.toy:build",
    "lenet": "tflab.models.lenet:build",
    "cudnn-lenet": "tflab.models.cudnn_lenet:build",
    "convnet": "tflab.models.convnet:build",
    "resnet20": "tflab.models.resnet20:build",
}

KERAS = ".keras"  # the suffix of a Keras model
PACKAGE = "package.module:function"

# What to do with a program instead of a model function
ELSE = "A program can also save its graph with tf.saved_model.save: give the folder that it wrote."


def find(name: str, options: Saved | None = None) -> Callable[[], Model]:
    """Return the model function of a name in MODELS, of `package.module:function`, or of the path
    of a saved graph. Raises UsageError if there is none, or if it does not take the options."""
    options = options or Saved()
    of_graph = is_file(name) and not name.endswith(KERAS)
    if not of_graph and replace(options, fetches=(), trust=False) != Saved():
        raise UsageError(
            f"The model '{name}' takes no --signature, --loss, --feed or --shape: these are for a "
            "GraphDef, a MetaGraphDef or a SavedModel."
        )
    if is_file(name):
        return functools.partial(from_file, name, options)
    module_name, _, function_name = MODELS.get(name, name).partition(":")
    is_path = module_name.endswith(".py") or "/" in module_name
    if is_path or not (module_name and function_name):
        hint = did_you_mean(name, list(MODELS))
        raise UsageError(
            f"There is no model and no file '{name}'.{hint} Choose from {', '.join(MODELS)}, or "
            f"give {PACKAGE}, or the path of a saved graph.{f' {ELSE}' if is_path else ''}"
        )
    spec = None
    with suppress(ImportError, ValueError):  # not a module, or its package is missing or fails
        spec = importlib.util.find_spec(module_name)
    if spec:
        tf_import.load()
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        if command.what_is_missing(error):
            raise
        raise UsageError(
            f"The model '{name}' cannot be imported: {type(error).__name__}: {reason(error)}."
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if callable(value)]
        hint = did_you_mean(function_name, functions)
        raise UsageError(f"The module {module_name} has no function '{function_name}'.{hint}")
    if hasattr(function, "trainable_variables"):  # a Keras model, not a function that makes one
        return lambda: function
    wrong = "is a tf.function" if hasattr(function, "get_concrete_function") else ""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        wrong = "needs arguments"
    if wrong:
        raise UsageError(f"'{name}' {wrong}, so it is not a model function. {ELSE}")
    return function


def is_file(name: str) -> bool:
    """Return True if this is the path of a saved graph; a Python file is a module."""
    return name not in MODELS and os.path.exists(name) and not name.endswith(".py")


def with_soft_placement(model: str, options: Options) -> Options:
    """Return the options for a model. Soft placement puts a file's graph on existing devices."""
    return replace(options, soft_placement=True) if is_file(model) else options


def from_file(path: str, options: Saved) -> Any:
    """Return the Keras model in a file, or import another graph and return its Model."""
    from pathlib import Path

    from tflab.models import graph_file, keras, saved

    if path.endswith(KERAS):
        return keras.from_file(Path(path), options.trust)
    return saved.build(graph_file.read(Path(path)), options)
