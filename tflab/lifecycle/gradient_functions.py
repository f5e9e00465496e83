"""Gradient functions: the functions that TensorFlow has registered for ops, and their files."""

from __future__ import annotations

import inspect
import os

import tensorflow as tf

from tflab.runtime import private


def registered(op: tf.Operation) -> tuple[str | None, bool]:
    """The registered gradient function as `_MulGrad (math_grad.py:1404)`, and whether the type
    has an entry in the registry; an entry may say "not differentiable"."""
    try:
        function = private.gradient_function(op)
    except LookupError:
        return None, False
    if function is None:
        return None, True
    code = inspect.unwrap(function).__code__
    return f"{code.co_name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})", True


def file_of(op: tf.Operation) -> str | None:
    """Where the gradient function of an op is written."""
    try:
        function = private.gradient_function(op)
    except LookupError:
        return None
    return inspect.unwrap(function).__code__.co_filename if function else None
