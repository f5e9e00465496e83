"""Waiting: nodes that would wait for ever, because nothing that runs gives them what they wait for.

Queues, staging areas and iterators of tf.data are filled by other nodes. Whether one of those runs
is to be seen in the graph, before the step's time limit says it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import tensorflow as tf

from tflab.errors import TflabError

TAKES = re.compile(r"QueueDequeue(Many|UpTo)?(V2)?|ReaderRead(UpTo)?(V2)?")
FILLS = re.compile(r"QueueEnqueue(Many)?(V2)?")
PASSES = re.compile(r"(Ref)?(Identity|Enter|Switch)")  # by which a queue's handle gets about
STAGES = {"Unstage": "Stage", "MapUnstage": "MapStage", "OrderedMapUnstage": "OrderedMapStage"}


@dataclass(frozen=True)
class Unfilled:
    node: str  # that waits
    store: str  # the queue or staging area that it waits for
    outputs: tuple[tf.Tensor, ...]  # those that are used: to be fed instead


def refuse(graph: tf.Graph, needed: Collection[str], fed: Collection[str]) -> None:
    """Raise TflabError where a node that runs waits for what no node that runs fills."""
    missing = list(unfilled(graph, needed, fed))
    if missing:
        first = missing[0]
        of_it = [tensor for one in missing for tensor in one.outputs]
        files = " ".join(f"{tensor.name}=FILE.npy" for tensor in of_it)
        shapes = " ".join(f"{tensor.name}={sizes(tensor)}" for tensor in of_it)
        others = f" (and {len(missing) - 1} more like it)" if len(missing) > 1 else ""
        raise TflabError(
            f"'{first.node}' would wait for ever: nothing that runs fills '{first.store}'{others}. "
            f"Feed what it would give: --feed {files}, or made-up values with --shape {shapes}."
        )


def unfilled(graph: tf.Graph, needed: Collection[str], fed: Collection[str]) -> Iterator[Unfilled]:
    """The nodes that wait in vain. `needed` are the nodes that run or are fed."""
    ops = [op for op in graph.get_operations() if op.name in needed]
    filled = {store_of(op) for op in ops if FILLS.fullmatch(op.type)}
    filled |= {stage_of(op) for op in ops if op.type in STAGES.values()}
    for op in ops:
        used = tuple(
            tensor
            for tensor in op.outputs
            if tensor.name not in fed and any(user.name in needed for user in tensor.consumers())
        )
        if op.outputs and not used and any(tensor.name in fed for tensor in op.outputs):
            continue  # all that is taken from it is fed
        if op.type in STAGES:
            store = stage_of(op)
        elif TAKES.fullmatch(op.type):
            store = store_of(op)
        else:
            continue
        if store not in filled:
            yield Unfilled(op.name, store[-1], used or tuple(op.outputs))


def store_of(op: tf.Operation) -> tuple[str, str]:
    """The queue that a node fills or empties; those of one shared name are one queue."""
    queue = op.inputs[1 if op.type.startswith("Reader") else 0].op
    while PASSES.fullmatch(queue.type):
        queue = queue.inputs[0].op
    if queue.type == "Placeholder":
        return "", queue.name
    shared = queue.node_def.attr["shared_name"].s.decode(errors="backslashreplace")
    return queue.node_def.attr["container"].s.decode(errors="backslashreplace"), (
        shared or queue.name
    )


def stage_of(op: tf.Operation) -> tuple[str, str]:
    """The staging area of a node: without a name of its own, all of a container are one."""
    attr = op.node_def.attr
    name = attr["shared_name"].s.decode(errors="backslashreplace")
    return STAGES.get(op.type, op.type), name or "the staging area"


def sizes(tensor: tf.Tensor) -> str:
    """A shape that this tensor may have, as `--shape` takes it; open sizes are 16."""
    dims = [None] if tensor.shape.rank is None else tensor.shape.as_list()
    return ",".join("16" if dim is None else str(dim) for dim in dims)
