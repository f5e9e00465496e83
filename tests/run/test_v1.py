"""What stands in for parts of TensorFlow 1 does what they did: worked out by hand."""

import json
import math
import os
import struct
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tflab.run import v1
from tflab.run.v1 import contrib, layer_arguments, layers, legacy_seq2seq, old_names, tutorials

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def values():
    """`values(tensor, ...)`: what a new graph's tensors are, once its variables have started."""
    with tf.Graph().as_default():

        def run(*tensors):
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                return session.run(list(tensors))

        yield run


@pytest.fixture
def noted(monkeypatch):
    monkeypatch.setattr(v1, "stood_in", {})
    return lambda: [*v1.stood_in]


def numbered(rows, **options):
    """Images whose pixels are all their number, and so is their label."""
    images = np.arange(rows, dtype=np.uint8).repeat(784).reshape(rows, 28, 28, 1)
    return tutorials.DataSet(images, np.arange(rows), **{"dtype": tf.uint8, **options})


def batches(data, count, size, **options):
    taken = [data.next_batch(size, **options) for _ in range(count)]
    assert all((images[:, 0] == labels).all() for images, labels in taken)
    return [list(labels) for _, labels in taken]


def test_batches_go_on_into_the_next_epoch():
    data = numbered(5)
    assert batches(data, 2, 2, shuffle=False) == [[0, 1], [2, 3]]
    assert data.epochs_completed == 0
    assert batches(data, 2, 2, shuffle=False) == [[4, 0], [1, 2]]
    assert (data.epochs_completed, data.num_examples) == (1, 5)


def test_each_epoch_has_an_order_that_numpys_seed_decides():
    data = numbered(5)
    np.random.seed(7)
    seen = [label for labels in batches(data, 5, 2) for label in labels]
    np.random.seed(7)
    order = np.arange(5)
    np.random.shuffle(order)
    again = np.arange(5)
    np.random.shuffle(again)
    assert seen == [*order, *order[again]]
    assert data.epochs_completed == 1


def test_images_are_bytes_or_shares_of_one():
    assert numbered(3, reshape=False).images.shape == (3, 28, 28, 1)
    shares = numbered(256, dtype=tf.float32).images
    assert (shares.dtype, shares.shape) == (np.float32, (256, 784))
    assert [*shares[[0, 51, 255], 0]] == pytest.approx([0.0, 0.2, 1.0])
    with pytest.raises(TypeError, match="Invalid image dtype"):
        numbered(3, dtype=tf.int32)


def test_made_up_data_are_the_first_label():
    images, labels = numbered(3, one_hot=True).next_batch(2, fake_data=True)
    assert labels == [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]] * 2
    assert images == [[1] * 784] * 2


def test_data_of_the_programs_own_folder_come_first(tmp_path, noted):
    for split, rows in (("train", 24), ("t10k", 3)):
        pixels = np.arange(rows, dtype=np.uint8).repeat(784).tobytes()
        images = struct.pack(">4I", 2051, rows, 28, 28) + pixels
        (tmp_path / f"{split}-images-idx3-ubyte").write_bytes(images)
        labels = struct.pack(">2I", 2049, rows) + bytes(number % 10 for number in range(rows))
        (tmp_path / f"{split}-labels-idx1-ubyte").write_bytes(labels)
    data = tutorials.read_data_sets(str(tmp_path), one_hot=True, dtype=tf.uint8)
    # One in twelve of the training set is for validation, because there are fewer than MNIST's
    assert list(data.validation.images[:, 0]) == [0, 1]
    assert list(data.train.images[:, 0]) == list(range(2, 24))
    assert data.test.labels.tolist() == np.eye(10)[:3].tolist()
    assert noted() == ["input_data"]
    with pytest.raises(ValueError, match="between 0 and 24: -1"):
        tutorials.read_data_sets(str(tmp_path), validation_size=-1)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"<html>")
    with pytest.raises(ValueError, match="is not an IDX file of bytes"):
        tutorials.read_data_sets(str(tmp_path))


