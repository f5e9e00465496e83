"""Permissions: a graph from a file may run only ops that affect nothing but tensors, unless its
user allows more.

They are checked before a run, for all nodes that the run would reach. One exception: ops that only
read a file may run if tflab feeds their path, which is that of the checkpoint next to the graph or
of an asset within its folder. The graph cannot choose the path. In addition, `cli.confinement`
restricts the process itself.

A graph may also require devices of other machines. Soft placement replaces a missing device by
another one, but only within the same job, so the part of the name of a device that gives the
machine is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.cli import confinement
from tflab.errors import EffectsError
from tflab.records.options import CONNECTS, READS, WRITES
from tflab.runtime import private
from tflab.saved_graphs import reach
from tflab.saved_graphs.effects import STRING, Effect, effects_text, of_node, of_type

LISTED = 5  # effects that a message lists
LOCK = "_kernel"  # an attribute that selects a kernel by label; no kernel has this label


class Permissions:
    """The permissions of a graph, checked before each run."""

    def __init__(
        self, name: str, allowed: Collection[str] = (), paths: Collection[str] = ()
    ) -> None:
        self.name = name  # of the graph, for readers
        self.allowed = allowed  # effects, as `Effect.what` says them
        self.paths = paths  # constants with a value from `with_paths`
        self.passed: set[Any] = set()

    def check(
        self,
        graph: tf.Graph,
        targets: Iterable[str],
        fed: Collection[str],
        given: Collection[str] = (),
    ) -> None:
        """Raise EffectsError if a run of these tensors or nodes may affect more than tensors.

        `fed` are the tensors that it is fed; `given` are those of them that contain a path from
        tflab.
        """
        run = (graph.version, tuple(targets), frozenset(fed), frozenset(given))
        if run in self.passed:
            return
        graph_def = graph.as_graph_def()
        own_paths = {*given, *(path for path in self.paths if path not in fed)}
        nodes = reach.nodes_reached(graph_def, *run[1:3], own_paths)
        every = (*effects(nodes), *effects(evaluated_early(graph_def, self.paths)))
        refused = {effect.node: effect for effect in every if effect.what not in self.allowed}
        if refused:
            raise EffectsError(refusal(self.name, tuple(refused.values())))
        self.passed.add(run)


def effects(nodes: Iterable[reach.Reached]) -> Iterator[Effect]:
    for node in nodes:
        op_def = private.op_def(node.node_def.op)
        called = op_def is None and node.calls_itself
        what = None if called else of_node(node.node_def, op_def, node.is_empty, node.is_given)
        if what is not None:
            yield Effect(node.name, node.node_def.op, what)


def evaluated_early(graph_def: Any, paths: Collection[str] = ()) -> Iterator[reach.Reached]:
    """The nodes that TensorFlow may evaluate without a run, for example during the import of the
    graph."""
    return reach.evaluated_early(graph_def, is_stateful, paths)


def is_stateful(op: str) -> bool:
    """Whether ops of a type are never evaluated early. Ops of an unknown type cannot be
    evaluated."""
    op_def = private.op_def(op)
    return op_def is None or op_def.is_stateful


def with_paths(graph_def: Any, paths: Mapping[str, str]) -> tuple[Any, tuple[str, ...]]:
    """The graph with constants for these paths, given by tensor, and the tensors of those
    constants.

    A run is fed the paths of assets, but the import evaluates constants as they are written.
    """
    nodes = {reach.node_of(tensor): path for tensor, path in paths.items()}
    if not nodes:
        return graph_def, ()
    copy = type(graph_def)()
    copy.CopyFrom(graph_def)
    constants = [
        node
        for node in copy.node
        if node.op == "Const" and node.name in nodes and node.attr["dtype"].type == STRING
    ]
    for node in constants:
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(nodes[node.name]))
    return copy, tuple(f"{node.name}:0" for node in constants)


def locked(graph_def: Any, allowed: Collection[str] = (), paths: Collection[str] = ()) -> Any:
    """The graph, changed so that nodes with an effect cannot be evaluated during the import, except
    for allowed effects and for readers of these paths.

    TensorFlow evaluates constants if shapes depend on them. A node that reads a file may be such a
    constant, and its content would be visible as a shape.
    """
    effective = [
        node
        for node in evaluated_early(graph_def, paths)
        if any(effect.what not in allowed for effect in effects([node]))
    ]
    if not effective:
        return graph_def
    copy = type(graph_def)()
    copy.CopyFrom(graph_def)
    names = {(node.body.name, node.node_def.name) for node in effective}
    bodies = {"": copy.node} | {f.signature.name: f.node_def for f in copy.library.function}
    for body, nodes in bodies.items():
        for node_def in nodes:
            if (body, node_def.name) in names:
                node_def.attr[LOCK].s = b"not without leave"
    return copy


def shut(graph_def: Any) -> Any:
    """The graph, changed so that no node that may affect more than tensors has a kernel: for a
    graph that is only inspected, and in which other nodes may be constants than in the original."""
    bodies = (graph_def.node, *(f.node_def for f in graph_def.library.function))
    for node_def in (node_def for body in bodies for node_def in body):
        if of_type(node_def.op, private.op_def(node_def.op)) is not None:
            node_def.attr[LOCK].s = b"never"
    return graph_def


OPTIONS = {  # effect -> the option that allows it
    READS: "--allow-read FOLDER",
    WRITES: "--allow-write FOLDER",
    CONNECTS: "--allow-network",
}
EVERYTHING = "--allow-side-effects"


def refusal(name: str, found_effects: tuple[Effect, ...]) -> str:
    more = f" and {len(found_effects) - LISTED} more" if len(found_effects) > LISTED else ""
    needed = list(dict.fromkeys(OPTIONS.get(effect.what, EVERYTHING) for effect in found_effects))
    if EVERYTHING in needed or not confinement.is_available():
        needed = [EVERYTHING]
    return (
        f"Running '{name}' may affect more than tensors: "
        f"{effects_text(found_effects[:LISTED])}{more}. Give {' '.join(needed)} if you trust it."
    )


# Devices of other machines

HERE = (None, "localhost")  # jobs
MOST_MACHINES = 3  # that the note lists


def on_this_machine(graph_def: Any) -> tuple[Any, str]:
    """The graph with all devices on this machine, and a note about devices on other machines."""
    machines = Counter(filter(None, (machine(node.device) for node in node_defs(graph_def))))
    if not machines:
        return graph_def, ""
    moved = tf1.GraphDef()
    moved.CopyFrom(graph_def)
    for node in node_defs(moved):
        if machine(node.device):
            node.device = local(node.device)
    names = [name for name, _ in machines.most_common(MOST_MACHINES)]
    more = f" and {len(machines) - MOST_MACHINES} more" if len(machines) > MOST_MACHINES else ""
    return moved, (
        f"Soft placement: {machines.total():,} nodes were placed on {', '.join(names)}{more}, and "
        "run on this machine instead."
    )


def node_defs(graph_def: Any) -> Iterator[Any]:
    """The nodes of a graph and of its functions."""
    bodies = (function.node_def for function in graph_def.library.function)
    return chain(graph_def.node, chain.from_iterable(bodies))


def machine(device: str) -> str:
    """`/job:worker/task:0` from the name of a device; "" for this machine."""
    if not device:
        return ""
    try:
        spec = tf.DeviceSpec.from_string(device)
    except ValueError:
        return f"'{device}'"
    if spec.job in HERE and not spec.replica and not spec.task:
        return ""
    return tf.DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task).to_string()


def local(device: str) -> str:
    """The same device on this machine; "" (any device) for an invalid name."""
    try:
        spec = tf.DeviceSpec.from_string(device)
    except ValueError:
        return ""
    return tf.DeviceSpec(device_type=spec.device_type, device_index=spec.device_index).to_string()
