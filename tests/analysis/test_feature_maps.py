"""Feature maps: what of a graph can be drawn is told by structure and shape, not by names."""

from dataclasses import replace

import numpy as np
import pytest

from tflab.analysis import values
from tflab.records.graph import BACKWARD, FORWARD, GradientNode, Node, Tensor

BATCH = 4


def node(name, op, *inputs, shape=(None, 5, 5, 2), outputs=1):
    phase = BACKWARD if name.startswith("g/") else FORWARD
    return Node(name, op, inputs, outputs=(Tensor("float32", shape),) * outputs, phase=phase)


NODES = (
    node("x", "Placeholder", shape=(None, 5, 5, 1)),
    node("classes", "Placeholder", shape=(None,)),
    node("w", "VarHandleOp", shape=()),
    node("w/Initializer", "TruncatedNormal", shape=(4, 1, 1, 2)),  # as large as the batch
    node("a/Read", "ReadVariableOp", "w", shape=(4, 1, 1, 2)),
    node("a", "Conv2D", "x", "a/Read"),
    node("b", "BiasAdd", "a", "bias"),
    node("c", "Relu", "b"),
    node("pool", "Mean", "c", shape=(None, 2)),
    node("loss", "SparseSoftmaxCrossEntropyWithLogits", "pool", "classes", shape=(None,)),
    node("g/loss", "Mul", "loss:1", "one", shape=(None, 2)),
    node("g/c", "Tile", "g/loss"),
    node("g/b", "ReluGrad", "g/c", "c"),
    node("g/w", "Conv2DBackpropFilter", "x", "g/b", shape=(4, 1, 1, 2)),
    node("g/both", "Split", "g/b", outputs=2),
)
GRADIENTS = tuple(
    GradientNode(name, "", towards, complete=True, used=True, bookkeeping=None)
    for name, towards in (
        *(("g/loss", "dL/d(pool)"), ("g/c", "dL/dc"), ("g/b", "dL/db"), ("g/w", "dL/dw")),
        ("g/both", "dL/dc"),
    )
)
FED = {"x:0": np.arange(BATCH * 25.0).reshape(BATCH, 5, 5, 1), "classes:0": np.array([1, 0, 0, 1])}


CHANNELS = np.arange(BATCH * 50.0, dtype=np.float32).reshape(BATCH, 5, 5, 2)
KERNEL = np.arange(8.0).reshape(4, 1, 1, 2)
ARRAYS = {
    "c": CHANNELS,
    "g/c": -CHANNELS,
    "g/w": np.ones((4, 1, 1, 2)),
    "w/Initializer": np.zeros((4, 1, 1, 2)),
    "pool": np.log(np.array([[1.0, 3.0]] * BATCH)),
    "g/loss": np.array([[0.25, -0.25]] * BATCH),
}


def drawn(arrays=ARRAYS, nodes=NODES, fed=FED, before=None):
    before = {"w": KERNEL} if before is None else before
    return values.maps(nodes, GRADIENTS, fed, before, arrays.get)


def names(maps):
    return [item.name for item in maps.maps]


def test_maps_stand_in_the_order_of_the_program_with_their_gradients():
    """What depends on an image is a layer, and what a convolution takes is a kernel."""
    maps = drawn()
    assert [(item.name, item.kind, item.shape) for item in maps.maps] == [
        ("x", "image", (5, 5, 1)),
        ("w", "kernel", (4, 1, 1, 2)),
        ("c", "layer", (5, 5, 2)),
    ]
    image, kernel, layer = maps.maps
    assert image.array.ravel().tolist() == [*range(25)] and image.gradient is None
    assert kernel.array.tolist() == KERNEL.tolist() and (kernel.gradient == 1).all()
    assert (layer.array == CHANNELS[0]).all() and (layer.gradient == -CHANNELS[0]).all()
    assert maps.left_out == 0


