"""Models: every registered one builds, the toy is its formula, and LeNet-5 is LeNet-5."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from numpy.lib.stride_tricks import sliding_window_view

from tflab import datasets, frontend, lifecycle, models
from tflab.errors import UsageError
from tflab.records import Options, node_of

pytestmark = pytest.mark.tensorflow

# A model of somebody else, as a file that is not part of tflab.
OWN_MODEL = """
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tflab.datasets import Dataset
from tflab.records import Model

def build():
    x = tf1.placeholder(tf.float32, [None], name="x")
    w = tf1.get_variable("w", initializer=2.0, use_resource=True)
    loss = tf.reduce_sum(w * x)
    return Model(x, {x: "x"}, ones, loss, tf1.train.GradientDescentOptimizer(0.1))

def ones(split, data_dir):
    return Dataset("ones", split, {"x": np.ones(100, np.float32)})
"""


@pytest.mark.parametrize("name", models.MODELS)
def test_a_registered_model_builds_in_the_default_graph(name):
    with tf.Graph().as_default() as graph:
        model = models.find(name)()
    assert model.output.graph is graph
    assert {feed.op.type for feed in model.feeds} <= {"Placeholder", "PlaceholderWithDefault"}


@pytest.mark.parametrize("name", models.MODELS)
def test_the_data_of_a_model_have_the_columns_that_it_feeds(name, walked):
    program = walked(name)["frontend"].program
    columns = program.dataset("train").columns
    for feed, column in program.model.feeds.items():
        assert feed.shape.is_compatible_with([None, *columns[column].shape[1:]])


@pytest.mark.parametrize("name", models.MODELS)
def test_a_model_starts_with_the_same_weights_in_every_run(name):
    first, second = initial_weights(name), initial_weights(name)
    assert list(first) == list(second)
    for variable, value in first.items():
        assert np.array_equal(value, second[variable])


# The toy


def test_the_forward_graph_of_the_toy_is_its_formula(walked):
    stage = walked("toy")["frontend"]
    inputs = {node.name: node.inputs for node in stage.nodes}
    found, waiting = set(), [stage.program.model.output.op.name]
    while waiting:
        found.add(name := waiting.pop())
        waiting.extend(map(node_of, inputs[name]))
    assert found == {"x", "y", "z", "mul/ReadVariableOp", "mul", "add/ReadVariableOp", "add"}


def test_training_the_toy_recovers_3_and_2():
    with tf.Graph().as_default(), tf1.Session() as session:
        model = models.find("toy")()
        train = model.optimizer.minimize(model.loss)
        session.run(tf1.global_variables_initializer())
        for batch in itertools.islice(datasets.batches(model.data("train", None), 16), 100):
            session.run(train, {feed: batch[column] for feed, column in model.feeds.items()})
        found = {variable.op.name: session.run(variable) for variable in tf1.trainable_variables()}
    assert found == {"y": pytest.approx(3, abs=1e-3), "z": pytest.approx(2, abs=1e-3)}


# LeNet


def test_lenet_has_61706_parameters():
    assert sum(value.size for value in initial_weights("lenet").values()) == 61_706


def test_lenet_computes_what_numpy_computes(walked):
    program = walked("lenet")["backward"].program
    images = program.dataset("train").columns["images"][:4]
    rng = np.random.default_rng(0)  # biases start at 0, where a forgotten one would not show
    with initialised(program.graph) as session:
        weights = values(session)
        for variable in program.graph.get_collection("variables"):
            weights[variable.op.name] += rng.normal(0, 0.02, variable.shape)
            initial_value = variable.initializer.inputs[1]
            session.run(variable.initializer, {initial_value: weights[variable.op.name]})
        logits = session.run(program.model.output, {"images:0": images})
    np.testing.assert_allclose(logits, numpy_lenet(weights, images), atol=1e-4)


def test_lenet_learns_to_read_digits(walked):
    program = walked("lenet")["backward"].program
    unseen = program.dataset("test").columns
    with initialised(program.graph) as session:
        for batch in itertools.islice(datasets.batches(program.dataset("train"), 64), 300):
            feeds = {"images:0": batch["images"], "labels:0": batch["labels"]}
            session.run(program.train_op, feeds)
        logits = session.run(program.model.output, {"images:0": unseen["images"]})
    assert np.mean(logits.argmax(axis=1) == unseen["labels"]) > 0.9


def numpy_lenet(weights, images):
    hidden = numpy_pool(numpy_convolution(weights, "conv1", images))
    hidden = numpy_pool(numpy_convolution(weights, "conv2", hidden))
    hidden = hidden.reshape(len(hidden), -1)
    for name in ("dense1", "dense2"):
        hidden = np.maximum(hidden @ weights[f"{name}/kernel"] + weights[f"{name}/bias"], 0)
    return hidden @ weights["dense3/kernel"] + weights["dense3/bias"]


def numpy_convolution(weights, name, images):
    windows = sliding_window_view(images, (5, 5), axis=(1, 2))  # [n, rows, columns, channel, i, j]
    sums = np.einsum("nrcxij,ijxo->nrco", windows, weights[f"{name}/kernel"])
    return np.maximum(sums + weights[f"{name}/bias"], 0)


def numpy_pool(images):
    count, rows, columns, channels = images.shape
    return images.reshape(count, rows // 2, 2, columns // 2, 2, channels).max(axis=(2, 4))


def initial_weights(name):
    stage = frontend.build((name, models.find(name)), Options())
    with initialised(stage.program.graph) as session:
        return values(session)


def initialised(graph):
    session = tf1.Session(graph=graph)
    session.run([variable.initializer for variable in graph.get_collection("variables")])
    return session


def values(session):
    variables = session.graph.get_collection("trainable_variables")
    return {variable.op.name: session.run(variable) for variable in variables}


# What --model accepts


def test_a_function_of_any_module_is_a_model_without_an_edit(tmp_path, monkeypatch):
    (tmp_path / "a_model_of_mine.py").write_text(OWN_MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    built, *_, executed = lifecycle.walk("a_model_of_mine:build", Options(batch_size=2, steps=1))
    assert (executed.data, executed.steps) == ("ones", 1)
    assert {node.source.file for node in built.nodes} == {str(tmp_path / "a_model_of_mine.py")}


CHOICE = f"Choose from {', '.join(models.MODELS)}, or give package.module:function."


@pytest.mark.parametrize(
    "name, complaint",
    [
        ("lenett", f"No model named 'lenett'. Did you mean 'lenet'? {CHOICE}"),
        ("qqq", f"No model named 'qqq'. {CHOICE}"),
        ("", f"No model named ''. {CHOICE}"),
        (":build", f"No model named ':build'. {CHOICE}"),
        ("tflab.models.toy:", f"No model named 'tflab.models.toy:'. {CHOICE}"),
        (
            "no_such_module:build",
            "The model 'no_such_module:build' cannot be imported: "
            "ModuleNotFoundError: No module named 'no_such_module'.",
        ),
        (
            "tflab.models.toy:bild",
            "The module tflab.models.toy has no function 'bild'. Did you mean 'build'?",
        ),
        ("tflab.models.toy:TRUE_Y", "The module tflab.models.toy has no function 'TRUE_Y'."),
    ],
)
def test_a_name_that_is_no_model_is_refused_with_what_would_be_right(name, complaint):
    with pytest.raises(UsageError) as error:
        models.find(name)
    assert str(error.value) == complaint


def test_a_module_that_fails_on_import_is_no_traceback(tmp_path, monkeypatch):
    (tmp_path / "a_broken_model.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"cannot be imported: ZeroDivisionError: division by ze"):
        models.find("a_broken_model:build")
