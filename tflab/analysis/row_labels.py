"""Row labels: which row a node belongs to, by type, node, layer or source line."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import dropwhile

from tflab.analysis.fates import ROLES
from tflab.errors import UsageError
from tflab.records.graph import UPDATE, Source, grouped
from tflab.records.measured import NodeStats
from tflab.records.placed import Fate

KEYS = ("op", "node", "layer", "line")
# rows with ops of many kinds: only their time per step is meaningful
STEPWISE = ("layer", "line")
RUNTIME = "(added by the runtime)"  # nodes that the runtime adds: feeds, fetches, transfers
NO_LINE = "(no line)"  # nodes that a pass made, or of a graph from a file
STEP = "(the optimiser's step)"  # updates by an optimiser that was created on an unknown line
CALLS = re.compile(r"(Stateful)?PartitionedCall(_\d+)?")  # as SavedModels name their calls
# Nodes that pass values into a call and out of it: `Func/<the call>/input/_0`
PASSING = re.compile(r"Func/(.+)/(?:input|output)(?:_control_node)?(/_\d+)")
GRADIENTS = re.compile(r"gradients(_\d+)?")  # the scope that tf.gradients opens

Sources = Mapping[str, Source | None]


@dataclass(frozen=True)
class Graph:
    """What is known of the graph that ran."""

    ledger: Sequence[Fate] = ()
    sources: Sources = field(default_factory=dict)  # the lines of nodes
    phases: Mapping[str, str] = field(default_factory=dict)  # of nodes; the default is forward
    layers: Mapping[str, str] = field(default_factory=dict)  # names of layers by their name scopes


def labels_of(nodes: Sequence[NodeStats], by: str, graph: Graph) -> list[str]:
    """Return the key of each node's row."""
    if by == "op":
        return [node.op for node in nodes]
    if by == "node":
        return [node.name for node in nodes]
    if by == "layer":
        names = (*graph.sources, *(node.name for node in nodes))
        homes = {without_calls(name).rpartition("/")[0] for name in names}
        label = partial(layer, homes=homes, layers=graph.layers)
        labels = [RUNTIME if is_runtime(node) else label(node.name) for node in nodes]
        joined = joined_layers(graph.ledger, label)
        return [joined.get(own, own) for own in labels]
    if by == "line":
        lines = line_labels(graph.sources)
        steps = {name: STEP for name, phase in graph.phases.items() if phase == UPDATE}
        others = (RUNTIME if is_runtime(node) else steps.get(node.name, NO_LINE) for node in nodes)
        return [lines.get(node.name) or other for node, other in zip(nodes, others, strict=True)]
    raise UsageError(f"There are no rows by '{by}'; choose from {', '.join(KEYS)}.")


def unit(by: str) -> str:
    """Return what the time of a row refers to: `call`, or `step` if it has ops of many kinds."""
    return "step" if by in STEPWISE else "call"


def is_runtime(node: NodeStats) -> bool:
    """Return whether the runtime added a node, such as `_SOURCE`: the user's have no underscore."""
    return node.op in ROLES or node.name.startswith("_")


def layer(name: str, homes: Set[str], layers: Mapping[str, str]) -> str:
    """Return the layer of a node: the innermost of its name scopes that `layers` names, otherwise
    the outermost that is in `homes`, otherwise the outermost. `homes` has the scopes that directly
    contain nodes, so a scope of nothing but scopes, such as a block of layers, is skipped. Below
    `gradients` it is the layer that the gradient belongs to: `gradients/conv1`. Nodes that start or
    add up gradients belong to `gradients`. A node outside of all scopes is its own layer."""
    *scopes, own = without_calls(name).split("/")
    for at, scope in enumerate(scopes):
        if GRADIENTS.fullmatch(scope):
            before = "/".join(scopes[: at + 1])
            inner = layer_of("/".join(scopes[at + 1 :]), homes, layers)
            return f"{before}/{inner}" if inner else before
    return layer_of("/".join(scopes), homes, layers) or own


def without_calls(name: str) -> str:
    """Return the name without the calls that it was inlined from: `sequential/conv1/Conv2D` for
    `StatefulPartitionedCall/StatefulPartitionedCall/sequential/conv1/Conv2D` in a layer."""
    *scopes, own = PASSING.sub(r"\1\2", name).split("/")
    inner = list(dropwhile(CALLS.fullmatch, scopes))
    return "/".join((*(inner or scopes[:1]), own))


def layer_of(path: str, homes: Set[str], layers: Mapping[str, str]) -> str:
    """Return the layer whose scope the path leads into, or the first scope that has nodes."""
    parts = path.split("/")
    prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    named = [layers[prefix] for prefix in prefixes if prefix in layers]
    return named[-1] if named else next((p for p in prefixes if p in homes), parts[0])


def joined_layers(ledger: Sequence[Fate], label: Callable[[str], str]) -> dict[str, str]:
    """Return, for layers whose ops were fused into one, their joint name: `conv1 + bn1 + relu1`.
    Their times cannot be separated, so they are one row. `label` returns the layer of a node."""
    order = {fate.name: at for at, fate in enumerate(ledger)}
    groups: dict[str, list[str]] = {}
    for into, parts in fused_into(ledger).items():
        if into in order:  # a node of the user, not an XLA cluster
            fused = [label(name) for name in sorted((*parts, into), key=order.__getitem__)]
            group = list(dict.fromkeys(part for name in fused for part in groups.get(name, [name])))
            groups |= dict.fromkeys(group, group)
    joint = {}
    for name, (first, *others) in groups.items():
        scope = first.rpartition("/")[0]  # written once
        if others:
            joint[name] = " + ".join((first, *(part.removeprefix(f"{scope}/") for part in others)))
    return joint


def line_labels(sources: Sources) -> dict[str, str]:
    """Return `lenet.py:12` for each node; the whole path if two files have the same name."""
    with_source = {node: source for node, source in sources.items() if source}
    files = {source.file for source in with_source.values()}
    namesakes = Counter(map(os.path.basename, files))

    def label(source: Source) -> str:
        name = os.path.basename(source.file)
        return f"{name if namesakes[name] == 1 else source.file}:{source.line}"

    return {node: label(source) for node, source in with_source.items()}


def fused_into(ledger: Iterable[Fate]) -> dict[str, list[str]]:
    """Return, for each executed node, the user's nodes that were fused or compiled into it."""
    fused = (fate for fate in ledger if fate.fate in ("fused", "compiled"))
    return grouped((fate.into, fate.name) for fate in fused if fate.into)
