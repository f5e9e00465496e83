"""Endless: nodes that would wait forever, and functions that call themselves.

Nodes wait forever if no node that runs provides what they wait for. Queues and staging areas
are filled by other nodes, and iterators of tf.data are initialised by them. The graph shows whether
such a node runs, before the time limit of the step would.

TensorFlow cannot make functions that call themselves, possibly through others, but a file may
contain them. The importer follows them until the process crashes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tflab.errors import UnreadyError

TAKES = re.compile(r"QueueDequeue(Many|UpTo)?(V2)?|ReaderRead(UpTo)?(V2)?")
FILLS = re.compile(r"QueueEnqueue(Many)?(V2)?")
PASSES = re.compile(r"(Ref)?(Identity|Enter|Switch)")  # types that pass on the handle of a queue
NEXT = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional")
BEGUN = ("Iterator", "IteratorV2")  # iterators that another node must initialise
STAGES = {"Unstage": "Stage", "MapUnstage": "MapStage", "OrderedMapUnstage": "OrderedMapStage"}


@dataclass(frozen=True)
class Unfilled:
    node: str  # the waiting node
    store: str  # the queue, staging area or iterator
    outputs: tuple[tf.Tensor, ...]  # its used outputs, which can be fed instead
    fails: bool  # fails instead of waiting, like an iterator


def refuse(graph: tf.Graph, needed: Collection[str], fed: Collection[str]) -> None:
    """Raise UnreadyError if a node waits for something that no running node fills or
    initialises."""
    missing = list(unfilled(graph, needed, fed))
    if missing:
        first = missing[0]
        shapes = {tensor.name: sizes(tensor) for one in missing for tensor in one.outputs}
        others = f" (and {len(missing) - 1} more like it)" if len(missing) > 1 else ""
        waits = (
            "fail: no op in the step initialises"
            if first.fails
            else ("wait forever: no op in the step fills")
        )
        raise UnreadyError(
            f"'{first.node}' would {waits} '{first.store}'{others}.", tuple(shapes.items())
        )


def unfilled(graph: tf.Graph, needed: Collection[str], fed: Collection[str]) -> Iterator[Unfilled]:
    """The nodes that would wait forever. `needed` are the nodes that run or are fed."""
    ops = [op for op in graph.get_operations() if op.name in needed]
    filled = {store_of(op) for op in ops if FILLS.fullmatch(op.type)}
    filled |= {stage_of(op) for op in ops if op.type in STAGES.values()}
    filled |= {("", maker.inputs[1].op.name) for maker in beginnings(graph, needed)}
    for op in ops:
        store = waits_for(op)
        if store is None or store in filled:
            continue
        used = tuple(
            tensor
            for tensor in op.outputs
            if tensor.name not in fed and any(user.name in needed for user in tensor.consumers())
        )
        if used or not any(tensor.name in fed for tensor in op.outputs):
            yield Unfilled(op.name, store[-1], used or tuple(op.outputs), op.type in NEXT)


def waits_for(op: tf.Operation) -> tuple[str, str] | None:
    """The store that must be filled or initialised before a node has an output."""
    if op.type in STAGES:
        return stage_of(op)
    if TAKES.fullmatch(op.type):
        return store_of(op)
    if op.type in NEXT and queue_of(op).type in BEGUN:
        return "", queue_of(op).name
    return None


def beginnings(graph: tf.Graph, needed: Collection[str]) -> list[tf.Operation]:
    """The nodes to run once to initialise the needed iterators: for each, the first that needs no
    feed."""
    first: dict[str, tf.Operation] = {}
    for op in graph.get_operations():
        if op.type == "MakeIterator" and op.inputs[1].op.name in needed and not is_fed(op):
            first.setdefault(op.inputs[1].op.name, op)
    return list(first.values())


def is_fed(op: tf.Operation) -> bool:
    """Whether a node depends on a placeholder."""
    waiting, visited = [op], {op.name}
    for current in waiting:  # the list grows as it is walked
        if current.type in ("Placeholder", "PlaceholderV2"):
            return True
        fresh = [tensor.op for tensor in current.inputs if tensor.op.name not in visited]
        visited.update(op.name for op in fresh)
        waiting.extend(fresh)
    return False


def store_of(op: tf.Operation) -> tuple[str, str]:
    """The queue that a node fills or empties; queues with the same shared name are one queue."""
    queue = queue_of(op)
    shared = queue.node_def.attr["shared_name"].s.decode(errors="backslashreplace")
    return queue.node_def.attr["container"].s.decode(errors="backslashreplace"), (
        shared or queue.name
    )


def queue_of(op: tf.Operation) -> tf.Operation:
    """The node that makes the queue of a node; the queue of a reader is its second input."""
    queue = op.inputs[1 if op.type.startswith("Reader") else 0].op
    while PASSES.fullmatch(queue.type):
        queue = queue.inputs[0].op
    return queue


def stage_of(op: tf.Operation) -> tuple[str, str]:
    """The staging area of a node; all unnamed ones in a container are one."""
    attr = op.node_def.attr
    name = attr["shared_name"].s.decode(errors="backslashreplace")
    return STAGES.get(op.type, op.type), name or "the staging area"


def sizes(tensor: tf.Tensor) -> tuple[int, ...]:
    """A shape that this tensor may have; open sizes are 16."""
    shape = tensor.shape if tensor.shape.rank is not None else queued_shape(tensor)
    dims = [None] if shape.rank is None else shape.as_list()
    return tuple(16 if dim is None else dim for dim in dims)


def queued_shape(tensor: tf.Tensor) -> tf.TensorShape:
    """The shape of the elements according to the queue, after the dimension for the number of
    rows."""
    op = tensor.op
    shapes = queue_of(op).node_def.attr["shapes"].list.shape if op.inputs else ()
    if tensor.value_index >= len(shapes):
        return tf.TensorShape(None)
    row = tf.TensorShape(shapes[tensor.value_index])
    many = re.search("Many|UpTo", op.type)
    return tf.TensorShape([tf.get_static_value(op.inputs[1])]).concatenate(row) if many else row


# Functions that call themselves


def circle(graph_def: Any) -> tuple[str, ...]:
    """Functions that call one another in a circle, each the next and the last the first, if the
    graph calls them; empty if there is no such circle."""
    bodies = {function.signature.name: function.node_def for function in graph_def.library.function}
    done: set[str] = set()
    # From the graph to the current function
    path: dict[str, Iterator[str]] = {"": called_functions(graph_def.node, bodies)}
    while path:
        name, calls = next(reversed(path.items()))
        following = next(calls, None)
        if following is None:
            done.add(name)
            del path[name]
        elif following in path:
            names = list(path)
            return tuple(names[names.index(following) :])
        elif following not in done:
            path[following] = called_functions(bodies[following], bodies)
    return ()


def called_functions(node_defs: Iterable[Any], bodies: Mapping[str, Any]) -> Iterator[str]:
    """The functions that these nodes call, through their type or an attribute."""
    for node in node_defs:
        values = list(node.attr.values())
        while values:
            value = values.pop()
            for function in (value.func, *value.list.func):
                if function.name in bodies:
                    yield function.name
                values += function.attr.values()
        if node.op in bodies:
            yield node.op
