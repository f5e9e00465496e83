"""Words: the text for sources, tensors, counts and ratios in all views."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from math import isfinite

from tflab.records.graph import Node, Source, Tensor, edge_count
from tflab.records.verdicts import Verdict
from tflab.units import plural

LONGEST = 40  # rows of a table; JSON has the rest

FATES = {  # the meaning of each; `analysis.fates` decides them
    "executed": "runs under its own name",
    "unreached": "not needed by the fetches",
    "folded": "computed in advance, now a constant",
    "merged": "equal to another node, which stays",
    "fused": "part of another node's kernel",
    "removed": "bypassed, replaced or not used",
    "compiled": "compiled by XLA with other nodes",
}
# The meaning of `executed` if not all of these nodes ran
REMAINS = "in the graph that runs, under its own name"


def place(source: Source | None) -> str:
    return f"{os.path.basename(source.file)}:{source.line}" if source else ""


def tensor(output: Tensor) -> str:
    """`float32 [?, 10]`: `?` is an unknown dimension."""
    if output.shape is None:
        return f"{output.dtype} [...]"
    dims = ", ".join("?" if dim is None else str(dim) for dim in output.shape)
    return f"{output.dtype} [{dims}]"


def graph_size(nodes: tuple[Node, ...]) -> str:
    """`19 nodes, 18 edges`"""
    return f"{plural(len(nodes), 'node')}, {plural(edge_count(nodes), 'edge')}"


def counted(things: Iterable[str]) -> str:
    """`2 Const, Identity`: each with its count, the most frequent first."""
    counts = Counter(things)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.most_common())


def ratio_text(verdict: Verdict) -> str:
    """Return `slower, 1.35 x [1.30, 1.40]`, or `alike` or `cannot tell` with the interval."""
    ratio = f", {verdict.ratio:.2f} x" if verdict.word in ("slower", "faster") else ""
    return f"{verdict.word}{ratio} {ends_text(verdict.low, verdict.high)}".rstrip()


def control_text(verdict: Verdict) -> str:
    """Return the interval of the control."""
    return ends_text(verdict.control_low, verdict.control_high)


def ends_text(low: float, high: float) -> str:
    """Return `[0.98, 1.02]`; nothing for the interval of too few observations."""
    return f"[{low:.2f}, {high:.2f}]" if isfinite(low) and isfinite(high) else ""


# The glossary, one meaning for each term; docs/reference.md lists the same.

TERMS = {
    "batch size": "The number of rows of data in one step.",
    "client": "The process whose session asks the tasks of a cluster to run a step.",
    "cold": "Of a first step or call, which still sets up kernels and memory.",
    "compiled": "The fate of a node that XLA compiled together with others.",
    "configuration": "Settings of the runtime under which a step is measured, such as xla.",
    "constant folding": "A pass that computes in advance what depends only on constants.",
    "control dependency": "An edge that carries no tensor and only enforces an order.",
    "critical path": (
        "The longest chain of op runs in a step, in which each one waits for the previous one."
    ),
    "device": "A processor that runs ops, such as CPU:0.",
    "edge": "A tensor that one node passes to another, or a control dependency.",
    "executed": (
        "The fate of a node that is in the graph that runs, under its own name. In a step it does "
        "not run if it is in a branch that the step does not take."
    ),
    "fate": "What happened to a node of your graph before it ran; every node has exactly one.",
    "feed": "A value that replaces a tensor, usually a placeholder, for one step.",
    "fetch": "A tensor or node that a step is asked to compute.",
    "folded": "The fate of a node that was computed in advance and is now a constant.",
    "fused": "The fate of a node that is computed as part of another node's kernel.",
    "gradient function": "Python code of TensorFlow that adds the nodes of an op's gradient.",
    "grappler": "TensorFlow's graph optimizer: a series of passes.",
    "kernel": "The implementation of an op for a device and data types.",
    "merged": "The fate of a node that is equal to another one, which is used in its place.",
    "node": "One operation in a graph; it has a name, an op, inputs and outputs.",
    "op": "The type of a node, such as MatMul.",
    "op run": (
        "One execution of a node on a device, until its outputs are handed on to the next ops."
    ),
    "partition": "The part of the graph that runs on one device.",
    "pass": "A rewrite of the graph by the runtime before the graph runs.",
    "placement": "The choice of a device for every node.",
    "removed": "The fate of a node that was bypassed, or that is no longer used.",
    "self time": "The time of an op run without the time of op runs inside it.",
    "step": "One call of session.run.",
    "task": "A process of a cluster that runs a part of the graph.",
    "trace": "The runtime's record of one step: when each op ran, and the memory it requested.",
    "transfer": "A tensor that is sent from one device to another.",
    "unreached": "The fate of a node that the fetches do not need.",
    "warm": "Of a step or call after the first ones, when kernels and memory are set up.",
}
