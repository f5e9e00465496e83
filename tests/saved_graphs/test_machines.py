"""Graphs that were made for other machines, or for one batch size, run on this one."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tests.commands import in_one_process
from tests.saved_graphs.test_build import walk
from tflab.compare.comparison import SweepOptions, compare_batch_sizes
from tflab.errors import RefusedError
from tflab.lifecycle import captures
from tflab.records.options import Options
from tflab.saved_graphs import permissions

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """The cold step of a comparison needs no process of its own here."""
    in_one_process(monkeypatch)


def on_a_cluster():
    with tf1.device("/job:ps/task:1"):
        w = tf1.get_variable("w", [4, 3], use_resource=True)
    with tf1.device("/job:worker/replica:0/task:0/device:GPU:1"):
        x = tf1.placeholder(tf.float32, [None, 4], name="x")

        @tf.function
        def twice(value):
            with tf1.device("/job:worker/task:0/device:CPU:0"):
                return value * 2.0

        tf.identity(twice(tf.matmul(x, w)), name="out")


def test_devices_of_other_machines_are_those_of_this_one(tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(on_a_cluster))
    stages = walk(path, "execution")
    assert {node.device.rpartition("/")[2] for node in stages["placement"].nodes} == {
        "device:CPU:0"
    }
    (note,) = [text for text in stages["frontend"].notes if text.startswith("Soft placement")]
    assert "/job:worker/replica:0/task:0" in note and "/job:ps/task:1" in note
    assert note.endswith("and run on this machine instead.")


def test_only_the_machine_is_taken_out_of_the_name_of_a_device():
    names = {
        "": "",
        "/job:localhost/replica:0/task:0/device:GPU:0": "",
        "/device:CPU:1": "",
        "/job:ps/task:1": "/job:ps/task:1",
        "/job:localhost/task:3/device:CPU:0": "/job:localhost/task:3",
        "/job:worker/replica:0/task:0/device:GPU:1": "/job:worker/replica:0/task:0",
        "nonsense:": "'nonsense:'",
    }
    assert {name: permissions.machine(name) for name in names} == names
    assert permissions.local("/job:worker/replica:0/task:0/gpu:1") == "/device:GPU:1"
    assert permissions.local("/job:ps/task:1") == permissions.local("nonsense:") == ""


# Batch sizes


def of_two_rows():
    x = tf1.placeholder(tf.float32, [2, 4], name="x")
    keep = tf1.placeholder(tf.float32, [], name="keep")
    tf.nn.relu(x * keep, name="y")


def at_most_16():
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    keep = tf1.placeholder(tf.float32, [], name="keep")
    fits = tf.debugging.assert_less_equal(tf.shape(x)[0], 16, message="at most 16")
    with tf.control_dependencies([fits]):
        tf.identity(x * keep, name="y")


def test_a_graph_of_a_fixed_batch_size_says_so_and_is_measured_at_that_one(tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(of_two_rows))
    stages = walk(path, "execution")
    assert (
        "The graph has a fixed batch size: the first dimension of 'x' is 2, so each step has "
        "2 rows."
    ) in stages["frontend"].notes
    assert (stages["placement"].batch_size, stages["execution"].batch_size) == (2, 2)
    assert [c.batch_size for c in captures.take(stages["placement"], Options()).captured] == [2]
    compared = compare_batch_sizes(path, (1, 16, 64), SweepOptions(images=8))
    assert (compared.batch_sizes, compared.failure) == ((2,), None)
    assert compared.steps[2].images == 8


def test_a_graph_from_a_file_is_captured_at_the_batch_size_that_was_asked_for(tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(graphs.dense))
    taken = captures.take(walk(path)["placement"], Options())
    assert [steps.batch_size for steps in taken.captured] == [16]


def test_a_batch_size_that_is_refused_leaves_the_others_compared(tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(at_most_16))
    compared = compare_batch_sizes(path, (1, 16, 64), SweepOptions(images=70))
    assert compared.batch_sizes == (1, 16)
    assert compared.failure.startswith(
        "A batch of 64 is not compared. The runtime refused the step"
    )
    assert (compared.steps[1].images, compared.steps[16].images) == (70, 70)
    with pytest.raises(RefusedError, match="at most 16"):
        compare_batch_sizes(path, (32, 64), SweepOptions(images=64))


def exactly_16():
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    tf.identity(tf.reshape(x, [16, 4]), name="y")


def test_images_that_do_not_fill_the_last_batch_of_a_rigid_graph_are_left_out(tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(exactly_16))
    compared = compare_batch_sizes(path, (1, 16), SweepOptions(images=70))
    assert (compared.batch_sizes, compared.steps[16].images) == ((16,), 64)
