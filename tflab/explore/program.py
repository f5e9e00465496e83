"""Program: lines that build nodes become a model. Missing parts are found or made up.

The tensor named `loss`, otherwise the last scalar, is differentiated. `feeds = {x: values}` gives
the feeds; other placeholders get made-up values.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.datasets import Column, Dataset
from tflab.errors import TflabError
from tflab.records.options import Model
from tflab.runtime import private
from tflab.saved_graphs import made_up

ROWS = 1024  # of made-up data
OPEN = 8  # the size of an unknown dimension other than the batch
LARGEST = 2**26  # bytes of made-up values for one placeholder

OPTIMISERS: Mapping[str, Callable[[], Any]] = {  # all of `asked.OPTIMISERS` except the last
    "gradient descent": lambda: tf1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "Adam": lambda: tf1.train.AdamOptimizer(0.01),
}


def build(text: str, file: str, folder: str, optimiser: str, function: str, batch_size: int) -> Any:
    """The model of a program, built in the default graph; with `function`, the model that this
    function of the program returns. A program that is a file imports modules from its `folder`.

    Raises the exceptions of the program, and TflabError if it makes no node.
    """
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "__main__", "tf": tf, "tf1": tf1, "np": np}
    if folder:
        names["__file__"] = os.path.join(folder, file)
        if folder not in sys.path:
            sys.path.append(folder)
    exec(compile(text, file, "exec", dont_inherit=True), names)
    if function:
        return names[function]() if function in names else no_function(function)
    graph = tf1.get_default_graph()
    operations = graph.get_operations()
    if not operations:
        no_node(names)
    named = tensors(names, graph)
    loss, output = ends(named, names, operations)
    feeds, dataset, notes = fed(graph, names.get("feeds", {}), batch_size)
    model = Model(
        output,
        feeds,
        lambda split, folder: dataset,
        made_up=tuple(notes),
        notes=tuple(notes.values()),
        fixed_batch=dataset.size if is_fixed(dataset) or dataset.size < batch_size else None,
    )
    if any(private.original_op(op) is not None for op in operations):
        return already_derived(model, loss, names)
    if loss is None:
        return with_note(model, "Nothing is derived: no line names a scalar of a float type.")
    variables = graph.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)
    chosen = names.get("optimizer")
    if chosen is None and variables and optimiser in OPTIMISERS:
        chosen = OPTIMISERS[optimiser]()
    floats = [tensor for tensor in feeds if tensor.dtype.is_floating]
    parameters = () if chosen is not None else tuple(variables or floats)
    if chosen is None and not parameters:
        return with_note(
            model, "Nothing is derived: there is no variable and no placeholder of floats."
        )
    return replace(model, loss=loss, optimizer=chosen, parameters=parameters)


def no_node(names: Mapping[str, Any]) -> NoReturn:
    if any(isinstance(value, tf.Graph) for value in names.values()):
        raise TflabError(
            "The program builds its nodes in a graph of its own. Build them in the default graph: "
            "leave `tf.Graph()` out."
        )
    raise TflabError(
        "The program makes no node. Write a line that calls TensorFlow, such as "
        "`y = tf.constant(1.0) + 2.0`."
    )


def no_function(name: str) -> Any:
    raise TflabError(f"The program no longer defines the function '{name}'.")


def with_note(model: Model, note: str) -> Model:
    return replace(model, notes=(*model.notes, note))


def already_derived(model: Model, loss: Any, names: Mapping[str, Any]) -> Model:
    """The model of a program that calls its optimiser itself: the ops that it named are run."""
    run = [value.name for value in names.values() if isinstance(value, tf.Operation)]
    ends = [] if loss is None else [loss.name]
    note = "The program derives its loss itself, so tflab adds no gradients."
    return replace(with_note(model, note), fetches=tuple(dict.fromkeys(ends + run)))


def tensors(names: Mapping[str, Any], graph: tf.Graph) -> dict[str, tf.Tensor]:
    """The named tensors of the program in this graph, in the order of their creation."""
    place = {op.name: number for number, op in enumerate(graph.get_operations())}
    named = {
        name: value
        for name, value in names.items()
        if isinstance(value, tf.Tensor) and getattr(value, "graph", None) is graph
    }
    return dict(sorted(named.items(), key=lambda pair: place[pair[1].op.name]))


def ends(
    named: Mapping[str, tf.Tensor], names: Mapping[str, Any], operations: list[tf.Operation]
) -> tuple[Any, Any]:
    """The loss, or None, and the other results of the program."""
    loss = names.get("loss")
    if loss is not None and not isinstance(loss, (tf.Tensor, tf.Variable)):
        raise TflabError(
            f"`loss` is {type(loss).__name__}; it has to be a tensor, such as "
            "`loss = tf.reduce_mean(y)`."
        )
    computed = [tensor for tensor in named.values() if tensor.op.type != "Placeholder"]
    if loss is None:
        scalars = [t for t in computed if t.dtype.is_floating and t.shape.rank == 0]
        loss = scalars[-1] if scalars else None
    others = [tensor for tensor in computed if tensor is not loss]
    last = next((op.outputs[0] for op in reversed(operations) if op.outputs), None)
    output = named.get("output", others[-1] if others else loss)
    return loss, last if output is None else output


# Feeds


def fed(
    graph: tf.Graph, given: Any, batch_size: int
) -> tuple[dict[Any, str], Dataset, dict[str, str]]:
    """Placeholder -> column of the data, the data, and a note for each made-up column.

    Raises TflabError for values that cannot be fed.
    """
    values = values_of(graph, given)
    operations = graph.get_operations()
    holders = [op.outputs[0] for op in operations if op.type == "Placeholder"]
    free = [tensor for tensor in holders if tensor.name not in values]
    lengths = [len(value) for name, value in values.items() if in_rows(tensor_of(graph, name))]
    if lengths:
        rows = min(lengths)
    elif any(map(in_rows, free)):
        rows = rows_of(free, batch_size)
    else:
        rows = fixed_rows([*map(partial(tensor_of, graph), values), *free])
    columns: dict[str, Column] = {}
    for name, value in values.items():
        rowwise = in_rows(tensor_of(graph, name))
        columns[name] = value[:rows] if rowwise else datasets.Whole(value, rows)
    notes, needed = {}, {op.name for op in operations}
    for tensor in free:
        columns[tensor.name], notes[tensor.name] = made_up_values(tensor, rows, needed)
    if not columns:
        columns = {"row": datasets.Whole(np.arange(rows), rows)}
    feeds = {tensor_of(graph, name): name for name in columns if name != "row"}
    return feeds, Dataset("made-up values" if notes else "the feeds", "train", columns), notes


def tensor_of(graph: tf.Graph, name: str) -> Any:
    return graph.get_tensor_by_name(name)


def in_rows(tensor: Any) -> bool:
    """Whether the first dimension is the batch."""
    return bool(tensor.shape.rank) and tensor.shape[0] is None


def fixed_rows(fed: Sequence[Any]) -> int:
    """The rows of a batch of tensors whose first dimensions are all fixed: the dimension that they
    share, otherwise 1."""
    sizes = {tensor.shape[0] for tensor in fed if tensor.shape.rank}
    return (sizes.pop() or 1) if len(sizes) == 1 else 1


def is_fixed(dataset: Dataset) -> bool:
    """Whether no column has the rows of a batch."""
    return all(isinstance(column, datasets.Whole) for column in dataset.columns.values())


def rows_of(free: Sequence[Any], batch_size: int) -> int:
    """The number of made-up rows: as many as fit into LARGEST, at least a batch."""
    row_bytes = [
        prod(size or OPEN for size in tensor.shape[1:]) * max(1, tensor.dtype.size)
        for tensor in free
        if in_rows(tensor)
    ]
    return max(batch_size, min(ROWS, LARGEST // max([1, *row_bytes])))


def values_of(graph: tf.Graph, given: Any) -> dict[str, np.ndarray]:
    """Tensor -> the value that the program gives for it, in the dtype of the tensor."""
    if not isinstance(given, Mapping):
        raise TflabError(
            f"`feeds` is {type(given).__name__}; write a dict such as "
            "`feeds = {x: [1.0, 2.0, 3.0]}`."
        )
    values = {}
    for key, value in given.items():
        name = key if isinstance(key, str) else getattr(key, "name", str(key))
        name = name if ":" in name else f"{name}:0"
        try:
            tensor = tensor_of(graph, name)
            array = np.asarray(value, dtype=tensor.dtype.as_numpy_dtype)
        except (KeyError, ValueError, TypeError) as error:
            raise TflabError(f"`feeds` has {key!r}, which cannot be fed: {error}.") from error
        if not tensor.shape.is_compatible_with(array.shape):
            raise TflabError(
                f"`feeds` gives '{name}' a value of shape {list(array.shape)}, but it takes "
                f"{tensor.shape}."
            )
        values[name] = array
    return values


def made_up_values(tensor: Any, rows: int, needed: set[str]) -> tuple[Column, str]:
    """Made-up values for a placeholder, and a description of them."""
    name = tensor.op.name
    if tensor.shape.rank is None:
        raise TflabError(
            f"The placeholder '{name}' has no shape, so no value can be made up for it. Give it a "
            f"shape, or a value: `feeds = {{{name}: ...}}`."
        )
    shape = [OPEN if size is None else size for size in tensor.shape]
    if in_rows(tensor):
        shape[0] = rows
    value, why = made_up.fitting_values(tensor, shape, needed)
    if not why:
        floats = tensor.dtype.is_floating or tensor.dtype.is_complex
        why = "standard normal numbers" if floats else "plain values"
    column = value if in_rows(tensor) else datasets.Whole(value, rows)
    return column, f"The values of {name} are made up: {why}."
