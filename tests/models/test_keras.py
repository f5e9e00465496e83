"""Keras: a Keras model in tflab's graph trains as Keras itself trains it."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.analysis import row_labels
from tflab.errors import TflabError, UsageError
from tflab.lifecycle import backward, frontend
from tflab.models import keras
from tflab.records.options import Options, Saved
from tflab.runtime.private import source_lines

pytestmark = pytest.mark.tensorflow

STEPS, ROWS, WORDS = 3, 4, 7
CLOSE = {"rtol": 0, "atol": 1e-6}  # a few roundings; a step moves variables by 0.01 and more


@pytest.fixture(autouse=True)
def _the_same_weights():
    """A layer draws the seed of its first weights when it is made."""
    tf.keras.utils.set_random_seed(1)


def compiled(optimiser, *layers, loss="mse"):
    model = tf.keras.Sequential(layers)
    model.compile(optimiser, loss)
    return model


def dense(optimiser):
    """Layers with weights, a moving average, a mask drawn at random and a regulariser."""
    return compiled(
        optimiser,
        tf.keras.Input((3,)),
        tf.keras.layers.Dense(5, activation="tanh"),
        tf.keras.layers.BatchNormalization(momentum=0.5),
        tf.keras.layers.Dropout(0.4, seed=5),
        tf.keras.layers.Dense(2, kernel_regularizer="l2"),
    )


def embedding(optimiser):
    """A table of which a batch takes some rows, some of them twice."""
    table, words = tf.keras.layers.Embedding(WORDS, 3), tf.keras.Input((2,), dtype="int32")
    return compiled(*(optimiser, words, table), tf.keras.layers.Flatten(), tf.keras.layers.Dense(2))


def batches(model):
    """The same few batches in every run; those of words take other rows each time."""
    random = np.random.default_rng(1)
    for step in range(STEPS):
        if model.inputs[0].dtype == "int32":
            x = (np.array([[0, 0], [1, 2], [2, 0], [3, 1]], np.int32) + step) % WORDS
        else:
            x = random.normal(size=(ROWS, 3)).astype(np.float32)
        yield x, random.normal(size=(ROWS, 2)).astype(np.float32)


def by_keras(model):
    """The model's variables after Keras has trained it on the batches, by their paths."""
    for x, y in batches(model):
        model.train_on_batch(x, y)
    return {variable.path: variable.numpy() for variable in model.variables}


def by_tflab(model):
    """The variables of tflab's graph of the model after the same steps, by their names."""
    with tf.Graph().as_default() as graph:
        made = keras.build(model, "model")
        train = made.optimizer.minimize(made.loss)
        feeds = {column: tensor for tensor, column in made.feeds.items()}
        with tf1.Session(graph=graph) as running:
            running.run(tf1.global_variables_initializer())
            for x, y in batches(model):
                named = dict(zip(feeds.values(), (x, y), strict=True))
                running.run([train, *made.updates], named)
            return running.run({v.op.name: v for v in tf1.global_variables()})


@pytest.mark.parametrize("model_of", [dense, embedding])
def test_a_model_takes_the_same_steps_as_in_keras(model_of):
    model = model_of(tf.keras.optimizers.SGD(0.1))
    before = {variable.path: variable.numpy() for variable in model.variables}
    by_tf1, expected = by_tflab(model), by_keras(model)
    assert {*expected} <= {*by_tf1}
    for path, value in expected.items():
        np.testing.assert_allclose(by_tf1[path], value, **CLOSE, err_msg=path)
        assert np.abs(value - before[path]).max() > 0.01 or model_of is embedding, path


def test_a_random_state_is_written_after_the_mask_is_drawn_and_what_is_frozen_never():
    model = dense("sgd")
    for trainable, count in ((True, 3), (False, 1)):
        model.layers[1].trainable = trainable
        with tf.Graph().as_default():
            updates = keras.build(model, "model").updates
        assert len(updates) == count
        (state,) = (op for op in updates if op.inputs[0].op.name.endswith("seed_generator_state"))
        reads = {op.name for op in state.inputs[0].consumers() if op.type == "ReadVariableOp"}
        ordered = {op.name for op in state.control_inputs}
        assert ordered and ordered == {name for name in reads if name.startswith("training/")}


def test_gradients_are_checked():
    """The moving averages and the state of the mask have their values too."""
    build = ("mine", lambda: dense(tf.keras.optimizers.AdamW()))
    stage = backward.differentiate(frontend.build(build, Options()), Options())
    assert type(stage.program.model.optimizer) is tf1.train.GradientDescentOptimizer
    assert len(stage.gradient_checks) == 6
    assert all(check.agrees for check in stage.gradient_checks)  # in float32: the mask is drawn
    assert max(check.max_relative_error for check in stage.gradient_checks) < 1e-2


