"""The results of the four stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tflab.errors import TflabError
from tflab.records.blocks import Shown
from tflab.records.gradients import Derivative, GradientNode, GradientStop, Link
from tflab.records.graph import BranchInput, Function, Node, Unordered
from tflab.records.measured import Experiments, Load, OpStats
from tflab.records.options import Live, Program
from tflab.records.placed import (
    Assignment,
    Fate,
    FirstRun,
    Generated,
    Kernel,
    Origin,
    Partition,
    Pass,
    Toggle,
    Transfer,
)
from tflab.records.timed import (
    CriticalPath,
    Memory,
    Network,
    OpRun,
    Owner,
    Spread,
    StepTime,
)
from tflab.records.values import Maps, NotFinite, Value, ValuesStep


@dataclass(frozen=True)
class Frontend(Shown):
    program: Program | None = field(
        repr=False, metadata={"json": None}
    )  # None if the graph is blocked
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()  # of a graph from a file: what tflab chose or made up for it
    blocked: str | None = None  # why no other stage can follow: TensorFlow refuses the graph
    # functions that nodes call: branches, loop bodies, tf.functions
    functions: tuple[Function, ...] = ()
    # Of a step without an optimiser's ops: reads and writes without an order, and nodes outside of
    # the only branch that uses them
    unordered: tuple[Unordered, ...] = ()
    always_run: tuple[BranchInput, ...] = ()

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
    reason: str | None = None  # why there are no nodes


AGREES = 1e-4  # a thousand times the usual error of differences in float64


@dataclass(frozen=True)
class GradientCheck:
    """The gradient of the loss with respect to one variable, compared with central finite
    differences."""

    tensor: str
    # largest |analytic - numeric|, divided by the largest examined gradient; 0 if `zero`
    max_relative_error: float
    elements: int = field(metadata={"json": None})  # number of elements that were examined
    size: int = field(metadata={"json": None})  # number of elements of the variable
    precision: str = field(metadata={"json": None})  # dtype in which the differences were computed
    # Whether gradients and differences are both 0 within rounding
    zero: bool = field(default=False, metadata={"json": None})
    # The relative error that rounding can make of a right gradient
    tolerance: float = field(default=AGREES, metadata={"json": None})

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
    nodes: tuple[Node, ...]
    added_nodes: tuple[str, ...] = ()
    gradients: tuple[Gradient, ...] = ()
    gradient_checks: tuple[GradientCheck, ...] = ()
    data: str = ""  # name of the data set, as in Execution
    variable_count: int = 0  # trainable variables; if there are very many, only some are checked
    # The nodes of `added_nodes` that the optimiser made; else the graph's own updates
    update_nodes: tuple[str, ...] = ()
    # nodes that start or add up gradients of several forward ops
    shared_nodes: tuple[str, ...] = ()
    unchecked: str = ""  # why there are no gradient checks
    no_formula: str = field(default="", metadata={"json": None})  # why some derivatives have none
    inferred: bool = False  # whether the graph came with gradients, which are not looked into
    functions: tuple[Function, ...] = ()
    added_functions: tuple[str, ...] = ()  # the names in `functions` that gradients added
    gradient_nodes: tuple[GradientNode, ...] = ()  # the purpose of each gradient node
    chain_rule: tuple[Link, ...] = ()  # the steps of the chain rule, from the loss to the variables
    # with respect to each variable for which a formula gives it
    derivatives: tuple[Derivative, ...] = ()
    gradient_stops: tuple[GradientStop, ...] = ()  # of variables without a gradient
    unordered: tuple[Unordered, ...] = ()  # those that the optimiser's ops brought
    # `StopGradient` nodes that end a gradient other than 0, on the way to variables whose check
    # disagrees
    stopped: tuple[str, ...] = ()
    # Forward nodes between the loss and variables with a gradient function of their own instead of
    # that of their type (`tf.custom_gradient`)
    custom_gradients: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[Node, ...]  # the graph that runs, with all devices
    # The graph of the previous stage
    user_nodes: tuple[Node, ...] = field(default=(), repr=False, metadata={"json": None})
    # Its nodes that belong to the backward pass: gradients and updates
    backward_nodes: tuple[str, ...] = field(default=(), repr=False, metadata={"json": None})
    # Its nodes that are a gradient: node -> `dL/d(conv1/Relu)`
    gradients: Mapping[str, str] = field(default_factory=dict, repr=False, metadata={"json": None})
    fetches: tuple[str, ...] = ()
    batch_size: int = 0
    data: str = ""
    passes: tuple[Pass, ...] = ()
    ledger: tuple[Fate, ...] = ()
    origins: tuple[Origin, ...] = ()
    partitions: tuple[Partition, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    generated: tuple[Generated, ...] = field(default=(), metadata={"json": None})
    # GraphDefs, for TensorBoard and for FLOPs
    partition_graphs: tuple[Live, ...] = field(default=(), repr=False, metadata={"json": None})
    toggle: Toggle | None = None
    first_run: FirstRun | None = None
    # Nodes of the graph that runs whose branch the step did not take, so that they did not run
    not_run: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what was not possible, and why


@dataclass(frozen=True)
class Execution(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[Node, ...]
    batch_size: int
    data: str  # name of the data set; it says so if the data replace another set
    warmup_steps: int
    steps: int
    untraced_step_ns: Spread
    traced_step_ns: Spread
    runs: Sequence[OpRun] = field(repr=False)
    step_times: tuple[StepTime, ...]
    top_ops: tuple[OpStats, ...]
    top_types: tuple[OpStats, ...]
    time_ledger: tuple[Owner, ...]
    wall_ns: int
    critical_path: CriticalPath
    memory: Memory
    # If they were requested
    experiments: Experiments | None = field(default=None, metadata={"json": {"ops": "experiments"}})
    interrupted: bool = False  # whether these are only the steps until Ctrl-C
    load: Load | None = None  # of the machine
    # The program's values in one step, in topological order
    values: tuple[Value, ...] = field(default=(), repr=False)
    not_finite: tuple[NotFinite, ...] = ()  # the origins of NaN and Inf in that step
    values_step: ValuesStep | None = None  # that step; None if it was not requested
    # The feature maps of that step; None if no image was fed
    maps: Maps | None = field(default=None, repr=False, metadata={"json": None})
    network: Network | None = None  # of a graph that ran on several tasks
    failure: str | None = None  # of a step: these are the measurements before it


Stage = Frontend | Backward | Placement | Execution
Kind = TypeVar("Kind", Frontend, Backward, Placement, Execution)


def find(stages: Iterable[Stage], kind: type[Kind]) -> Kind | None:
    """Return the stage of this kind; None if a walk did not reach it."""
    return next((stage for stage in stages if isinstance(stage, kind)), None)