def test_an_initialiser_spreads_by_inputs_and_outputs(values):
    shape = [3, 3, 4, 8]  # 36 inputs and 72 outputs
    tf.set_random_seed(1)
    uniform, normal, inputs, outputs = values(
        layer_arguments.xavier_initializer()(shape),
        layer_arguments.xavier_initializer(uniform=False)([100, 300]),
        layer_arguments.variance_scaling_initializer(uniform=True)(shape),
        layer_arguments.variance_scaling_initializer(1.0, "FAN_OUT", uniform=True)([5]),
    )
    assert 0.98 * math.sqrt(6 / 108) < abs(uniform).max() <= math.sqrt(6 / 108)
    assert 0.98 * math.sqrt(6 / 36) < abs(inputs).max() <= math.sqrt(6 / 36)
    assert abs(outputs).max() <= math.sqrt(3 / 5)
    assert normal.std() == pytest.approx(math.sqrt(1 / 200), rel=0.02)
    assert abs(normal).max() <= 2 * math.sqrt(1.3 / 200)
    with pytest.raises(TypeError, match="Unknown mode IN"):
        layer_arguments.variance_scaling_initializer(mode="IN")


def test_regularisers_are_their_formulas(values):
    weights = tf.constant([[3.0, -1.0], [0.0, 2.0]])
    with tf.variable_scope("layer"):
        first = tf.constant_initializer(2.0)
        tf.get_variable("w", [3], None, first, layer_arguments.l2_regularizer(0.5))
    assert values(
        layer_arguments.l1_regularizer(0.5)(weights),
        layer_arguments.l2_regularizer(0.5)(weights),
        layer_arguments.l1_l2_regularizer(0.5, 0.5)(weights),
        layer_arguments.apply_regularization(
            layer_arguments.l2_regularizer(1.0), [weights, weights]
        ),
        *tf.losses.get_regularization_losses()[:1],
    ) == [3.0, 3.5, 6.5, 14.0, 3.0]
    assert layer_arguments.l2_regularizer(0.0)(weights) is None
    with pytest.raises(ValueError, match="less than 0"):
        layer_arguments.l2_regularizer(-1.0)


def test_layers_have_the_values_and_the_names_of_theirs(values):
    image = tf.reshape(tf.range(16, dtype=tf.float32), [1, 4, 4, 1])
    twos = tf.constant_initializer(2.0)
    row = tf.constant([[1.0, 2.0]])
    flat, pooled, mean, convolved, grown, dense, linear, kept, hot = values(
        layers.flatten(tf.placeholder_with_default(image, [None, 4, 4, 1])),
        layers.max_pool2d(image, 2),
        layers.avg_pool2d(image, [2, 2], stride=2),
        layers.conv2d(image, 1, 2, 2, "VALID", weights_initializer=twos),
        layers.conv2d_transpose(image, 1, 2, 2, weights_initializer=twos),
        layers.fully_connected(row, 1, weights_initializer=twos, biases_initializer=twos),
        layers.linear(-row, 1, weights_initializer=twos, scope="output"),
        layers.dropout(row, 0.5, is_training=False),
        layers.one_hot_encoding([2, 0], 3),
    )
    assert flat.tolist() == [list(range(16))]
    assert pooled.ravel().tolist() == [5, 7, 13, 15]
    assert mean.ravel().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert convolved.ravel().tolist() == [20, 36, 84, 100]
    assert (grown.shape, grown[0, 7, 7, 0]) == ((1, 8, 8, 1), 30)
    assert (dense, linear) == (8, -6)
    assert kept.tolist() == [[1, 2]]
    assert hot.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert [variable.op.name for variable in tf.trainable_variables()] == [
        f"{layer}/{part}"
        for layer in ("Conv", "Conv2d_transpose", "fully_connected", "output")
        for part in ("weights", "biases")
    ]


@pytest.mark.parametrize("layer", ["fully_connected", "conv2d", "conv2d_transpose"])
def test_an_argument_that_a_layer_lacks_is_named_with_the_layer(layer):
    with pytest.raises(TypeError) as raised:
        getattr(layers, layer)(tf.zeros([1, 4, 4, 1]), 1, kernel_size=2, wieghts=2)
    assert str(raised.value).startswith(f"{layer}() got an unexpected keyword argument '")


