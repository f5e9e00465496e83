"""Session: the only module that opens a tf.Session. Live objects stay here, data leaves."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.cli import confined
from tflab.errors import RanDryError, RefusedError, TflabError
from tflab.escaping import with_full_stop
from tflab.records.options import SWITCHES, Options, Program, Start
from tflab.records.timed import StepTime
from tflab.runtime import dumps, nodes
from tflab.runtime.private import sessions

FULL_TRACE = tf1.RunOptions.FULL_TRACE
REFERENCES = ("VariableV2", "Variable")  # their output is the value itself


@cache
def trace_level() -> int:
    """Return what a measured step traces: ops, and the kernels of GPUs only if there are any.
    Starting a tracer of GPUs takes milliseconds with XLA, even if there is no GPU."""
    gpus = tf.config.list_physical_devices("GPU")
    return FULL_TRACE if gpus else tf1.RunOptions.SOFTWARE_TRACE


def config_of(options: Options) -> tf1.ConfigProto:
    """Return the session's configuration: devices, and the graph passes that are switched off."""
    config = tf1.ConfigProto(
        device_count={"CPU": options.devices},
        allow_soft_placement=options.soft_placement or options.devices > 1,
        operation_timeout_in_ms=TIME_LIMIT_S * 1000,
    )
    if options.threads:
        config.use_per_session_threads = True
        config.inter_op_parallelism_threads = config.intra_op_parallelism_threads = options.threads
    if options.xla:
        config.graph_options.optimizer_options.global_jit_level = tf1.OptimizerOptions.ON_2
    if options.cluster:
        from tflab.runtime import cluster

        addresses = {
            cluster.JOB: list(options.cluster),
            cluster.CLIENT: [cluster.target(options.cluster).removeprefix(cluster.SCHEME)],
        }
        config.cluster_def.CopyFrom(tf.train.ClusterSpec(addresses).as_cluster_def())
        config.isolate_session_state = True  # it has variables of its own
    rewrites = config.graph_options.rewrite_options
    for name in options.without:
        field = SWITCHES[name]
        value = rewrites.DESCRIPTOR.fields_by_name[field].enum_type
        if value is None:
            setattr(rewrites, field, True)  # a field of the form `disable_...`
        else:
            setattr(rewrites, field, value.values_by_name.get("OFF", value.values[1]).number)
    return config


@contextmanager
def opened(
    graph: tf.Graph, options: Options, config: tf1.ConfigProto | None = None
) -> Iterator[tf1.Session]:
    """Open a session with initialised variables, for your own program (examples/first_call.py)."""
    with fresh(graph, options, config) as session:
        begin(session, Start(initializers(graph)))
        yield session


@contextmanager
def fresh(
    graph: tf.Graph, options: Options, config: tf1.ConfigProto | None = None
) -> Iterator[tf1.Session]:
    """Open a session that has not built or run anything yet, by default with the configuration of
    its options. The runtime's errors become sentences. It is not the default session, because other
    code that runs while it is open must not use its graph."""
    dumps.pause()
    address = ""
    if options.cluster:
        from tflab.runtime import cluster

        cluster.check_all(options.cluster)
        address = cluster.target(options.cluster)
    session = tf1.Session(address, graph, config or config_of(options))
    try:
        with sessions.ctrl_c_kept():
            yield session
    except tf.errors.OpError as error:
        raise refused(error, options) from error
    finally:
        cluster.close(session) if options.cluster else session.close()


def start_of(program: Program) -> Start:
    """Return the model's own way to initialise its variables, otherwise their initialisers."""
    return program.model.start or Start(initializers(program.graph))


def initializers(graph: tf.Graph) -> tuple[str, ...]:
    """Return the nodes that initialise the variables (global and local), the tables, and the
    iterators of tf.data. Of an iterator it is the first initialiser that needs no feed."""
    keys = tf1.GraphKeys
    variables = map(graph.get_collection, (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES))
    ops = graph.get_operations()
    fed = {op.name for op in ops if op.type == "Placeholder"}
    iterators: dict[str, str] = {}
    for op in ops:
        if op.type == "MakeIterator" and not (fed and nodes.needed(graph, [op.name]) & fed):
            iterators.setdefault(op.inputs[1].op.name, op.name)
    return (
        *(variable.initializer.name for variable in chain(*variables)),
        *(op.name for op in graph.get_collection(keys.TABLE_INITIALIZERS)),
        *iterators.values(),
    )


