"""Stages: the results of the four stages, and what all of them know about one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tflab.errors import TflabError
from tflab.records import graph, measured, placed, timed
from tflab.records.blocks import Shown
from tflab.records.options import Live, Program
from tflab.records.values import Maps, NotFinite, Value, ValuesStep


@dataclass(frozen=True)
class Frontend(Shown):
    # None if the graph is blocked
    program: Program | None = field(repr=False, metadata={"json": None})
    nodes: tuple[graph.Node, ...]
    notes: tuple[str, ...]  # of a graph from a file: what tflab chose or made up for it
    blocked: str | None  # why no other stage can follow: TensorFlow refuses the graph
    # functions that nodes call: branches, loop bodies, tf.functions
    functions: tuple[graph.Function, ...]
    # Of a step without an optimiser's ops: reads and writes without an order, and nodes outside of
    # the only branch that uses them
    unordered: tuple[graph.Unordered, ...]
    always_run: tuple[graph.BranchInput, ...]

    @property
    def live(self) -> Program:
        """Return the program, for the next stage. Raises TflabError if the graph is blocked."""
        if self.program is None:
            raise TflabError(self.blocked or "There is no live graph to continue with.")
        return self.program


@dataclass(frozen=True)
class Gradient:
    """A forward node and the nodes that its registered gradient function made."""

    forward: str
    op: str
    function: str | None  # as "_MulGrad (math_grad.py:1404)"
    nodes: tuple[str, ...]
    reason: str | None  # why there are no nodes


AGREES = 1e-4  # a thousand times the usual error of differences in float64


@dataclass(frozen=True)
class GradientCheck:
    """The gradient of the loss with respect to one variable, compared with central differences."""

    tensor: str
    # largest |analytic - numeric|, divided by the largest examined gradient; 0 if `zero`
    max_relative_error: float
    elements: int = field(metadata={"json": None})  # number of elements that were examined
    size: int = field(metadata={"json": None})  # number of elements of the variable
    precision: str = field(metadata={"json": None})  # dtype in which the differences were computed
    zero: bool = field(metadata={"json": None})  # whether both are 0 within rounding
    tolerance: float = field(metadata={"json": None})  # the relative error of a right gradient

    @property
    def agrees(self) -> bool:
        """Return whether the error is within the precision of the check."""
        return self.max_relative_error < self.tolerance

    @property
    def confirms(self) -> bool:
        """Return whether the differences show that this is the gradient of the loss."""
        return self.precision == "float64" and self.max_relative_error < AGREES


@dataclass(frozen=True)
class Backward(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[graph.Node, ...]
    added_nodes: tuple[str, ...]
    gradients: tuple[Gradient, ...]
    gradient_checks: tuple[GradientCheck, ...]
    variable_count: int  # trainable variables; if there are very many, only some are checked
    update_nodes: tuple[str, ...]  # of the optimiser; if nothing was added, the graph's own
    unchecked: str  # why nothing was added, or why there are no gradient checks
    no_formula: str = field(metadata={"json": None})  # why some derivatives have none
    functions: tuple[graph.Function, ...]
    added_functions: tuple[str, ...]  # the names in `functions` that gradients added
    gradient_nodes: tuple[graph.GradientNode, ...]  # the purpose of each gradient node
    chain_rule: tuple[graph.Link, ...]  # its steps, from the loss to the variables
    derivatives: tuple[graph.Derivative, ...]  # of the variables for which a formula gives it
    gradient_stops: tuple[graph.GradientStop, ...]  # of variables without a gradient
    unordered: tuple[graph.Unordered, ...]  # those that the optimiser's ops brought
    # `StopGradient` nodes that end a gradient other than 0, to variables whose check disagrees
    stopped: tuple[str, ...]
    # Forward nodes between the loss and variables with a gradient function of their own instead of
    # that of their type (`tf.custom_gradient`)
    custom_gradients: tuple[str, ...]


# The fields of a Backward whose gradients are neither described nor checked
UNEXPLAINED: Mapping[str, Any] = {
    "no_formula": "",
    **dict.fromkeys(("gradient_nodes", "gradient_checks", "chain_rule", "derivatives"), ()),
    **dict.fromkeys(("stopped", "custom_gradients"), ()),
}


@dataclass(frozen=True)
class Placement(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[graph.Node, ...]  # the graph that runs, with all devices
    # The nodes before the passes
    user_nodes: tuple[graph.Node, ...] = field(repr=False, metadata={"json": None})
    gradient_nodes: tuple[graph.GradientNode, ...] = field(repr=False, metadata={"json": None})
    fetches: tuple[str, ...]
    batch_size: int
    data: str
    passes: tuple[placed.Pass, ...]
    ledger: tuple[placed.Fate, ...]
    origins: tuple[placed.Origin, ...]
    partitions: tuple[placed.Partition, ...]
    transfers: tuple[placed.Transfer, ...]
    kernels: tuple[placed.Kernel, ...]
    generated: tuple[placed.Generated, ...] = field(metadata={"json": None})
    partition_graphs: tuple[Live, ...] = field(repr=False, metadata={"json": None})  # GraphDefs
    first_run: placed.FirstRun | None
    not_run: tuple[str, ...]  # of `nodes`, because the step did not take their branch
    notes: tuple[str, ...]  # what was not possible, and why


@dataclass(frozen=True)
class Execution(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[graph.Node, ...]
    batch_size: int
    data: str  # name of the data set; it says so if the data replace another set
    warmup_steps: int
    steps: int
    untraced_step_ns: timed.Spread
    traced_step_ns: timed.Spread
    runs: Sequence[timed.OpRun] = field(repr=False)
    step_times: tuple[timed.StepTime, ...]
    top_ops: tuple[measured.OpStats, ...]
    time_ledger: tuple[timed.Owner, ...]
    wall_ns: int
    critical_path: timed.CriticalPath
    memory: timed.Memory
    # None if they were not asked for
    experiments: measured.Experiments | None = field(metadata={"json": {"ops": "experiments"}})
    interrupted: bool  # whether these are only the steps until Ctrl-C
    load: measured.Load | None  # of the machine
    values: tuple[Value, ...] = field(repr=False)  # in one step, in topological order
    not_finite: tuple[NotFinite, ...]  # the origins of NaN and Inf in that step
    values_step: ValuesStep | None  # that step; None if it was not requested
    maps: Maps | None = field(repr=False, metadata={"json": None})  # None if no image was fed
    network: timed.Network | None  # of a graph that ran on several tasks
    failure: str | None  # of a step: these are the measurements before it


Stage = Frontend | Backward | Placement | Execution
Kind = TypeVar("Kind", Frontend, Backward, Placement, Execution)


def find_stage(stages: Iterable[Stage], kind: type[Kind]) -> Kind | None:
    """Return the stage of this kind; None if a walk did not reach it."""
    return next((stage for stage in stages if isinstance(stage, kind)), None)


# The history of a node


@dataclass(frozen=True)
class Touch:
    """What one graph pass did to a node."""

    by: str  # the pass
    place: int  # of the pass among all of the placement, from 0
    # added, removed, replaced, bypassed (its users take another node), folded, merged, fused,
    # compiled, rewritten; reused: its name
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
    source: graph.Source | None  # the user's line; None if only the runtime knows the node
    inputs: tuple[str, ...]  # tensors, as written
    control_inputs: tuple[str, ...]
    outputs: tuple[graph.Tensor, ...]  # as written; for a node that the runtime made, as it ran
    consumers: tuple[str, ...] = ()  # nodes that take its outputs where it was made
    later_consumers: tuple[str, ...] = ()  # that backward added
    gradient_function: str | None = None  # as "_MulGrad (math_grad.py:1404)"
    gradient_nodes: tuple[str, ...] = ()  # made by that function
    no_gradient: str | None = None  # why there are none
    # Of a variable without a gradient: the nodes from it to the loss
    gradient_path: tuple[str, ...] = ()
    derived_from: str | None = None  # for a gradient node, the forward node
    fate: placed.Fate | None = None  # for a node of the user's graph
    origin: placed.Origin | None = None  # for a node that the runtime made
    touches: tuple[Touch, ...] = ()
    # What differs from nodes of its type that were fused, merged or folded, if it was not
    unlike: tuple[str, ...] = ()
    carrier: str | None = None  # the executed node that does its work; None if there is none
    # Whether the carrier did not run, because no traced step took its branch; None: not known
    not_run: bool | None = False
    carries: tuple[str, ...] = ()  # the user's nodes whose work it does in addition to its own
    ran_as: str | None = None  # the type of the carrier
    ran_outputs: tuple[graph.Tensor, ...] = ()  # of the carrier, with the batch in their shapes
    kernel: placed.Kernel | None = None
    code: tuple[placed.CompiledKernel, ...] = ()
    # Of the carrier, by batch size
    times: Mapping[int, measured.OpStats] = field(default_factory=dict)
    load: measured.Load | None = None  # of the machine when its times were measured
    meaning: graph.GradientNode | None = None  # for a gradient node, its purpose
    values: tuple[Value, ...] = ()  # its outputs in the step of the program's values
    taken: tuple[Value, ...] = ()  # its inputs in that step
    gradient: Value | None = None  # of the loss with respect to its first output, in that step
