"""Row labels: the layer of a node, with the calls and scopes around it."""

from functools import partial

import pytest

from tests.approval import approve
from tflab.analysis import row_labels
from tflab.records.placed import Fate

HOMES = {"", "conv1", "pool1", "y", "train", "gradients", "group1/block2/conv1"}
NODES = """
conv1/Relu conv1/Conv2D/ReadVariableOp conv1/kernel mul y/Read/ReadVariableOp
gradients/conv1/Relu_grad/ReluGrad gradients/pool1/MaxPool_grad/MaxPoolGrad gradients/mul_grad/Sum
gradients/Fill gradients gradients_1/conv1/Relu_grad/ReluGrad
tower/gradients/conv1/Relu_grad/ReluGrad gradients_of_mine/a/b
train/update_conv1/kernel/ResourceApplyGradientDescent train
group1/block2/conv1/Conv2D group1/block2/conv1/Conv2D/ReadVariableOp
gradients/group1/block2/conv1/Conv2D_grad/Shape group1/unknown/Relu
StatefulPartitionedCall_1/StatefulPartitionedCall/conv1/Relu
PartitionedCall/group1/block2/conv1/Conv2D
StatefulPartitionedCall_1/StatefulPartitionedCall/Identity
Func/StatefulPartitionedCall_1/PartitionedCall/input/_5 Func/conv1/output_control_node/_2
Func/of_mine/Relu
"""
# Scopes of Keras: layers have names of their own
KERAS_HOMES = {"sequential_1", "sequential_1/first_1", "first", "loss"}
LAYERS = {"sequential_1": "sequential", "sequential_1/first_1": "first"}
LAYERS |= {f"training/{scope}": layer for scope, layer in LAYERS.items()}
KERAS_NODES = """
sequential_1/first_1/MatMul training/sequential_1/first_1/MatMul/ReadVariableOp
gradients/training/sequential_1/first_1/MatMul_grad/MatMul sequential_1/Cast
sequential_1/first_12/MatMul first/kernel loss/mean
"""


def test_the_layer_of_a_node():
    own = [f"{name} {row_labels.layer(name, HOMES, {})}" for name in NODES.split()]
    keras = [
        f"{name} {row_labels.layer(name, KERAS_HOMES, LAYERS)}" for name in KERAS_NODES.split()
    ]
    approve("row-labels.txt", "\n".join([*own, "", *keras]))


def test_the_name_of_a_node_directly_in_calls_keeps_the_outermost_one():
    inner = "StatefulPartitionedCall/PartitionedCall/x"
    assert row_labels.without_calls(inner) == "StatefulPartitionedCall/x"


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
    label = partial(row_labels.layer, homes=homes, layers={})
    assert row_labels.joined_layers(ledger, label) == joined
