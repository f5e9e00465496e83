"""Program: lines that build nodes become a model.

The tensor named `loss`, otherwise a named scalar, is differentiated. `feeds = {x: values}` gives
the feeds; other placeholders get seeded values.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import Whole
from tflab.errors import TflabError
from tflab.explore.request import ProgramRequest, Source
from tflab.lifecycle import gradients
from tflab.models import saved
from tflab.records.graph import FORWARD
from tflab.records.options import Model
from tflab.runtime import nodes
from tflab.runtime.private import graphs

Names = dict[str, Any]  # what the program has given a name

NO_NODE = (
    "The program makes no node in the default graph. Write a line that calls TensorFlow, such as "
    "`y = tf.constant(1.0) + 2.0`, and none that makes a graph of its own."
)
RATE = 0.1  # of the gradient descent, if the program names no optimiser


def build(request: ProgramRequest, source: Source) -> Model:
    """Build a program in the default graph; return its model, or what the function of `source`
    returns. Raises the exceptions of the program, and TflabError if it makes no node."""
    text, file, folder, function = request.text, source.file, source.folder, source.function
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: Names = {"__name__": "__main__", "tf": tf, "tf1": tf1, "np": np}
    if folder:
        names["__file__"] = os.path.join(folder, file)
        if folder not in sys.path:
            sys.path.append(folder)
    with as_a_script():
        exec(compile(text, file, "exec", dont_inherit=True), names)
    if function and function not in names:
        raise TflabError(f"The program no longer defines the function '{function}'.")
    if function:
        return names[function]()
    graph = tf1.get_default_graph()
    operations = graph.get_operations()
    if not operations:
        raise TflabError(NO_NODE)
    named = tensors(names, graph)
    variables = graph.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)
    feeds = [op for op in operations if op.type == "Placeholder"]
    goals = {variable.op for variable in variables}
    goals = goals or {op for op in feeds if op.outputs[0].dtype.is_floating}
    loss, output = ends(named, names, operations, goals)
    values = values_of(graph, names.get("feeds", {}))
    names_fed = dict.fromkeys((*values, *(op.outputs[0].name for op in feeds)))
    fed = list(map(graph.get_tensor_by_name, names_fed))
    model = saved.model_of(fed, values, (), output=output)
    columns = model.data("train", None).columns.values() if fed else ()
    lengths = (len(column) for column in columns if not isinstance(column, Whole))
    rows = min(lengths, default=model.fixed_batch or 1)
    if rows < request.batch_size:
        model = replace(model, fixed_batch=rows)
    if any(graphs.original_op(op) is not None for op in operations):
        # What the program named of its own gradients is run
        first = [] if loss is None else [loss.name]
        model = replace(model, fetches=tuple(dict.fromkeys([*first, *results(names, graph)])))
        return with_note(model, "The program has gradients of its own, so tflab adds none.")
    if loss is None:
        return with_note(model, "No gradients are added: no line names a scalar of a float type.")
    if not depends(loss.op, goals) and not (variables and "loss" in names):
        what = "variable" if variables else "placeholder of floats"
        model = replace(model, output=named.get("output", loss))
        return with_note(
            model, f"No gradients are added: the gradient of {loss.op.name} reaches no {what}."
        )
    chosen = names.get("optimizer")
    if chosen is None and variables:
        chosen = tf1.train.GradientDescentOptimizer(RATE)
    floats = tuple(tensor for tensor in fed if tensor.dtype.is_floating)
    parameters = () if chosen is not None else floats
    return replace(model, loss=loss, optimizer=chosen, parameters=parameters)


@contextmanager
def as_a_script() -> Iterator[None]:
    """Let a program begin as scripts of TensorFlow 1 do, and undo that at the end."""
    reset = tf1.reset_default_graph
    tf1.reset_default_graph = lambda: None
    try:
        yield
    finally:
        tf1.reset_default_graph = reset
        tf1.enable_v2_tensorshape()
        tf1.enable_resource_variables()
        tf1.enable_control_flow_v2()
        tf1.enable_tensor_equality()


def with_note(model: Model, note: str) -> Model:
    return replace(model, notes=(*model.notes, note))


def depends(loss: tf.Operation, goals: Collection[tf.Operation]) -> bool:
    """Return whether the loss is computed from a goal by ops that all have a gradient."""
    waiting, visited = [loss], {loss}
    while waiting:
        op = waiting.pop()
        if op in goals:
            return True
        for tensor in op.inputs if gradients.registered(op)[0] else ():
            dtype = tensor.dtype.base_dtype
            # Gradients flow through such tensors, or variables and lists of them
            derived = dtype.is_floating or dtype.is_complex or dtype in (tf.resource, tf.variant)
            if derived and tensor.op not in visited:
                visited.add(tensor.op)
                waiting.append(tensor.op)
    return False


def results(names: Names, graph: tf.Graph) -> Iterator[str]:
    """Yield the operations among the program's variables, and tensors of gradients and updates."""
    later = {node.name for node in nodes.from_graph(graph) if node.phase != FORWARD}
    for value in tf.nest.flatten([[*names.values()]]):
        if isinstance(value, tf.Operation):
            yield value.name
        elif isinstance(value, (tf.Tensor, tf.IndexedSlices, tf.Variable)):
            tensor = getattr(value, "values", value)
            if tensor.op.name in later:
                yield tensor.name if isinstance(tensor, tf.Tensor) else tensor.op.name


