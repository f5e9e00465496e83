"""tf.contrib.framework.arg_scope: arguments that several layers get, as long as a scope lasts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

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


__all__ = ["add_arg_scope", "arg_scope", "has_arg_scope"]
