"""Records: what travels between the stages, the tables and the exporters. No TensorFlow in here.

One word, one meaning: `name` is a node, `op` its type, `run` one execution of it, `step` one
`session.run`. Units stand in the names. A tensor is written as in a GraphDef: `split:1` is the
second output of `split`, plain `mul` the first of `mul`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int | None, ...] | None  # None: not even the rank is known


@dataclass(frozen=True)
class Source:
    """The line of the user's program that made a node."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class Tensor:
    """One output of a node."""

    dtype: str
    shape: Shape


@dataclass(frozen=True)
class Node:
    name: str
    op: str
    inputs: tuple[str, ...] = ()  # tensors, in the order of the op's arguments
    control_inputs: tuple[str, ...] = ()  # nodes that must have run before
    device: str = ""  # "" until somebody asks for one or the placer assigns one
    outputs: tuple[Tensor, ...] = ()
    source: Source | None = None


def node_of(tensor: str) -> str:
    """The name of the node that makes a tensor: `split:1` comes from `split`."""
    return tensor.partition(":")[0]


def edge_count(nodes: tuple[Node, ...]) -> int:
    """Edges of a graph: every input and every control input of every node."""
    return sum(len(node.inputs) + len(node.control_inputs) for node in nodes)


# What a model function returns, and what a command asks for.


@dataclass(frozen=True)
class Model:
    """A program in the making: live tensors of the graph that a model function has just built.

    `feeds` says which column of the data goes into which placeholder. `loss` and `optimizer` may
    be missing; such a model has no backward stage.
    """

    output: Any
    feeds: Mapping[Any, str]
    data: Callable[[str, str | None], Any]  # (split, data_dir) -> tflab.datasets.Dataset
    loss: Any = None
    optimizer: Any = None


@dataclass(frozen=True)
class Options:
    """What the user asked of a walk."""

    batch_size: int = 16
    steps: int = 10
    warmup: int = 3  # the first steps pay for kernel creation and cold caches
    devices: int = 1
    fetches: tuple[str, ...] = ()
    data_dir: str | None = None
    without: tuple[str, ...] = ()  # graph passes to switch off, by their names in SWITCHES
    soft_placement: bool = False  # what a device cannot do, another does
    xla: bool = False  # let XLA compile what it can


SWITCHES = {  # graph pass -> its field in tensorflow/core/protobuf/rewriter_config.proto
    "grappler": "disable_meta_optimizer",
    "model_pruner": "disable_model_pruning",
    "tfg_optimizer": "disable_tfg_optimizer",
    "implementation_selector": "implementation_selector",
    "function_optimizer": "function_optimization",
    "common_subgraph_elimination": "common_subgraph_elimination",
    "constant_folding": "constant_folding",
    "shape_optimizer": "shape_optimization",
    "arithmetic_optimizer": "arithmetic_optimization",
    "layout": "layout_optimizer",
    "remapper": "remapping",
    "loop_optimizer": "loop_optimization",
    "dependency_optimizer": "dependency_optimization",
    "memory_optimizer": "memory_optimization",
}


@dataclass(frozen=True)
class Program:
    """The live side of a walk: the graph that all stages share, and what belongs to it."""

    name: str
    graph: Any  # tf.Graph. It grows from stage to stage; a stage's `nodes` do not.
    model: Model
    dataset: Callable[[str], Any]  # split -> Dataset, read once
    ends: tuple[str, ...] = ()  # the nodes that the model is there to compute
    train_op: str | None = None


# What the stages return.


@dataclass(frozen=True)
class Frontend:
    program: Program = field(repr=False)
    nodes: tuple[Node, ...]


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
    """The gradient of the loss by one variable, held against central finite differences."""

    tensor: str
    max_relative_error: float  # largest |analytic - numeric|, over the largest gradient looked at
    elements: int  # how many elements were looked at
    precision: str  # dtype in which the differences were taken


@dataclass(frozen=True)
class Backward:
    program: Program = field(repr=False)
    nodes: tuple[Node, ...]
    added_nodes: tuple[str, ...] = ()
    gradients: tuple[Gradient, ...] = ()
    gradient_checks: tuple[GradientCheck, ...] = ()
    variable_count: int = 0  # trainable; of very many only some are checked
    update_nodes: tuple[str, ...] = ()  # those of `added_nodes` that the optimiser made
    shared_nodes: tuple[str, ...] = ()  # those that start or add up gradients, of no one forward op


@dataclass(frozen=True)
class Rewrite:
    """A node that kept its name and changed its type."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Taken:
    """A node that a pass took out of the graph, or out of computing."""

    name: str
    fate: str  # folded, merged, fused, compiled or removed
    into: str | None  # the node that stands in for it after that pass


@dataclass(frozen=True)
class Pass:
    """What one pass of the runtime did to the graph, by its own dumps."""

    name: str
    iteration: int | None  # of Grappler, which goes through its passes more than once
    before: int  # nodes
    after: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rewritten: tuple[Rewrite, ...] = ()
    rewired: tuple[str, ...] = ()  # inputs or control inputs changed
    moved: tuple[str, ...] = ()  # the device changed
    taken: tuple[Taken, ...] = ()


@dataclass(frozen=True)
class Fate:
    """What became of a node of the user's graph. One of FATES, and exactly one."""

    name: str
    fate: str
    by: str | None  # the pass responsible
    into: str | None  # the executed node that took it over


@dataclass(frozen=True)
class Origin:
    """Where an executed node comes from that the user did not write."""

    name: str
    origin: str  # feed, fetch, transfer, or the pass that made it


@dataclass(frozen=True)
class Assignment:
    """The device of an executed node, and why it is that one."""

    name: str
    device: str
    reason: str


