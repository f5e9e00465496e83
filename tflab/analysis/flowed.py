"""Flowed derivatives: the derivatives of the backward stage, compared with the recorded step.

Both are computed on the first batch, with the initial values of the variables. If these are random
and differ from session to session, the two cannot agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tflab.records.gradients import Derivative, FlowedDerivative
from tflab.records.graph import graph_def_name
from tflab.records.values import VARIABLE, Defined, Value

ROUNDING = 1e-4  # of the largest element: the graph that runs adds in another order


def flowed(
    derivatives: Sequence[Derivative], defined: Iterable[Defined], values: Sequence[Value]
) -> Iterator[FlowedDerivative]:
    """A record for each derivative. `values` are those of the recorded step; `defined` are those of
    its tensors that the program defines."""
    holders = {graph_def_name(value.tensor): value.held_by for value in defined}
    by_tensor = {graph_def_name(value.tensor): value for value in values}
    starts = {value.tensor: value.values for value in values if value.kind == VARIABLE}
    alike = all(equal(row.start, starts.get(row.variable)) for row in derivatives)
    for row in derivatives:
        recorded = by_tensor.get(holders.get(graph_def_name(row.tensor)) or "")
        number = None if recorded is None else recorded.values
        yield FlowedDerivative(
            variable=row.variable,
            formula=row.formula,
            value=row.value,
            tensor=recorded.tensor if recorded else None,
            flowed=None if number is None else shaped(number, row.value),
            difference=distance(row.value, number) if alike else None,
        )


def shaped(numbers: Sequence[Any], like: Any) -> Any:
    """Flat numbers in the shape of the derivative; flat if their number differs."""
    shape = np.shape(like)
    array = np.asarray(numbers)
    return array.reshape(shape).tolist() if array.size == np.size(like) else array.tolist()


def distance(value: Any, flowed: Sequence[Any] | None) -> float | None:
    """The largest difference of two elements; None if nothing can be compared."""
    left, right = flat(value), flat(flowed)
    if flowed is None or left.shape != right.shape:
        return None
    return float(np.abs(left - right).max(initial=0))


def equal(start: Any, recorded: Sequence[Any] | None) -> bool:
    if start is None or recorded is None:
        return True  # nothing is known that contradicts it
    return np.array_equal(flat(start), flat(recorded), equal_nan=True)


def agrees(row: FlowedDerivative) -> bool:
    """Whether the recorded step has this value, within rounding."""
    if row.difference is None:
        return False
    return row.difference <= ROUNDING * max(1e-30, float(np.abs(flat(row.value)).max(initial=0)))


def flat(value: Any) -> np.ndarray:
    return np.asarray([] if value is None else value, np.float64).ravel()
