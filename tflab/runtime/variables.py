"""Variables: their values in a session, read by the nodes that the graph already has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

HANDLES = ("VarHandleOp",)
REFERENCES = ("VariableV2", "Variable")  # their output is the value itself


def readers(graph: tf.Graph, names: Iterable[str]) -> dict[str, str]:
    """Variable -> the tensor that is its value, for those of the named nodes that are variables.

    A read that waits for another node does not count: that node may change the variable. A variable
    without such a read is omitted.
    """
    by_name = {op.name: op for op in graph.get_operations()}
    tensors = {}
    for op in (by_name[name] for name in names if name in by_name):
        if op.type in REFERENCES:
            tensors[op.name] = op.outputs[0].name
        elif op.type in HANDLES:
            reads = (
                read.outputs[0].name
                for read in op.outputs[0].consumers()
                if read.type == "ReadVariableOp" and not read.control_inputs
            )
            if tensor := next(reads, None):
                tensors[op.name] = tensor
    return tensors


def read(live: tf1.Session, tensors: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The values of these variables; uninitialised variables are omitted."""
    try:
        return {name: np.array(value) for name, value in live.run(dict(tensors)).items()}
    except tf.errors.FailedPreconditionError:
        if len(tensors) < 2:
            return {}
    values: dict[str, np.ndarray] = {}
    for name, tensor in tensors.items():
        values |= read(live, {name: tensor})
    return values
