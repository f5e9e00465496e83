"""Devices: every executed node is on one device, for a reason, and has a kernel there."""

import inspect
from collections import Counter
from dataclasses import replace
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
from tflab.records.graph import Node, Source
from tflab.records.options import Model, Options
from tflab.records.placed import Kernel
from tflab.runtime import devices, private

pytestmark = pytest.mark.tensorflow

CPU0, CPU1 = (f"/job:localhost/replica:0/task:0/device:CPU:{index}" for index in range(2))
FLOAT, INT32, HALF = 1, 3, 19  # of tensorflow/core/framework/types.proto


def model_of(build):
    return lambda: Model(output=build(), feeds={}, data=None)


def reasons(stage):
    return {one.name: (one.device, one.reason) for one in stage.assignments}


# Reasons


def on_two_devices():
    with tf.device("/device:CPU:1"):  # here
        a = tf.random.uniform([2], name="a")
    with tf1.colocate_with(a.op):
        b = tf.random.normal([2], name="b")
    variable = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)
    return tf.add(a + b, variable, name="out")


def on_a_gpu():
    with tf.device("/device:GPU:0"):  # here
        return tf.random.uniform([2], name="a")


def in_two_scopes():
    with tf.device("/device:CPU:0"):  # noqa: SIM117  (each on a line of its own)
        with tf.device("/device:CPU:1"):  # here
            return tf.random.uniform([2], name="a")


def words():
    return tf.strings.join([tf.as_string(tf.random.uniform([2])), "!"], name="join")


@pytest.mark.parametrize(
    ("build", "options", "expected"),
    [
        (on_two_devices, Options(devices=2), {
            "a/RandomUniform": (CPU1, "requested by {here}"),
            "b/RandomStandardNormal": (CPU1, "colocated with a/RandomUniform"),
            "add": (CPU0, "requested by --devices"),
            "_retval_out_0_0": (CPU0, "created there by the runtime (fetch)"),
            "a/RandomUniform/_0": (CPU1, "created there by the runtime (transfer)"),
        }),
        (in_two_scopes, Options(devices=2), {"a/RandomUniform": (CPU1, "requested by {here}")}),
        (on_a_gpu, Options(soft_placement=True), {
            "a/RandomUniform": (CPU0, "requested by {here}: GPU:0, which soft placement replaced"),
        }),
        (words, Options(), {"join": (CPU0, "only the CPU has a kernel")}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)  # fmt: skip
def test_every_node_is_on_its_device_for_a_reason(build, options, expected):
    lines, first = inspect.getsourcelines(build)
    place = next((at for at, text in enumerate(lines) if text.endswith("# here\n")), 0)
    found = reasons(models.placed(model_of(build), options))
    assert {name: found[name] for name in expected} == {
        name: (device, reason.format(here=f"test_devices.py:{first + place}"))
        for name, (device, reason) in expected.items()
    }


def test_a_graph_from_a_file_requests_its_devices_at_its_lines():
    with tf.Graph().as_default() as graph, tf.device("/device:CPU:1"):
        tf.constant(1.0, name="one")
    with tf.Graph().as_default() as read:
        tf.import_graph_def(graph.as_graph_def(), name="")
    one = Node("one", "Const", device=CPU1, source=Source("/programs/train.py", 12, "build", ""))
    reasons = [
        devices.reason_of(read.get_operation_by_name("one"), node)
        for node in (one, replace(one, source=None))
    ]
    assert reasons == ["requested in the file (train.py:12)", "requested in the file"]


def test_two_devices_over_which_nobody_split_the_model_are_left_to_the_runtime():
    whole = models.differentiate(model_of(on_two_devices))
    found = reasons(placement.place(whole, Options(devices=2)))
    assert found["out/ReadVariableOp"] == (CPU0, "where its resource v is")
    assert found["add"] == (CPU0, "the default device")


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
    assert min(kernel.registrations for kernel in stage.kernels) >= 1
    assigned = Counter((assignment.name, assignment.device) for assignment in stage.assignments)
    assert assigned == Counter((node.name, node.device) for node in stage.nodes)
    assert all(assignment.reason for assignment in stage.assignments)


def test_the_environment_says_what_another_tensorflow_does_not_tell(monkeypatch):
    def moved():
        raise TflabError("moved")

    monkeypatch.setattr(private, "onednn_is_on", moved)
    assert dict(devices.inspected())["oneDNN"] == "not known"


def test_a_request_may_leave_parts_of_the_name_open():
    on_first = ("/device:CPU:*", "/device:CPU:0", "/cpu:0", "/job:localhost", CPU0)
    on_second = ("/device:CPU:*", "/device:CPU:1", "/job:localhost", CPU1)
    for pattern in (*on_first, *on_second, "/device:GPU:0"):
        assert devices.matches(pattern, CPU0) == (pattern in on_first)
        assert devices.matches(pattern, CPU1) == (pattern in on_second)


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
    monkeypatch.setattr(private, "registered_kernels", lambda op: REGISTERED.get(op, ()))


def test_of_the_kernels_that_fit_the_one_of_the_highest_priority_is_chosen(registered):
    said = []
    for name, given in GIVEN.items():
        (chosen,) = devices.chosen_kernels([SimpleNamespace(node=[given])], tf.Graph())
        said.append(f"{name}: {chosen.registrations} fit; {chosen.constraints or 'none'}")
        said.append(f"  on a GPU: {chosen.on_gpu}")
    approve("kernels-chosen.txt", "\n".join(said))


def test_what_a_gpu_would_run_is_of_the_type_that_the_user_wrote(registered):
    written = SimpleNamespace(name="n", node_def=node("Made", T=HALF))
    graph = SimpleNamespace(get_operations=lambda: [written])
    (chosen,) = devices.chosen_kernels([SimpleNamespace(node=[node("MadeOfText")])], graph)
    assert chosen == Kernel("n", "MadeOfText", CPU0, "", 1, "CPU", "GPU, T in float16, priority 1")
