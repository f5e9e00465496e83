"""FLOPs: what each node that ran did, by its definition and the shapes of its trace.

The definition is that of the graph that ran: `conv1/Relu` is a `_MklNativeFusedConv2D` there, with
the ops that were fused into it by name. Shapes are those that the trace has of every run, so the
body of a loop or function counts with its own, each iteration by itself. Nothing is looked up in
the registry behind `tf.compat.v1.profiler`: it knows no fused types and no loops, and counts some
gradients of convolutions and transposed products wrong (seen in TensorFlow 2.21).

The formulas are those of the layers as textbooks have them: Goodfellow, Bengio and Courville,
"Deep Learning" (MIT Press, 2016), chapter 9, for convolution and pooling; Golub and Van Loan,
"Matrix Computations" (4th edition, 2013), section 1.1, for products. A multiply-add is two, an
elementary function (exp, tanh) one; multiplications with padding count. Strides, padding and
dilation decide the size of the output, so no formula has to ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import tensorflow as tf

from tflab.records.graph import Node, output_name
from tflab.records.stages import Placement

Shape = Sequence[int | None] | None  # None where the rank, or a size, is not known
Shapes = Sequence[Shape]
Attributes = Mapping[str, Any]
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


def flops(op: str, inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Return the FLOPs of one run of an op of this type, on tensors of these shapes.

    `inputs` may be followed by those that a kernel of oneDNN adds; `attributes` are those of the
    node that ran, `fused_ops` as strings. Raises ValueError where there is no formula for the type
    or for an op that was fused into it, and where a shape that the formula needs is not known.
    """
    plain = plain_type(op)
    base = plain.removeprefix("Fused") if "fused_ops" in attributes else plain
    if base not in FORMULAS:
        raise ValueError("there is no formula for it")
    dtype = attributes.get("T") or attributes.get("dtype")
    if base in LOGICAL or (dtype and not (dtype.is_floating or dtype.is_complex)):
        return 0  # operations on integers and on truth values
    count = FORMULAS[base](inputs, outputs, attributes)
    if dtype and dtype.is_complex:
        if base not in COMPLEX:
            raise ValueError("there is no formula for it with complex numbers")
        return COMPLEX[base] * count
    for fused in attributes.get("fused_ops", ()):
        if fused not in FUSED:
            raise ValueError(f"there is no formula for {fused}, which was fused into it")
        count += FUSED[fused] * elements(outputs[0])
    return count


def plain_type(op: str) -> str:
    """Return `Conv2D` for `_MklNativeConv2D`: oneDNN's kernels compute what their names say."""
    return op.removeprefix("_").removeprefix("Mkl").removeprefix("Native")


def sizes(shape: Shape) -> tuple[int, ...]:
    known = tuple(size for size in shape or () if size is not None)
    if shape is None or len(known) != len(shape):
        raise ValueError("a shape that its formula needs is not fully defined")
    return known


def elements(shape: Shape) -> int:
    return prod(sizes(shape))


def convolution(filters: Shape, results: Shape) -> int:
    """Return 2*N*Ho*Wo*Co*Kh*Kw*Ci: an output is a sum of one product for each weight of its
    filter, whose channels are fewer than the image's if the convolution is grouped."""
    *window, _ = sizes(filters)
    return 2 * elements(results) * prod(window)


def depthwise(filters: Shape, results: Shape) -> int:
    """Return 2*N*Ho*Wo*(Ci*multiplier)*Kh*Kw: an output sees one channel (Howard et al.,
    "MobileNets", arXiv 1704.04861, 2017, equation 4)."""
    height, width, *_ = sizes(filters)
    return 2 * elements(results) * height * width


def convolutions(count: Callable[[Shape, Shape], int], filters: str, results: str) -> Formula:
    """Return the formula of a convolution or a gradient of one, which takes each product once more:
    the places of the filter and of the result (or its gradient), such as `in1`."""

    def formula(inputs: Shapes, outputs: Shapes, _: Attributes) -> int:
        shapes = {"out0": outputs[0]} | {f"in{n}": shape for n, shape in enumerate(inputs)}
        return count(shapes[filters], shapes[results])

    return formula


