"""FLOP counts: what each node that ran did, by its definition and the shapes of its trace.

The definition is that of the graph that ran: `conv1/Relu` is a `_MklNativeFusedConv2D` there, with
the ops that were fused into it by name. Shapes are those that the trace has of every run, so the
body of a loop or function counts with its own, each iteration by itself. Nothing is looked up in
the registry behind `tf.compat.v1.profiler`: it knows no fused types and no loops, and counts some
gradients of convolutions and transposed products wrong (seen in TensorFlow 2.21).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tflab.records.graph import Node, output_name
from tflab.records.stages import Placement
from tflab.runtime.flop_formulas import (
    Formula,
    Shape,
    adagrad,
    adam,
    average_pool_grad,
    batch_norm,
    batch_norm_grad,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    depthwise_backprop_filter,
    depthwise_backprop_input,
    depthwise_conv2d,
    einsum,
    elements,
    forward_convolution,
    ftrl,
    gru_cell,
    lstm_cell,
    max_pool_grad,
    momentum,
    per_element,
    pooling,
    product,
    several,
    sparse_cross_entropy,
    sums,
)

if TYPE_CHECKING:
    import tensorflow as tf

# These pass a buffer or a handle on, or look at a shape: nothing is moved, nothing computed.
PASSING = """_Arg _DeviceRetval _Retval _SwitchN _XlaCompile _XlaMerge BroadcastArgs
    BroadcastGradientArgs Const ControlTrigger Enter Exit ExpandDims Identity IdentityN
    IsVariableInitialized LoopCond Merge NextIteration NoOp Placeholder PlaceholderWithDefault
    PreventGradient Rank ReadVariableOp RefEnter RefExit RefIdentity RefMerge RefNextIteration
    RefSwitch Reshape Shape ShapeN Size Snapshot Squeeze StackPopV2 StackPushV2 StackV2 StopGradient
    Switch TensorArrayCloseV3 TensorArrayGradV3 TensorArraySizeV3 TensorArrayV3 TensorListLength
    TensorListPopBack TensorListPushBack TensorListReserve EmptyTensorList VarHandleOp
    VarIsInitializedOp Variable VariableShape VariableV2"""
# These copy, fill, look up or choose: bytes, but no arithmetic.
MOVING = """_HostRecv _HostSend _Recv _Send Assert Assign AssignVariableOp BroadcastTo Cast
    Concat ConcatOffset ConcatV2 DynamicPartition DynamicStitch Fill Gather GatherNd GatherV2
    InvertPermutation MirrorPad OneHot OnesLike Pack ParallelDynamicStitch Pad PadV2 Range
    ResourceGather ResourceGatherNd ResourceScatterNdUpdate ResourceScatterUpdate
    ReverseSequence ReverseV2 ScatterNdUpdate ScatterUpdate Select SelectV2 Slice Split SplitV
    StridedSlice StridedSliceGrad TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayReadV3
    TensorArrayScatterV3 TensorArraySplitV3 TensorArrayWriteV3 TensorListFromTensor
    TensorListGetItem TensorListSetItem TensorListStack TensorScatterUpdate Tile Transpose
    Unique UniqueV2 Unpack Where ZerosLike"""
HAND_ON = frozenset(PASSING.split())
NO_ARITHMETIC = HAND_ON | frozenset(MOVING.split())


def flops(
    op: str,
    inputs: Sequence[Shape],
    outputs: Sequence[Shape],
    attributes: Mapping[str, Any],
) -> int:
    """The FLOPs of one run of an op of this type, on tensors of these shapes.

    `inputs` may be followed by those that a kernel of oneDNN adds; `attributes` are those of the
    node that ran, `fused_ops` as strings. Raises ValueError where there is no formula for the type
    or for an op that was fused into it, and where a shape that the formula needs is not known.
    """
    plain = plain_type(op)
    base = plain.removeprefix("Fused") if "fused_ops" in attributes else plain
    formula = FORMULAS.get(base)
    if formula is None:
        raise ValueError(WITHOUT.get(plain, "there is no formula for it"))
    count = formula(inputs, outputs, attributes)
    for fused in attributes.get("fused_ops", ()):
        if fused not in FUSED:
            raise ValueError(f"there is no formula for {fused}, which was fused into it")
        count += FUSED[fused] * elements(outputs[0])
    return count


def plain_type(op: str) -> str:
    """`Conv2D` for `_MklNativeConv2D`: oneDNN's kernels compute what their names say."""
    return op.removeprefix("_").removeprefix("Mkl").removeprefix("Native")


