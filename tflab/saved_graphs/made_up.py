"""Made up: values for fed tensors, from a fixed seed, by dtype and shape.

Some nodes restrict the values: lookups in tables, classes, parsers of Examples, decoders. A fed
tensor is followed to such nodes through nodes that pass its elements on. For other requirements of
a graph there is `--feed`.
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
HALF = 0.5  # a scalar is usually a probability or a rate
SIDE = 32  # pixels of a picture
SHOWN = 3  # keys that a note lists
# Types that pass on the elements of their first input
PASSING = """BroadcastTo Cast Enter ExpandDims GatherNd Identity Print PreventGradient Reshape
    ReverseV2 Slice Snapshot Split SplitV Squeeze StopGradient StridedSlice Switch TensorListGetItem
    TensorListFromTensor Tile Transpose Unique UniqueV2 Unpack"""
# The index of the input that a type passes on
HANDING_ON = dict.fromkeys(PASSING.split(), 0) | {
    "SparseFillEmptyRows": 1,
    "SparseReorder": 1,
    "TensorArrayScatterV3": 2,
    "TensorArrayReadV3": 2,
    "TensorArrayGatherV3": 2,
}
PARSERS = ("ParseExample", "ParseExampleV2", "ParseSingleExample")
PICTURES = ("DecodeImage", "DecodeJpeg", "DecodePng")  # each of them decodes all image formats

# A feature of an Example: name, dtype, shape, and parsed tensor
Key = tuple[str, tf.DType, tuple[int, ...], tf.Tensor]


def plain_values(dtype: tf.DType, shape: Sequence[Any]) -> np.ndarray:
    """Values of a dtype and shape: normally distributed, zeros and ones, or empty strings; a scalar
    is 0.5 or False."""
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
    """Values that fit the nodes that use them, and from which node they follow; "" if from none.

    Raises TflabError for a tensor that is too large.
    """
    dtype = tensor.dtype.base_dtype
    needed_bytes = prod(shape) * max(1, dtype.size)
    if needed_bytes > LARGEST:
        raise TflabError(
            f"'{tensor.op.name}' takes {size(needed_bytes)}, but tflab makes up at most "
            f"{size(LARGEST)}."
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
                values.fill(text[0])  # np.full would remove zeros at the end of a string
                return values, text[1]
    values = plain_values(dtype, shape)
    alone = not len(shape) and (dtype.is_floating or dtype.is_bool)
    return values, str(values) if alone else ""


def places_of(tensor: tf.Tensor, needed: Collection[str]) -> Iterator[tuple[tf.Operation, int]]:
    """The inputs that the elements of a tensor reach, as (node, index of the input)."""
    waiting, visited = [tensor], {tensor.name}
    for current in waiting:  # the list grows as it is walked
        for op in current.consumers():
            for place, source in enumerate(op.inputs):
                if source is not current or op.name not in needed:
                    continue
                yield op, place
                if op.type in ("Pack", "ConcatV2") or HANDING_ON.get(op.type) == place:
                    fresh = [output for output in op.outputs if output.name not in visited]
                    visited.update(output.name for output in fresh)
                    waiting.extend(fresh)


# Indices and labels


def limit_at(op: tf.Operation, place: int) -> int | None:
    """The limit that integers at this input must stay below, if it is known."""
    if op.type in ("Gather", "GatherV2") and place == 1:
        axis = tf.get_static_value(op.inputs[2]) if op.type == "GatherV2" else 0
        return size_of(op.inputs[0].shape, None if axis is None else int(axis))
    if op.type == "ResourceGather" and place == 1:
        return size_of(variable_shape(op.inputs[0]), 0)
    if op.type in ("SparseSoftmaxCrossEntropyWithLogits", "InTopK", "InTopKV2") and place == 1:
        return size_of(op.inputs[0].shape, -1)
    # Indices of the inputs with the values and with the limit
    limits = {"OneHot": (0, 1), "UnsortedSegment": (1, 2)}
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
    is_variable = handle.op.type == "VarHandleOp"
    return tf.TensorShape(handle.op.get_attr("shape")) if is_variable else tf.TensorShape(None)


# Strings that are decoded or parsed


def encoded(op: tf.Operation) -> tuple[bytes, str] | None:
    """A value that this decoder accepts, and its description; None if this is not a decoder."""
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
    """The features that a node parses from each example: sparse, dense and ragged ones. Open sizes
    are 1."""
    ragged: list[str] = []
    if op.type == "ParseSingleExample":
        sparse, dense = text(op.get_attr("sparse_keys")), text(op.get_attr("dense_keys"))
    elif op.type == "ParseExampleV2":
        sparse, dense, ragged = (constants([tensor]) for tensor in op.inputs[2:5])
    else:
        count = op.get_attr("Nsparse")
        keys = list(op.inputs)[2 : 2 + count + op.get_attr("Ndense")]
        sparse, dense = constants(keys[:count]), constants(keys[count:])
    first = 3 * len(sparse)  # after the indices, values and shapes of the sparse ones
    for number, key in enumerate(sparse):
        yield parsed(key, op.outputs[len(sparse) + number], [1])
    for number, (key, shape) in enumerate(zip(dense, op.get_attr("dense_shapes"), strict=True)):
        yield parsed(key, op.outputs[first + number], tf.TensorShape(shape).as_list())
    for number, key in enumerate(ragged):
        yield parsed(key, op.outputs[first + len(dense) + number], [1])


def parsed(key: str, tensor: tf.Tensor, sizes: Sequence[int | None]) -> Key:
    return key, tensor.dtype, tuple(size or 1 for size in sizes), tensor


def constants(tensors: list[tf.Tensor]) -> list[str]:
    """The keys in these tensors. Raises ValueError if they are not constants."""
    values = [tf.get_static_value(tensor) for tensor in tensors]
    if any(value is None for value in values):
        raise ValueError("the keys that are parsed are not constants")
    return text(key for value in values for key in np.ravel(value))


def text(keys: Any) -> list[str]:
    return [key.decode(errors="surrogateescape") for key in keys]
