"""Devices: every executed node is on one device, and has a kernel there."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.framework import attr_value_pb2, kernel_def_pb2, node_def_pb2

from tests import walks
from tests.approval import approve, refused
from tests.examples import models
from tflab.errors import TflabError
from tflab.lifecycle import placement
from tflab.records.options import Model, Options
from tflab.runtime import devices
from tflab.runtime.private import graphs

pytestmark = pytest.mark.tensorflow

CPU0, CPU1 = (f"/job:localhost/replica:0/task:0/device:CPU:{index}" for index in range(2))
FLOAT, INT32, HALF = 1, 3, 19  # of tensorflow/core/framework/types.proto


def model_of(build):
    return lambda: Model(output=build(), feeds={}, data=None)


def places(stage):
    return {node.name: node.device for node in stage.nodes}


def on_two_devices():
    with tf.device("/device:CPU:1"):
        a = tf.random.uniform([2], name="a")
    with tf1.colocate_with(a.op):
        b = tf.random.normal([2], name="b")
    variable = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)
    return tf.add(a + b, variable, name="out")


def on_a_gpu():
    with tf.device("/device:GPU:0"):
        return tf.random.uniform([2], name="a")


@pytest.mark.parametrize(
    ("build", "options", "expected"),
    [
        (on_two_devices, Options(devices=2), {
            "a/RandomUniform": CPU1,
            "b/RandomStandardNormal": CPU1,
            "add": CPU0,
            "_retval_out_0_0": CPU0,
            "a/RandomUniform/_0": CPU1,
        }),
        (on_a_gpu, Options(soft_placement=True), {"a/RandomUniform": CPU0}),
    ],
    ids=["two devices", "a GPU that is not there"],
)  # fmt: skip
def test_a_node_is_where_it_was_requested_if_that_is_there(build, options, expected):
    found = places(models.placed(model_of(build), options))
    assert {name: found[name] for name in expected} == expected


def test_two_devices_over_which_nobody_split_the_model_are_left_to_the_runtime():
    whole = models.differentiate(model_of(on_two_devices))
    found = places(placement.place(whole, Options(devices=2)))
    assert (found["out/ReadVariableOp"], found["add"]) == (CPU0, CPU0)


def test_without_soft_placement_a_gpu_that_is_not_there_ends_the_walk_with_node_and_device():
    message = refused(models.placed, model_of(on_a_gpu))
    assert message.startswith("RefusedError: The runtime refused the step: ")
    assert "a/RandomUniform" in message and "/device:GPU:0" in message
    assert "[[" not in message and "{{" not in message


@pytest.mark.parametrize("name", walks.WHOLE)
@pytest.mark.parametrize("count", [1, 2])
def test_every_executed_node_has_one_device_and_one_kernel_of_the_type_that_runs(
    name, count, walked
):
    stage = walked(name, count)["placement"]
    ran = Counter((node.name, node.op, node.device) for node in stage.nodes)
    assert Counter((kernel.name, kernel.op, kernel.device) for kernel in stage.kernels) == ran
    assert all(kernel.constraints for kernel in stage.kernels)


def test_the_environment_says_what_another_tensorflow_does_not_tell(monkeypatch):
    def moved():
        raise TflabError("moved")

    monkeypatch.setattr(graphs, "onednn_is_on", moved)
    assert dict(devices.inspected())["oneDNN"] == "not known"


# Kernels


def node(op, device=CPU0, label="", **types):
    attributes = {key: attr_value_pb2.AttrValue(type=value) for key, value in types.items()}
    if label:
        attributes["_kernel"] = attr_value_pb2.AttrValue(s=label.encode())
    return node_def_pb2.NodeDef(name="n", op=op, device=device, attr=attributes)


def kernel(device_type, *types, **more):
    constraint = kernel_def_pb2.KernelDef.AttrConstraint(name="T")
    constraint.allowed_values.list.type.extend(types)
    return kernel_def_pb2.KernelDef(
        op="Made", device_type=device_type, constraint=[constraint] * bool(types), **more
    )


REGISTERED = {
    "Made": (
        kernel("CPU", FLOAT),
        kernel("CPU", FLOAT, HALF, priority=7),
        kernel("CPU", FLOAT, priority=2),
        kernel("CPU", FLOAT, label="fast", priority=9),
        kernel("GPU", HALF, priority=1),
        kernel("GPU", HALF),
        kernel("DEFAULT", HALF, INT32),
    ),
    "MadeOfText": (kernel("CPU"),),
}
GIVEN = {
    "float32": node("Made", T=FLOAT),
    "float32, with a label": node("Made", T=FLOAT, label="fast"),
    # Kernels for every device count where a device has none of its own
    "float16": node("Made", T=HALF),
    "int32": node("Made", T=INT32),
    "float16 on a GPU": node("Made", "/device:GPU:1", T=HALF),
    # A constraint on a type that the node does not have does not count
    "without a type": node("Made"),
    "text": node("Made", T=7),
    "text, for which there is one": node("MadeOfText", T=7),
    "another op": node("NotMade"),
}


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(devices, "registered", lambda op: REGISTERED.get(op, ()))


def test_of_the_kernels_that_fit_the_one_of_the_highest_priority_is_chosen(registered):
    said = []
    for name, given in GIVEN.items():
        (chosen,) = devices.chosen_kernels([SimpleNamespace(node=[given])])
        said.append(f"{name}: {chosen.constraints or 'none'}")
    approve("kernels-chosen.txt", "\n".join(said))
