"""Options of a run, the model that a function returns, and the program that the stages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tflab.errors import TflabError
from tflab.records.graph import Source

Live: TypeAlias = Any  # an object of TensorFlow's: records import none of its types
Data: TypeAlias = Any  # a `tflab.datasets.Dataset`

STAGES = ("frontend", "backward", "placement", "execution")  # the stages of a graph, in order
BATCH_SIZES = (1, 16, 64)  # default batch sizes of comparisons


@dataclass(frozen=True)
class Start:
    """The initial values of a graph's variables: nodes to run, and their feeds."""

    targets: tuple[str, ...]  # nodes
    feeds: Mapping[str, Live] = field(default_factory=dict)  # tensor -> value
    about: str = ""  # where the values come from, for the reader


@dataclass(frozen=True)
class Recipe:
    """The default settings for training a model."""

    epochs: int
    batch_size: int
    optimizer: Callable[[Live], Live]  # learning rate (a scalar tensor) -> tf.compat.v1 optimizer
    rate: Callable[[int, int, int], float]
    # (step, steps of an epoch, steps of the whole training) -> learning rate; steps count from 0


@dataclass(frozen=True)
class Model:
    """The result of a model function: live tensors of the graph that it built.

    `feeds` says which column of the data goes into which placeholder. Without `loss` or
    `optimizer`, a model has no backward stage. If training differs from inference (dropout, batch
    norm), a graph has a head for each, with the same variables: `output` is for inference, `loss`
    for training.
    """

    output: Live  # None only if the model is unready
    feeds: Mapping[Live, str]
    data: Callable[[str, str | None], Data]  # (split, data_dir) -> the data
    loss: Live | None = None
    optimizer: Live | None = None
    recipe: Recipe | None = None
    test_loss: Live | None = None  # of the head for inference, if it is not `loss`
    fetches: tuple[str, ...] = ()  # what to run if nothing is trained; otherwise `output`
    # tensors to differentiate with respect to, if there is no optimiser
    parameters: tuple[Live, ...] = ()
    notes: tuple[str, ...] = ()  # what tflab chose or made up for it, for the reader
    start: Start | None = None  # if the variables' own initialisers must not run
    updates: tuple[Live, ...] = ()  # ops that run with every training step: moving averages
    not_trained: str = ""  # why it has no loss or no optimiser, if that needs a reason
    unready: TflabError | None = None  # why no step of it can run, and what would help
    fixed_batch: int | None = None  # the only batch size that the graph accepts, if it has one


@dataclass(frozen=True)
class Saved:
    """The options for a graph from a file."""

    signature: str | None = None
    loss: str | None = None  # a tensor to differentiate
    feeds: tuple[tuple[str, str], ...] = ()  # (tensor, .npy file)
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()  # (tensor, the shape to feed)
    fetches: tuple[str, ...] = ()  # what to run instead of the graph's own choice
    trust: bool = False  # whether it may run in a process that nothing confines


@dataclass(frozen=True)
class Options:
    """The user's options for a run through the stages."""

    batch_size: int = 16
    steps: int = 10
    warmup: int = 3  # the first steps pay for kernel creation and cold caches
    devices: int = 1
    fetches: tuple[str, ...] = ()
    data_dir: str | None = None
    without: tuple[str, ...] = ()  # graph passes to switch off, by their names in SWITCHES
    soft_placement: bool = False  # whether another device runs what a device cannot
    xla: bool = False  # whether XLA compiles what it can
    experiments: int = 0  # seconds for running the largest ops once more; 0: do not
    threads: int = 0  # of a session of its own; 0: the runtime's default
    values: bool = True  # whether to record the values of one untimed step
    explained: bool = True  # whether placement shows generated code and times the first run
    first_run: bool = True  # whether to time the first run of the step
    saved: Saved = Saved()
    cluster: tuple[str, ...] = ()  # addresses of the tasks to run on; empty: this process alone


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
    """The live part of a run: the graph that all stages share, and what belongs to it."""

    name: str
    graph: Live  # tf.Graph. It grows from stage to stage; a stage's `nodes` do not.
    model: Model
    dataset: Callable[[str], Data]  # split -> the data, read once
    ends: tuple[str, ...] = ()  # the nodes that the model computes
    train_op: str | None = None
    # Over the tasks of a cluster: node -> the device that tflab chose, such as `/job:worker/task:1`
    places: Mapping[str, str] = field(default_factory=dict)
    # The user's line that made the model's optimiser; None if unknown
    optimizer_line: Source | None = None
    # Name scope -> Keras's name for its layer: `training/sequential_1/first_1`, `sequential/first`
    layers: Mapping[str, str] = field(default_factory=dict)

    @property
    def loss(self) -> Live:
        """Return the tensor at which gradients start. Raises TflabError if the model has none."""
        if self.model.loss is None:
            raise TflabError(f"The model '{self.name}' has no loss.")
        return self.model.loss
