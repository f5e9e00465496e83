"""Least memory: the memory that a step needs at least, compared with what is free, before it runs.

A step holds its constants and variables, its feeds, and at some time the outputs of each single
node. What else is alive at the same time is unknown, so it may need more, never less. Open
dimensions count as the batch size if first, otherwise as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod

import tensorflow as tf

from tflab.analysis.ledger import nodes_needed
from tflab.cli.environment import free_memory
from tflab.errors import TflabError
from tflab.records.graph import Node, Tensor
from tflab.units import size

# alive during the whole step
HELD = ("Const", "VariableV2", "Variable", "Placeholder", "PlaceholderV2")

# Ops that pass their input on, or write into it
FORWARDING = re.compile(
    r"ReadVariableOp|Identity(N)?|Reshape|ExpandDims|Squeeze|StopGradient|PreventGradient"
    r"|Assign.*|.*Apply.*|(Ref)?(Switch|Merge|Enter|Exit|NextIteration)"
)


def check(nodes: Sequence[Node], fetches: Sequence[str], batch_size: int) -> None:
    """Raise TflabError where a step needs more than there is, with the size of a batch that does
    not, if there is one."""
    if sentence := refusal(nodes, fetches, batch_size):
        halves = (batch_size >> by for by in range(1, batch_size.bit_length()))
        smaller = next((n for n in halves if not refusal(nodes, fetches, n)), None)
        hint = f" Give a --batch-size of at most {smaller}." if smaller else ""
        raise TflabError(f"{sentence}{hint}")


def refusal(nodes: Sequence[Node], fetches: Sequence[str], batch_size: int) -> str | None:
    """Why there is too little memory for a step; None if there is enough."""
    available = free_memory()
    needed = nodes_needed(nodes, fetches, ())
    rows = [node for node in nodes if node.name in needed]
    inputs = sum(node_bytes(node, batch_size) for node in rows if node.op in HELD)
    inputs += variable_bytes(rows)
    others = [node for node in rows if node.op not in HELD]
    largest = max(others, key=lambda node: node_bytes(node, batch_size), default=None)
    output = node_bytes(largest, batch_size) if largest else 0
    if available is None or inputs + output <= available:
        return None
    parts = [f"{size(inputs)} for its constants, variables and feeds"] if inputs else []
    if largest and output:
        parts.append(f"{size(output)} for the output of '{largest.name}'")
    return (
        f"A step with a batch of {batch_size} needs at least {size(inputs + output)} "
        f"({' and '.join(parts)}), but only {size(available)} of memory is free."
    )


def variable_bytes(nodes: Iterable[Node]) -> int:
    """The bytes of resource variables, by the shapes with which they are read; each counts once."""
    read = {
        node.inputs[0]: tensor_bytes(node.outputs[0], 1)
        for node in nodes
        if node.op == "ReadVariableOp" and node.outputs
    }
    return sum(read.values())


def node_bytes(node: Node, batch_size: int) -> int:
    """The bytes of a node's outputs."""
    if FORWARDING.fullmatch(node.op):
        return 0
    return sum(tensor_bytes(output, batch_size) for output in node.outputs)


def tensor_bytes(tensor: Tensor, batch_size: int) -> int:
    if tensor.shape is None:
        return 0
    dimensions = (dim if dim is not None else 1 for dim in tensor.shape[1:])
    front = tensor.shape[:1]
    rows = batch_size if front == (None,) else prod(dim or 0 for dim in front)
    return rows * prod(dimensions) * dtype_bytes(tensor.dtype)


def dtype_bytes(dtype: str) -> int:
    try:
        return int(tf.dtypes.as_dtype(dtype.removesuffix("_ref")).size or 0)
    except TypeError:  # of resources and variants
        return 0