def test_a_model_with_a_training_step_of_its_own_is_not_trained():
    class Careful(tf.keras.Model):
        def train_step(self, data):
            return super().train_step(data)

    x = tf.keras.Input((2,))
    model = Careful(x, tf.keras.layers.Dense(2)(x))
    model.compile("sgd", "mse")
    with tf.Graph().as_default():
        made = keras.build(model, "mine")
    assert made.loss is None
    assert made.not_trained == "'mine' has a `train_step` of its own, which tflab does not call."
    assert made.not_trained in made.notes


# Files


def saved(folder, loss="mse", optimiser="adam"):
    layer = tf.keras.layers.Dense(3, name="first")
    model = compiled(optimiser, tf.keras.Input((4,)), layer, loss=loss)
    path = str(folder / "model.keras")
    model.save(path)
    return path


def of_mine(wanted, output):
    return tf.reduce_mean((wanted - output) ** 2)


def stages_of(path, **options):
    return lifecycle.walk(path, Options(batch_size=4, **options), stop="backward")


def test_a_compiled_file_trains_with_its_loss_and_its_optimiser(tmp_path):
    path = saved(tmp_path, tf.keras.losses.MeanSquaredError())
    frontend, backward = stages_of(path)
    assert frontend.notes[1] == (
        "The model trains with its compiled loss. Its optimiser, Adam of Keras, does not run in a "
        "graph of TensorFlow 1. AdamOptimizer of tf.compat.v1.train replaces it, with the learning "
        "rate 0.001."
    )
    assert "ResourceApplyAdam" in {node.op for node in backward.nodes}
    assert {node.source for node in frontend.nodes} == {None}


def test_a_file_whose_loss_cannot_be_loaded_is_not_trained(tmp_path):
    frontend, backward = stages_of(saved(tmp_path, of_mine, "rmsprop"))
    assert "MatMul" in {node.op for node in frontend.nodes}
    assert not backward.added_nodes


def uncallable():
    """A model whose own layer works only where Keras trains or exports it."""

    class InFunctions(tf.keras.layers.Layer):
        def call(self, inputs):
            graph = tf1.get_default_graph()
            if isinstance(inputs, tf.Tensor) and not graph.building_function:
                raise ValueError("only in functions")
            return inputs

    return tf.keras.Sequential([tf.keras.Input((2,)), InFunctions()])


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({}, TflabError, r"calling InFunctions.* To see what it computes, save it with its method"),
        ({"saved": Saved(loss="loss")}, UsageError, "takes no --signature, --loss, --feed or --sh"),
    ],
)
def test_a_model_that_cannot_be_called_in_a_graph_or_as_asked_is_one_sentence(options, kind, said):
    with pytest.raises(kind, match=said):
        next(stages_of(f"{__name__}:uncallable", **options))


def test_a_damaged_file_is_one_sentence(tmp_path):
    (tmp_path / "a.keras").write_bytes(b"PK and no more")
    with pytest.raises(TflabError, match=r"Keras cannot load '.*a\.keras': "):
        next(stages_of(str(tmp_path / "a.keras")))


# Names


def tower(name):
    inner = tf.keras.Input((2,))
    dense = tf.keras.layers.Dense(2, name="dense")(inner)
    return tf.keras.Model(inner, dense, name=name)


def towers():
    x = tf.keras.Input((2,))
    shared = tf.keras.layers.Dense(2, name="first")
    both = tf.keras.layers.Add(name="sum")([tower("left")(shared(x)), tower("right")(shared(x))])
    return tf.keras.Model(x, both, name="whole")


def test_layers_have_the_names_that_keras_gives_them():
    frontend, _ = stages_of(f"{__name__}:towers")
    inner = ("first", "left", "left/dense", "right", "right/dense", "sum")
    assert set(frontend.program.layers.values()) == {"whole", *(f"whole/{name}" for name in inner)}
    products = {node.name for node in frontend.nodes if node.op == "MatMul"}
    layers = frontend.program.layers
    labels = sorted(row_labels.layer(name, set(), layers) for name in products)
    assert labels == ["whole/first"] * 2 + ["whole/left/dense", "whole/right/dense"]


def test_two_layers_of_one_name_are_not_one_layer(monkeypatch):
    graph = tf.Graph()
    scopes = {"d": (1, "d"), "d_1": (2, "d"), "first": (3, "first"), "training/first": (3, "first")}
    monkeypatch.setitem(source_lines.SCOPES, graph, scopes)
    assert source_lines.layer_names(graph) == {"first": "first", "training/first": "first"}


def two_outputs():
    inputs = tf.keras.Input((4,))
    heads = [tf.keras.layers.Dense(1)(inputs), tf.keras.layers.Dense(2)(inputs)]
    model = tf.keras.Model(inputs, heads)
    model.compile("sgd", loss=["mse", "mse"])
    return model


def of_classes():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])
    model.compile("sgd", loss="SparseCategoricalCrossentropy")
    return model


def test_a_loss_is_known_by_its_class_and_several_outputs_are_the_reason_for_no_training():
    assert frontend.build(("mine", of_classes), Options()).program.loss is not None
    program = frontend.build(("mine", two_outputs), Options()).program
    assert program.model.loss is None
    assert program.model.not_trained == "'mine' has 2 outputs; tflab trains models with one."
