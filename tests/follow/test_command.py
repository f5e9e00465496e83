"""`python -m tflab.follow`, as a user runs it, and what it gathers."""

import json
from subprocess import CompletedProcess

import pytest

from tests.commands import run_here
from tflab.follow import __main__ as command
from tflab.follow import measurement
from tflab.records.options import Options

pytestmark = pytest.mark.tensorflow


def follow(*args: str) -> CompletedProcess:
    return run_here(command.main, *args)


@pytest.fixture(scope="module")
def histories(walked):
    stages = tuple(walked("lenet").values())
    return measurement.follow(stages, (1, 16), Options(steps=5)).histories


def test_a_convolution_is_followed_into_the_relu_that_it_was_fused_into(histories, walked):
    history = histories["conv1/Conv2D"]
    assert history.source.code.startswith("sums = tf.nn.conv2d(images, kernel")
    assert "gradients/conv1/Conv2D_grad/Conv2DBackpropFilter" in history.gradient_nodes
    assert (history.fate.fate, history.fate.by, history.carrier) == (
        "fused",
        "remapper",
        "conv1/Relu",
    )
    ran = {node.name: node.op for node in walked("lenet")["placement"].nodes}
    assert history.ran_as == history.kernel.op == ran["conv1/Relu"]
    assert [*history.times] == [1, 16]
    assert all(row.key == "conv1/Relu" and row.calls for row in history.times.values())


def test_every_node_of_the_ledger_has_a_history_and_every_executed_one_its_time(histories, walked):
    placement = walked("lenet")["placement"]
    assert {fate.name for fate in placement.ledger} <= histories.keys()
    assert all(histories[fate.name].fate == fate for fate in placement.ledger)
    timed = {name for name, history in histories.items() if history.times}
    traced = {run.name for run in walked("lenet")["execution"].runs} - {"_SOURCE"}
    assert traced <= timed


def test_a_batch_size_that_the_data_do_not_fill_is_left_out(walked):
    stages = tuple(walked("toy").values())
    available = stages[0].program.dataset("train").size
    timed = measurement.measured(stages, (available + 1,), Options())
    assert list(timed.tables) == [stages[-1].batch_size]  # the steps of the walk itself
    assert (timed.path, timed.failed) == (stages[-1].critical_path, False)
    assert timed.untimed == {available + 1: f"The data (points of 3x + 2) have {available:,} rows."}


def test_the_command_prints_one_history_as_text_and_as_json():
    text = follow("mul", "--batch-sizes", "1")
    assert text.returncode == 0, text.stderr
    assert "The history of mul (Mul)" in text.stdout
    assert "x * y + z" in text.stdout
    assert "input mul/ReadVariableOp: 2\n" in text.stdout
    printed = json.loads(follow("mul", "--batch-sizes", "1", "--format", "json").stdout)
    assert (printed["model"], printed["life"]["name"]) == ("toy", "mul")
    assert printed["life"]["times"][0][0] == 1
    assert printed["life"]["times"][0][1]["calls"] > 0
    assert [value["tensor"] for value in printed["life"]["taken"]] == [
        "x:0",
        "mul/ReadVariableOp:0",
    ]
    assert printed["life"]["values"][0]["values"][0] == pytest.approx(0.0473, rel=1e-2)


def test_a_name_that_does_not_exist_is_refused_with_the_nearest_ones():
    refused = follow("mull")
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == (
        "tflab: There is no node 'mull' in the graph of toy (--model names another). "
        "Did you mean 'mul' or 'gradients/error_grad/mul_1'?\n"
    )
