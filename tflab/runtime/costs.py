"""Costs: the FLOPs of a call of each node that ran, from its definition in the graph that ran, and
its shapes in the trace. If the runs of a loop have different shapes, nothing is counted.

The formulas are the ones that textbooks give for the layers: Goodfellow, Bengio and Courville,
"Deep Learning" (MIT Press, 2016), chapter 9, for convolution and pooling; Golub and Van Loan,
"Matrix Computations" (4th edition, 2013), section 1.1, for products. A multiply-add is two FLOPs,
an elementary function (exp, tanh) one; multiplications with padding count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeVar

import tensorflow as tf

from tflab.records.graph import Node, Shape, output_name
from tflab.records.stages import Placement
from tflab.runtime.nodes import tensor_bytes

Shapes = Sequence[Shape]
Attributes = Mapping[str, Any]  # numbers, texts, types, and lists of the first two
T = TypeVar("T")
Formula = Callable[[Shapes, Shapes, Attributes], int]  # of inputs and outputs

# These pass a buffer or a handle on, or look at a shape: nothing is moved, nothing computed.
PASSING = """_Arg _DeviceRetval _Retval _SwitchN _XlaCompile _XlaMerge BroadcastArgs
    BroadcastGradientArgs Const ControlTrigger Enter Exit ExpandDims Identity IdentityN
    IsVariableInitialized LoopCond Merge NextIteration NoOp Placeholder PlaceholderWithDefault
    PreventGradient Rank ReadVariableOp RefEnter RefExit RefIdentity RefMerge RefNextIteration
    RefSwitch Reshape Shape ShapeN Size Snapshot Squeeze StackPopV2 StackPushV2 StackV2 StopGradient
    Switch TensorArrayCloseV3 TensorArrayGradV3 TensorArraySizeV3 TensorArrayV3 TensorListLength
    TensorListPopBack TensorListPushBack TensorListReserve EmptyTensorList VarHandleOp
    VarIsInitializedOp Variable VariableShape VariableV2"""
# These copy, fill, look up or choose: no arithmetic.
MOVING = """_HostRecv _HostSend _Recv _Send Assert Assign AssignVariableOp BroadcastTo Cast
    Concat ConcatOffset ConcatV2 DynamicPartition DynamicStitch Fill Gather GatherNd GatherV2
    InvertPermutation MirrorPad OneHot OnesLike Pack ParallelDynamicStitch Pad PadV2 Range
    ResourceGather ResourceGatherNd ResourceScatterNdUpdate ResourceScatterUpdate
    ReverseSequence ReverseV2 ScatterNdUpdate ScatterUpdate Select SelectV2 Slice Split SplitV
    StridedSlice StridedSliceGrad TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayReadV3
    TensorArrayScatterV3 TensorArraySplitV3 TensorArrayWriteV3 TensorListFromTensor
    TensorListGetItem TensorListSetItem TensorListStack TensorScatterUpdate Tile Transpose
    Unique UniqueV2 Unpack Where ZerosLike"""
HAND_ON, MOVES = frozenset(PASSING.split()), frozenset(MOVING.split())


def flops(op: str, inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int | None:
    """Return the FLOPs of one run of an op of this type, on tensors of these shapes.

    `inputs` may be followed by inputs that a kernel of oneDNN adds; `attributes` are those of the
    node that ran. None if there is no formula for the type or for an op that was fused into it, for
    complex numbers, or if a shape that the formula needs is unknown.
    """
    fused_ops = attributes.get("fused_ops", ())
    base = plain_type(op)
    if "fused_ops" in attributes:
        base = base.removeprefix("Fused")
    if base not in FORMULAS or not FUSED.keys() >= {*fused_ops} or attributes.get("use_nesterov"):
        return None
    dtype = attributes.get("T") or attributes.get("dtype")
    if dtype and dtype.is_complex:
        return None
    if base in LOGICAL or (dtype and not dtype.is_floating):
        return 0  # operations on integers and on truth values
    try:
        count = FORMULAS[base](inputs, outputs, attributes)
        return count + sum(FUSED[fused] * elements(outputs[0]) for fused in fused_ops)
    except LookupError:  # its definition may differ from that of its op
        return None


def plain_type(op: str) -> str:
    """Return `Conv2D` for `_MklNativeConv2D`: oneDNN's kernels compute what their names say."""
    return op.removeprefix("_").removeprefix("Mkl").removeprefix("Native")


