"""Row labels: the layer of a node, with the calls and scopes around it."""

from functools import partial

import pytest

from tflab.analysis import row_labels
from tflab.records.placed import Fate


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("conv1/Relu", "conv1"),
        ("conv1/Conv2D/ReadVariableOp", "conv1"),
        ("conv1/kernel", "conv1"),
        ("mul", "mul"),
        ("y/Read/ReadVariableOp", "y"),
        ("gradients/conv1/Relu_grad/ReluGrad", "gradients/conv1"),
        ("gradients/pool1/MaxPool_grad/MaxPoolGrad", "gradients/pool1"),
        ("gradients/mul_grad/Sum", "gradients/mul_grad"),
        ("gradients/Fill", "gradients"),
        ("gradients", "gradients"),
        ("gradients_1/conv1/Relu_grad/ReluGrad", "gradients_1/conv1"),
        ("tower/gradients/conv1/Relu_grad/ReluGrad", "tower/gradients/conv1"),
        ("gradients_of_mine/a/b", "gradients_of_mine"),
        ("train/update_conv1/kernel/ResourceApplyGradientDescent", "train"),
        ("train", "train"),
        ("group1/block2/conv1/Conv2D", "group1/block2/conv1"),
        ("group1/block2/conv1/Conv2D/ReadVariableOp", "group1/block2/conv1"),
        ("gradients/group1/block2/conv1/Conv2D_grad/Shape", "gradients/group1/block2/conv1"),
        ("group1/unknown/Relu", "group1"),
        ("StatefulPartitionedCall_1/StatefulPartitionedCall/conv1/Relu", "conv1"),
        ("PartitionedCall/group1/block2/conv1/Conv2D", "group1/block2/conv1"),
        ("StatefulPartitionedCall_1/StatefulPartitionedCall/Identity", "StatefulPartitionedCall_1"),
        ("Func/StatefulPartitionedCall_1/PartitionedCall/input/_5", "StatefulPartitionedCall_1"),
        ("Func/conv1/output_control_node/_2", "conv1"),
        ("Func/of_mine/Relu", "Func"),
    ],
)
def test_the_layer_of_a_node(name, layer):
    homes = {"", "conv1", "pool1", "y", "train", "gradients", "group1/block2/conv1"}
    assert row_labels.layer(name, homes) == layer


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("sequential_1/first_1/MatMul", "first"),
        ("training/sequential_1/first_1/MatMul/ReadVariableOp", "first"),
        ("gradients/training/sequential_1/first_1/MatMul_grad/MatMul", "gradients/first"),
        ("sequential_1/Cast", "sequential"),
        ("sequential_1/first_12/MatMul", "sequential"),
        ("first/kernel", "first"),
        ("loss/mean", "loss"),
    ],
)
def test_a_layer_is_called_by_its_own_name_where_that_is_known(name, layer):
    homes = {"sequential_1", "sequential_1/first_1", "first", "loss"}
    layers = {"sequential_1": "sequential", "sequential_1/first_1": "first"}
    layers |= {f"training/{scope}": layer for scope, layer in layers.items()}
    assert row_labels.layer(name, homes, layers) == layer


def test_the_name_of_a_node_directly_in_calls_keeps_the_outermost_one():
    inner = "StatefulPartitionedCall/PartitionedCall/x"
    assert row_labels.without_calls(inner) == "StatefulPartitionedCall/x"


def test_a_path_is_cut_after_its_first_scope_with_nodes_of_its_own():
    assert row_labels.layer_of("a/b/c", {"a", "a/b"}) == "a"
    assert row_labels.layer_of("a/b/c", {"a/b", "a/b/c"}) == "a/b"


@pytest.mark.parametrize(
    ("fused", "joined"),
    [
        (
            [("a/x", "b/y"), ("c/x", "d/y")],
            dict.fromkeys("ab", "a + b") | dict.fromkeys("cd", "c + d"),
        ),
        ([("a/x", "b/y"), ("b/z", "c/y")], dict.fromkeys("abc", "a + b + c")),
        ([("a/x", "a/y")], {}),
        ([("n/m/a/x", "n/m/b/y")], dict.fromkeys(("n/m/a", "n/m/b"), "n/m/a + b")),
        ([("m/a/x", "n/b/y")], dict.fromkeys(("m/a", "n/b"), "m/a + n/b")),
    ],
)
def test_layers_are_joined_with_all_that_they_were_fused_with(fused, joined):
    ledger = []
    for part, into in fused:
        ledger += [Fate(part, "fused", "remapper", into), Fate(into, "executed", None, None)]
    homes = {fate.name.rpartition("/")[0] for fate in ledger}
    assert row_labels.joined_layers(ledger, partial(row_labels.layer, homes=homes)) == joined
