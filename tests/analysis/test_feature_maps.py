"""Feature maps: what of a graph can be drawn is told by structure and shape, not by names."""

from dataclasses import replace

import numpy as np
import pytest

from tflab.analysis import feature_maps
from tflab.records.graph import Node, Tensor

BATCH = 4


def node(name, op, *inputs, shape=(None, 5, 5, 2), outputs=1):
    return Node(name, op, inputs, outputs=(Tensor("float32", shape),) * outputs)


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
BACKWARD = ("g/loss", "g/c", "g/b", "g/w", "g/both")
GRADIENTS = {
    "g/loss": "dL/d(pool)",
    "g/c": "dL/dc",
    "g/b": "dL/db",
    "g/w": "dL/dw",
    "g/both": "dL/dc",
}
FED = {
    "x:0": np.arange(BATCH * 25.0).reshape(BATCH, 5, 5, 1),
    "classes:0": np.array([1, 0, 0, 1]),
}


def plan():
    return feature_maps.plan(NODES, BACKWARD, GRADIENTS, FED)


def test_what_depends_on_an_image_is_a_layer_and_what_a_convolution_takes_is_a_kernel():
    assert plan().images == ("x",)
    assert plan().layers == ("a", "b", "c")
    assert plan().kernels == ("w",)
    assert (plan().scores, plan().probabilities) == (("pool",), ())


def test_gradients_are_known_by_what_they_are_the_gradient_of():
    assert plan().gradients == {
        "a": (),
        "b": ("g/b",),
        "c": ("g/c",),
        "w": ("g/w",),
        "pool": ("g/loss",),
    }
    assert plan().rows() == {"a", "b", "c", "pool", "g/b", "g/c", "g/loss"}
    assert plan().whole() == {"g/w"}


def test_of_an_array_the_first_row_and_the_first_channels_are_kept():
    batch = np.arange(2 * 3 * 3 * 20).reshape(2, 3, 3, 20)
    assert feature_maps.cut(batch, False).tolist() == batch[0, :, :, :16].tolist()
    kernel = np.arange(3 * 3 * 10 * 20).reshape(3, 3, 10, 20)
    assert feature_maps.cut(kernel, True).tolist() == kernel[:, :, :8, :16].tolist()
    scores = np.arange(2 * 20.0).reshape(2, 20)
    assert feature_maps.cut(scores, False).tolist() == [*range(20)]


ROW = np.arange(50.0, dtype=np.float32).reshape(5, 5, 2)
ARRAYS = {
    "c": ROW,
    "g/c": -ROW,
    "g/w": np.ones((4, 1, 1, 2)),
    "pool": np.log(np.array([1.0, 3.0])),
    "g/loss": np.array([0.25, -0.25]),
}
SHAPES = {
    "c": (4, 5, 5, 2),
    "g/c": (4, 5, 5, 2),
    "g/w": (4, 1, 1, 2),
    "pool": (4, 2),
    "g/loss": (4, 2),
}
BEFORE = {"w": np.arange(8.0).reshape(4, 1, 1, 2)}


def drawn(arrays=ARRAYS, shapes=SHAPES, drawable=None, fed=FED, before=BEFORE):
    return feature_maps.maps(drawable or plan(), arrays, shapes, fed, before)


def test_maps_stand_in_the_order_of_the_program_with_their_gradients():
    maps = drawn()
    assert [(item.name, item.kind, item.shape) for item in maps.maps] == [
        ("x", "image", (5, 5, 1)),
        ("w", "kernel", (4, 1, 1, 2)),
        ("c", "layer", (5, 5, 2)),
    ]
    image, kernel, layer = maps.maps
    assert image.array.ravel().tolist() == [*range(25)] and image.gradient is None
    assert kernel.array.tolist() == BEFORE["w"].tolist() and (kernel.gradient == 1).all()
    assert (layer.array == ROW).all() and (layer.gradient == -ROW).all()
    assert maps.left_out == 0


def test_probabilities_are_the_softmax_of_what_goes_into_the_cross_entropy():
    record = drawn().probabilities
    assert (record.name, record.computed, record.label) == ("pool", False, 1)
    assert record.array == pytest.approx([0.25, 0.75])
    assert record.gradient.tolist() == [0.25, -0.25]


def test_a_softmax_of_the_program_itself_is_taken_as_it_is():
    nodes = (*NODES, node("soft", "Softmax", "pool", shape=(None, 2)))
    own = feature_maps.plan(nodes, BACKWARD, GRADIENTS, FED)
    maps = drawn({"soft": np.array([0.5, 0.5])}, {"soft": (4, 2)}, own)
    assert (maps.probabilities.name, maps.probabilities.computed) == ("soft", True)
    assert maps.probabilities.array.tolist() == [0.5, 0.5]


def test_a_tensor_of_another_batch_is_not_drawn():
    of_another_batch = {**SHAPES, "c": (3, 5, 5, 2)}
    assert [item.name for item in drawn(shapes=of_another_batch).maps] == ["x", "w"]


def test_a_gradient_of_another_shape_is_none():
    assert drawn(shapes={**SHAPES, "g/c": (4, 50)}).maps[2].gradient is None


def test_a_step_without_images_has_no_maps():
    assert drawn(fed={"classes:0": FED["classes:0"]}) is None


def test_of_many_layers_the_last_of_each_shape_and_of_many_kernels_the_first_are_drawn():
    names = [f"layer{number:02}" for number in range(13)]
    nodes = [*NODES[:5], *(node(name, "Conv2D", "x", "a/Read") for name in names)]
    nodes += [node(f"v{n}", "VarHandleOp", shape=()) for n in range(4)]
    nodes += [node(f"conv{n}", "Conv2D", "x", f"v{n}", shape=(None, 9)) for n in range(4)]
    many = feature_maps.plan(nodes, (), {}, FED)
    shapes = dict.fromkeys(names, (4, 5, 5, 2)) | {"layer04": (4, 5, 5, 1)}
    nodes = [
        replace(item, outputs=(Tensor("float32", None),)) if item.name == "layer04" else item
        for item in nodes
    ]
    before = {name: np.zeros((1, 1, 1, 1)) for name in ("w", "v0", "v1", "v2", "v3")}
    maps = drawn(dict.fromkeys(names, ROW), shapes, many, before=before)
    assert [item.name for item in maps.maps] == ["x", "w", "layer04", "layer12"]
    assert maps.left_out == 11 + 4


def test_an_image_that_is_too_large_or_of_an_empty_batch_is_not_drawn():
    for shape in ((BATCH, 257, 5, 1), (0, 5, 5, 1)):
        maps = drawn(fed=FED | {"x:0": np.zeros(shape)}, shapes=dict.fromkeys(SHAPES, (9, 9)))
        assert [item.name for item in maps.maps] == ["w"]


def test_a_map_that_is_too_large_is_left_out():
    maps = drawn(shapes={**SHAPES, "c": (4, 5, 5, 300)})  # channels are cut
    assert ([item.name for item in maps.maps][-1], maps.left_out) == ("c", 0)
    maps = drawn(shapes={**SHAPES, "c": (4, 257, 5, 2)})
    assert ([item.name for item in maps.maps], maps.left_out) == (["x", "w"], 1)


def test_more_classes_than_can_be_read_are_not_drawn():
    assert drawn(shapes={**SHAPES, "pool": (4, 21)}).probabilities is None
