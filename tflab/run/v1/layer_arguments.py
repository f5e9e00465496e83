"""Arguments of layers: tf.contrib.framework.arg_scope, which gives them to several layers as long
as a scope lasts, and the initialisers and regularisers of tf.contrib.layers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import tensorflow.compat.v1 as tf

SLIM = "tf_slim"
OTHERS = "layers of tf-slim"  # a key beside those of layers: its scope for layers of its own
Scope = Mapping[str, Mapping[str, Any]]  # layer -> its arguments
current: list[Scope] = [{}]  # the innermost last


def add_arg_scope(layer: Callable[..., Any]) -> Callable[..., Any]:
    """A layer that takes those arguments from the scopes around it that it is not given."""
    key = key_of(layer)

    @functools.wraps(layer)
    def scoped(*given: Any, **named: Any) -> Any:
        return layer(*given, **{**current[-1].get(key, {}), **named})

    scoped.of_scope = key  # type: ignore[attr-defined]
    return scoped


def key_of(layer: Any) -> str:
    return getattr(layer, "of_scope", None) or f"{layer.__module__}.{layer.__qualname__}"


@contextmanager
def arg_scope(list_ops_or_scope: Any, **named: Any) -> Iterator[Scope]:
    """These arguments for each of the layers, or a scope that was there before."""
    if isinstance(list_ops_or_scope, Mapping):
        if named:
            raise ValueError("When attempting to re-use a scope, no arguments can be given.")
        scope, others = list_ops_or_scope, list_ops_or_scope.get(OTHERS)
    else:
        own = [layer for layer in list_ops_or_scope if has_arg_scope(layer)]
        others = [layer for layer in list_ops_or_scope if not has_arg_scope(layer)]
        scope = within(current[-1], own, named)
    with ExitStack() as of_slim:
        if others:
            inner = of_slim.enter_context(import_module(SLIM).arg_scope(others, **named))
            scope = {**scope, OTHERS: inner}
        current.append(scope)
        try:
            yield scope
        finally:
            current.pop()


def within(outer: Scope, layers: Iterable[Any], named: Mapping[str, Any]) -> Scope:
    for layer in layers:
        outer = {**outer, key_of(layer): {**outer.get(key_of(layer), {}), **named}}
    return outer


def has_arg_scope(func: Any) -> bool:
    return hasattr(func, "of_scope")


# Initialisers of weights, and regularisers: their formulas are those of initializers.py and
# regularizers.py in tensorflow/contrib/layers/python/layers, TensorFlow 1.15.


def xavier_initializer(uniform: bool = True, seed: Any = None, dtype: Any = tf.float32) -> Any:
    """Glorot and Bengio (2010): within sqrt(6 / (inputs + outputs)), or a normal distribution."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = tf.float32,
) -> Callable[..., Any]:
    """Of variance factor / n, where n are inputs, outputs or their mean; normal ones truncated."""
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def initialized(shape: Sequence[int], dtype: Any = dtype, partition_info: Any = None) -> Any:
        shape = [int(size) for size in shape]
        field = math.prod(shape[:-2])  # of a convolution: each weight is used at this many places
        fan_in, fan_out = field * shape[-2 if len(shape) > 1 else -1], field * shape[-1]
        n = {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2}[mode]
        if uniform:
            limit = math.sqrt(3 * factor / n)
            return tf.random_uniform(shape, -limit, limit, dtype, seed=seed)
        spread = math.sqrt(1.3 * factor / n)  # 1.3: what truncation takes of the variance
        return tf.truncated_normal(shape, 0.0, spread, dtype, seed=seed)

    return initialized


def l1_regularizer(scale: float, scope: Any = None) -> Callable[[Any], Any]:
    """scale * sum(|weights|)."""
    return penalty(scale, "l1_regularizer", scope, lambda weights: tf.reduce_sum(tf.abs(weights)))


def l2_regularizer(scale: float, scope: Any = None) -> Callable[[Any], Any]:
    """scale * sum(weights ** 2) / 2."""
    return penalty(scale, "l2_regularizer", scope, tf.nn.l2_loss)


def penalty(scale: float, name: str, scope: Any, norm: Callable[[Any], Any]) -> Any:
    if not isinstance(scale, float) and scale:
        raise ValueError(f"scale cannot be an integer: {scale}")
    if scale < 0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}.")
    if not scale:
        return lambda weights: None

    def regularize(weights: Any, name: Any = None) -> Any:
        with tf.name_scope(scope, label, [weights]) as inner:
            factor = tf.convert_to_tensor(scale, weights.dtype.base_dtype, name="scale")
            return tf.multiply(factor, norm(weights), name=inner)

    label = name
    return regularize


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Any:
    """The sum of both."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Sequence[Any], scope: str | None = None) -> Any:
    wanted = [regularizer for regularizer in regularizer_list if regularizer is not None]

    def regularize(weights: Any) -> Any:
        with tf.name_scope(scope, "sum_regularizer", [weights]) as inner:
            terms = [term for each in wanted if (term := each(weights)) is not None]
            return tf.add_n(terms, name=inner) if terms else None

    return regularize if wanted else None


def apply_regularization(regularizer: Any, weights_list: Any = None) -> Any:
    """The sum of what the regulariser says of all weights, which are added to the losses."""
    weights = weights_list or tf.get_collection(tf.GraphKeys.WEIGHTS)
    with tf.name_scope("get_regularization_penalty", values=weights) as scope:
        terms = [term for each in weights if (term := regularizer(each)) is not None]
        found = [term if term.shape.ndims == 0 else tf.reduce_sum(term) for term in terms]
        total = tf.add_n(found, name=scope) if found else tf.constant(0.0)
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, total)
    return total


SCOPES = ["add_arg_scope", "arg_scope", "has_arg_scope"]
__all__ = [
    *SCOPES,
    *("apply_regularization", "l1_l2_regularizer", "l1_regularizer", "l2_regularizer"),
    *("sum_regularizer", "variance_scaling_initializer"),
    *("xavier_initializer", "xavier_initializer_conv2d"),
]
