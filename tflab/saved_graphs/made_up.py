"""Made up: values for what is fed, with a seed, that fit what the graph does with them.

A tensor is followed from where it is fed through nodes that hand its elements on, to the first that
says what they may be: a table that they are looked up in, classes, a probability, a constant that
they are held against. What nobody says is normal numbers, zeros and ones, or empty strings.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.saved_graphs import encoded

SEED = 1
RATE = 0.01  # of learning
HALF = 0.5  # a probability, whether of keeping or of dropping
# Types that hand the elements of their first input on as they are
PASSING = """BroadcastTo Cast Enter ExpandDims GatherNd Identity Print PreventGradient Reshape
    ReverseV2 Slice Snapshot Split SplitV Squeeze StopGradient StridedSlice Switch Tile Transpose
    Unique UniqueV2 Unpack"""
# The number of that input
HANDING_ON = dict.fromkeys(PASSING.split(), 0) | {
    "SparseFillEmptyRows": 1,
    "SparseReorder": 1,
    "TensorListFromTensor": 0,
    "TensorListGetItem": 0,  # through the lists of loops
    "TensorArrayScatterV3": 2,
    "TensorArrayReadV3": 2,
    "TensorArrayGatherV3": 2,
}
SCALING = frozenset(
    {"Add", "AddV2", "Cast", "Div", "Identity", "Mul", "RealDiv", "Reciprocal", "Sub"}
)
CHECKING = frozenset({"All", "Any", "Identity", "LogicalAnd", "Reshape"})  # before an Assert
COMPARES = ("GreaterEqual", "Greater", "Less", "LessEqual", "Add", "AddV2")
RANDOM = ("RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2")
BRANCHES = {"Switch": 1, "RefSwitch": 1, "If": 0, "StatelessIf": 0, "Select": 0, "SelectV2": 0}
SATISFYING: dict[str, Callable[[Any, Any], Any]] = {  # value op constant -> a value for which it is
    "Equal": lambda constant, step: constant,
    "NotEqual": operator.add,
    "Less": operator.sub,
    "LessEqual": lambda constant, step: constant,
    "Greater": operator.add,
    "GreaterEqual": lambda constant, step: constant,
}
MIRRORED = {"Less": "Greater", "LessEqual": "GreaterEqual"}
MIRRORED |= {other: name for name, other in MIRRORED.items()}


@dataclass(frozen=True)
class Hint:
    """What the elements of a tensor may be: these, or whole numbers below a limit."""

    why: str
    value: Any = None
    below: int | None = None


def plain_values(dtype: tf.DType, shape: Sequence[Any]) -> np.ndarray:
    """Values of a dtype and shape: normal numbers, zeros and ones, or empty strings."""
    rng = np.random.default_rng(SEED)
    plain = dtype.base_dtype
    if plain == tf.string:
        return np.full(shape, b"", object)
    if plain.is_floating or plain.is_complex:
        return rng.standard_normal(shape, np.float32).astype(plain.as_numpy_dtype)
    # Whole numbers are indices or labels: 0 and 1 are valid for most.
    return rng.integers(0, 2, shape).astype(plain.as_numpy_dtype)


def fitting_values(
    tensor: tf.Tensor, shape: Sequence[Any], needed: Collection[str]
) -> tuple[np.ndarray, str]:
    """Values that fit, and what they were worked out from; nothing where nobody says."""
    hint = hint_of(tensor, needed, scalar=not len(shape))
    dtype = tensor.dtype.base_dtype
    if hint is None:
        return plain_values(dtype, shape), ""
    if hint.below is not None:
        rng = np.random.default_rng(SEED)
        return rng.integers(0, hint.below, shape).astype(dtype.as_numpy_dtype), hint.why
    values = np.empty(shape, dtype.as_numpy_dtype)
    values.fill(hint.value)  # np.full would cut zeros from the end of a string
    return values, hint.why


def hint_of(tensor: tf.Tensor, needed: Collection[str], scalar: bool) -> Hint | None:
    places = list(places_of(tensor, needed, hands_on))
    if tensor.dtype.is_integer:
        limits = [limit for op, place in places for limit in limit_at(op, place)]
        if limits:
            below, node = min(limits)
            return Hint(f"0 to {below - 1}, as '{node}' takes", below=below)
    if tensor.dtype == tf.string:
        decoded = filter(None, (encoded.text_for(op, place) for op, place in places))
        return next((Hint(why, value=text) for text, why in decoded), None)
    if tensor.dtype.is_bool and scalar:
        for op, place in places:
            if BRANCHES.get(op.type) == place:
                return Hint(f"False, which chooses at '{op.name}'", value=False)
    if tensor.dtype.is_floating and scalar:
        for op, place in places_of(tensor, needed, scales):
            others = [other for number, other in enumerate(op.inputs) if number != place]
            if op.type in COMPARES and any(map(is_random, others)):
                return Hint(f"0.5, a probability at '{op.name}'", value=HALF)
        for op, place in places:
            if "Apply" in op.type and op.inputs[place].shape.rank in (0, None) and place:
                return Hint(f"{RATE}, a rate of '{op.name}'", value=RATE)
    if tensor.dtype.is_floating or tensor.dtype.is_integer:
        return next(checked(places, needed), None)
    return None


def places_of(
    tensor: tf.Tensor, needed: Collection[str], goes_on: Callable[[tf.Operation, int], bool]
) -> Iterator[tuple[tf.Operation, int]]:
    """Where the elements of a tensor get to: (node, number of its input)."""
    waiting, seen = [tensor], {tensor.name}
    for current in waiting:  # the list grows as it is walked
        for op in current.consumers():
            for place, source in enumerate(op.inputs):
                if source is not current or op.name not in needed:
                    continue
                yield op, place
                if goes_on(op, place):
                    fresh = [output for output in op.outputs if output.name not in seen]
                    seen.update(output.name for output in fresh)
                    waiting.extend(fresh)


def hands_on(op: tf.Operation, place: int) -> bool:
    return op.type in ("Pack", "ConcatV2") or (
        op.type in HANDING_ON and place == HANDING_ON[op.type]
    )


def scales(op: tf.Operation, place: int) -> bool:
    return op.type in SCALING


def checks(op: tf.Operation, place: int) -> bool:
    return op.type in CHECKING


def limit_at(op: tf.Operation, place: int) -> Iterator[tuple[int, str]]:
    """What whole numbers that get here have to be below."""
    limit = None
    if op.type in ("Gather", "GatherV2") and place == 1:
        axis = tf.get_static_value(op.inputs[2]) if op.type == "GatherV2" else 0
        limit = size_of(op.inputs[0].shape, None if axis is None else int(axis))
    elif op.type == "ResourceGather" and place == 1:
        limit = size_of(variable_shape(op.inputs[0]), 0)
    elif op.type == "OneHot" and place == 0:
        depth = tf.get_static_value(op.inputs[1])
        limit = None if depth is None else int(depth)
    elif op.type in ("SparseSoftmaxCrossEntropyWithLogits", "InTopK", "InTopKV2") and place == 1:
        limit = size_of(op.inputs[0].shape, -1)
    elif op.type.startswith("UnsortedSegment") and place == 1:
        segments = tf.get_static_value(op.inputs[2])
        limit = None if segments is None else int(segments)
    if limit:
        yield limit, op.name


def size_of(shape: tf.TensorShape, axis: int | None) -> int | None:
    if axis is None or shape.rank is None or not -shape.rank <= axis < shape.rank:
        return None
    return shape.as_list()[axis]


def variable_shape(handle: tf.Tensor) -> tf.TensorShape:
    while handle.op.type in ("Identity", "Enter", "Switch"):
        handle = handle.op.inputs[0]
    known = handle.op.type == "VarHandleOp"
    return tf.TensorShape(handle.op.get_attr("shape")) if known else tf.TensorShape(None)


def is_random(tensor: tf.Tensor) -> bool:
    """Whether these are random numbers from 0 to 1, scaled perhaps."""
    for _ in range(3):
        if tensor.op.type in RANDOM:
            return True
        scaled = tensor.op.type in ("Mul", "Add", "AddV2", "Sub", "Identity", "Cast")
        if not scaled or not tensor.op.inputs:
            return False
        tensor = tensor.op.inputs[0]
    return tensor.op.type in RANDOM


def checked(places: Sequence[tuple[tf.Operation, int]], needed: Collection[str]) -> Iterator[Hint]:
    """Constants that the elements are held against where a check fails the run."""
    for op, place in places:
        if op.type not in SATISFYING or len(op.inputs) != 2:
            continue
        constant = tf.get_static_value(op.inputs[1 - place])
        asserted = any(
            user.type == "Assert" and number == 0
            for user, number in places_of(op.outputs[0], needed, checks)
        )
        if constant is None or np.size(constant) != 1 or not asserted:
            continue
        kind = op.type if place == 0 else MIRRORED.get(op.type, op.type)
        value = SATISFYING[kind](np.asarray(constant).item(), 1)
        yield Hint(f"{value}, which '{op.name}' asks for", value=value)
