"""Frontend: Python calls become nodes. Nothing is computed yet.

The model function runs once. Each TensorFlow call in it adds nodes to a graph, and TensorFlow
records the Python stack of each one; its last frame in the user's code is the node's source line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from traceback import walk_tb
from typing import TypeVar

import numpy as np
import tensorflow as tf

from tflab import models
from tflab.analysis import access_order
from tflab.datasets import Dataset, Whole
from tflab.errors import NotImportableError, TflabError, reason
from tflab.escaping import with_full_stop
from tflab.records.graph import Node, grouped
from tflab.records.options import Model, Options, Program
from tflab.records.stages import Frontend
from tflab.runtime import cluster, functions, nodes, session
from tflab.runtime.private import graphs, source_lines

ROWS_OF_NOTHING = 2**16  # a model without feeds runs with any batch size
SEED = 1  # of the graph: the same weights in every run

T = TypeVar("T")


def of_model(model: str, options: Options) -> Frontend:
    """Call `build` for the model with this name, with the options of a graph from a file."""
    saved = replace(options.saved, fetches=options.fetches)
    return build((model, models.find(model, saved)), options)


def build(program: tuple[str, Callable[[], Model]], options: Options) -> Frontend:
    """Run a (named) model function in a new graph and list its nodes. Raises TflabError if the
    function raises, or returns something other than a Model."""
    name, function = program
    graph = tf.Graph()
    source_lines.add_program(function)
    try:
        with source_lines.noted():
            model = call_model(name, function, graph)
            if not isinstance(model, Model):
                model, graph = from_keras(name, function, model) or (model, graph)
    except NotImportableError as error:
        made, called = error.nodes, error.functions
        return Frontend(
            None, made, notes=(), blocked=str(error), functions=called, unordered=(), always_run=()
        )
    model = check(name, model, graph)
    places: Mapping[str, str] = {}
    if options.devices > 1:
        over_devices(graph, options.devices)
    if options.cluster:  # no devices are requested yet: until placement, one process may run it
        parts = in_parts(graph, len(options.cluster))
        places = {op.name: cluster.device_of(part) for op, part in parts}
        feeds = (op.name for op in graph.get_operations() if op.type == "Placeholder")
        places |= dict.fromkeys(feeds, cluster.CLIENT_DEVICE)
    dataset = functools.cache(functools.partial(load, name, model, options.data_dir))
    if not model.fixed_batch and not model.unready:  # the only number of rows that its feeds accept
        feeds_of = ((column, nodes.shape_of(t.shape)) for t, column in model.feeds.items())
        fixed = [(c, shape[0]) for c, shape in feeds_of if shape and shape[0] is not None]
        columns = dataset("train").columns if fixed else {}
        rows = {size for c, size in fixed if c in columns and not isinstance(columns[c], Whole)}
        model = replace(model, fixed_batch=rows.pop() if len(rows) == 1 else None)
    program_built = Program(
        name=name,
        graph=graph,
        model=model,
        dataset=dataset,
        ends=tuple(t.op.name for t in (model.loss, model.output) if t is not None),
        places=places,
        optimizer_line=source_lines.constructed(model.optimizer),
        layers=source_lines.layer_names(graph),
    )
    listed = nodes.from_graph(graph)
    called = functions.of_graph(graph)
    step = step_of(program_built, listed, options)
    return Frontend(
        program=program_built,
        nodes=listed,
        notes=model.notes,
        blocked=None,
        functions=called,
        unordered=access_order.unordered(step, called),
        always_run=access_order.of_one_branch(step, called),
    )


def step_of(program: Program, listed: Sequence[Node], options: Options) -> access_order.Step:
    """Return the part of the graph that the steps will run."""
    fed = [tensor.name for tensor in program.model.feeds]
    return access_order.Step(listed, options.fetches or session.default_fetches(program), fed)


def call_model(name: str, function: Callable[[], T], graph: tf.Graph) -> T | Model:
    """Return the result of the model function, which builds into this graph."""
    with graph.as_default():
        tf.compat.v1.set_random_seed(SEED)
        try:
            return function()
        except TflabError:
            raise
        except Exception as error:
            failed = failure(name, "built its graph", error)
            if model := without_gradients(error, graph, failed):
                return model
            raise failed from error


def without_gradients(error: Exception, graph: tf.Graph, failed: TflabError) -> Model | None:
    """Return a model if the program's optimiser found no gradients of its loss: the next stage
    shows where they stop. None if something else failed."""
    if not str(error).startswith("No gradients provided"):
        return None
    for frame, _ in walk_tb(error.__traceback__):
        loss, optimizer = frame.f_locals.get("loss"), frame.f_locals.get("self")
        is_optimizer = isinstance(optimizer, tf.compat.v1.train.Optimizer)
        if is_optimizer and isinstance(loss, tf.Tensor) and loss.graph is graph:
            failed.__cause__ = error  # with the line, for the page
            return Model(loss, {}, lambda *_: None, loss, optimizer, unready=failed)
    return None


def from_keras(
    name: str, function: Callable[[], object], result: object
) -> tuple[Model, tf.Graph] | None:
    """Return a Keras model as a Model, and its graph; None if `result` is no Keras model. A model
    that was made in a graph is made again, eagerly, by calling the function once more."""
    from tflab.models import keras

    if not keras.is_keras(result):
        return None
    keras_model = result if keras.is_eager(result) else keras.eagerly(function)
    graph = tf.Graph()
    try:
        return call_model(name, lambda: keras.build(keras_model, name), graph), graph
    except TflabError as error:
        advice = "To see what it computes, save it with its method export, and give that folder."
        raise TflabError(f"{error} {advice}") from error


def load(name: str, model: Model, data_dir: str | None, split: str) -> Dataset:
    """Return the model's data; an error in its own function is a failure of the model."""
    if not model.feeds:
        return Dataset("none: nothing is fed", split, {"row": np.arange(ROWS_OF_NOTHING)})
    try:
        dataset = model.data(split, data_dir)
    except TflabError:
        raise
    except Exception as error:
        raise failure(name, "loaded its data", error) from error
    if not isinstance(dataset, Dataset):
        raise TflabError(
            f"The data function of the model '{name}' returned {type(dataset).__name__}; it must "
            "return a tflab.datasets.Dataset."
        )
    return dataset


