"""Variable values: a graph in which each variable can be read and set separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import RefusedError
from tflab.lifecycle import float64_copy
from tflab.records import Program
from tflab.saved_graphs.starting import VARIABLES


@dataclass(frozen=True)
class Settable:
    """A variable whose value can be read, and set by feeding the second input of a node."""

    value: Any  # what to fetch
    setter: str


def settable(program: Program, names: Sequence[str] = ()) -> tuple[tf.Graph, dict[str, Settable]]:
    """A graph in which the variables, by name, can be set one by one.

    The variables of a model have initialisers for that. A graph from a file has only nodes; it is
    copied, and each variable of the copy, among these names or a parameter, gets a node that sets
    it.
    """
    if program.model.optimizer is not None:
        variables = program.graph.get_collection("variables")
        return program.graph, {v.op.name: Settable(v, v.initializer.name) for v in variables}
    try:
        graph = float64_copy.import_graph(program.graph.as_graph_def())
    except ValueError as error:
        raise RefusedError(f"The graph cannot be copied: {' '.join(str(error).split())}") from error
    settables = {}
    with graph.as_default():
        parameters = (tensor.op.name for tensor in program.model.parameters)
        for name in dict.fromkeys((*names, *parameters)):
            op = graph.get_operation_by_name(name)
            if op.type == "VarHandleOp":
                dtype = tf.dtypes.as_dtype(op.get_attr("dtype"))
                value = tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=dtype)
                set_to = tf1.placeholder(dtype)
                setter = tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=set_to)
                settables[name] = Settable(value, setter.name)
            elif op.type in VARIABLES:
                set_to = tf1.placeholder(op.outputs[0].dtype.base_dtype)
                setter = tf.raw_ops.Assign(ref=op.outputs[0], value=set_to, validate_shape=False).op
                settables[name] = Settable(op.outputs[0], setter.name)
    return graph, settables


def dtype_of(variable: Any) -> tf.DType:
    """The dtype of the values: in a graph from a file, a variable is the tensor of its handle."""
    if variable.dtype == tf.resource:
        return tf.dtypes.as_dtype(variable.op.get_attr("dtype"))
    return variable.dtype.base_dtype


def within(graph: tf.Graph, gradient: Any) -> Any:
    """The corresponding gradient in a copy of its graph."""
    if isinstance(gradient, tf.IndexedSlices):
        parts = (gradient.values, gradient.indices, gradient.dense_shape)
        return tf.IndexedSlices(*(graph.get_tensor_by_name(part.name) for part in parts))
    return graph.get_tensor_by_name(gradient.name)


def assign(live: Any, values: Mapping[str, np.ndarray]) -> None:
    """Set variables, by the names of their initialisers, by feeding their initial values: that
    needs no new node in the graph."""
    feeds = {live.graph.get_operation_by_name(name).inputs[1]: v for name, v in values.items()}
    live.run(list(values), feeds)
