"""Made up: values for what is fed, with a seed, by dtype and shape.

A few nodes say what fits: tables that are looked up, classes, parsers of Examples, decoders.

A tensor is followed to these from where it is fed, through nodes that hand its elements on. What
else a graph may ask of its inputs, its user says with `--feed`.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from tflab.errors import TflabError
from tflab.units import size

SEED = 1
LARGEST = 2**30  # bytes for one tensor
HALF = 0.5  # a number by itself is a probability or a rate, and both are from 0 to 1
SIDE = 32  # pixels of a picture
SHOWN = 3  # keys that a note lists
# Types that hand the elements of their first input on as they are
PASSING = """BroadcastTo Cast Enter ExpandDims GatherNd Identity Print PreventGradient Reshape
    ReverseV2 Slice Snapshot Split SplitV Squeeze StopGradient StridedSlice Switch TensorListGetItem
    TensorListFromTensor Tile Transpose Unique UniqueV2 Unpack"""
# The number of that input
HANDING_ON = dict.fromkeys(PASSING.split(), 0) | {
    "SparseFillEmptyRows": 1,
    "SparseReorder": 1,
    "TensorArrayScatterV3": 2,
    "TensorArrayReadV3": 2,
    "TensorArrayGatherV3": 2,
}
PARSERS = ("ParseExample", "ParseExampleV2", "ParseSingleExample")
PICTURES = ("DecodeImage", "DecodeJpeg", "DecodePng")  # each of them takes what another is for

Key = tuple[str, tf.DType, tuple[int, ...], tf.Tensor]  # of examples: what it is parsed to


def plain_values(dtype: tf.DType, shape: Sequence[Any]) -> np.ndarray:
    """Values of a dtype and shape: normal numbers, zeros and ones, or empty strings; alone 0.5 or
    False."""
    rng = np.random.default_rng(SEED)
    plain = dtype.base_dtype
    if plain == tf.string:
        return np.full(shape, b"", object)
    if not len(shape) and (plain.is_floating or plain.is_bool):
        return np.array(HALF if plain.is_floating else False, plain.as_numpy_dtype)
    if plain.is_floating or plain.is_complex:
        return rng.standard_normal(shape, np.float32).astype(plain.as_numpy_dtype)
    # Whole numbers are indices or labels: 0 and 1 are valid for most.
    return rng.integers(0, 2, shape).astype(plain.as_numpy_dtype)


def fitting_values(
    tensor: tf.Tensor, shape: Sequence[Any], needed: Collection[str]
) -> tuple[np.ndarray, str]:
    """Values that fit, and what they were worked out from; nothing where no node says.

    Raises TflabError for more than anybody would feed.
    """
    dtype = tensor.dtype.base_dtype
    known = prod(shape) * max(1, dtype.size)
    if known > LARGEST:
        raise TflabError(
            f"'{tensor.op.name}' takes {size(known)}, but tflab makes up at most {size(LARGEST)}."
        )
    places = list(places_of(tensor, needed))
    if dtype.is_integer:
        limits = [(limit, op.name) for op, place in places if (limit := limit_at(op, place))]
        if limits:
            below, node = min(limits)
            values = np.random.default_rng(SEED).integers(0, below, shape)
            return values.astype(dtype.as_numpy_dtype), f"0 to {below - 1}, as '{node}' takes"
    if dtype == tf.string:
        for op, place in places:
            if place:
                continue
            if op.type in PARSERS:
                return examples(op, shape, needed)
            if text := encoded(op):
                values = np.empty(shape, object)
                values.fill(text[0])  # np.full would cut zeros from the end of a string
                return values, text[1]
    values = plain_values(dtype, shape)
    alone = not len(shape) and (dtype.is_floating or dtype.is_bool)
    return values, str(values) if alone else ""


def places_of(tensor: tf.Tensor, needed: Collection[str]) -> Iterator[tuple[tf.Operation, int]]:
    """Where the elements of a tensor get to: (node, number of its input)."""
    waiting, seen = [tensor], {tensor.name}
    for current in waiting:  # the list grows as it is walked
        for op in current.consumers():
            for place, source in enumerate(op.inputs):
                if source is not current or op.name not in needed:
                    continue
                yield op, place
                if op.type in ("Pack", "ConcatV2") or HANDING_ON.get(op.type) == place:
                    fresh = [output for output in op.outputs if output.name not in seen]
                    seen.update(output.name for output in fresh)
                    waiting.extend(fresh)


# Indices and labels


def limit_at(op: tf.Operation, place: int) -> int | None:
    """What whole numbers that get here have to be below, where that is known."""
    if op.type in ("Gather", "GatherV2") and place == 1:
        axis = tf.get_static_value(op.inputs[2]) if op.type == "GatherV2" else 0
        return size_of(op.inputs[0].shape, None if axis is None else int(axis))
    if op.type == "ResourceGather" and place == 1:
        return size_of(variable_shape(op.inputs[0]), 0)
    if op.type in ("SparseSoftmaxCrossEntropyWithLogits", "InTopK", "InTopKV2") and place == 1:
        return size_of(op.inputs[0].shape, -1)
    limits = {"OneHot": (0, 1), "UnsortedSegment": (1, 2)}  # of places, and of what says the limit
    of_type = limits.get("UnsortedSegment" if op.type.startswith("UnsortedSegment") else op.type)
    if of_type is None or of_type[0] != place:
        return None
    limit = tf.get_static_value(op.inputs[of_type[1]])
    return None if limit is None else int(limit)


def size_of(shape: tf.TensorShape, axis: int | None) -> int | None:
    if axis is None or shape.rank is None or not -shape.rank <= axis < shape.rank:
        return None
    return shape.as_list()[axis]


def variable_shape(handle: tf.Tensor) -> tf.TensorShape:
    while handle.op.type in ("Identity", "Enter", "Switch"):
        handle = handle.op.inputs[0]
    known = handle.op.type == "VarHandleOp"
    return tf.TensorShape(handle.op.get_attr("shape")) if known else tf.TensorShape(None)


# Strings that are decoded or parsed


def encoded(op: tf.Operation) -> tuple[bytes, str] | None:
    """What a decoder decodes, and what that is; None where this is none."""
    if op.type in PICTURES:
        file = io.BytesIO()
        Image.new("RGB", (SIDE, SIDE), "gray").save(file, "PNG")
        return file.getvalue(), f"a picture of {SIDE} x {SIDE} pixels, as '{op.name}' decodes"
    if op.type == "DecodeCSV":
        fields = len(op.outputs)
        line = op.get_attr("field_delim").join([b"0"] * fields)
        return line, f"{fields} zeros, as '{op.name}' reads"
    return None


def examples(
    op: tf.Operation, shape: Sequence[int], needed: Collection[str]
) -> tuple[np.ndarray, str]:
    """Serialised examples with the keys, types and shapes that a node parses."""
    keys = list(keys_of(op))
    rows = int(np.prod(shape))
    columns = [fitting_values(tensor, (rows, *sizes), needed)[0] for _, _, sizes, tensor in keys]
    strings: np.ndarray = np.empty(rows, object)
    for row in range(rows):
        example = tf.train.Example()
        for (key, dtype, _, _), column in zip(keys, columns, strict=True):
            feature = example.features.feature[key]
            kind = "bytes" if dtype == tf.string else "int64" if dtype.is_integer else "float"
            getattr(feature, f"{kind}_list").value.extend(column[row].ravel().tolist())
        strings[row] = example.SerializeToString()
    names = ", ".join(key for key, *_ in keys[:SHOWN])
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return strings.reshape(shape), f"tf.Examples of {names}{more}, as '{op.name}' parses"


def keys_of(op: tf.Operation) -> Iterator[Key]:
    """What a node looks for in each example: its sparse keys, its dense ones, its ragged ones.
    Open sizes are 1."""
    ragged: list[str] = []
    if op.type == "ParseSingleExample":
        sparse, dense = text(op.get_attr("sparse_keys")), text(op.get_attr("dense_keys"))
    elif op.type == "ParseExampleV2":
        sparse, dense, ragged = (constants([tensor]) for tensor in op.inputs[2:5])
    else:
        count = op.get_attr("Nsparse")
        keys = list(op.inputs)[2 : 2 + count + op.get_attr("Ndense")]
        sparse, dense = constants(keys[:count]), constants(keys[count:])
    first = 3 * len(sparse)  # behind the indices, values and shapes of the sparse ones
    for number, key in enumerate(sparse):
        yield parsed(key, op.outputs[len(sparse) + number], [1])
    for number, (key, shape) in enumerate(zip(dense, op.get_attr("dense_shapes"), strict=True)):
        yield parsed(key, op.outputs[first + number], tf.TensorShape(shape).as_list())
    for number, key in enumerate(ragged):
        yield parsed(key, op.outputs[first + len(dense) + number], [1])


def parsed(key: str, tensor: tf.Tensor, sizes: Sequence[int | None]) -> Key:
    return key, tensor.dtype, tuple(size or 1 for size in sizes), tensor


def constants(tensors: list[tf.Tensor]) -> list[str]:
    """The keys in these tensors. Raises ValueError where they are not constants."""
    values = [tf.get_static_value(tensor) for tensor in tensors]
    if any(value is None for value in values):
        raise ValueError("the keys that are parsed are not constants")
    return text(key for value in values for key in np.ravel(value))


def text(keys: Any) -> list[str]:
    return [key.decode(errors="surrogateescape") for key in keys]