def check(name: str, model: object, graph: tf.Graph) -> Model:
    """Return the model, if the stages can handle it. Raises TflabError otherwise."""
    if not isinstance(model, Model):
        raise TflabError(
            f"The model '{name}' returned {type(model).__name__}; a model function must return a "
            "tflab.records.Model."
        )

    def wrong(part: str, given: str, right: str) -> TflabError:
        return TflabError(f"The {part} of the model '{name}' {given}; {right}.")

    if not isinstance(model.feeds, Mapping):
        must = "they must be a dict that maps each placeholder to its column of the data"
        raise wrong("feeds", f"are {model.feeds!r}", must)
    tensors = {"output": model.output, "loss": model.loss, "test loss": model.test_loss}
    tensors |= {f"feed of '{column}'": tensor for tensor, column in model.feeds.items()}
    for role, tensor in tensors.items():
        if tensor is None and (role != "output" or model.unready):
            continue
        if not isinstance(tensor, tf.Tensor) or getattr(tensor, "graph", None) is not graph:
            must = "it must be a tensor of the graph that the model function built"
            raise wrong(role, f"is {' '.join(repr(tensor).split())}", must)
    if model.feeds and not callable(model.data):
        must = "they must be a function that takes a split and a folder and returns a "
        raise wrong("data", f"are {model.data!r}", f"{must}tflab.datasets.Dataset")
    if model.loss is not None and model.loss.shape.rank not in (None, 0):
        must = "it must be a scalar, such as a mean over the batch"
        raise wrong("loss", f"has shape {model.loss.shape}", must)
    if model.optimizer is not None and not hasattr(model.optimizer, "compute_gradients"):
        must = "it must be one of tf.compat.v1.train, because these work on graphs"
        raise wrong("optimizer", f"is a {type(model.optimizer).__name__}", must)
    return model