def test_a_scope_gives_layers_their_arguments(values):
    ones = tf.ones([1, 2])
    with layer_arguments.arg_scope(
        [layers.fully_connected], weights_initializer=tf.ones_initializer(), activation_fn=None
    ) as scope:
        inside = layers.fully_connected(-ones, 1)
        with layer_arguments.arg_scope([layers.fully_connected], activation_fn=tf.nn.relu):
            inner = layers.fully_connected(-ones, 1)
        given = layers.fully_connected(ones, 1, activation_fn=tf.square)
    with layer_arguments.arg_scope(scope):
        again = layers.fully_connected(-ones, 1)
    assert values(inside, inner, given, again) == [-2, 0, 4, -2]
    with (
        pytest.raises(ValueError, match="no arguments"),
        layer_arguments.arg_scope(scope, scope="x"),
    ):
        pass


def test_losses_of_sequences_are_averaged_by_weight(values):
    even, sure = [0.0, 0.0, 0.0, 0.0], [100.0, 0.0, 0.0, 0.0]  # ln 4, and 0
    logits, targets = tf.constant([[even, sure], [even, even]]), tf.zeros([2, 2], tf.int32)
    weights = tf.constant([[1.0, 1.0], [1.0, 0.0]])
    steps = tf.unstack(logits, axis=1), tf.unstack(targets, axis=1), tf.unstack(weights, axis=1)
    whole, by_row, by_step, each, rows, total = values(
        contrib.sequence_loss(logits, targets, weights),
        contrib.sequence_loss(logits, targets, weights, average_across_batch=False),
        contrib.sequence_loss(logits, targets, weights, average_across_timesteps=False),
        contrib.sequence_loss(logits, targets, weights, False, False),
        legacy_seq2seq.sequence_loss_by_example(*steps),
        legacy_seq2seq.sequence_loss(*steps),
    )
    four = math.log(4)
    assert whole == pytest.approx(2 * four / 3)
    assert by_row.tolist() == pytest.approx([four / 2, four])
    assert by_step.tolist() == pytest.approx([four, 0])
    assert each.ravel().tolist() == pytest.approx([four, 0, four, 0])
    assert rows.tolist() == pytest.approx([four / 2, four])
    assert total == pytest.approx(1.5 * four / 2)


def test_arguments_may_come_in_the_order_of_before_1_0(values, noted):
    row, ones = tf.constant([[1.0, 2.0]]), tf.ones([1, 2])
    logits, labels = tf.constant([[0.0, 0.0]]), tf.constant([[1.0, 0.0]])
    now = values(
        old_names.concat([row, ones], 0),
        *old_names.split(row, 2, 1),
        old_names.softmax_cross_entropy_with_logits(labels=labels, logits=logits),
    )
    assert noted() == []
    then = values(
        old_names.concat(0, [row, ones]),
        *old_names.split(1, 2, row),
        old_names.softmax_cross_entropy_with_logits(logits, labels),
    )
    assert [part.tolist() for part in now] == [part.tolist() for part in then]
    assert [part.tolist() for part in then[:3]] == [[[1, 2], [1, 1]], [[1]], [[2]]]
    assert noted() == [
        *("concat(axis, values)", "split(axis, number, value)"),
        "nn.softmax_cross_entropy_with_logits(logits, labels)",
    ]


def test_numpy_has_what_it_had(noted):
    old = SimpleNamespace(__getattr__=lambda name: f"its {name}", reshape=np.reshape)
    v1.give_numpy_its_names(old)
    assert old.reshape([1, 2], (2, 1)).tolist() == [[1], [2]]
    assert old.__getattr__("int8") == "its int8"
    assert noted() == []
    assert old.reshape([1, 2], newshape=(2, 1)).tolist() == [[1], [2]]
    assert old.reshape(newshape=(2, 1), a=[1, 2]).tolist() == [[1], [2]]
    assert old.__getattr__("int") is int
    assert noted() == ["numpy.reshape(newshape)", "numpy.int"]


def test_settings_keep_their_kinds():
    settings = contrib.HParams(rate=0.1, layers=2, residual=False, name="x")
    settings.parse("layers=3,residual=true,name=y")
    settings.set_hparam("rate", 1)
    assert settings.values() == {"rate": 1.0, "layers": 3, "residual": True, "name": "y"}
    assert "rate" in settings
    with pytest.raises(ValueError, match="depth=1"):
        settings.parse("depth=1")