def tensors(names: Names, graph: tf.Graph) -> dict[str, tf.Tensor]:
    """Return the named tensors of the program in this graph, in the order of their creation."""
    place = {op.name: number for number, op in enumerate(graph.get_operations())}
    named = {
        name: value
        for name, value in names.items()
        if isinstance(value, tf.Tensor) and getattr(value, "graph", None) is graph
    }
    return dict(sorted(named.items(), key=lambda pair: place[pair[1].op.name]))


def ends(
    named: Mapping[str, tf.Tensor],
    names: Names,
    operations: list[tf.Operation],
    goals: Collection[tf.Operation],
) -> tuple[tf.Tensor | None, tf.Tensor]:
    """Return the loss or None, by default the last scalar with a gradient, and the output."""
    loss = names.get("loss")
    if loss is not None and not isinstance(loss, (tf.Tensor, tf.Variable)):
        raise TflabError(
            f"`loss` is {type(loss).__name__}; it has to be a tensor, such as "
            "`loss = tf.reduce_mean(y)`."
        )
    computed = [tensor for tensor in named.values() if tensor.op.type != "Placeholder"]
    if loss is None:
        scalars = [t for t in computed if t.dtype.is_floating and t.shape.rank == 0]
        reaching = (scalar for scalar in reversed(scalars) if depends(scalar.op, goals))
        loss = next(reaching, scalars[-1] if scalars else None)
    others = [tensor for tensor in computed if tensor is not loss]
    last = next((op.outputs[0] for op in reversed(operations) if op.outputs), None)
    output = named.get("output", others[-1] if others else loss)
    return loss, last if output is None else output


def values_of(graph: tf.Graph, given: object) -> dict[str, np.ndarray]:
    """Return the value of each fed tensor, in its dtype. Raises TflabError if one cannot be fed."""
    if not isinstance(given, Mapping):
        raise TflabError(
            f"`feeds` is {type(given).__name__}; write a dict such as "
            "`feeds = {x: [1.0, 2.0, 3.0]}`."
        )
    values, lengths = {}, set()
    for key, value in given.items():
        name = key if isinstance(key, str) else getattr(key, "name", str(key))
        name = name if ":" in name else f"{name}:0"
        try:
            tensor = graph.get_tensor_by_name(name)
            array = np.asarray(value, dtype=tensor.dtype.as_numpy_dtype)
        except (KeyError, ValueError, TypeError) as error:
            raise TflabError(f"`feeds` has {key!r}, which cannot be fed: {error}.") from error
        if saved.feed_shape(tensor, array)[:1] == (None,):  # of which a batch has some rows
            lengths.add(len(array))
            if not len(array):
                raise TflabError(f"`feeds` gives '{name}' no rows.")
        values[name] = array
    if len(lengths) > 1:
        raise TflabError(
            f"`feeds` gives {' and '.join(map(str, sorted(lengths)))} rows. If values are not rows "
            "of a batch, give their placeholder a shape without None."
        )
    return values
