"""Finite differences: how the loss changes with one element of a variable, or of a fed array.

The derivative of the loss with respect to one weight is about (loss(w + h) - loss(w - h)) / 2h. In
float32 the rounding of the loss is larger than that difference, so it is computed in a float64 copy
of the forward graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.errors import RefusedError
from tflab.lifecycle import graph_copies
from tflab.lifecycle.graph_copies import Settable, assign
from tflab.records.graph import node_of
from tflab.records.options import Options
from tflab.runtime import session

FED = 20_000  # numbers in all checked variables: if there are no more, they are set together
STEPS = {  # h in the formula above; its own error is about h^2, that of rounding epsilon / h
    tf.float64: 1e-6,
    tf.float32: 1e-2,
    tf.float16: 1e-1,
    tf.bfloat16: 3e-1,
}
NO_VERSION = "An op of the graph has no float64 version"


@dataclass(frozen=True)
class Loss:
    """A loss that can be computed: its graph, its feeds, and the values of variables."""

    graph: tf.Graph
    loss: str  # a tensor
    options: Options
    feeds: Mapping[str, np.ndarray]
    variables: Mapping[str, Settable]
    values: Mapping[str, np.ndarray]  # setter of a variable -> value


@dataclass(frozen=True)
class Slopes:
    """The central differences of a loss, by the names of what was changed."""

    values: dict[str, np.ndarray]
    dtype: tf.DType  # that of the widest copy of the graph that runs
    no_float64: str  # why that is not float64, as a sentence without its full stop


def differences(run: Loss, elements: Mapping[str, np.ndarray]) -> Slopes:
    """The central differences of a loss with respect to these elements of each variable."""
    why = ""
    refused: RefusedError
    for copy, dtype in graph_copies.copies(run.graph, [node_of(run.loss), *run.values]):
        if dtype != tf.float64:
            why = why or NO_VERSION
        try:
            with session.opened(copy, run.options, config=unoptimised(run.options)) as live:
                assign(live, run.values)
                fed = {
                    tensor: value for tensor, value in run.feeds.items() if has_tensor(copy, tensor)
                }
                moving = Moving(live, run, fed, set_together(run, elements), STEPS[dtype])
                values = {
                    name: moving.slopes(name, run.variables.get(name), chosen)
                    for name, chosen in elements.items()
                }
                return Slopes(values, dtype, why)
        except RefusedError as error:
            refused = error
            why = why or str(error).rstrip(".")
    raise refused


def set_together(run: Loss, names: Iterable[str]) -> tuple[str, ...]:
    """The setters of all variables of these names, if the variables are small: a session prepares
    every new step, which takes long in a large graph. Empty if they are large."""
    setters = tuple(run.variables[name].setter for name in names if name in run.variables)
    return setters if sum(run.values[setter].size for setter in setters) <= FED else ()


def has_tensor(graph: tf.Graph, tensor: str) -> bool:
    return node_of(tensor) in {op.name for op in graph.get_operations()}


class Moving:
    """The loss, with one element of one variable, or of one fed array, changed a little.

    Variables with these setters are always set together.
    """

    def __init__(
        self,
        live: Any,
        run: Loss,
        feeds: Mapping[str, np.ndarray],
        together: tuple[str, ...],
        h: float,
    ) -> None:
        self._run, self._feeds, self._together, self._h = run, feeds, together, h
        self._loss = graph_copies.fed_step(live, tuple(feeds), (run.loss,))
        self._set = functools.cache(functools.partial(graph_copies.setting, live))

    def slopes(self, name: str, variable: Settable | None, elements: np.ndarray) -> np.ndarray:
        """The central differences of the loss with respect to these elements."""
        if variable is None:
            tensor = f"{name}:0"
            return self.differences(
                functools.partial(self.fed, tensor), self._feeds[tensor], elements
            )
        setter = variable.setter
        value = self._run.values[setter]
        slopes = self.differences(functools.partial(self.assigned, setter), value, elements)
        self.assign(setter, value)
        return slopes

    def differences(
        self, loss: Callable[[np.ndarray], float], value: np.ndarray, elements: np.ndarray
    ) -> np.ndarray:
        return np.array([slope(loss, value, element, self._h) for element in elements])

    def fed(self, tensor: str, value: np.ndarray) -> float:
        feeds = {**self._feeds, tensor: value}
        return self._loss(*feeds.values())[0].item()

    def assigned(self, setter: str, value: np.ndarray) -> float:
        self.assign(setter, value)
        return self._loss(*self._feeds.values())[0].item()

    def assign(self, setter: str, value: np.ndarray) -> None:
        setters = self._together or (setter,)
        values = {**self._run.values, setter: value}
        self._set(setters)(*map(values.__getitem__, setters))


def slope(loss: Callable[[np.ndarray], float], value: np.ndarray, element: int, h: float) -> float:
    """The central difference of the loss with respect to one element of one variable."""
    losses = []
    for shift in (h, -h):
        moved = np.array(value, np.float64)
        moved.flat[element] += shift
        losses.append(loss(moved))
    return (losses[0] - losses[1]) / (2 * h)


def unoptimised(options: Options) -> tf.compat.v1.ConfigProto:
    """A session that neither folds nor merges nodes: it runs each of its steps a few times."""
    config = session.config_of(options)
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    return config
