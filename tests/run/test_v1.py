"""--v1: TensorFlow 1's names, its tutorials' MNIST, and what is said of names that are gone."""

import importlib.util
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from tests.approval import approve
from tests.commands import run_python
from tflab.datasets import Dataset, mnist
from tflab.run import input_data, v1
from tflab.runtime.import_hook import Hook

pytestmark = pytest.mark.tensorflow


def numbered(rows):
    """Images whose pixels are all their number, and so is their label."""
    return input_data.DataSet(np.arange(rows)[:, np.newaxis], np.arange(rows))


def batches(data, count, size, **options):
    taken = [data.next_batch(size, **options) for _ in range(count)]
    assert all((images[:, 0] == labels).all() for images, labels in taken)
    return [label for _, labels in taken for label in labels]


def test_batches_continue_in_the_next_epoch_whose_order_numpys_seed_decides():
    data = numbered(5)
    assert batches(data, 2, 2, shuffle=False) == [0, 1, 2, 3]
    assert data.epochs_completed == 0
    assert batches(data, 2, 2, shuffle=False) == [4, 0, 1, 2]
    assert (data.epochs_completed, data.num_examples) == (1, 5)
    np.random.seed(7)
    seen = batches(numbered(5), 5, 2)
    np.random.seed(7)
    order, again = np.arange(5), np.arange(5)
    np.random.shuffle(order)
    np.random.shuffle(again)
    assert seen == [*order, *order[again]]


@pytest.fixture
def loads(monkeypatch):
    """The folders that MNIST is read from; 24 images for training and 3 for the test."""
    asked = []

    def load(split, folder, side):
        asked.append(folder)
        rows = 24 if split == "train" else 3
        images = np.arange(rows, dtype=np.float32).repeat(784).reshape(rows, 28, 28, 1) / 255
        labels = np.arange(rows, dtype=np.int32) % 10
        return Dataset("digits", split, {"images": images, "labels": labels}, "MNIST")

    monkeypatch.setattr(mnist, "load", load)
    monkeypatch.setattr(input_data, "notes", {})
    return asked


def test_the_training_set_is_divided(loads):
    data = input_data.read_data_sets("", one_hot=True)
    # One in twelve is for validation, because there are fewer images than in MNIST
    assert (len(data.validation.images), len(data.train.images)) == (2, 22)
    assert data.train.images[0, 0] == pytest.approx(2 / 255)
    assert data.train.labels[9].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert v1.notes() == ["input_data.read_data_sets returned digits."]
    with pytest.raises(TypeError, match="images are float32"):
        input_data.read_data_sets("", dtype=tf.uint8)
    with pytest.raises(ValueError, match="fake_data is not supported"):
        input_data.read_data_sets("", True)


def test_images_are_shares_of_one(loads):
    data = input_data.read_data_sets("", reshape=False)
    assert (data.test.images.shape, data.test.images.dtype) == ((3, 28, 28, 1), np.float32)
    assert data.test.images[:, 0, 0, 0] == pytest.approx([0, 1 / 255, 2 / 255])
    assert data.test.labels.tolist() == [0, 1, 2]


def test_the_programs_folder_is_read_if_it_has_the_files(loads, tmp_path):
    for name in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte", "train-labels-idx1-ubyte"):
        (tmp_path / name).touch()
    input_data.read_data_sets(str(tmp_path))
    assert loads == [None, str(tmp_path)]


HERE = f"which TensorFlow {tf.__version__} does not have"


FAILING = (
    *("tf.placeholder", "tf.losses.mean_squared_errors", "tf.losses.softmax_cross_entropy"),
    *("tf.contrib.slim", "tf.compat.v1.nn.rnn_cell.GRUCell", "from tensorflow.contrib import slim"),
    *("from tensorflow import Session", "import keras.contrib", "import nothing.of.this.name"),
    "from tensorflow.examples.tutorials.mnist import input_data",
    *("from os import nothing", "tf.constant(1).nothing", "None.nothing", "1 / 0"),
)


def test_the_name_that_a_program_failed_by_is_named():
    said = []
    for code in FAILING:
        with pytest.raises(Exception) as raised:
            exec(code, {"tf": tf})
        said.append(f"{code}\n  {v1.missing_name(raised.value)}")
    approve("missing-names.txt", "\n".join(said).replace(HERE, "which TensorFlow does not have"))


def test_with_v1_a_missing_name_is_only_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", tf.compat.v1)
    with pytest.raises(AttributeError) as raised:
        _ = tf.compat.v1.contrib
    assert v1.missing_name(raised.value) == f"The program uses tf.contrib, {HERE}."


def test_a_program_without_tensorflow_has_no_missing_name(monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorflow")
    error = AttributeError(name="placeholder", obj=SimpleNamespace(__name__="tensorflow"))
    assert v1.missing_name(error) is None


def test_results_are_written_while_the_program_imports_the_reader(monkeypatch):
    monkeypatch.setitem(sys.modules, "tflab.run.input_data", SimpleNamespace())
    monkeypatch.delattr(sys, "last_value", raising=False)
    assert v1.notes() == []


def test_a_program_may_ask_for_a_module_before_it_imports_it(tmp_path, monkeypatch):
    (tmp_path / "sought.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    executed = []
    hook = Hook("sought", lambda module, execute: executed.append(execute(module)))
    assert importlib.util.find_spec("sought")
    assert not executed
    importlib.import_module("sought")
    hook.remove()
    assert executed == [None]


MODEL = """
import tensorflow as tf

def logits(images):
    weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
    return tf.matmul(images, weights)
"""
TRAINING = """
import keras  # first, so it imports TensorFlow
import tensorflow as tf
import tensorflow.examples.tutorials.mnist.input_data as reader
from tensorflow.examples.tutorials.mnist import input_data
from tensorflow.python.ops import rnn_cell
from tensorflow.python.training import queue_runner
import model

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer("steps", 5, "")

def main(_):
    data = input_data.read_data_sets("MNIST_data", one_hot=True)
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.float32, [None, 10])
    loss = tf.losses.softmax_cross_entropy(y, model.logits(x))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    tf.summary.scalar("loss", loss)
    summaries = tf.summary.merge_all()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter("logs", session.graph)
        for step in range(FLAGS.steps):
            images, labels = data.train.next_batch(50)
            text, _ = session.run([summaries, train], {x: images, y: labels})
            writer.add_summary(text, step)
    print("steps:", FLAGS.steps, reader is input_data, tf.contrib)

if __name__ == "__main__":
    tf.app.run()
"""


@pytest.mark.slow
def test_a_program_of_version_1_runs_unchanged(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "model.py").write_text(MODEL)
    words = ("-m", "tflab.run", "--v1", "--save", "kept.json", "train.py", "--steps=7")
    done = run_python(tmp_path, *words, XDG_CACHE_HOME=str(tmp_path))
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept["exit_status"] == 1
    assert "has no attribute 'contrib'" in done.stderr
    assert kept["notes"] == [
        "input_data.read_data_sets returned digits, not MNIST.",
        f"The program uses tf.contrib, {HERE}.",
    ]
    assert kept["notes"][1] in " ".join(done.stderr.split())
    training = max(kept["groups"], key=lambda group: group["calls"])
    assert training["calls"] == 7
    made = {os.path.basename(line["file"]) for line in kept["lines"] if line["nodes"]}
    assert made == {"train.py", "model.py"}
    assert sum(kept["fates"].values()) > 20
    assert [*(tmp_path / "logs").iterdir()]