# Types whose every output is one operation. An elementary function (exp, tanh) counts as one.
ONE = """Abs Acos Add AddV2 Asin Atan Atan2 BiasAdd BitwiseAnd BitwiseOr Ceil Cos Cosh Div DivNoNan
    Elu Equal Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Inv IsFinite IsInf
    IsNan LeakyRelu LeakyReluGrad Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum
    Minimum Mod Mul MulNoNan Neg NotEqual Pow RealDiv Reciprocal Relu Relu6 Relu6Grad ReluGrad Rint
    Round Selu Sigmoid Sign Sin Sinh Softplus Sqrt Square Sub Tan Tanh TruncateDiv Xdivy Xlogy"""
SCATTERED = " ".join(
    f"{kind}{how}"
    for kind in ("ResourceScatter", "ResourceScatterNd", "Scatter", "ScatterNd", "TensorScatter")
    for how in ("Add", "Div", "Max", "Min", "Mul", "Sub")
)
# Types of which shapes do not decide the count, and why
DRAWN = "the number of operations for a random number depends on the generator"
STEPS = "its number of steps is a value, and only shapes are known"
SORTED = "the number of comparisons depends on the values"
WITHOUT: Mapping[str, str] = {
    **dict.fromkeys(("RandomStandardNormal", "RandomUniform", "TruncatedNormal"), DRAWN),
    **dict.fromkeys(("RandomShuffle", "RandomUniformInt", "Multinomial", "RandomGammaV2"), DRAWN),
    **dict.fromkeys(("StatelessRandomNormalV2", "StatelessRandomUniformV2"), DRAWN),
    **dict.fromkeys(("StatelessRandomUniform", "StatelessRandomNormal"), DRAWN),
    **dict.fromkeys(("BlockLSTM", "BlockLSTMGrad", "BlockLSTMV2", "BlockLSTMGradV2"), STEPS),
    **dict.fromkeys(("TopK", "TopKV2"), SORTED),
}
FUSED: Mapping[str, int] = {  # by what comes after a product or convolution, for each output
    **dict.fromkeys(("Add", "BiasAdd", "Elu", "LeakyRelu", "Mul"), 1),
    **dict.fromkeys(("Relu", "Relu6", "Sigmoid", "Tanh"), 1),
    "FusedBatchNorm": 4,
}
TYPES: Sequence[tuple[Formula, str]] = (
    (per_element(1), f"{ONE} Cumprod Cumsum"),  # each is added to a sum that starts at 0
    (per_element(2), "ClipByValue Rsqrt SqrtGrad SquaredDifference"),
    (per_element(3), "InvGrad ReciprocalGrad SigmoidGrad TanhGrad"),
    (per_element(5), "LogSoftmax Softmax"),
    (sums, "All Any ArgMax ArgMin BiasAddGrad Max Min Prod Sum"),
    (several, "AccumulateNV2 AddN"),
    (pooling, "AvgPool AvgPool3D MaxPool MaxPool3D"),
    (product, "BatchMatMul BatchMatMulV2 BatchMatMulV3 MatMul"),
    (forward_convolution, "Conv2D Conv3D"),
    (conv2d_backprop_filter, "Conv2DBackpropFilter Conv3DBackpropFilterV2"),
    (conv2d_backprop_input, "Conv2DBackpropInput Conv3DBackpropInputV2"),
    (einsum, "Einsum XlaEinsum"),
    (adam, "ApplyAdam ResourceApplyAdam"),
    (adagrad(3), "ApplyAdagrad ResourceApplyAdagrad ResourceSparseApplyAdagrad SparseApplyAdagrad"),
    (adagrad(4), "ApplyAdagradV2 ResourceApplyAdagradV2"),
    (adagrad(4), "ResourceSparseApplyAdagradV2 SparseApplyAdagradV2"),
    (ftrl(0), "ApplyFtrl ResourceApplyFtrl ResourceSparseApplyFtrl SparseApplyFtrl"),
    (ftrl(2), "ApplyFtrlV2 ResourceApplyFtrlV2 ResourceSparseApplyFtrlV2 SparseApplyFtrlV2"),
    (momentum, "ApplyMomentum ResourceApplyMomentum ResourceSparseApplyMomentum"),
    (momentum, "SparseApplyMomentum"),
    # v += (g*g - v)*(1 - d), m = m*b + g*r / sqrt(v + e), w -= m: Tieleman and Hinton (2012)
    (per_element(11, "input", 7), "ApplyRMSProp ResourceApplyRMSProp"),
    # The same with the mean of the gradients, squared, taken off v: Graves (arXiv 1308.0850, 2013)
    (per_element(16, "input", 8), "ApplyCenteredRMSProp ResourceApplyCenteredRMSProp"),
    (per_element(2, "input", 2), "ApplyGradientDescent ResourceApplyGradientDescent"),
    (per_element(1, "input", 1), "AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp"),
    (per_element(1, "input", 2), SCATTERED),
    (per_element(1, "input", 1), "ScatterNd"),  # updates of the same element are added up
    (average_pool_grad, "AvgPoolGrad"),
    (depthwise_conv2d, "DepthwiseConv2dNative"),
    (depthwise_backprop_filter, "DepthwiseConv2dNativeBackpropFilter"),
    (depthwise_backprop_input, "DepthwiseConv2dNativeBackpropInput"),
    (batch_norm, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"),
    (batch_norm_grad, "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3"),
    (gru_cell, "GRUBlockCell"),
    (per_element(2, "input"), "L2Loss"),
    (lstm_cell, "LSTMBlockCell"),
    (max_pool_grad, "MaxPoolGrad"),
    (per_element(1, "input"), "Mean UnsortedSegmentSum"),
    (per_element(4), "RsqrtGrad"),
    (per_element(9, "input"), "SoftmaxCrossEntropyWithLogits"),
    (sparse_cross_entropy, "SparseSoftmaxCrossEntropyWithLogits"),
)
FORMULAS: Mapping[str, Formula] = {op: formula for formula, types in TYPES for op in types.split()}


# By the nodes that ran


@dataclass(frozen=True)
class Unknown:
    """A node that ran, and of which the FLOPs are not known."""

    op: str
    reason: str


class Counts:
    """The FLOPs of the nodes of a placement."""

    def __init__(self, placed: Placement) -> None:
        self.placed = placed
        self.definitions = {
            node.name: node for graph in placed.partition_graphs for node in graph.node
        }
        self.shapes = {
            output_name(node.name, slot): output.shape
            for node in placed.nodes
            for slot, output in enumerate(node.outputs)
        }

    def of_node(self, node: Node) -> float | Unknown:
        """The FLOPs of a call: the mean of its runs in the step, each by its own shapes."""
        if {node.op, plain_type(node.op)} & NO_ARITHMETIC:
            return 0
        try:
            counts = [self.count(node, number) for number in range(self.runs(node))]
        except (KeyError, IndexError):
            return Unknown(node.op, "its definition differs from that of its op")
        except ValueError as reason:
            return Unknown(node.op, str(reason))
        return counts[0] if len(set(counts)) == 1 else sum(counts) / len(counts)

    def runs(self, node: Node) -> int:
        """How often it ran, if its shapes differed between runs; otherwise 1."""
        tensors = (*node.inputs, *outputs_of(node))
        lengths = {len(self.placed.varying[one]) for one in tensors if one in self.placed.varying}
        if len(lengths) > 1:
            raise ValueError("its inputs changed their shapes, but not once per run")
        return lengths.pop() if lengths else 1

    def count(self, node: Node, number: int) -> int:
        definition = self.definitions[node.name]
        return flops(
            node.op,
            [self.shape(tensor, number) for tensor in node.inputs],
            [self.shape(tensor, number) for tensor in outputs_of(node)],
            attributes_of(definition.attr),
        )

    def shape(self, tensor: str, number: int) -> Shape:
        varying = self.placed.varying.get(tensor)
        return varying[number] if varying else self.shapes.get(tensor)

    def ran(self, node: Node) -> bool:
        """Whether the step's trace has any output of it, or it has none to have."""
        return not node.outputs or any(output.shape is not None for output in node.outputs)


def outputs_of(node: Node) -> list[str]:
    return [output_name(node.name, slot) for slot in range(len(node.outputs))]


def attributes_of(attr: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a node that are numbers, texts, or lists of these."""
    values: dict[str, Any] = {}
    for name, value in attr.items():
        kind = value.WhichOneof("value")
        if kind == "list":
            values[name] = [text.decode() for text in value.list.s] or list(value.list.i)
        elif kind == "s":
            values[name] = value.s.decode(errors="replace")
        elif kind in ("b", "i", "f"):
            values[name] = getattr(value, kind)
    return values


def of_operations(operations: Sequence[tf.Operation]) -> Iterator[int]:
    """The FLOPs of ops of a graph whose shapes are known. Raises ValueError where they are not."""
    for op in operations:
        if op.type not in NO_ARITHMETIC:
            yield flops(
                op.type,
                [shape_of(tensor) for tensor in op.inputs],
                [shape_of(tensor) for tensor in op.outputs],
                attributes_of(op.node_def.attr),
            )


def shape_of(tensor: tf.Tensor) -> Shape:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
