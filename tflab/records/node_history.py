"""The history of one node: everything that the stages know of it, under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.blocks import Shown
from tflab.records.buffers import Buffer
from tflab.records.gradients import GradientNode
from tflab.records.graph import Source, Tensor
from tflab.records.measured import OpStats
from tflab.records.placed import Assignment, Fate, Kernel, Machined, Origin
from tflab.records.values import Defined, Value


@dataclass(frozen=True)
class Touch:
    """What one graph pass did to a node."""

    by: str  # the pass
    place: int  # of the pass among all of the placement, from 0
    what: str  # added, removed, folded, merged, fused, compiled, rewritten, rewired or moved
    about: str  # the new type, the node that took it over, or nothing


@dataclass(frozen=True)
class Became:
    """What an output of a node became that is not in the graph that ran, as a loop is not."""

    tensor: str
    into: str  # the tensor that ran
    assignment: Assignment | None
    kernel: Kernel | None


@dataclass(frozen=True)
class NodeHistory(Shown):
    """A node from the line that made it to the time that it took.

    A node that was fused or merged into another lives on in that one, its `carrier`: device,
    kernel, code and times are the carrier's, and the carrier says whose work it does.
    """

    name: str
    op: str  # the type as written; of a node that the runtime made, the type that ran
    kind: str  # forward, gradient, update or runtime
    source: Source | None  # the user's line; none where only the runtime knows the node
    inputs: tuple[str, ...]  # tensors
    control_inputs: tuple[str, ...]
    outputs: tuple[Tensor, ...]  # as written; of a node that the runtime made, as it ran
    from_file: bool = False  # whether the program was read from a file
    consumers: tuple[str, ...] = ()  # nodes that take its outputs
    gradient_function: str | None = None  # as "_MulGrad (math_grad.py:1404)"
    gradient_nodes: tuple[str, ...] = ()  # that it made
    no_gradient: str | None = None  # why there are none
    derived_from: str | None = None  # of a gradient node, the forward node
    fate: Fate | None = None  # of a node of the user's graph
    origin: Origin | None = None  # of a node that the runtime made
    touches: tuple[Touch, ...] = ()
    carrier: str | None = None  # the executed node that does its work; none where nothing does
    carries: tuple[str, ...] = ()  # the user's nodes whose work it does besides its own
    ran_as: str | None = None  # the type of the carrier
    ran_outputs: tuple[Tensor, ...] = ()  # of the carrier, with the batch in their shapes
    assignment: Assignment | None = None
    kernel: Kernel | None = None
    became: tuple[Became, ...] = ()  # its outputs, where it is gone and had several
    code: tuple[Machined, ...] = ()
    times: Mapping[int, OpStats] = field(default_factory=dict)  # of the carrier, by batch size
    untimed: Mapping[int, str] = field(default_factory=dict)  # batch size -> why it has no times
    slack_ns: float | None = None  # how much longer it could take without lengthening the step
    critical: bool = False
    # That the outputs of the carrier lay in, in the step of median length
    buffers: tuple[Buffer, ...] = ()
    meaning: GradientNode | None = None  # of a gradient node, what it is for
    # Its outputs in the recorded step: those of the program as it defines them, others as they ran
    values: tuple[Value, ...] = ()
    # The executed node of this name computes something else than the program's: from these tensors
    other_inputs: tuple[str, ...] | None = None
    own_values: tuple[Value, ...] = ()  # what that computed
    taken: tuple[Value, ...] = ()  # what its carrier took in that step
    carrier_values: tuple[Value, ...] = ()  # of the carrier's outputs, where that is another node
    gradient: Defined | None = None  # of the loss by its first output, in that step