@dataclass(frozen=True)
class Kernel:
    """The implementation of a node on its device, by the runtime's registry of kernels."""

    name: str
    op: str  # the type that runs
    device: str
    types: str
    registrations: int  # that fit device, types and label; 0 where the executor needs no kernel
    constraints: str  # of the registration with the highest priority
    on_gpu: str | None  # the registration a GPU would use for the type as written; not run here


@dataclass(frozen=True)
class Machined:
    """One operation of a graph node on its way to the processor's instructions."""

    node: str
    hlo: str  # `multiply in multiply_add_fusion`
    llvm: tuple[str, ...]  # instructions, after optimisation
    machine: tuple[str, ...]  # `0x47 vfmadd213ps ymm2, ymm0, ymm1`
    lanes: int  # elements an instruction works on; 1 is no vector
    fused: bool  # one machine instruction does this and another operation
    inferred: tuple[str, ...]  # which arrows were concluded, and from what


@dataclass(frozen=True)
class Generated:
    """The code that XLA generated for one cluster of nodes."""

    cluster: str
    fetches: tuple[str, ...]
    batch_size: int
    kernels: tuple[tuple[str, tuple[str, ...], int], ...]  # name, HLO opcodes, bytes of code
    path: tuple[Machined, ...]
    listings: Mapping[str, str] = field(repr=False)  # file name -> HLO, LLVM IR or machine code


@dataclass(frozen=True)
class Partition:
    """The part of the graph that one device runs."""

    device: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Transfer:
    """A tensor that leaves one device for another, through a `_Send` and a `_Recv`."""

    tensor: str
    send: str  # the `_Send` node
    recv: str  # the `_Recv` node
    from_device: str
    to_device: str
    dtype: str
    shape: Shape
    bytes: int | None  # per step; None where the runtime did not tell the shape


@dataclass(frozen=True)
class FateChange:
    """A node of the user's graph whose fate is another when passes are switched off."""

    name: str
    usual: str
    now: str


@dataclass(frozen=True)
class Toggle:
    """What switching graph passes off changed in the ledger."""

    without: tuple[str, ...]
    usual_node_count: int  # that run with all passes on
    node_count: int
    changes: tuple[FateChange, ...]


@dataclass(frozen=True)
class Placement:
    program: Program = field(repr=False)
    nodes: tuple[Node, ...]  # the graph that runs, all devices together
    user_nodes: tuple[Node, ...] = field(default=(), repr=False)  # the graph of the stage before
    fetches: tuple[str, ...] = ()
    passes: tuple[Pass, ...] = ()
    ledger: tuple[Fate, ...] = ()
    origins: tuple[Origin, ...] = ()
    partitions: tuple[Partition, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    generated: tuple[Generated, ...] = ()
    partition_graphs: tuple[Any, ...] = field(default=(), repr=False)  # GraphDefs, for TensorBoard
    toggle: Toggle | None = None
    notes: tuple[str, ...] = ()  # what could not be done, and why


@dataclass(frozen=True)
class OpRun:
    """One execution of one node. Times are on the clock of `time.time_ns()`."""

    step: int
    name: str
    op: str  # the type that ran, which fusion and oneDNN may have changed
    device: str
    start_ns: int
    duration_ns: int
    requested_bytes: int = 0  # all that the op asked its allocators for
    allocations: tuple[tuple[int, int], ...] = ()  # (time in us, bytes; negative when freed)


@dataclass(frozen=True)
class StepTime:
    """One traced step, as seen from the caller."""

    step: int
    start_ns: int
    wall_ns: int


@dataclass(frozen=True)
class Spread:
    """A measured time: median and the middle eight tenths."""

    median: float
    p10: float
    p90: float


@dataclass(frozen=True)
class Race:
    """The untraced step with all graph passes and without some, measured in turn."""

    pairs: int
    usual_step_ns: Spread
    without_step_ns: Spread
    ratio: float  # median over the pairs of: without / usual
    p_value: float
    significant: bool


@dataclass(frozen=True)
class OpTotal:
    """All runs of one node, or of one op type, added up."""

    name: str
    op: str
    calls: int
    total_ns: int
    self_ns: int
    mean_ns: float
    share: float  # of the self time of all ops


@dataclass(frozen=True)
class Owner:
    """A part of the wall time and what it belongs to."""

    owner: str
    ns: int


@dataclass(frozen=True)
class CriticalPath:
    nodes: tuple[str, ...]
    ns: float
    parallelism: float  # work of all ops over the length of the path


@dataclass(frozen=True)
class OpMemory:
    name: str
    requested_bytes: int  # per step, mean over the traced steps


@dataclass(frozen=True)
class Memory:
    per_op: tuple[OpMemory, ...]
    peak_bytes: int  # the most that was alive at once in a step, of what the step itself asked for


@dataclass(frozen=True)
class Execution:
    program: Program = field(repr=False)
    nodes: tuple[Node, ...]
    batch_size: int
    data: str  # the name of the data set, which says so if it stands in for another
    warmup_steps: int
    steps: int
    untraced_step_ns: Spread
    traced_step_ns: Spread
    runs: tuple[OpRun, ...] = field(repr=False)
    step_times: tuple[StepTime, ...]
    top_ops: tuple[OpTotal, ...]
    top_types: tuple[OpTotal, ...]
    time_ledger: tuple[Owner, ...]
    wall_ns: int
    critical_path: CriticalPath
    memory: Memory
    race: Race | None = None  # when passes were switched off
    interrupted: bool = False  # these are the steps until Ctrl-C
    traces: Mapping[int, Any] = field(default_factory=dict, repr=False)
    # batch size -> RunMetadata of one warm step, for TensorBoard


Stage = Frontend | Backward | Placement | Execution
