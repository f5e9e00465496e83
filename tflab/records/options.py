"""Options of a run, the model that a function returns, and the program that the stages share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tflab.errors import TflabError
from tflab.records.graph import Lines, Source

STAGES = ("frontend", "backward", "placement", "execution")  # of a graph's life, in their order
BATCH_SIZES = (1, 16, 64)  # those that the lab compares


@dataclass(frozen=True)
class Start:
    """What gives a graph's variables their first values: nodes to run, and what they are fed."""

    targets: tuple[str, ...]  # nodes
    feeds: Mapping[str, Any] = field(default_factory=dict)  # tensor -> value
    about: str = ""  # where the values come from, for the reader


@dataclass(frozen=True)
class Recipe:
    """How a model is trained where the user says nothing else."""

    epochs: int
    batch_size: int
    optimizer: Callable[[Any], Any]  # learning rate (a scalar tensor) -> tf.compat.v1 optimizer
    rate: Callable[[int, int, int], float]
    # (step, steps of an epoch, steps of the whole training) -> learning rate; steps count from 0


@dataclass(frozen=True)
class Model:
    """A program in the making: live tensors of the graph that a model function has just built.

    `feeds` says which column of the data goes into which placeholder. `loss` and `optimizer` may
    be missing; such a model has no backward stage. Where training differs from inference (dropout,
    batch norm), a graph has both heads over the same variables: `output` infers, `loss` trains.
    """

    output: Any  # None only where the model is unready
    feeds: Mapping[Any, str]
    data: Callable[[str, str | None], Any]  # (split, data_dir) -> tflab.datasets.Dataset
    loss: Any | None = None
    optimizer: Any | None = None
    recipe: Recipe | None = None
    test_loss: Any | None = None  # of the inferring head, where it is not `loss`
    fetches: tuple[str, ...] = ()  # what to run where nothing is trained; else `output`
    parameters: tuple[Any, ...] = ()  # tensors to derive by, where there is no optimiser
    notes: tuple[str, ...] = ()  # what was chosen or made up for it, for the reader
    start: Start | None = None  # where the variables' own initialisers are not to be run
    updates: tuple[Any, ...] = ()  # ops that run with every training step: moving averages
    lines: Lines = field(default_factory=dict)  # of nodes whose makers TensorFlow does not know
    made_up: tuple[str, ...] = ()  # columns of the data whose values nobody gave
    not_trained: str = ""  # why it has no loss or no optimiser, where that needs a reason
    unready: TflabError | None = None  # why no step of it can run, and what would help
    # Asked before a run: (graph, what is to run, what is fed, what of that holds a path of tflab's)
    check_run: Callable[[Any, Iterable[str], Collection[str], Collection[str]], None] | None = None
    fixed_batch: int | None = None  # the only batch size that the graph accepts, if it has one
    captured: tuple[int, ...] = BATCH_SIZES  # further batch sizes that are measured for TensorBoard
    # The values of the variables that generated the data: training should reach them
    answer: Mapping[str, float] = field(default_factory=dict)


# The effects of ops that an option of its own allows, as `Effect.what` names them
READS, WRITES, CONNECTS = "reads files", "writes files", "connects to other machines"


@dataclass(frozen=True)
class Saved:
    """The options for a graph from a file."""

    signature: str | None = None
    loss: str | None = None  # a tensor to differentiate
    feeds: tuple[tuple[str, str], ...] = ()  # (tensor, .npy file)
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()  # (tensor, the shape to feed)
    fetches: tuple[str, ...] = ()  # what to run instead of the graph's own choice
    side_effects: bool = False  # whether ops may have any effect
    allowed: tuple[str, ...] = ()  # the effects that ops may have without it, by `Effect.what`
    soft_placement: bool = False  # whether devices of this machine replace those of others


@dataclass(frozen=True)
class Options:
    """What the user chooses of a run through the stages."""

    batch_size: int = 16
    steps: int = 10
    warmup: int = 3  # the first steps pay for kernel creation and cold caches
    devices: int = 1
    fetches: tuple[str, ...] = ()
    data_dir: str | None = None
    without: tuple[str, ...] = ()  # graph passes to switch off, by their names in SWITCHES
    soft_placement: bool = False  # what a device cannot do, another does
    xla: bool = False  # let XLA compile what it can
    experiments: int = 0  # seconds for running the largest ops once more; 0 is not at all
    threads: int = 0  # of a session of its own; 0 are as many as the runtime takes by itself
    values: bool = True  # record the values of one step, which is not timed
    one_by_one: bool = False  # whether a single thread starts ops, each with all the processors
    saved: Saved = Saved()
    cluster: tuple[str, ...] = ()  # addresses of the tasks to run on; none is this process alone
    split: str = "layers"  # over them; or "batch"
    even_if_busy: bool = False  # whether to show conclusions where the machine was busy, marked

    @property
    def of_file(self) -> Saved:
        """All that matters to a graph from a file: what is fetched says what has to be fed."""
        return replace(self.saved, fetches=self.fetches or self.saved.fetches)


SPLITS = ("layers", "batch")  # ways to cut a model over the tasks of a cluster

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
    """The live side of a run: the graph that all stages share, and what belongs to it."""

    name: str
    graph: Any  # tf.Graph. It grows from stage to stage; a stage's `nodes` do not.
    model: Model
    dataset: Callable[[str], Any]  # split -> Dataset, read once
    ends: tuple[str, ...] = ()  # the nodes that the model is there to compute
    train_op: str | None = None
    # The device that each node of the model is to have, where the user does not choose it in the
    # model: over the tasks of a cluster, node -> `/job:worker/task:1`
    places: Mapping[str, str] = field(default_factory=dict)
    # The user's line that made the model's optimiser; None where nobody noted it
    optimizer_line: Source | None = None
    # Keras's name for the layer of a name scope: `training/sequential_1/first_1` -> `first`
    layers: Mapping[str, str] = field(default_factory=dict)

    @property
    def loss(self) -> Any:
        """The tensor that gradients start at. Raises TflabError where the model has none."""
        if self.model.loss is None:
            raise TflabError(f"The model '{self.name}' has no loss.")
        return self.model.loss
