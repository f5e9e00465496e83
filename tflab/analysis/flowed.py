"""Flowed derivatives: those that the first run of the gradients gave, held against the numbers of
the recorded step. No TensorFlow in here.

Both are of the first batch, with the variables as they start. Where these start otherwise in every
session, at random, the two have no reason to agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tflab.records import Derivative, Fate, FlowedDerivative, Value, node_of
from tflab.records.values import VARIABLE

SAME_NUMBERS = ("merged", "removed")  # fates of a node whose users take the same from another
ROUNDING = 1e-4  # of the largest element: the graph that runs adds up in another order


def flowed(
    derivatives: Sequence[Derivative], ledger: Iterable[Fate], values: Sequence[Value]
) -> Iterator[FlowedDerivative]:
    """A record for each derivative; `values` are those of the recorded step."""
    fates = {fate.name: fate for fate in ledger}
    known = {value.tensor: value for value in values}
    outputs = Counter(value.node for value in values)
    starts = {value.tensor: value.values for value in values if value.kind == VARIABLE}
    alike = all(equal(row.start, starts.get(row.variable)) for row in derivatives)
    for row in derivatives:
        held = known.get(holder(row.tensor, fates, outputs))
        number = None if held is None else held.values
        yield FlowedDerivative(
            variable=row.variable,
            formula=row.formula,
            value=row.value,
            tensor=held.tensor if held else None,
            flowed=None if number is None else shaped(number, row.value),
            difference=distance(row.value, number) if alike else None,
        )


def holder(tensor: str, fates: Mapping[str, Fate], outputs: Mapping[str, int]) -> str:
    """The tensor of the graph that ran which has the numbers of this one; of a node with several
    outputs it is not told which."""
    fate = fates.get(node_of(tensor))
    if fate and fate.into and fate.fate in SAME_NUMBERS and outputs[fate.into] == 1:
        return f"{fate.into}:0"
    return tensor


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
