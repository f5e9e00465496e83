"""Once more: the same graph with one op running twice, to measure what it costs a step.

The op is copied in place: the copy waits for the original, and everything that takes the original's
output waits for the copy. So the step does the op's work once more, at the same point. The waiting
is done by separate nodes and never by the op itself, because the runtime does not fuse ops with
control edges; the one before the copy is a PlaceholderWithDefault, which no pass removes, because
ops that share an input may also be merged. If several nodes of the program were fused into the op,
all are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.records.graph import makers, node_of, reach, turned_around
from tflab.records.placed import Fate
from tflab.records.stages import Placement
from tflab.runtime import private

SUFFIX = "once_more"


def parts(carrier: str, ledger: Iterable[Fate]) -> tuple[str, ...]:
    """The nodes of the program whose work an executed node does, including itself."""
    fused = (fate.name for fate in ledger if fate.fate == "fused" and fate.into == carrier)
    return (*fused, carrier)


def refusal(names: Sequence[str], placement: Placement) -> str | None:
    """Why an op cannot be run once more; None if it can."""
    by_name = {node.name: node for node in placement.user_nodes}
    for name in names:
        node = by_name.get(name)
        if node is None:
            return "the runtime made it, so the program has no node to copy"
        definition = private.op_def(node.op)
        if definition is None:
            return f"{node.op} calls a function of the graph"
        if definition.is_stateful and node.op != "ReadVariableOp":
            return f"{node.op} changes state or is random, so its copy would not do the same work"
        if node.op in ("Enter", "Exit", "NextIteration", "Merge", "Switch", "LoopCond"):
            return "it is part of a loop"
    edges = makers(placement.user_nodes)
    between = reach(names, edges) & reach(names, turned_around(edges)) - set(names)
    if between:  # the copy would wait for it, and it for the copy
        return "other nodes lie between those that it does the work of"
    return None


WAYS = ("last", "first", "all")  # which inputs of the copy wait for the original


def copied(
    graph: tf1.GraphDef, names: Sequence[str], way: str = "all", free: Set[str] = frozenset()
) -> tuple[tf1.GraphDef, str]:
    """The graph with the work of these nodes done once more, and the node to run for it.

    The last of the names is the op that the others were fused into. `way` is one of WAYS: some
    kernels are chosen only if an input comes directly from its maker. For the same reason, the
    nodes in `free` take the original's output without waiting.
    """
    carrier, copied_names = names[-1], set(names)
    changed = tf1.GraphDef()
    changed.CopyFrom(graph)
    kept = copied_names | free
    for node in changed.node:
        if node.name not in kept:
            redirect(node, copied_names)
    output_tensors = outputs(graph, copied_names)
    for tensor, live in output_tensors.items():
        gate = changed.node.add(name=gate_of(tensor), op="Identity")
        gate.attr["T"].type = live.dtype.as_datatype_enum
        gate.input.extend([tensor, f"^{after(carrier)}"])
    originals = [node for node in graph.node if node.name in copied_names]
    outer = [t for node in originals for t in node.input if node_of(t) not in copied_names]
    outer = [tensor for tensor in dict.fromkeys(outer) if not tensor.startswith("^")]
    waiting = {"last": outer[-1:], "first": outer[:1], "all": outer}[way]
    gates: dict[str, str] = {}
    for number, (tensor, live) in enumerate(outputs(graph, set(map(node_of, outer))).items()):
        if tensor in waiting:
            gate = changed.node.add(name=input_of(carrier, number), op="PlaceholderWithDefault")
            gate.attr["dtype"].type = live.dtype.as_datatype_enum
            gate.attr["shape"].shape.CopyFrom(live.shape.as_proto())
            gate.input.extend([tensor, f"^{before(carrier)}"])
            gates[tensor] = gate.name
    for node in originals:
        copy = changed.node.add()
        copy.CopyFrom(node)
        copy.name = copy_of(node.name)
        del copy.input[:]
        for tensor in node.input:
            if not tensor.startswith("^"):
                within = node_of(tensor) in copied_names
                copy.input.append(copy_of(tensor) if within else gates.get(tensor, tensor))
    for name, original in ((before(carrier), carrier), (after(carrier), copy_of(carrier))):
        end = changed.node.add(name=name, op="Identity")
        end.attr["T"].type = output_tensors[carrier].dtype.as_datatype_enum
        end.input.append(original)
    return changed, after(carrier)


def redirect(node: tf1.NodeDef, copied_names: Set[str]) -> None:
    """Let a node take the outputs of the copied nodes only after the copy ran."""
    for index, tensor in enumerate(node.input):
        if node_of(tensor) in copied_names and not tensor.startswith("^"):
            node.input[index] = gate_of(tensor)


def outputs(graph: tf1.GraphDef, names: Set[str]) -> dict[str, tf.Tensor]:
    """Every output of these nodes that some node takes, and the first output of each."""
    with tf.Graph().as_default() as built:
        tf.import_graph_def(graph, name="")
    consumed = {t for node in graph.node for t in node.input if node_of(t) in names and t[0] != "^"}
    tensors = {}
    for tensor in consumed | {name for name in names if built.get_operation_by_name(name).outputs}:
        tensors[tensor] = built.get_tensor_by_name(tensor if ":" in tensor else f"{tensor}:0")
    return tensors


def input_of(carrier: str, number: int) -> str:
    return f"{SUFFIX}/{carrier}/input_{number}"


def gate_of(tensor: str) -> str:
    return f"{SUFFIX}/gate/{tensor.replace(':', '_output_')}"


def copy_of(name: str) -> str:
    return f"{SUFFIX}/{name}"


def before(carrier: str) -> str:
    return f"{SUFFIX}/{carrier}/original"


def after(carrier: str) -> str:
    return f"{SUFFIX}/{carrier}/done"
