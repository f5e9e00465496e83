"""Not finite: the nodes that made NaN or Inf from finite inputs, and what those inputs were.

A node in a loop computes its tensor several times in a step; its n-th run takes what the other
nodes of the loop computed in their n-th runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflab.analysis.values import computable
from tflab.records.graph import Node, node_of
from tflab.records.placed import Transfer
from tflab.records.values import Entered

# Ops that pass on their inputs: none of them is the origin of a NaN
HANDING_ON = frozenset(
    prefix + op
    for prefix in ("", "Ref")
    for op in ("Identity", "Switch", "Merge", "Enter", "Exit", "NextIteration")
)
CONSTANT = "Const"
ASSIGNING = frozenset(("Assign", "AssignVariableOp"))  # the same, into a variable
# Prefixes of types that keep tensors in a list and return them unchanged. A debugger sees only the
# handle of the list; loops keep the values for their gradients in such lists.
KEEPING = ("Optional", "Stack", "TensorArray", "TensorList")
# Element-wise: an element of the output depends only on the elements at its position
ELEMENTWISE = frozenset(
    (
        *("Acos", "Acosh", "Add", "AddN", "AddV2", "Asin", "Atan2", "Atanh", "Cast", "Cosh"),
        *("Digamma", "Div", "Erfinv", "Exp", "Expm1", "Inv", "InvGrad", "Lgamma", "Log", "Log1p"),
        *("Mul", "Ndtri", "Neg", "Pow", "RealDiv", "Reciprocal", "ReciprocalGrad", "Rsqrt"),
        *("RsqrtGrad", "SelectV2", "Sinh", "Softplus", "Sqrt", "SqrtGrad", "Square"),
        *("SquaredDifference", "Sub", "Tan", "TanhGrad", "Xdivy", "Xlog1py", "Xlogy"),
    )
)
# Finite by definition if all inputs are; an infinite result is too large for its type
DEFINED_EVERYWHERE = frozenset(
    (
        *("Add", "AddN", "AddV2", "BatchMatMulV2", "BiasAdd", "BiasAddGrad", "Cast", "Conv2D"),
        *("Conv2DBackpropFilter", "Conv2DBackpropInput", "Cosh", "Cumsum", "Einsum", "Exp"),
        *("Expm1", "L2Loss", "MatMul", "Mean", "Mul", "Prod", "ResourceApplyGradientDescent"),
        *("ApplyGradientDescent", "Sinh", "Softplus", "Square", "SquaredDifference", "Sub", "Sum"),
    )
)


@dataclass(frozen=True)
class Bad:
    """The first non-finite value of a tensor."""

    call: int  # from 0
    nan: int
    infinite: int
    size: int


def record_of(array: np.ndarray, call: int) -> Bad | None:
    """The record of a non-finite tensor; None if it is finite."""
    array = computable(array)
    if array.dtype.kind not in "fc":
        return None
    nan, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    return Bad(call, nan, infinite, array.size) if nan or infinite else None


def origins(
    ordered: Sequence[Node],
    bads: Mapping[str, Bad],
    transfers: Iterable[Transfer],
    spoiled: Collection[str] = frozenset(),
) -> list[tuple[Node, str]]:
    """The nodes whose output is not finite although all their inputs are, each with that output.

    An infinite constant is assumed to be intended, such as a mask. What it makes infinite is no
    origin, but a node that makes NaN from it is. If there is no other origin, the constant is the
    origin.

    `bads` is keyed by tensor as in a GraphDef: `split:1`, plain `mul`. The output of a node that
    updates a variable is `update:w`. `spoiled` are the variables that became non-finite in the
    step: a node that reads one afterwards is no origin, and neither is an update of a variable that
    another update already spoiled.
    """
    sent = {transfer.recv: transfer.tensor for transfer in transfers}
    outputs: dict[str, list[str]] = {}
    for tensor in bads:
        outputs.setdefault(node_of(tensor), []).append(tensor)
    bad_nodes: list[tuple[Node, str]] = []
    spoiled_variables: set[str] = set()  # variables that received non-finite values
    constants: list[tuple[Node, str]] = []
    meant: set[str] = set()  # tensors that only infinite constants make infinite
    for node in ordered:
        if node.name not in outputs or node.op.startswith(KEEPING):
            continue
        consumed = [*node.inputs, *([sent[node.name]] if node.name in sent else [])]
        tensor = min(outputs[node.name], key=lambda name: bads[name].call)
        updates = tensor.partition(":")[2] in spoiled
        if not updates and any(node_of(other) in spoiled for other in consumed):
            continue
        causes = {other for other in consumed if comes_before(bads, other, tensor, node.op)}
        infinite = not any(bads[output].nan for output in outputs[node.name])
        if infinite and not updates and (causes <= meant if causes else node.op == CONSTANT):
            constants += [] if causes else [(node, tensor)]
            meant.update(outputs[node.name])
        elif causes and (updates or not causes <= meant):
            spoiled_variables.update([tensor.partition(":")[2]] if updates else [])
        elif node.op not in ASSIGNING:
            bad_nodes.append((node, tensor))
    own = [
        (node, tensor)
        for node, tensor in bad_nodes
        if tensor.partition(":")[2] not in spoiled_variables
    ]
    return own or constants


def comes_before(bads: Mapping[str, Bad], consumed: str, produced: str, op: str) -> bool:
    """Whether an input of a node was already non-finite when the node made its non-finite
    output."""
    if consumed not in bads:
        return False
    return op in HANDING_ON or bads[consumed].call <= bads[produced].call


def inputs_at_fault(
    op: str, out: np.ndarray, inputs: Iterable[tuple[str, np.ndarray | None]]
) -> Iterator[Entered]:
    """The inputs of a node where its output is not finite: for an element-wise op the elements at
    those positions, otherwise all."""
    mask = ~np.isfinite(computable(out))
    for tensor, array in inputs:
        if array is None or (values := computable(array)).dtype.kind not in "fiu":
            continue
        chosen = elements_at(values, mask) if op in ELEMENTWISE else values.ravel()
        if not chosen.size:
            continue
        yield Entered(
            tensor=tensor,
            elements=chosen.size,
            size=values.size,
            zeros=int((chosen == 0).sum()),
            negative=int((chosen < 0).sum()),
            min=float(chosen.min()),
            max=float(chosen.max()),
        )


def elements_at(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The elements at the positions of a mask; all elements if the shapes do not fit."""
    try:
        places = np.broadcast_to(np.arange(values.size).reshape(values.shape), mask.shape)
    except ValueError:
        return values.ravel()
    return values.ravel()[np.unique(places[mask])]


def overflowed(op: str, inputs: Sequence[Entered]) -> bool:
    """Whether an output is too large for its type: all inputs are finite, and the op has a finite
    result for every such input, or divides by something other than 0."""
    if not all(math.isfinite(one.min) and math.isfinite(one.max) for one in inputs):
        return False
    if op in ("Div", "RealDiv"):
        return len(inputs) == 2 and not inputs[1].zeros
    return op in DEFINED_EVERYWHERE
