"""Keras: a Keras model as a Model, with the loss and the optimiser with which it was compiled.

Keras calls the model and its loss in the graph that is being built, with variables of that graph
instead of its own (`keras.StatelessScope`). So nodes have the names of the layers and the lines
that made them. Keras's own optimisers do not run in such a graph; a similar one of
`tf.compat.v1.train` takes their place.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.cli import confined
from tflab.errors import TflabError, reason
from tflab.escaping import with_full_stop
from tflab.models import saved
from tflab.records.options import Model
from tflab.runtime import session
from tflab.runtime.private import source_lines

if TYPE_CHECKING:
    from keras import Layer, StatelessScope, Variable
    from keras import Model as KerasModel

    from tflab.records.graph import Source

    State = list[tuple[Variable, tf.Variable]]  # of Keras, and that of the graph in its place
    Lines = Mapping[int, Source | None]  # by the ids of Keras's variables

T = TypeVar("T")

MOST_BYTES = 2**30  # of variables: the graph, limited to 2 GiB, contains their values
RATE = 0.01  # if the optimiser has a schedule


def is_keras(model: object) -> bool:
    """Return whether this is a Keras model, without importing Keras."""
    return any(
        kind.__module__.startswith("keras.") and kind.__name__ == "Model"
        for kind in type(model).__mro__
    )


def from_file(path: Path, trusted: bool) -> KerasModel:
    """Return the Keras model in a file, compiled if Keras can do that. Code in the file is not
    loaded (`safe_mode`). Raises TflabError if Keras cannot load it."""
    if why := confined.unimported(trusted):
        raise TflabError(f"The Keras model '{path}' is not loaded: {with_full_stop(why)}")
    confined.model_files(path)

    def load() -> KerasModel:
        try:
            return tf.keras.models.load_model(path, safe_mode=True)
        except Exception:  # a loss or an optimiser that Keras does not know
            return tf.keras.models.load_model(path, compile=False, safe_mode=True)

    try:
        # Keras warns that it does not load the state of the optimiser, which has another one here
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eagerly(load)
    except Exception as error:  # Keras may raise anything
        said = with_full_stop(session.plain(reason(error)))
        raise TflabError(f"Keras cannot load '{path}': {said}") from error


def is_eager(model: KerasModel) -> bool:
    """Return whether a Keras model's variables have values: it was made outside of graphs."""
    handles = [variable.value.handle for variable in model.variables]
    return bool(handles) and all(hasattr(handle, "numpy") for handle in handles)


def eagerly(make: Callable[[], T]) -> T:
    """Return the result of a function, called in a separate thread, in which no graph is built."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


def build(model: KerasModel, name: str) -> Model:
    """Build the model in the default graph: a head for inference and, if it is compiled, one for
    training. Raises TflabError if it cannot be called there; Keras may raise anything else."""
    import keras

    own = [*model.trainable_variables, *model.non_trainable_variables]
    values = eagerly(lambda: [variable.numpy() for variable in own])
    if not getattr(model, "inputs", None) or sum(value.nbytes for value in values) > MOST_BYTES:
        raise TflabError(
            f"The Keras model '{name}' cannot be called in a graph: its inputs are unknown, or its "
            "variables are too large."
        )
    lines = dict(lines_of(model))
    state: State = []
    for variable, value in zip(own, values, strict=True):
        kept = {"trainable": variable.trainable, "use_resource": True}
        with source_lines.on_line(lines.get(id(variable))):
            state.append((variable, tf1.Variable(value, name=variable.path, **kept)))
    inputs = [tf1.placeholder(t.dtype, t.shape, name=t.name) for t in model.inputs]
    structure = getattr(model, "input", model.inputs[0])  # a Sequential has no `input`
    fed = tf.nest.pack_sequence_as(structure, inputs)
    with keras.StatelessScope(state):
        output = model(fed, training=False)
    heads, wanted = tf.nest.flatten(output), tf.nest.flatten(getattr(model, "loss", None))
    labels: list[tf.Tensor] = []
    notes = [f"'{name}' is a Keras model. It is called in this graph, with its own values."]
    parts: dict[str, Any] = {"output": heads[0]}
    if not type(model).train_step.__module__.startswith("keras."):
        notes.append(f"'{name}' has a `train_step` of its own, which tflab does not call.")
        parts["not_trained"] = notes[-1]
    elif len(heads) > 1:
        parts["not_trained"] = f"'{name}' has {len(heads)} outputs; tflab trains models with one."
    elif getattr(model, "compiled", False) and len(wanted) == 1 and wanted[0]:
        kind = str(getattr(wanted[0], "name", getattr(wanted[0], "__name__", wanted[0])))
        like = (heads[0].dtype, heads[0].shape)
        if "sparse" in kind.lower():  # the index of a class
            like = (tf.int32, heads[0].shape[:-1])
        labels = [tf1.placeholder(*like, name="labels")]
        with tf1.name_scope("training") as training, keras.StatelessScope(state) as scope:
            predicted = model(fed, training=True)
            with source_lines.on_line(source_lines.COMPILED.get(model)):
                target = tf.nest.pack_sequence_as(output, labels)
                loss = model.compute_loss(x=fed, y=target, y_pred=predicted, training=True)
        optimizer, sentence = replaced(model)
        notes.append(f"The model trains with its compiled loss. {sentence}")
        moves = tuple(updates(scope, state, lines, training))
        parts |= {"loss": loss, "optimizer": optimizer, "updates": moves}
    return saved.model_of([*inputs, *labels], {}, notes, **parts)


def updates(scope: StatelessScope, state: State, lines: Lines, head: str) -> Iterator[tf.Operation]:
    """Yield assignments of the new values of variables that are not trained, such as moving
    averages. Each runs after the reads of the old value in the name scope `head`."""
    for mine, variable in state:
        value = scope.get_current_value(mine)
        if mine.trainable or value is variable:
            continue
        readers = [op for op in variable.handle.consumers() if op.type == "ReadVariableOp"]
        reads = [op for op in readers if op.name.startswith(head)]
        with source_lines.on_line(lines.get(id(mine))), tf.control_dependencies(reads):
            yield variable.assign(value, read_value=False)


def lines_of(model: Layer) -> Iterator[tuple[int, Source | None]]:
    """Yield the line of each variable, by its id: the line of the innermost layer that has it."""
    for variable in model.variables:
        yield id(variable), source_lines.constructed(model)
    for layer in getattr(model, "layers", ()):
        yield from lines_of(layer)


def replaced(model: KerasModel) -> tuple[tf1.train.Optimizer, str]:
    """Return the optimiser that replaces the model's own, and a sentence about that."""
    kind = type(model.optimizer).__name__
    rate = eagerly(model.optimizer.get_config).get("learning_rate")
    rate = rate if isinstance(rate, float) else RATE
    alike = f"{kind.replace('prop', 'Prop')}Optimizer"
    optimizer = getattr(tf1.train, alike, tf1.train.GradientDescentOptimizer)(rate)
    source_lines.CONSTRUCTED[optimizer] = source_lines.constructed(model.optimizer)
    return optimizer, (
        f"Its optimiser, {kind} of Keras, does not run in a graph of TensorFlow 1. "
        f"{type(optimizer).__name__} of tf.compat.v1.train replaces it, with the learning rate "
        f"{rate:g}."
    )
