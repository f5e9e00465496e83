"""Records: what travels between the stages, the tables and the exporters.

One word, one meaning: `name` is a node, `op` its type, `run` one execution of it, `step` one
`session.run`. Units stand in the names. A tensor is written as in a GraphDef: `split:1` is the
second output of `split`, plain `mul` the first of `mul`.

Here stand the results of the four stages; what they consist of has a file for each subject. What is
left out of JSON, or has another key there, says so in the metadata of its field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tflab.errors import TflabError
from tflab.records.blocks import Shown
from tflab.records.buffers import Buffer, Buffers
from tflab.records.cluster import Network, Received
from tflab.records.gradients import Derivative, FlowedDerivative, GradientCall, GradientNode, Link
from tflab.records.graph import (
    Call,
    Function,
    Lines,
    Node,
    Shape,
    Source,
    Tensor,
    edge_count,
    node_of,
)
from tflab.records.maps import FeatureMap, Maps, Probabilities
from tflab.records.measured import (
    Compared,
    Comparison,
    ConfigTimes,
    Costs,
    Fingerprint,
    Fit,
    Level,
    NodeStats,
    Observed,
    OpStats,
    Peaks,
    Process,
    StepTimes,
)
from tflab.records.measurements import (
    Contrast,
    Difference,
    Gate,
    Line,
    Measurement,
    OverTime,
    Point,
    RowTimes,
)
from tflab.records.node_history import Became, NodeHistory, Touch
from tflab.records.options import SWITCHES, Model, Options, Program, Recipe, Saved, Start
from tflab.records.placed import (
    Assignment,
    Fate,
    FateChange,
    Generated,
    Kernel,
    Machined,
    Origin,
    Partition,
    Pass,
    Rewrite,
    Snapshot,
    Taken,
    Toggle,
    Transfer,
)
from tflab.records.quality import Diagnosis, Load, Quality
from tflab.records.timed import (
    Allocation,
    Capture,
    CriticalPath,
    Memory,
    OpMemory,
    OpRun,
    Owner,
    Race,
    Spread,
    StepTime,
)
from tflab.records.trained import Epoch, History, TrainingStep
from tflab.records.values import (
    Defined,
    Entered,
    NotFinite,
    PathPoint,
    RecordedStep,
    Statistics,
    Value,
)
from tflab.records.verdicts import Experiment, Experiments, Untried, Verdict


@dataclass(frozen=True)
class Frontend(Shown):
    program: Program | None = field(
        repr=False, metadata={"json": None}
    )  # none where the graph is blocked
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()  # of a graph from a file: what was chosen or made up for it
    blocked: str | None = None  # why no other stage can follow: TensorFlow refuses the graph
    functions: tuple[Function, ...] = ()  # that nodes call: branches, loop bodies, tf.functions

    @property
    def live(self) -> Program:
        """The program, for what comes next. Raises TflabError where the graph is blocked."""
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


@dataclass(frozen=True)
class GradientCheck:
    """The gradient of the loss by one variable, compared with central finite differences."""

    tensor: str
    max_relative_error: float  # largest |analytic - numeric|, over the largest gradient looked at
    elements: int  # how many elements were looked at
    size: int  # how many the variable has
    precision: str  # dtype in which the differences were taken


@dataclass(frozen=True)
class Backward(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[Node, ...]
    added_nodes: tuple[str, ...] = ()
    gradients: tuple[Gradient, ...] = ()
    gradient_checks: tuple[GradientCheck, ...] = ()
    data: str = ""  # the name of the data set that was used, as in Execution
    variable_count: int = 0  # trainable; of very many only some are checked
    # Those of `added_nodes` that the optimiser made; of a file those that take its gradients
    update_nodes: tuple[str, ...] = ()
    shared_nodes: tuple[str, ...] = ()  # those that start or add up gradients, of no one forward op
    unchecked: str = ""  # why there are no gradient checks
    inferred: bool = False  # `gradients` were in the file: found by its edges and its names
    losses: tuple[str, ...] = ()  # where those start, as far as they lead to updates
    functions: tuple[Function, ...] = ()
    added_functions: tuple[str, ...] = ()  # those of `functions` that gradients added
    gradient_nodes: tuple[GradientNode, ...] = ()  # what each node of the gradients is for
    chain_rule: tuple[Link, ...] = ()  # its steps, from the loss to the variables
    derivatives: tuple[Derivative, ...] = ()  # by each variable for which a formula gives it
    # By variables of which a formula gives only the first steps: gradients stand in it by name
    partial_derivatives: tuple[Derivative, ...] = ()
    # Variables of which the optimiser gets another gradient than the loss's
    processed: tuple[str, ...] = ()
    # `StopGradient` nodes that lead to variables, at which a gradient ends that is not 0
    stopped: tuple[str, ...] = ()
    # Forward nodes between the loss and variables that have a gradient function of their own, not
    # that of their type (`tf.custom_gradient`)
    custom_gradients: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[Node, ...]  # the graph that runs, all devices together
    # The graph of the stage before
    user_nodes: tuple[Node, ...] = field(default=(), repr=False, metadata={"json": None})
    # Those of them that are of the backward pass: gradients and updates
    backward_nodes: tuple[str, ...] = field(default=(), repr=False, metadata={"json": None})
    # Those of them that are a gradient: node -> `dL/d(conv1/Relu)`
    gradients: Mapping[str, str] = field(default_factory=dict, repr=False, metadata={"json": None})
    # Those of the loss by its variables, for which a formula gives them
    derivatives: tuple[Derivative, ...] = field(default=(), repr=False, metadata={"json": None})
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
    generated: tuple[Generated, ...] = ()
    # Tensors that a step made more than once, with different shapes: that of each time
    varying: Mapping[str, tuple[Shape, ...]] = field(
        default_factory=dict, repr=False, metadata={"json": None}
    )
    # GraphDefs, for TensorBoard and for counting FLOPs
    partition_graphs: tuple[Any, ...] = field(default=(), repr=False, metadata={"json": None})
    toggle: Toggle | None = None
    notes: tuple[str, ...] = ()  # what could not be done, and why


@dataclass(frozen=True)
class Execution(Shown):
    program: Program = field(repr=False, metadata={"json": None})
    nodes: tuple[Node, ...]
    batch_size: int
    data: str  # the name of the data set, which says so if it stands in for another
    warmup_steps: int
    steps: int
    untraced_step_ns: Spread
    traced_step_ns: Spread
    runs: tuple[OpRun, ...] = field(repr=False)
    step_times: tuple[StepTime, ...]
    top_ops: tuple[OpStats, ...]
    top_types: tuple[OpStats, ...]
    time_ledger: tuple[Owner, ...]
    wall_ns: int
    critical_path: CriticalPath
    memory: Memory
    race: Race | None = None  # when passes were switched off
    experiments: tuple[Experiment, ...] = ()  # where they were asked for
    control: Experiment | None = None  # of the experiments
    untried: tuple[Untried, ...] = ()  # ops that no experiment was made with
    one_by_one: Experiment | None = None  # what it adds to run a step's ops one by one
    interrupted: bool = False  # these are the steps until Ctrl-C
    quality: Quality | None = None  # of the measurement; None if it was not judged
    # Of the step whose wall time is the median; None where the runtime gave no addresses
    buffers: Buffers | None = None
    values: tuple[Value, ...] = field(default=(), repr=False)  # of one step, in order of execution
    # What the program's tensors are by definition, in that step
    defined: tuple[Defined, ...] = field(default=(), repr=False, metadata={"json": None})
    not_finite: tuple[NotFinite, ...] = ()  # where NaN and Inf of that step came from
    derivatives: tuple[FlowedDerivative, ...] = ()  # compared with those values
    recorded_step: RecordedStep | None = None  # that they are of; None where none was asked for
    # What of that step can be drawn; None where no image was fed
    maps: Maps | None = field(default=None, repr=False, metadata={"json": None})
    network: Network | None = None  # of a graph that ran on several tasks
    wires: tuple[OpRun, ...] = field(default=(), repr=False)  # tensors on the wire, as `runs`
    failure: str | None = None  # of a step: these are the measurements until then


Stage = Frontend | Backward | Placement | Execution