def failure(name: str, doing: str, error: Exception) -> TflabError:
    """Return an error that says what failed, with the user's line in the traceback."""
    message = (reason(error).strip() or "no message").splitlines()[0]
    frames = ((frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__))
    own = [
        place for place in frames if not (place[0] == __file__ or source_lines.is_library(place[0]))
    ]
    place = " ({}:{})".format(*own[-1]) if own else ""
    return TflabError(
        f"The model '{name}' failed while it {doing}{place}: "
        f"{type(error).__name__}: {with_full_stop(message)}"
    )


# Which layer goes where: the layers, in the order in which they were built, are cut into
# consecutive parts with about equal numbers of nodes.


def over_devices(graph: tf.Graph, devices: int) -> None:
    """Request CPU:0, CPU:1, ... for consecutive layers. A node keeps the device that the model
    itself requests, and follows another one with which it must be colocated."""
    by_name = {op.name: op for op in graph.get_operations()}
    free = [op for op in by_name.values() if not op.device]
    for op, part in in_parts(graph, devices):
        if not op.device:
            graphs.set_device(op, f"/device:CPU:{part}")
    for op in free:
        for name in mates(op):
            if name in by_name:
                graphs.set_device(op, by_name[name].device)


def in_parts(graph: tf.Graph, parts: int) -> Iterator[tuple[tf.Operation, int]]:
    """Yield each op with the number of its part: consecutive layers are divided into `parts`."""
    total, seen = len(graph.get_operations()), 0
    for ops in layers(graph):
        middle = seen + len(ops) / 2
        seen += len(ops)
        for op in ops:
            yield op, int(middle * parts / total)


def ask(graph: tf.Graph, places: Mapping[str, str]) -> None:
    """Request these devices for nodes. A gradient is placed with its forward op, a read and an
    update with their variable. Other nodes follow their data, or go to task 0 if they have none."""
    device_of: dict[str, str] = {}
    for op in graph.get_operations():  # an op comes after its inputs
        leaders = [*mates(op), *(t.op.name for t in op.inputs if t.dtype.base_dtype == tf.resource)]
        before = [*(t.op.name for t in op.inputs), *(control.name for control in op.control_inputs)]
        place = next((device_of[name] for name in leaders if name in device_of), "")
        if not leaders:
            near = (device_of[name] for name in before if name in device_of)
            place = places.get(op.name) or next(near, cluster.device_of(0))
            if "/job:" not in op.device:
                graphs.set_device(op, place + op.device)
        device_of[op.name] = place or cluster.device_of(0)


def mates(op: tf.Operation) -> list[str]:
    """Return the other ops with which an op must be colocated."""
    groups = (group.decode().removeprefix("loc:@") for group in op.colocation_groups())
    return [group for group in groups if group != op.name]


def layers(graph: tf.Graph) -> list[list[tf.Operation]]:
    """Return the ops of a graph by top-level name scope, in the order of their first node. A scope
    without inputs from others, such as a variable, belongs to the layer that uses it first."""
    scopes = grouped((op.name.partition("/")[0], op) for op in graph.get_operations())
    users: dict[str, str] = {}  # a scope -> the first other scope that uses it
    takers = set()
    for scope, ops in scopes.items():
        for tensor in (tensor for op in ops for tensor in op.inputs):
            giver = tensor.op.name.partition("/")[0]
            if giver != scope:
                users.setdefault(giver, scope)
                takers.add(scope)
    homes = {scope: scope if scope in takers else users.get(scope, scope) for scope in scopes}
    layers = grouped((homes[scope], op) for scope, ops in scopes.items() for op in ops)
    return [layers[scope] for scope in scopes if scope in layers]