def begin(session: tf1.Session, start: Start) -> None:
    """Initialise the variables. Raises TflabError if a file names nodes that its graph lacks."""
    try:
        session.run(start.targets, dict(start.feeds))
    except (KeyError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise TflabError(f"The variables cannot be initialised: {with_full_stop(said)}") from error


Run = Callable[..., Any]  # takes the values to feed, and `run_metadata=` if it is traced


@dataclass(frozen=True)
class Step:
    """One `session.run`: feeds in the order in which the runtime numbers them."""

    feeds: tuple[str, ...]  # tensors, sorted as `Session.run` sorts them
    fetches: tuple[str, ...]  # tensors whose values come back
    targets: tuple[str, ...]  # nodes that only have to run

    def callable(self, session: tf1.Session, **run_options: object) -> Run:
        """Return a compiled step. It accepts `run_metadata=` and costs less than `Session.run`."""
        options = tf1.RunOptions(**run_options)
        return sessions.compiled_step(session, self.feeds, self.fetches, self.targets, options)


def shared_steps(live: tf1.Session, step: Step, level: int) -> tuple[Run, Run, Run]:
    """Return an untraced step, a traced one, and one with the graphs that run, of one graph."""
    run, options = (
        sessions.shared_step(live, step.feeds, step.fetches, step.targets),
        tf1.RunOptions,
    )
    return (
        partial(run, run_options=options(), run_metadata=Unparsed()),
        partial(run, run_options=options(trace_level=level)),
        partial(run, run_options=options(trace_level=level, output_partition_graphs=True)),
    )


def step_of(program: Program, fetches: Sequence[str]) -> Step:
    """Return the step of these fetches: names of tensors are fetched, names of nodes run."""
    return Step(
        feeds=tuple(sorted(tensor.name for tensor in program.model.feeds)),
        fetches=tuple(name for name in fetches if ":" in name),
        targets=tuple(name for name in fetches if ":" not in name),
    )


def default_fetches(program: Program) -> tuple[str, ...]:
    """Return the loss and the train op; without a train op, the loss and the model's own updates;
    of a model that is not trained, the output."""
    model = program.model
    if program.train_op:
        return (program.loss.name, program.train_op)
    if model.loss is not None and model.optimizer is not None:
        return (model.loss.name, *(update.name for update in model.updates))
    return model.fetches or (() if model.output is None else (model.output.name,))


def feed_columns(program: Program, split: str) -> dict[str, datasets.Column]:
    """Return the whole data of a split by fed tensor, in the order of `Step.feeds`. Raises
    TflabError if the data have no such column, or one that does not fit its placeholder."""
    feeds = sorted(program.model.feeds.items(), key=lambda feed: feed[0].name)
    dataset = program.dataset(split)
    columns = {}
    for tensor, column in feeds:
        values = dataset.columns.get(column)
        if values is None:
            raise TflabError(
                f"The model '{program.name}' feeds from a column '{column}', but its data "
                f"({dataset.name}) have {', '.join(dataset.columns)}."
            )
        dtype, is_whole = tensor.dtype.as_numpy_dtype, isinstance(values, datasets.Whole)
        array = values.value if is_whole else values
        fits = tensor.shape.is_compatible_with(
            array.shape if is_whole else (None, *array.shape[1:])
        )
        if not fits or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TflabError(
                f"The column '{column}' of {dataset.name} holds {array.dtype} of shape "
                f"{array.shape}, which cannot be fed to '{tensor.name}': {tensor.dtype.name} of "
                f"shape {tensor.shape}."
            )
        array = np.asarray(array, dtype=dtype)
        columns[tensor.name] = replace(values, value=array) if is_whole else array
    return columns


def feed_batches(
    program: Program, batch_size: int, split: str = "train"
) -> Iterator[list[np.ndarray]]:
    """Yield real batches, endlessly, each a list of values in the order of `Step.feeds`. Raises the
    TflabError that says why no step of the model can run."""
    if program.model.unready:
        raise program.model.unready
    dataset = program.dataset(split)
    columns = feed_columns(program, split) or dataset.columns
    for batch in datasets.batches(replace(dataset, columns=columns), batch_size):
        yield list(batch.values()) if program.model.feeds else []


class Unparsed:
    """The RunMetadata of a traced step, as bytes. A step calls `ParseFromString` of its
    `run_metadata`, which here only keeps them: parsing is not part of the step's time."""

    def __init__(self, serialized: bytes = b"") -> None:
        self.serialized = serialized
        self.graphs: tuple[tf1.GraphDef, ...] = ()  # that ran, if another step returned them

    def ParseFromString(self, serialized: bytes) -> None:  # noqa: N802  (TensorFlow calls it)
        self.serialized = serialized

    def parsed(self) -> tf1.RunMetadata:
        """Return the RunMetadata, with the graphs that ran."""
        metadata = tf1.RunMetadata.FromString(self.serialized)
        metadata.partition_graphs.extend(self.graphs)
        return metadata


def timed_step(traced: Run, values: Sequence[np.ndarray], index: int) -> tuple[StepTime, Unparsed]:
    """Run one traced step; return its time as the caller sees it, and its RunMetadata."""
    recorded = Unparsed()
    epoch, start = time.time_ns(), time.perf_counter_ns()
    traced(*values, run_metadata=recorded)
    return StepTime(index, epoch, time.perf_counter_ns() - start), recorded


# The values of variables, read by the nodes that the graph already has


def variable_readers(graph: tf.Graph) -> dict[str, str]:
    """Return the tensor with the value of each variable, by variable. A read that waits for another
    node does not count: it may change the variable. A variable without other reads is omitted."""
    tensors = {}
    for op in graph.get_operations():
        if op.type in REFERENCES:
            tensors[op.name] = op.outputs[0].name
        elif op.type == "VarHandleOp":
            for read in op.outputs[0].consumers():
                if read.type == "ReadVariableOp" and not read.control_inputs:
                    tensors.setdefault(op.name, read.outputs[0].name)
    return tensors


def variable_values(live: tf1.Session, tensors: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the values of these variables; uninitialised variables are omitted."""
    try:
        return {name: np.array(value) for name, value in live.run(dict(tensors)).items()}
    except tf.errors.FailedPreconditionError:
        if len(tensors) < 2:
            return {}
    values: dict[str, np.ndarray] = {}
    for name, tensor in tensors.items():
        values |= variable_values(live, {name: tensor})
    return values


# Refusals

TIME_LIMIT_S = 120  # of one step
END_OF_DATA = "End of sequence"  # what an iterator of tf.data says at its end
NAMED = re.compile(r"\[\[(?:\{\{node )?([^\s\]{}]+)")
INSIDE = re.compile(r"\[\[\{\{function_node (\S+?)\}\} ?\{\{node ([^\s{}]+)")
DENIED = "Permission denied"
MOST = 500  # letters of a message; a kernel may quote a tensor of any size
OF_EAGER = re.compile(r"( on /job:\S+( by allocator \w+)?)?( \[Op:\w+\].*)?$")


def refused(error: tf.errors.OpError, options: Options) -> RefusedError:
    """Return what the runtime said about a failed run, and what would help if that is known."""
    if options.cluster:
        from tflab.runtime import cluster

        if lost := cluster.refused(error, options.cluster):
            return lost
    if isinstance(error, tf.errors.DeadlineExceededError):
        return RefusedError(
            f"A step did not end within {TIME_LIMIT_S} s and was stopped: something in the graph "
            "waits forever, such as a queue that is never filled."
        )
    message = plain(error.message)
    if isinstance(error, tf.errors.OutOfRangeError) and message.startswith(END_OF_DATA):
        return RanDryError(
            f"The input data of the graph ended: {message}. There are more steps than batches. "
            "Repeat the data with tf.data's `repeat()`, or run fewer steps."
        )
    nodes = tuple(NAMED.findall(error.message))
    if nodes and nodes[0] not in message:
        message += f" (in node '{nodes[0]}')"
    message = with_full_stop(message)
    if DENIED in message and confined.CONFINED is not None:
        message += " The graph runs confined; --trust runs it unconfined, if you trust it."
    refusal = RefusedError(f"The runtime refused the step: {message}")
    refusal.nodes = nodes
    refusal.inside = tuple(INSIDE.findall(error.message))
    return refusal


def plain(message: str) -> str:
    """Return the first line of the runtime's message, without marks for nodes and their place."""
    _, node_line, rest = message.rpartition("\nNode: ")
    message = rest.partition("\n")[2] if node_line else message
    lines = [line.strip() for line in message.splitlines() if line.strip(" =")]
    if len(lines) > 1 and "root error(s) found" in lines[0]:
        lines = [line.partition(": ")[2] or line for line in lines[1:]]
    lines = [line for line in lines if not line.endswith(":")] or lines  # headings
    first = lines[0].partition(" [[")[0] if lines else "no message"
    first = re.sub(r"\{\{function_node \S*?\}\} ?", "", first)
    first = OF_EAGER.sub("", re.sub(r"\{\{node (.*?)\}\}", r"'\1'", first))
    if len(first) <= MOST:
        return first
    return (
        f"{first[:MOST].rstrip()} ... ({MOST} of {len(first):,} letters; with "
        "TF_CPP_MIN_LOG_LEVEL=0, TensorFlow logs more of them)"
    )