def product(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Return 2*M*N*K for each product of a batch; K is the last size of the left factor, or the one
    before if it is transposed."""
    transposed = attributes.get("transpose_a") or attributes.get("adj_x")
    return 2 * elements(outputs[0]) * sizes(inputs[0])[-2 if transposed else -1]


def per_element(count: int, of: str = "output", place: int = 0) -> Formula:
    """Return the formula of so many for each element of an output, or of an input."""
    return lambda inputs, outputs, _: (
        count * elements((inputs if of == "input" else outputs)[place])
    )


def sums(inputs: Shapes, outputs: Shapes, _: Attributes) -> int:
    """Return n - 1 additions or comparisons for each number out of n."""
    return elements(inputs[0]) - elements(outputs[0])


def several(inputs: Shapes, outputs: Shapes, _: Attributes) -> int:
    """Return n - 1 additions for each element of the sum of n tensors."""
    return (len(inputs) - 1) * elements(outputs[0])


def pooling(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Return one comparison or addition for each element of the window of each output."""
    return elements(outputs[0]) * prod(attributes["ksize"])


def max_pool_grad(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Search the largest of each window once more, and add the gradient where it stood, as the
    kernel does (SpatialMaxPoolWithArgMaxHelper in tensorflow/core/kernels/maxpooling_op.cc)."""
    return elements(inputs[1]) * (prod(attributes["ksize"]) + 1)


def average_pool_grad(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Return a multiply-add for each element of each window."""
    return 2 * elements(inputs[1]) * prod(attributes["ksize"])


def batch_norm(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Count a mean (1), a variance (3), a distance and a quotient (2), scale and shift (2): Ioffe
    and Szegedy (arXiv 1502.03167, 2015), algorithm 1. With known moments, the last four."""
    return (8 if attributes.get("is_training", True) else 4) * elements(outputs[0])


def batch_norm_grad(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Count, with d the gradient and n the normalised input: n (2), the sums of d and of d*n (3),
    and d - mean(d) - n*mean(d*n), times a factor (4). With known moments, two sums with the
    distance from the mean (4), and d times a factor (1)."""
    return (9 if attributes.get("is_training", True) else 5) * elements(inputs[0])


def sparse_cross_entropy(inputs: Shapes, outputs: Shapes, _: Attributes) -> int:
    """Count the loss and its gradient: 5 an element as softmax, 3 a row (the logarithm of the sum,
    the distance from it, and 1 less at the label)."""
    return 5 * elements(inputs[0]) + 3 * elements(outputs[0])


def momentum(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Count a = a*m + g, w -= a*r; of Nesterov w -= g*r + a*m*r."""
    return (7 if attributes.get("use_nesterov") else 4) * elements(inputs[3])


def adam(inputs: Shapes, outputs: Shapes, attributes: Attributes) -> int:
    """Count m += (g - m)*(1 - b), v += (g*g - v)*(1 - c), w -= m*r / (sqrt(v) + e): Kingma and Ba
    (2015), as the kernel computes it."""
    if attributes.get("use_nesterov"):
        raise ValueError("there is no formula for it")
    return 12 * elements(inputs[9])


ONE = """Abs Add AddV2 BiasAdd Ceil Cos Div DivNoNan Elu Equal Erf Exp Floor FloorDiv FloorMod
    Greater GreaterEqual LeakyRelu LeakyReluGrad Less LessEqual Log Log1p Maximum Minimum Mul Neg
    NotEqual Pow RealDiv Reciprocal Relu Relu6 Relu6Grad ReluGrad Round Sigmoid Sign Sin Softplus
    Sqrt Square Sub Tan Tanh LogicalAnd LogicalNot LogicalOr"""
TYPES: Sequence[tuple[Formula, str]] = (
    (convolutions(convolution, "in1", "out0"), "Conv2D Conv3D"),
    (convolutions(convolution, "in1", "in2"), "Conv2DBackpropInput Conv3DBackpropInputV2"),
    (convolutions(convolution, "out0", "in2"), "Conv2DBackpropFilter Conv3DBackpropFilterV2"),
    (convolutions(depthwise, "in1", "out0"), "DepthwiseConv2dNative"),
    (convolutions(depthwise, "in1", "in2"), "DepthwiseConv2dNativeBackpropInput"),
    (convolutions(depthwise, "out0", "in2"), "DepthwiseConv2dNativeBackpropFilter"),
    (product, "BatchMatMul BatchMatMulV2 BatchMatMulV3 MatMul"),
    (pooling, "AvgPool AvgPool3D MaxPool MaxPool3D"),
    (max_pool_grad, "MaxPoolGrad"),
    (average_pool_grad, "AvgPoolGrad"),
    (batch_norm, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"),
    (batch_norm_grad, "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3"),
    (sums, "All Any ArgMax ArgMin BiasAddGrad Max Min Prod Sum"),
    (several, "AccumulateNV2 AddN"),
    (per_element(1, "input"), "Mean"),
    (per_element(2, "input"), "L2Loss"),
    (per_element(1), ONE),
    (per_element(2), "ClipByValue Rsqrt SqrtGrad SquaredDifference"),
    (per_element(3), "ReciprocalGrad SigmoidGrad TanhGrad"),
    (per_element(4), "RsqrtGrad"),
    (per_element(5), "LogSoftmax Softmax"),
    (per_element(9, "input"), "SoftmaxCrossEntropyWithLogits"),
    (sparse_cross_entropy, "SparseSoftmaxCrossEntropyWithLogits"),
    (per_element(2, "input", 2), "ApplyGradientDescent ResourceApplyGradientDescent"),
    (momentum, "ApplyMomentum ResourceApplyMomentum"),
    (adam, "ApplyAdam ResourceApplyAdam"),
    (per_element(1, "input", 1), "AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp"),
)
FORMULAS: Mapping[str, Formula] = {op: formula for formula, types in TYPES for op in types.split()}
LOGICAL = frozenset(("All", "Any", "LogicalAnd", "LogicalNot", "LogicalOr"))
# What one operation on complex numbers takes: a multiply-add, which counts as two, is four
# multiplications and four additions.
COMPLEX: Mapping[str, int] = {
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul"), 4),
    **dict.fromkeys(("Add", "AddV2", "AddN", "BiasAdd", "Neg", "Sub", "Sum"), 2),
    **dict.fromkeys(("AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp"), 2),
    "Mul": 6,
}
FUSED: Mapping[str, int] = {  # by what comes after a product or convolution, for each output
    **dict.fromkeys(("Add", "BiasAdd", "Elu", "LeakyRelu", "Mul"), 1),
    **dict.fromkeys(("Relu", "Relu6", "Sigmoid", "Tanh"), 1),
    "FusedBatchNorm": 4,
}


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
    """Return the attributes of a node that are numbers, texts, types, or lists of the first two."""
    values: dict[str, Any] = {}
    for name, value in attr.items():
        kind = value.WhichOneof("value")
        if kind == "list":
            values[name] = [text.decode() for text in value.list.s] or list(value.list.i)
        elif kind == "s":
            values[name] = value.s.decode(errors="replace")
        elif kind == "type":
            values[name] = tf.dtypes.as_dtype(value.type).base_dtype
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