def moves_data(op: str) -> bool:
    """Return whether ops of this type, as it ran, only move or convert data."""
    return not MOVES.isdisjoint((op, plain_type(op)))


def sizes(shape: Shape) -> list[int]:
    """Return the sizes of a shape. Raises LookupError if it is not fully defined."""
    if shape is None or None in shape:
        raise LookupError(shape)
    return [size for size in shape if size is not None]


def elements(shape: Shape) -> int:
    return prod(sizes(shape))


def convolution(filters: Shape, results: Shape) -> int:
    """Return 2*N*Ho*Wo*Co*Kh*Kw*Ci: an output is a sum of one product for each weight of its
    filter, whose channels are fewer than the image's if the convolution is grouped."""
    return 2 * elements(results) * prod(sizes(filters)[:-1])


def depthwise(filters: Shape, results: Shape) -> int:
    """Return 2*N*Ho*Wo*(Ci*multiplier)*Kh*Kw: an output sees one channel (Howard et al.,
    "MobileNets", arXiv 1704.04861, 2017, equation 4)."""
    return 2 * elements(results) * prod(sizes(filters)[:2])


def product(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Return 2*M*N*K, summed over the batch, for the products of M x K and K x N matrices. The left
    factor has the sizes M and K, or K and M if it is transposed."""
    transposed = attributes.get("transpose_a") or attributes.get("adj_x")
    return 2 * elements(outputs[0]) * sizes(inputs[0])[-2 if transposed else -1]


def of_output(count: int) -> Formula:
    return lambda inputs, outputs, _: count * elements(outputs[0])


def of_input(count: int, place: int = 0) -> Formula:
    return lambda inputs, outputs, _: count * elements(inputs[place])


def of_batch_norm(count: int, with_known_moments: int) -> Formula:
    return lambda inputs, outputs, of: (
        elements(inputs[0]) * (count if of.get("is_training", True) else with_known_moments)
        + elements(inputs[0]) * of.get("num_side_inputs", 0)
        + elements(inputs[0]) * (of.get("activation_mode") == "Relu")
    )


def by_type(rows: Mapping[str, T]) -> dict[str, T]:
    """Return the value of each type. A key of `rows` may name several types in one text."""
    return {op: value for types, value in rows.items() for op in types.split()}


ONE = """Abs Add AddV2 BiasAdd Ceil Cos Div DivNoNan Elu Equal Erf Exp Floor FloorDiv FloorMod
    Greater GreaterEqual LeakyRelu LeakyReluGrad Less LessEqual Log Log1p Maximum Minimum Mul Neg
    NotEqual Pow RealDiv Reciprocal Relu Relu6 Relu6Grad ReluGrad Round Sigmoid Sign Sin Softplus
    Sqrt Square Sub Tan Tanh LogicalAnd LogicalNot LogicalOr"""
TYPES: Mapping[str, Formula] = {
    # A gradient of a convolution takes each product once more
    "Conv2D Conv3D": lambda ins, outs, _: convolution(ins[1], outs[0]),
    "Conv2DBackpropInput Conv3DBackpropInputV2": lambda ins, _, __: convolution(ins[1], ins[2]),
    "Conv2DBackpropFilter Conv3DBackpropFilterV2": (
        lambda ins, outs, _: convolution(outs[0], ins[2])
    ),
    "DepthwiseConv2dNative": lambda ins, outs, _: depthwise(ins[1], outs[0]),
    "DepthwiseConv2dNativeBackpropInput": lambda ins, _, __: depthwise(ins[1], ins[2]),
    "DepthwiseConv2dNativeBackpropFilter": lambda ins, outs, _: depthwise(outs[0], ins[2]),
    "BatchMatMul BatchMatMulV2 BatchMatMulV3 MatMul": product,
    # A comparison or addition for each element of the window of each output
    "AvgPool AvgPool3D MaxPool MaxPool3D": (
        lambda _, outs, of: elements(outs[0]) * prod(of["ksize"])
    ),
    # The largest of each window is searched once more, and the gradient added where it stood
    # (SpatialMaxPoolWithArgMaxHelper in tensorflow/core/kernels/maxpooling_op.cc)
    "MaxPoolGrad": lambda ins, _, of: elements(ins[1]) * (prod(of["ksize"]) + 1),
    # A multiply-add for each element of each window
    "AvgPoolGrad": lambda ins, _, of: 2 * elements(ins[1]) * prod(of["ksize"]),
    # A mean (1), a variance (3), a distance and a quotient (2), scale and shift (2): Ioffe and
    # Szegedy (arXiv 1502.03167, 2015), algorithm 1. With known moments, the last four.
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormEx": of_batch_norm(8, 4),
    # With d the gradient and n the normalised input: n (2), the sums of d and of d*n (3), and
    # d - mean(d) - n*mean(d*n), times a factor (4). With known moments, two sums with the distance
    # from the mean (4), and d times a factor (1).
    "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3": of_batch_norm(9, 5),
    # n - 1 additions or comparisons for each number out of n
    "All Any ArgMax ArgMin BiasAddGrad Max Min Prod Sum": (
        lambda ins, outs, _: elements(ins[0]) - elements(outs[0])
    ),
    "AccumulateNV2 AddN": lambda ins, outs, _: (len(ins) - 1) * elements(outs[0]),
    "Mean": of_input(1),
    "L2Loss": of_input(2),
    ONE: of_output(1),
    "ClipByValue Rsqrt SqrtGrad SquaredDifference": of_output(2),
    "SigmoidGrad TanhGrad": of_output(3),
    "RsqrtGrad": of_output(4),
    "LogSoftmax Softmax": of_output(5),
    "SoftmaxCrossEntropyWithLogits": of_input(9),
    # 5 an element as softmax, 3 a row: the sum's logarithm, the distance from it, the label's 1
    "SparseSoftmaxCrossEntropyWithLogits": (
        lambda ins, outs, _: 5 * elements(ins[0]) + 3 * elements(outs[0])
    ),
    "ApplyGradientDescent ResourceApplyGradientDescent": of_input(2, 2),
    "ApplyMomentum ResourceApplyMomentum": of_input(4, 3),  # a = a*m + g, w -= a*r
    # m += (g - m)*(1 - b), v += (g*g - v)*(1 - c), w -= m*r / (sqrt(v) + e): Kingma and Ba (2015)
    "ApplyAdam ResourceApplyAdam": of_input(12, 9),
    "AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp": of_input(1, 1),
}
FORMULAS = by_type(TYPES)
LOGICAL = ("All", "Any", "LogicalAnd", "LogicalNot", "LogicalOr")
# By what comes after a product or convolution, for each output
FUSED = by_type({"Add BiasAdd Elu LeakyRelu Mul Relu Relu6 Sigmoid Tanh": 1, "FusedBatchNorm": 4})


READ: Mapping[str, Callable[[Any], Any]] = {  # by the field of an AttrValue
    "b": bool,
    "i": int,
    "f": float,
    "s": lambda text: text.decode(errors="replace"),
    "list": lambda values: [text.decode(errors="replace") for text in values.s] or [*values.i],
    "type": lambda dtype: tf.dtypes.as_dtype(dtype).base_dtype,
}


def flops_of_nodes(placed: Placement) -> dict[str, int | None]:
    """Return the FLOPs of one call of every executed node, in order."""
    outputs = {
        output_name(node.name, slot): output.shape
        for node in placed.nodes
        for slot, output in enumerate(node.outputs)
    }
    attributes = {
        node.name: {
            name: READ[kind](getattr(value, kind))
            for name, value in node.attr.items()
            if (kind := value.WhichOneof("value")) in READ
        }
        for graph in placed.partition_graphs
        for node in graph.node
    }
    counts: dict[str, int | None] = {}
    for node in placed.nodes:
        if moves_data(node.op) or {node.op, plain_type(node.op)} & HAND_ON:
            counts[node.name] = 0
        elif node.name not in attributes:
            counts[node.name] = None
        else:
            inputs = [outputs.get(name) for name in node.inputs]
            own = [output.shape for output in node.outputs]
            counts[node.name] = flops(node.op, inputs, own, attributes[node.name])
    return counts


def fed_bytes(executed: Sequence[Node]) -> int:
    """Return the bytes of all tensors that are fed to a step, if their sizes are known."""
    fed = (tensor_bytes(node.outputs[0]) for node in executed if node.op == "_Arg" and node.outputs)
    return sum(size or 0 for size in fed)
