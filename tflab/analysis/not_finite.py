"""Not finite: the nodes that made NaN or Inf from finite inputs, and what those inputs were."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflab.analysis.values import computable
from tflab.records.graph import Node, node_of
from tflab.records.values import Entered

CONSTANT = "Const"
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
    """The elements of a tensor that are not finite."""

    nan: int
    infinite: int
    size: int


def record_of(array: np.ndarray) -> Bad | None:
    """Return the record of a tensor that is not finite; None if it is finite."""
    array = computable(array)
    if array.dtype.kind not in "fc":
        return None
    nan, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    return Bad(nan, infinite, array.size) if nan or infinite else None


def origins(
    nodes: Sequence[Node],
    known: Collection[str],
    bads: Mapping[str, Bad],
    spoiled: Mapping[str, str],
) -> list[tuple[Node, str]]:
    """Return the nodes with an output that is not finite although all their inputs are, each with
    that output; `nodes` are in topological order.

    `known` are the tensors whose values are known, as in a GraphDef (`split:1`, plain `mul`), and
    variables by the name of their node; `bads` are those that are not finite. A node takes what is
    known before it: inputs without a value, such as handles, lists and the nodes inside a loop, are
    passed through. `spoiled` are the nodes whose update made a variable not finite, with that
    variable; a node that reads it afterwards is no origin.

    An infinite constant is assumed to be intended, such as a mask. What it makes infinite is no
    origin, but a node that makes NaN from it is. If there is no other origin, the constant is.
    """
    by_name = {node.name: node for node in nodes}
    outputs: dict[str, list[str]] = {}
    for tensor in bads:
        outputs.setdefault(node_of(tensor), []).append(tensor)
    found: list[tuple[Node, str]] = []
    constants: list[tuple[Node, str]] = []
    meant: set[str] = set()  # tensors that only infinite constants make infinite
    changed: set[str] = set()  # variables that an update before made not finite
    for node in nodes:
        variable = spoiled.get(node.name)
        own = [variable] if variable else outputs.get(node.name, [])
        if not own:
            continue
        taken = consumed(node, by_name, known)
        if not variable and taken & {*spoiled.values()} - {*bads}:
            continue
        causes = {tensor for tensor in taken if tensor in bads}
        infinite = not variable and not any(bads[tensor].nan for tensor in own)
        if infinite and (causes <= meant if causes else node.op == CONSTANT):
            constants += [] if causes else [(node, own[0])]
            meant.update(own)
        elif (not causes or (not variable and causes <= meant)) and variable not in changed:
            found.append((node, own[0]))
        changed |= {variable} if variable else set()
    return found or constants


def consumed(node: Node, by_name: Mapping[str, Node], known: Collection[str]) -> set[str]:
    """Return the known tensors and variables that a node takes, through inputs without a value."""
    waiting, seen, taken = [*node.inputs], set[str](), set[str]()
    while waiting:
        tensor = waiting.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor in known:
            taken.add(tensor)
        elif node_of(tensor) in by_name:
            waiting += by_name[node_of(tensor)].inputs
    return taken


def inputs_at_fault(
    op: str, out: np.ndarray, inputs: Iterable[tuple[str, np.ndarray | None]]
) -> Iterator[Entered]:
    """Yield the inputs of a node where its output is not finite: for an element-wise op the
    elements at those positions, otherwise all."""
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
    """Return the elements at the positions of a mask; all elements if the shapes do not fit."""
    try:
        places = np.broadcast_to(np.arange(values.size).reshape(values.shape), mask.shape)
    except ValueError:
        return values.ravel()
    return np.asarray(values.ravel()[np.unique(places[mask])])


def overflowed(op: str, inputs: Sequence[Entered]) -> bool:
    """Return whether an output is too large for its type: all inputs are finite, and the op has a
    finite result for every such input, or divides by something other than 0."""
    if not all(math.isfinite(one.min) and math.isfinite(one.max) for one in inputs):
        return False
    if op in ("Div", "RealDiv"):
        return len(inputs) == 2 and not inputs[1].zeros
    return op in DEFINED_EVERYWHERE
