"""FLOP counts: the FLOPs of one of the user's nodes, by a formula of ours or by the registry.

For the types of `tflab.runtime.flops` there is a formula; for others TensorFlow has a
registry of functions that count: the one behind `tf.compat.v1.profiler`, in
tensorflow/python/profiler/internal/flops_registry.py and tensorflow/python/ops/nn_ops.py.

What the registry means by a FLOP (looked up in TensorFlow 2.21), and where it is not asked:

- A multiply-add counts as 2: `MatMul` is 2*M*N*K, `Conv2D` 2*N*Ho*Wo*Co*Kh*Kw*Ci.
- `Conv2DBackpropInput` and `...Filter` take the size of the *image* over the stride where the
  forward formula has that of the output. They agree for SAME padding, where the stride divides
  the image; without padding it is too much: for 5 x 5 on 32 x 32 1.31 times, on 14 x 14 1.96
  times. Here the formula counts.
- Convolution gradients and pooling are counted for NHWC only; the formulas know any format.
- `MaxPool` is 1 for every element of every window, `MaxPoolGrad` the same plus 1 an output,
  `Softmax` 5 an element, `Rsqrt` 2, `Mean` 1 an input, `Sum` and `BiasAddGrad` 1 less an output.
- Integers count like floats: index arithmetic has "FLOPs" too.
- `Relu`, `ReluGrad` and the gradients of depthwise convolutions are not registered, but have a
  formula. `Exp`, `Tanh`, batch normalisation, cross entropy and the optimisers'
  `ResourceApply...` have neither. `costs.uncovered` lists such types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tensorflow as tf

from tflab.records import Node
from tflab.runtime import flops, private

# These types pass a buffer or a handle on, or look at a shape: nothing is moved.
PASSING = """_Arg _Retval _XlaCompile _XlaMerge Const ControlTrigger Enter Exit ExpandDims
    Identity IdentityN LoopCond Merge NextIteration NoOp Placeholder PlaceholderWithDefault
    PreventGradient Rank ReadVariableOp Reshape Shape ShapeN Size Snapshot Squeeze StopGradient
    Switch VarHandleOp VarIsInitializedOp VariableV2"""
# These copy, fill or choose: bytes, but no arithmetic to count.
MOVING = """_HostRecv _HostSend _Recv _Send AssignVariableOp BroadcastTo Cast ConcatOffset ConcatV2
    Fill Gather GatherNd GatherV2 InvertPermutation MirrorPad OneHot OnesLike Pack Pad PadV2
    ResourceGather ReverseV2 ScatterNd Select SelectV2 Slice Split SplitV StridedSlice
    StridedSliceGrad Tile Transpose Unpack Where ZerosLike"""
HAND_ON = frozenset(PASSING.split())
NO_ARITHMETIC = HAND_ON | frozenset(MOVING.split())
FORMULA, REGISTRY = "formula", "registry"  # where FLOPs come from
NOT_REGISTERED = "no function is registered for it"
NOT_BY_REGISTRY = "the registry does not count them"
TOO_MUCH = "the registry counts too much"
TOO_LITTLE = "the registry counts too little"


@dataclass(frozen=True)
class Count:
    """The FLOPs of one of the user's nodes."""

    operation: tf.Operation
    flops: int | None
    source: str | None  # FORMULA or REGISTRY
    reason: str  # why there are none

    @property
    def op(self) -> str:
        return self.operation.type


def counts(graph: tf.Graph, node: Node, work: Sequence[str]) -> Iterator[Count]:
    """The FLOPs of each of the user's nodes in `work`."""
    if node.op in HAND_ON:
        return  # also where the user's own type was rewritten to this, as `x * 1` to `x`
    for name in work:
        operation = graph.get_operation_by_name(name)
        try:
            ours = formula_flops(operation)
            number = registered_flops(operation) if ours is None else ours
        except ValueError as reason:
            yield Count(operation, None, None, str(reason))
        else:
            yield Count(operation, number, REGISTRY if ours is None else FORMULA, "")


def formula_flops(op: tf.Operation) -> int | None:
    """What the formula of its type counts; None where there is none, ValueError where a shape is
    not known."""
    if op.type not in flops.FORMULAS:
        return None
    named = {attribute.name for attribute in op.op_def.attr}
    return flops.flops(
        op.type,
        [shape_of(tensor) for tensor in op.inputs],
        [shape_of(tensor) for tensor in op.outputs],
        {name: op.get_attr(name) for name in flops.ATTRIBUTES if name in named},
    )


def shape_of(tensor: tf.Tensor) -> flops.Shape:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def registered_flops(op: tf.Operation) -> int:
    """What the registry counts for this op; ValueError, with the reason, where it does not."""
    if op.type in HAND_ON:
        raise ValueError(NOT_REGISTERED)  # without copying the value of a constant
    definition = op.node_def
    # AddN counts all of its inputs, those for control too.
    definition.input[:] = [tensor for tensor in definition.input if not tensor.startswith("^")]
    number = private.flops(op.graph, definition)
    if number is None:
        raise ValueError(NOT_REGISTERED)
    return round(number)  # the gradients of convolutions divide by the stride


def fault_of(count: Count) -> str:
    """What is wrong with the registry's number, where there is a formula; empty if they agree."""
    try:
        registered = registered_flops(count.operation)
    except ValueError:
        return NOT_BY_REGISTRY
    if registered == count.flops:
        return ""
    return TOO_MUCH if registered > (count.flops or 0) else TOO_LITTLE
