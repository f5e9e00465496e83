"""`python -m tflab.follow`, as a user runs it, and what it gathers."""

import re
from dataclasses import replace

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tests.commands import run_here
from tflab import lifecycle
from tflab.compare import sweep
from tflab.errors import RefusedError
from tflab.follow import __main__ as command
from tflab.follow import measurement
from tflab.records.options import Options

pytestmark = pytest.mark.tensorflow


def follow(*args: str):
    return run_here(command.main, *args)


@pytest.fixture(scope="module")
def histories(walked):
    stages = tuple(walked("lenet").values())
    return measurement.follow(stages, (1, 16), Options(steps=5))[0]


def test_a_convolution_is_followed_into_the_relu_that_it_was_fused_into(histories, walked):
    history = histories["conv1/Conv2D"]
    assert history.source.code.startswith("sums = tf.nn.conv2d(images, kernel")
    assert "gradients/conv1/Conv2D_grad/Conv2DBackpropFilter" in history.gradient_nodes
    fate = history.fate.fate, history.fate.by, history.carrier
    assert fate == ("fused", "remapper", "conv1/Relu")
    ran = {node.name: node.op for node in walked("lenet")["placement"].nodes}
    assert history.ran_as == history.kernel.op == ran["conv1/Relu"]
    assert [*history.times] == [1, 16]
    assert all(row.key == "conv1/Relu" and row.calls for row in history.times.values())
    assert len({size * row.calls for size, row in history.times.items()}) == 1  # the same rows
    update = "train/update_conv1/kernel/ResourceApplyGradientDescent"
    assert update in histories["conv1/kernel"].later_consumers
    later = histories["conv1/Relu"].later_consumers  # without those that its own function made
    assert later == ("gradients/pool1/MaxPool_grad/MaxPoolGrad",)


def test_every_node_of_the_ledger_has_a_history_and_every_executed_one_its_time(histories, walked):
    placement = walked("lenet")["placement"]
    assert {fate.name for fate in placement.ledger} <= histories.keys()
    assert all(histories[fate.name].fate == fate for fate in placement.ledger)
    timed = {name for name, history in histories.items() if history.times}
    traced = {run.name for run in walked("lenet")["execution"].runs} - {"_SOURCE"}
    assert traced <= timed


def in_pairs() -> None:
    """Rows are taken two by two, so that an odd number of them fails."""
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    tf.tanh(tf.reshape(x, [-1, 2, 4], name="pairs"), name="y")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("pairs") / "g.pb"
    return graphs.write(path, graphs.graph_def(in_pairs))


def test_a_batch_size_whose_step_fails_has_no_times(pairs, monkeypatch):
    """A step that fails, data that end, and a failure in the middle of the measurement."""
    stages = tuple(lifecycle.walk(pairs, Options(steps=1)))

    def timed(*sizes):
        y = measurement.follow(stages, sizes, Options())[0]["y"]
        return [size for size, row in y.times.items() if row.calls]

    assert timed(2, 3, 5000) == [2, 16]  # 3 fails, and there are 1,024 rows
    real = sweep.run

    def ending(*args):
        """The data end in the middle: the first batch size was measured."""
        batches, outcome = real(*args)
        return {2: batches[2]}, replace(outcome, failure="It ran dry.")

    def refusing(*args):
        raise RefusedError("Not now.")

    monkeypatch.setattr(sweep, "run", ending)
    assert timed(2, 4) == [2, 16]
    monkeypatch.setattr(sweep, "run", refusing)
    assert timed(2, 4) == [16]


def test_the_command_prints_one_history():
    text = follow("mul")
    assert text.returncode == 0, text.stderr
    assert text.stdout.lstrip().startswith("mul (Mul, toy.py:23): executed; median call: ")
    assert "x * y + z" in text.stdout
    assert "input mul/ReadVariableOp: 2 " in " ".join(text.stdout.split())
    assert re.findall(r"^ +(1|16|64) +\d", text.stdout, re.MULTILINE) == ["1", "16", "64"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            ("mull",),
            "There is no node 'mull' in the graph of toy (for another graph: --model). "
            "Did you mean 'mul'?",
        ),
        (
            ("mul", "--batch-sizes", "1"),
            "Unrecognized arguments: --batch-sizes 1. See `python -m tflab.follow --help`.",
        ),
    ],
)
def test_a_wrong_name_or_option_is_refused_with_the_right_one(line, said):
    refused = follow(*line)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"tflab: {said}\n"
