"""Node history: everything that the stages know about one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.gradients import GradientNode
from tflab.records.graph import Source, Tensor
from tflab.records.measured import Load, OpStats
from tflab.records.placed import Assignment, CompiledKernel, Fate, Kernel, Origin
from tflab.records.values import Value


@dataclass(frozen=True)
class Touch:
    """What one graph pass did to a node."""

    by: str  # the pass
    place: int  # of the pass among all of the placement, from 0
    # added, removed, replaced, bypassed (its users take another node), folded, merged, fused,
    # compiled, rewritten, rewired, input merged (with `about`), moved; reused: its name
    what: str
    about: str  # the new type, the node that replaced it, or ""


@dataclass(frozen=True)
class NodeHistory(Shown):
    """A node, from the line that made it to the time that it took.

    A node that was fused or merged continues in another node, its `carrier`: device, kernel, code
    and times are the carrier's, and the carrier's own history lists the node.
    """

    name: str
    op: str  # the type as written; for a node that the runtime made, the type that ran
    kind: str  # forward, gradient, update or runtime
    source: Source | None  # the user's line; None if only the runtime knows the node
    inputs: tuple[str, ...]  # tensors, as written
    control_inputs: tuple[str, ...]
    outputs: tuple[Tensor, ...]  # as written; for a node that the runtime made, as it ran
    consumers: tuple[str, ...] = ()  # nodes that take its outputs
    gradient_function: str | None = None  # as "_MulGrad (math_grad.py:1404)"
    gradient_nodes: tuple[str, ...] = ()  # made by that function
    no_gradient: str | None = None  # why there are none
    # Of a variable without a gradient: the nodes from it to the loss
    gradient_path: tuple[str, ...] = ()
    derived_from: str | None = None  # for a gradient node, the forward node
    fate: Fate | None = None  # for a node of the user's graph
    origin: Origin | None = None  # for a node that the runtime made
    touches: tuple[Touch, ...] = ()
    # What differs from nodes of its type that were fused, merged or folded, if it was not
    unlike: tuple[str, ...] = ()
    carrier: str | None = None  # the executed node that does its work; None if there is none
    # Whether the carrier did not run, because no traced step took its branch; None: not known
    not_run: bool | None = False
    carries: tuple[str, ...] = ()  # the user's nodes whose work it does in addition to its own
    ran_as: str | None = None  # the type of the carrier
    ran_outputs: tuple[Tensor, ...] = ()  # of the carrier, with the batch in their shapes
    assignment: Assignment | None = None
    kernel: Kernel | None = None
    code: tuple[CompiledKernel, ...] = ()
    times: Mapping[int, OpStats] = field(default_factory=dict)  # of the carrier, by batch size
    # batch size -> the reason for missing times
    untimed: Mapping[int, str] = field(default_factory=dict)
    critical: bool = False
    load: Load | None = None  # of the machine when its times were measured
    meaning: GradientNode | None = None  # for a gradient node, its purpose
    values: tuple[Value, ...] = ()  # its outputs in the step of the program's values
    taken: tuple[Value, ...] = ()  # its inputs in that step
    gradient: Value | None = None  # of the loss with respect to its first output, in that step
    later_consumers: tuple[str, ...] = ()  # the consumers that were added with the gradients
