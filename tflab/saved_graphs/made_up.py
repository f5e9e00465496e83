"""Made up: values for fed tensors, from a fixed seed, by dtype and shape; sizes for open shapes.

A few nodes restrict the values: lookups in tables, classes, parsers of Examples, decoders of
images. A fed tensor is followed to them through nodes that pass its elements on. Open sizes are
those that TensorFlow's shape functions accept, or name when they refuse others. Nothing runs.
`--feed` and `--shape` serve all other graphs.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from PIL import Image

from tflab.errors import TflabError
from tflab.saved_graphs.flat import Flat
from tflab.units import size

SEED = 1
LARGEST = 2**30  # bytes for one tensor
HALF = 0.5  # a scalar is usually a probability or a rate
SIDE = 32  # pixels of a picture
# The types that pass on the elements of an input
FIRST = """Cast Enter ExpandDims GatherNd Identity Reshape Slice Squeeze StopGradient StridedSlice
    Switch TensorListFromTensor TensorListGetItem Tile Transpose Unique Unpack"""
SECOND = "SparseFillEmptyRows SparseReorder"
PLACE = dict.fromkeys(FIRST.split(), 0) | dict.fromkeys(SECOND.split(), 1)  # its index
PARSERS = ("ParseExample", "ParseExampleV2")
PICTURES = ("DecodeImage", "DecodeJpeg", "DecodePng")  # each of them decodes all image formats

Shape = tuple[int | None, ...]  # None as first dimension is the batch
BATCH = 13  # its size during trials, which hardly any graph contains
SIDES = (28, 32, 224, 299)  # of images
LARGEST_SIZE = 2**16  # to try
BUDGET_S = 10.0  # for trials
NODE = re.compile(r"\{\{node (\S+?)\}\}")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


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
    for op, place in places:
        if op.type in PARSERS and place == 0:
            return examples(op, shape, needed)
        if op.type in PICTURES:
            values = np.empty(shape, object)
            values.fill(picture())  # np.full would remove zeros at the end of a string
            return values, f"a picture of {SIDE} x {SIDE} pixels, as '{op.name}' decodes"
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
                if op.type in ("Pack", "ConcatV2") or PLACE.get(op.type) == place:
                    fresh = [output for output in op.outputs if output.name not in visited]
                    visited.update(output.name for output in fresh)
                    waiting.extend(fresh)


def limit_at(op: tf.Operation, place: int) -> int | None:
    """The limit that integers at this input must stay below, if it is known."""
    if op.type == "OneHot" and place == 0:
        depth = tf.get_static_value(op.inputs[1])
        return None if depth is None else int(depth)
    shape, axis = tf.TensorShape(None), 0
    if op.type in ("Gather", "GatherV2", "ResourceGather") and place == 1:
        shape = variable_shape(op.inputs[0]) if op.type == "ResourceGather" else op.inputs[0].shape
        axis = tf.get_static_value(op.inputs[2]) if op.type == "GatherV2" else 0
    elif op.type == "SparseSoftmaxCrossEntropyWithLogits" and place == 1:
        shape, axis = op.inputs[0].shape, -1
    if axis is None or shape.rank is None or not -shape.rank <= axis < shape.rank:
        return None
    return shape.as_list()[int(axis)]


def variable_shape(handle: tf.Tensor) -> tf.TensorShape:
    while handle.op.type in ("Identity", "Enter", "Switch"):
        handle = handle.op.inputs[0]
    is_variable = handle.op.type == "VarHandleOp"
    return tf.TensorShape(handle.op.get_attr("shape")) if is_variable else tf.TensorShape(None)


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), "gray").save(file, "PNG")
    return file.getvalue()


def examples(
    op: tf.Operation, shape: Sequence[int], needed: Collection[str]
) -> tuple[np.ndarray, str]:
    """Serialised examples with the keys, types and shapes that a node parses; open sizes are 1."""
    features = list(parsed_by(op))
    rows = prod(shape)
    columns = [
        fitting_values(tensor, (rows, *(size or 1 for size in sizes)), needed)[0]
        for _, tensor, sizes in features
    ]
    strings: np.ndarray = np.empty(rows, object)
    for row in range(rows):
        example = tf.train.Example()
        for (key, tensor, _), column in zip(features, columns, strict=True):
            dtype = tensor.dtype
            kind = "bytes" if dtype == tf.string else "int64" if dtype.is_integer else "float"
            values = getattr(example.features.feature[key], f"{kind}_list").value
            values.extend(column[row].ravel().tolist())
        strings[row] = example.SerializeToString()
    keys = ", ".join(key for key, *_ in features)
    return strings.reshape(shape), f"tf.Examples of {keys}, as '{op.name}' parses"


def parsed_by(op: tf.Operation) -> Iterator[tuple[str, tf.Tensor, Sequence[int | None]]]:
    """(key, tensor, shape in one example) of each sparse and dense feature that a node parses.

    Raises ValueError if the keys are not constants.
    """
    if op.type == "ParseExampleV2":
        keys = [key for tensor in op.inputs[2:4] for key in constant(tensor)]
    else:
        count = op.get_attr("Nsparse") + op.get_attr("Ndense")
        keys = [constant(tensor)[0] for tensor in op.inputs[2 : 2 + count]]
    shapes = [tf.TensorShape(shape).as_list() for shape in op.get_attr("dense_shapes")]
    sparse = len(keys) - len(shapes)
    # The outputs are the indices, values and shapes of the sparse ones, then the dense ones.
    outputs = [*op.outputs[sparse : 2 * sparse], *op.outputs[3 * sparse :]]
    for key, tensor, shape in zip(keys, outputs, [[1]] * sparse + shapes, strict=False):
        yield key.decode(errors="surrogateescape"), tensor, shape


def constant(tensor: tf.Tensor) -> np.ndarray:
    value = tf.get_static_value(tensor)
    if value is None:
        raise ValueError("the keys that are parsed are not constants")
    return np.ravel(value)


# Open shapes


def fit_shapes(
    flat: Flat,
    shapes: Mapping[str, Shape],
    statics: Mapping[str, tf.TensorShape],
    dense_shapes: Collection[str],
) -> tuple[dict[str, Shape], dict[str, str]]:
    """The shapes by tensor, with better ones for open tensors if they were found, and for each
    changed one the node for which it was changed.

    `statics` are the open tensors with their static shapes. A tensor in `dense_shapes` contains a
    shape itself; its entry is the shape of the sparse tensor.
    """
    fitted, changed_for = dict(shapes), dict[str, str]()
    order = {op.name: position for position, op in enumerate(flat.graph.get_operations())}
    replaced = {f"{placeholder}:0": name for name, placeholder in flat.fed.items()}
    refused = refusal(flat, fitted, dense_shapes) if statics else None
    end = time.monotonic() + BUDGET_S
    while refused and refused[0] in order:  # other refusals are not about shapes
        node, numbers = refused
        for name, shape in [
            (fed, shape)
            for tensor in leading_to(flat.graph, node, replaced)
            if (fed := replaced[tensor.name]) in statics
            for shape in other_shapes(statics[fed], numbers)
        ]:
            if time.monotonic() > end:
                return fitted, changed_for
            tried = refusal(flat, {**fitted, name: shape}, dense_shapes)
            if tried is None or order.get(tried[0], len(order)) > order[node]:
                fitted[name], changed_for[name], refused = shape, node, tried
                break
        else:
            break
    return fitted, changed_for


def refusal(
    flat: Flat, shapes: Mapping[str, Shape], dense_shapes: Collection[str]
) -> tuple[str, list[int]] | None:
    """The node whose shape function rejects these shapes, and the numbers that TensorFlow gives as
    the reason, which may be the right sizes; None if none does."""
    with tf.Graph().as_default():
        fed = {}
        with tf1.name_scope("tflab"):
            for name, shape in shapes.items():
                tensor = flat.tensor(name)
                sizes = [BATCH if size is None else size for size in shape]
                if name in dense_shapes:
                    fed[tensor.name] = tf.constant(sizes, tensor.dtype)
                else:
                    fed[tensor.name] = tf1.placeholder(tensor.dtype, sizes)
        try:
            tf.import_graph_def(flat.graph_def, fed, name="")
        # TensorFlow raises many types. It names no node where it only says, after the import, that
        # no node takes one of these tensors.
        except Exception as error:
            message = str(error)
            if node := NODE.search(message):
                after = message[node.end() :].rpartition(" with input ")[2]
                numbers = set(map(int, NUMBER.findall(message[: node.start()] + after)))
                return node[1], sorted(n for n in numbers if 0 < n <= LARGEST_SIZE and n != BATCH)
    return None


def leading_to(graph: tf.Graph, node: str, fed: Collection[str]) -> list[tf.Tensor]:
    """The fed tensors that a node depends on, the nearest first."""
    tensors = list(graph.get_operation_by_name(node).inputs)
    visited, leading = set(), []
    for tensor in tensors:  # the list grows as it is walked
        if tensor.name in visited:
            continue
        visited.add(tensor.name)
        if tensor.name in fed:
            leading.append(tensor)
        else:
            tensors.extend(tensor.op.inputs)
    return leading


def other_shapes(static: tf.TensorShape, numbers: Sequence[int]) -> list[Shape]:
    """Shapes that are compatible with the static one: scalars, rows, and square images."""
    sides = (1, *SIDES, *numbers)
    shapes: list[Shape] = [(), *((None, size) for size in (*numbers, 1))]
    shapes += [(None, 1, size) for size in (*numbers, 1)]
    shapes += [(None, side, side, depth) for depth in (*numbers, 1, 3) for side in sides]
    shapes.append((None,))
    if static.rank is not None:
        sizes = static.as_list()
        shapes = [
            tuple(own if size is None else size for size, own in zip(sizes, shape, strict=True))
            for shape in shapes
            if len(shape) == static.rank
        ]
    return list(dict.fromkeys(shapes))
