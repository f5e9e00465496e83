"""Fetching: what to fetch from a graph in a file, unless the user says it.

These are the outputs of its signature, otherwise a train op and its loss, otherwise tensors that no
other node uses. Nodes that support a training (savers, summaries, checks of variables) are not
fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tflab.errors import UnreadyError, UsageError, did_you_mean
from tflab.records.graph import Function, Node, node_of, with_dependents
from tflab.saved_graphs.graph_files import GraphFile
from tflab.saved_graphs.starting import ASSIGNMENTS, VARIABLES

LISTED = 5  # names that a message lists
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
SAVERS = re.compile(r"(Save|Restore)(V2|Slices?)?|ShardedFilename|MergeV2Checkpoints")
BOOKS = re.compile(r"\w*Summary(V2)?|IsVariableInitialized|VarIsInitializedOp")
ENTERS, LEAVES = re.compile("(Ref)?Enter"), re.compile("(Ref)?Exit")
STILL = (*VARIABLES, "Const", "NoOp")  # without inputs, and without a result of interest
QUIET = (*STILL, *ASSIGNMENTS, *PLACEHOLDERS, "PlaceholderWithDefault", "Shape", "Size", "Rank")


def signature_of(file: GraphFile, name: str | None) -> Any:
    """The signature of this name, otherwise `serving_default`, otherwise the first; None if there
    is none."""
    signatures = dict(file.meta.signature_def) if file.meta is not None else {}
    signatures = {
        key: signature for key, signature in signatures.items() if not key.startswith("__")
    }
    if name is not None and name not in signatures:
        hint = did_you_mean(name, list(signatures))
        have = ", ".join(sorted(signatures)) or "none"
        raise UsageError(
            f"'{file.name}' has no signature '{name}'; its signatures are: {have}.{hint}"
        )
    name = name or ("serving_default" if "serving_default" in signatures else None)
    return signatures[name] if name else next(iter(signatures.values()), None)


def tensors_of(info: Any) -> Iterator[str]:
    """The tensors of an input or output of a signature; a sparse or composite one has several."""
    sparse = info.coo_sparse
    parts = (sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name)
    yield from (name for name in (info.name, *parts) if name)
    for component in info.composite_tensor.components:
        yield from tensors_of(component)


def asked_for(graph: tf.Graph, nodes: Sequence[Node], names: Iterable[str]) -> tuple[str, ...]:
    """The user's `--fetch` names that are in the graph: tensors, or nodes without outputs.

    Raises UsageError for a name inside a loop.
    """
    ops = {op.name: op for op in graph.get_operations()}
    present = [name for name in names if node_of(name) in ops]
    repeated = within_loops(nodes) if present else ()
    if looped := next((name for name in present if node_of(name) in repeated), None):
        raise UsageError(
            f"'{looped}' is in a loop, which sets it in each iteration, so TensorFlow cannot "
            "fetch it. Fetch an output of the loop."
        )
    return tuple(
        name if ":" in name or not ops[name].outputs else f"{name}:0"
        for name in present
        if ":" not in name or int_or_none(name) in range(len(ops[node_of(name)].outputs))
    )


def int_or_none(tensor: str) -> int | None:
    index = tensor.partition(":")[2]
    return int(index) if index.isdecimal() else None


def fetches_of(
    nodes: Sequence[Node],
    functions: Sequence[Function],
    signature: Any,
    training: tuple[str, ...],
) -> tuple[tuple[str, ...], str]:
    """What to fetch, and why; nothing if there is no clear choice. `training` is the loss and the
    train op of the graph, if it has them."""
    if signature is not None:
        outputs = [info for _, info in sorted(signature.outputs.items())]
        names = tuple(name for info in outputs for name in tensors_of(info))
        if names:
            return names, f"the {'output' if len(names) == 1 else 'outputs'} of its signature"
    if training:
        return training, "its train op"
    aside, repeated = book_keeping(nodes, functions), within_loops(nodes)
    others = [node for node in nodes if node.name not in aside]
    consumed = {
        node_of(tensor) for node in others for tensor in (*node.inputs, *node.control_inputs)
    }
    consumed |= repeated
    sinks = [n for n in others if n.name not in consumed and n.op not in QUIET and is_value(n)]
    fed = with_dependents(others, {node.name for node in others if node.op in PLACEHOLDERS})
    # Without placeholders: nodes that depend on queues, files or iterators
    brought = with_dependents(
        others, {n.name for n in others if not n.inputs and n.op not in QUIET}
    )
    chosen = (
        [node for node in sinks if node.name in fed]
        or [node for node in sinks if node.name in brought]
        or sinks
    )
    fetches = tuple(f"{node.name}:0" for node in chosen[:LISTED])
    return fetches, f"no other node uses {'it' if len(fetches) == 1 else 'them'}"


def is_value(node: Node) -> bool:
    """Whether a node has an output that can be fetched; a handle or a list has no elements."""
    return bool(node.outputs) and node.outputs[0].dtype not in ("resource", "variant")


def book_keeping(nodes: Sequence[Node], functions: Sequence[Function]) -> set[str]:
    """The nodes that save, restore, summarise or check, and all nodes that use their outputs."""
    saving = {
        function.name
        for function in functions
        if any(SAVERS.fullmatch(node.op) for node in function.nodes)
    }
    while True:  # also functions that call a function that saves
        calling = {
            call.function
            for function in functions
            if function.name in saving
            for call in function.called_by
            if call.function
        }
        if calling <= saving:
            break
        saving |= calling
    calls = {
        call.node
        for function in functions
        if function.name in saving
        for call in function.called_by
        if not call.function
    }
    savers = {node.name for node in nodes if SAVERS.fullmatch(node.op)} | calls
    # The name of the saved file is the output of a node that only waits for the saver.
    waiting = {node.name for node in nodes if savers & set(node.control_inputs)}
    books = {node.name for node in nodes if BOOKS.fullmatch(node.op)}
    return with_dependents(nodes, savers | waiting | books)


def within_loops(nodes: Sequence[Node]) -> set[str]:
    """The nodes from the `Enter` of a TensorFlow 1 loop to its `Exit`, without the `Exit`."""
    ways_in = {node.name for node in nodes if ENTERS.fullmatch(node.op)}
    if not ways_in:
        return set()
    ways_out = {node.name for node in nodes if LEAVES.fullmatch(node.op)}
    inner = [
        replace(node, inputs=(*node.inputs, *node.control_inputs))
        for node in nodes
        if node.name not in ways_out
    ]
    return with_dependents(inner, ways_in)


def nothing_to_run(nodes: Sequence[Node]) -> UnreadyError:
    """Why nothing is fetched by default, and what could be."""
    values = [node.name for node in nodes if is_value(node) and node.op not in PLACEHOLDERS]
    return UnreadyError(
        "tflab found nothing to run in the graph: it has only constants, variables, and nodes "
        "that save, restore or do bookkeeping, or every output is used by another node."
        if values
        else "The graph has nothing to run: none of its nodes computes a value.",
        fetches=tuple(reversed(values)),
    )


def tensor(graph: tf.Graph, name: str) -> tf.Tensor:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError) as error:
        near = near_names(graph, name)
        raise UsageError(f"There is no tensor '{name}' in the graph.{near}") from error


def near_names(graph: tf.Graph, name: str) -> str:
    """` Did you mean ...?`, with tensors of similar names."""
    names = [tensor.name for op in graph.get_operations() for tensor in op.outputs]
    return did_you_mean(name if ":" in name else f"{name}:0", names, LISTED)