def test_of_an_array_the_first_row_and_the_first_channels_are_kept():
    batch = np.arange(2 * 3 * 3 * 20).reshape(2, 3, 3, 20)
    assert values.first_row(batch).tolist() == batch[0, :, :, :16].tolist()
    kernel = np.arange(3 * 3 * 10 * 20).reshape(3, 3, 10, 20)
    assert values.cut(kernel).tolist() == kernel[:, :, :8, :16].tolist()
    assert values.first_row(np.arange(2 * 20.0).reshape(2, 20)).tolist() == [*range(20)]


def test_probabilities_are_the_softmax_of_what_goes_into_the_cross_entropy():
    record = drawn().probabilities
    assert (record.name, record.computed, record.label) == ("pool", False, 1)
    assert record.array == pytest.approx([0.25, 0.75])
    assert record.gradient.tolist() == [0.25, -0.25]


def test_a_softmax_of_the_program_itself_is_taken_as_it_is():
    nodes = (*NODES, node("soft", "Softmax", "pool", shape=(None, 2)))
    record = drawn({"soft": np.full((BATCH, 2), 0.5)}, nodes).probabilities
    assert (record.name, record.computed) == ("soft", True)
    assert record.array.tolist() == [0.5, 0.5]


def test_what_cannot_be_drawn_is_left_out():
    assert names(drawn(ARRAYS | {"c": np.zeros((3, 5, 5, 2))})) == ["x", "w"]  # another batch
    assert drawn(ARRAYS | {"g/c": np.zeros((4, 50))}).maps[2].gradient is None
    assert names(drawn(fed=dict(reversed(FED.items())))) == ["x", "w", "c"]
    assert drawn(fed={"classes:0": FED["classes:0"]}) is None
    assert drawn(ARRAYS | {"pool": np.zeros((BATCH, 21))}).probabilities is None
    for shape in ((BATCH, 257, 5, 1), (0, 5, 5, 1)):
        assert names(drawn(fed=FED | {"x:0": np.zeros(shape)})) in (["w", "c"], ["w"])
    large = drawn(ARRAYS | {"c": np.zeros((BATCH, 257, 5, 2))})
    assert (names(large), large.left_out) == (["x", "w"], 1)
    many_channels = drawn(ARRAYS | {"c": np.zeros((BATCH, 5, 5, 300))})
    assert (names(many_channels), many_channels.left_out) == (["x", "w", "c"], 0)


def test_of_many_layers_the_last_of_each_shape_and_of_many_kernels_the_first_are_drawn():
    layers = [f"layer{number:02}" for number in range(13)]
    nodes = [*NODES[:5], *(node(name, "Conv2D", "x", "a/Read") for name in layers)]
    nodes += [node(f"v{n}", "VarHandleOp", shape=()) for n in range(4)]
    nodes += [node(f"conv{n}", "Conv2D", "x", f"v{n}", shape=(None, 9)) for n in range(4)]
    nodes = [
        replace(item, outputs=(Tensor("float32", None),)) if item.name == "layer04" else item
        for item in nodes
    ]
    arrays = dict.fromkeys(layers, CHANNELS) | {"layer04": CHANNELS[..., :1]}
    before = {name: np.zeros((1, 1, 1, 1)) for name in ("w", "v0", "v1", "v2", "v3")}
    maps = drawn(arrays, nodes, before=before)
    assert names(maps) == ["x", "w", "layer04", "layer12"]
    assert maps.left_out == 11 + 4


def test_a_kernel_is_found_behind_any_number_of_reads():
    def chosen(*between):
        return [*values.kernels_of([*NODES[:3], *between, node("k", "Conv2D", "x", "end")])]

    read = node("read", "ReadVariableOp", "w")
    assert chosen(node("end", "ReadVariableOp", "w")) == ["w"]
    assert chosen(read, node("end", "Identity", "read")) == ["w"]
    assert chosen(node("end", "Identity")) == []  # of nothing
    assert chosen(node("end", "Identity", "elsewhere")) == []
    assert chosen(read, node("end", "Exp", "read")) == []  # is no variable
    assert chosen() == []
