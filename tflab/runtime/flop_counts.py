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
from typing import Any

import tensorflow as tf

from tflab.records.graph import Node, Shape, output_name
from tflab.records.stages import Placement
from tflab.runtime import flops

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
        if {node.op, flops.plain_type(node.op)} & NO_ARITHMETIC:
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
        return flops.flops(
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
            yield flops.flops(
                op.type,
                [shape_of(tensor) for tensor in op.inputs],
                [shape_of(tensor) for tensor in op.outputs],
                attributes_of(op.node_def.attr),
            )


def shape_of(tensor: tf.Tensor) -> Shape:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