MODEL = """
import tensorflow as tf
from tensorflow.contrib import layers

def logits(images):
    hidden = layers.fully_connected(images, 8)
    hidden = layers.batch_norm(hidden, decay=0.9, updates_collections=None, scope="bn")
    cell = tf.contrib.rnn.OutputProjectionWrapper(tf.contrib.rnn.GRUCell(4), 6)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(hidden, [-1, 2, 4]), dtype=tf.float32)
    return tf.layers.dense(layers.flatten(outputs), 10)

def normalized():
    # Of mean 2 and variance 1, in training: the numbers, and the two moving averages
    rows = layers.batch_norm(tf.constant([[1.0], [3.0]]), 0.9, updates_collections=None)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (first, second) = session.run(rows)
        mean, variance = session.run(tf.global_variables("BatchNorm/moving"))
        return [*first, *second, *mean, *variance]
"""
TRAINING = """
import tensorflow as old
from tensorflow.examples.tutorials.mnist import input_data
import model

FLAGS = old.app.flags.FLAGS
old.app.flags.DEFINE_integer("steps", 5, "")

def main(_):
    data = input_data.read_data_sets("MNIST_data", one_hot=True)
    x = old.placeholder(old.float32, [None, 784])
    y = old.placeholder(old.float32, [None, 10])
    rows = old.nn.softmax_cross_entropy_with_logits(labels=y, logits=model.logits(x))
    loss = old.mul(old.reduce_mean(rows), 1.0, name="loss")
    train = old.train.GradientDescentOptimizer(0.1).minimize(loss)
    old.scalar_summary("loss", loss)
    summaries = old.merge_all_summaries()
    with old.Session() as session:
        session.run(old.initialize_all_variables())
        writer = old.train.SummaryWriter("logs", session.graph)
        for step in range(FLAGS.steps):
            images, labels = data.train.next_batch(50)
            text, _ = session.run([summaries, train], {x: images, y: labels})
            writer.add_summary(text, step)
    print(*("%.2f" % value for value in model.normalized()))
    print("steps:", FLAGS.steps, hasattr(old, "estimator"), hasattr(old.contrib, "crf"))
    old.contrib.crf

if __name__ == "__main__":
    old.app.run()
"""
ENDED = "AttributeError: tf.contrib.crf ended with TensorFlow 1, and nothing stands in for it.\n"


@pytest.mark.slow
def test_a_program_of_version_1_runs_unchanged(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "model.py").write_text(MODEL)
    usual = {name: text for name, text in os.environ.items() if "TF_" not in name[:3]}
    environment = {**usual, "PYTHONPATH": os.getcwd()}
    environment.pop("TFLAB_DATA_DIR", None)
    command = [sys.executable, "-m", "tflab.run", "--save", "kept.json", "train.py", "--steps=7"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    # Of the moving averages 0.9 are what they were, 0 and 1, and 0.1 those of the batch
    assert done.stdout == "-1.00 1.00 0.20 1.00\nsteps: 7 False False\n"
    assert ENDED in done.stderr
    stood_in = [
        "input_data (digits, not MNIST)",
        *("contrib.layers.fully_connected", "contrib.layers.batch_norm"),
        *("contrib.rnn.OutputProjectionWrapper", "contrib.rnn.GRUCell"),
        *(
            "layers (tf-keras)",
            "contrib.layers.flatten",
            "mul",
            "scalar_summary",
            "merge_all_summaries",
        ),
        "train.SummaryWriter",
    ]
    sentence = " ".join(done.stderr.split())
    assert f"Replacements that the program used: {', '.join(stood_in)}." in sentence
    assert (
        "It ran with TensorFlow 1 (--v1), because only that has "
        "tf.examples.tutorials.mnist.input_data (train.py:3)." in sentence
    )
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert (kept["exit_status"], kept["stood_in"]) == (1, stood_in)
    training = max(kept["groups"], key=lambda group: group["calls"])
    assert (training["calls"], len(kept["notes"])) == (7, 1)
    made = {os.path.basename(line["file"]) for line in kept["lines"] if line["nodes"]}
    assert made == {"train.py", "model.py"}
    assert sum(kept["fates"].values()) > 50
    assert [*(tmp_path / "logs").iterdir()]
