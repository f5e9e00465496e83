"""Flowed derivatives: those that the first run of the gradients gave, compared with the numbers of
the recorded step.

Both are of the first batch, with the variables as they start. Where these start otherwise in every
session, at random, the two have no reason to agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tflab.records import Defined, Derivative, FlowedDerivative, Value
from tflab.records.values import VARIABLE

ROUNDING = 1e-4  # of the largest element: the graph that runs adds up in another order


def flowed(
    derivatives: Sequence[Derivative], defined: Iterable[Defined], values: Sequence[Value]
) -> Iterator[FlowedDerivative]:
    """A record for each derivative; `values` are those of the recorded step, `defined` says which
    of them the tensors of the program are."""
    holders = {short(value.tensor): value.held_by for value in defined}
    known = {short(value.tensor): value for value in values}
    starts = {value.tensor: value.values for value in values if value.kind == VARIABLE}
    alike = all(equal(row.start, starts.get(row.variable)) for row in derivatives)
    for row in derivatives:
        held = known.get(holders.get(short(row.tensor)) or "")
        number = None if held is None else held.values
        yield FlowedDerivative(
            variable=row.variable,
            formula=row.formula,
            value=row.value,
            tensor=held.tensor if held else None,
            flowed=None if number is None else shaped(number, row.value),
            difference=distance(row.value, number) if alike else None,
        )


def short(tensor: str) -> str:
    """As a GraphDef writes it."""
    return tensor.removesuffix(":0")


def shaped(numbers: Sequence[Any], like: Any) -> Any:
    """Flat numbers as the derivative is written; as they are where there are more or fewer."""
    shape = np.shape(like)
    array = np.asarray(numbers)
    return array.reshape(shape).tolist() if array.size == np.size(like) else array.tolist()


def distance(value: Any, flowed: Sequence[Any] | None) -> float | None:
    """The largest distance of two elements; None where there is nothing to compare."""
    left, right = flat(value), flat(flowed)
    if flowed is None or left.shape != right.shape:
        return None
    return float(np.abs(left - right).max(initial=0))


def equal(start: Any, held: Sequence[Any] | None) -> bool:
    if start is None or held is None:
        return True  # what is not known says nothing against it
    return np.array_equal(flat(start), flat(held), equal_nan=True)


def agrees(row: FlowedDerivative) -> bool:
    """Whether a number flowed that differs by no more than what rounding explains."""
    if row.difference is None:
        return False
    return row.difference <= ROUNDING * max(1e-30, float(np.abs(flat(row.value)).max(initial=0)))


def flat(value: Any) -> np.ndarray:
    return np.asarray([] if value is None else value, np.float64).ravel()
