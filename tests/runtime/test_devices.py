"""Devices: every executed node is on one device, for a reason, and has a kernel there."""

import inspect
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.framework import attr_value_pb2, kernel_def_pb2, node_def_pb2

from tests import walks
from tests.examples import models
from tflab.errors import TflabError
from tflab.lifecycle import placement
from tflab.records.options import Model, Options
from tflab.records.placed import Assignment, Kernel
from tflab.runtime import devices

pytestmark = pytest.mark.tensorflow

CPU0, CPU1 = (f"/job:localhost/replica:0/task:0/device:CPU:{index}" for index in range(2))

FLOAT, INT32, STRING = 1, 3, 7  # of tensorflow/core/framework/types.proto
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"

every_model = pytest.mark.parametrize("name", walks.WHOLE)


@pytest.fixture(scope="module", autouse=True)
def no_code_of_small_graphs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "SMALL", 0)
        yield


def placed(build, **chosen):
    def model():
        return Model(output=build(), feeds={}, data=None)

    return models.placed(model, Options(**chosen))


def reasons(stage):
    return {
        assignment.name: (assignment.device, assignment.reason) for assignment in stage.assignments
    }


def line_of(function, text):
    """`test_devices.py:12`: where a text stands in a function."""
    lines, first = inspect.getsourcelines(function)
    (offset,) = (index for index, line in enumerate(lines) if text in line)
    return f"test_devices.py:{first + offset}"


# Models of a few nodes


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


def in_two_scopes():
    with tf.device("/device:CPU:0"):  # noqa: SIM117  (each on a line of its own)
        with tf.device("/device:CPU:1"):  # the inner one counts
            return tf.random.uniform([2], name="a")


# Reasons


def test_every_node_is_on_its_device_for_a_reason(walked):
    reason_of = reasons(placed(on_two_devices, devices=2))
    line = line_of(on_two_devices, 'tf.device("/device:CPU:1")')
    assert {name: reason_of[name] for name in PLACED} == {
        **{name: (device, reason.format(line)) for name, (device, reason) in PLACED.items()}
    }
    lenet = reasons(walked("lenet", 2)["placement"])
    device, reason = lenet["gradients/conv1/Conv2D_grad/Conv2DBackpropFilter"]
    assert (device, reason) == (lenet["conv1/Relu"][0], "colocated with conv1/Conv2D")


PLACED = {
    "a/RandomUniform": (CPU1, "requested by {}"),
    "b/RandomStandardNormal": (CPU1, "colocated with a/RandomUniform"),
    "add": (CPU0, "requested by --devices"),
    "_retval_out_0_0": (CPU0, "created there by the runtime (fetch)"),
    "a/RandomUniform/_0": (CPU1, "created there by the runtime (transfer)"),
}


def test_two_devices_over_which_nobody_split_the_model_are_left_to_the_runtime():
    def model():
        return Model(output=on_two_devices(), feeds={}, data=None)

    reason_of = reasons(placement.place(models.differentiate(model), Options(devices=2)))
    assert reason_of["out/ReadVariableOp"] == (CPU0, "where its resource v is")
    assert reason_of["add"] == (CPU0, "the default device")


def test_of_two_lines_that_ask_for_a_device_the_inner_one_counts():
    device, reason = reasons(placed(in_two_scopes, devices=2))["a/RandomUniform"]
    assert (device, reason) == (CPU1, f"requested by {line_of(in_two_scopes, 'inner one')}")


def test_a_node_that_only_the_cpu_can_do_is_there_for_that_reason():
    def words():
        return tf.strings.join([tf.as_string(tf.random.uniform([2])), "!"], name="join")

    assert reasons(placed(words))["join"] == (CPU0, "only the CPU has a kernel")


# A GPU that is not there


def test_soft_placement_replaces_a_gpu_and_says_so():
    line = line_of(on_a_gpu, "tf.device")
    assert reasons(placed(on_a_gpu, soft_placement=True))["a/RandomUniform"] == (
        CPU0,
        f"requested by {line}: GPU:0, which soft placement replaced",
    )


def test_without_soft_placement_a_gpu_that_is_not_there_ends_the_walk_with_node_and_device():
    with pytest.raises(TflabError) as error:
        placed(on_a_gpu)
    message = str(error.value)
    assert message.startswith("The runtime refused the step: ")
    assert "a/RandomUniform" in message and "/device:GPU:0" in message
    assert "\n" not in message and "[[" not in message and "{{" not in message


# Any model


@every_model
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


# Requests


@pytest.mark.parametrize(
    "pattern, device, fits",
    [
        ("/device:CPU:0", CPU0, True),
        ("/device:CPU:1", CPU0, False),
        ("/device:CPU:*", CPU1, True),
        ("/cpu:0", CPU0, True),
        ("/device:GPU:0", CPU0, False),
        ("/job:localhost", CPU1, True),
        (CPU1, CPU1, True),
    ],
)
def test_a_request_may_leave_parts_of_the_name_open(pattern, device, fits):
    assert devices.matches(pattern, device) == fits


def test_an_assignment_is_a_node_its_device_and_the_reason(walked):
    assert Assignment("add", CPU0, "the default device") in walked("toy")["placement"].assignments


def node(op, device=CPU, **types):
    attr = {key: attr_value_pb2.AttrValue(type=value) for key, value in types.items()}
    return node_def_pb2.NodeDef(name="n", op=op, device=device, attr=attr)


def fitting(op, device_type="CPU", **types):
    return [
        devices.describe(kernel)
        for kernel in devices.fitting_kernels(node(op, **types), device_type)
    ]


def of(stage):
    return {kernel.name: kernel for kernel in stage.kernels}


# Models


def test_the_kernels_of_the_toy_have_every_field(walked):
    kernels = of(walked("toy")["placement"])
    assert kernels["mul"] == Kernel(
        name="mul",
        op="Mul",
        device=CPU,
        types="T=float32",
        registrations=1,
        constraints="CPU, T in float32",
        on_gpu="GPU, T in float32",
    )
    train = kernels["train"]
    assert (train.op, train.types, train.constraints, train.on_gpu) == (
        *("NoOp", "", "any device", "any device"),
    )
    assert kernels["_arg_x_0_1"].on_gpu == "any device, T in float32"  # the runtime made it


def test_a_kernel_of_onednn_carries_its_label_and_the_gpus_is_that_of_the_type_as_written(walked):
    fused = {
        kernel.name: kernel
        for kernel in walked("lenet")["placement"].kernels
        if kernel.op.startswith("_MklNativeFused")
    }
    assert "conv1/Relu" in fused
    for kernel in fused.values():
        assert kernel.constraints == "CPU, T in float32, label MklNameChangeOp"
        assert kernel.on_gpu == "GPU, T in float32"


# Registrations


@pytest.mark.parametrize(
    "op, device_type, types, known",
    [
        ("Mul", "CPU", {"T": FLOAT}, ["CPU, T in float32"]),
        ("Mul", "CPU", {"T": STRING}, []),
        ("StringJoin", "CPU", {}, ["CPU"]),
        ("StringJoin", "GPU", {}, []),
        # Kernels for every device count where a device has none of its own
        ("Const", "GPU", {"dtype": FLOAT}, ["GPU, dtype in float32"]),
        ("Const", "GPU", {"dtype": INT32}, ["any device, dtype in int32"]),
        ("NoSuchOp", "CPU", {}, []),
    ],
)
def test_the_types_and_the_device_of_a_kernel_have_to_fit(op, device_type, types, known):
    assert fitting(op, device_type, **types) == known
    assert devices.gpu_choice(node("StringJoin")) is None


def test_a_constraint_on_a_type_that_the_node_does_not_have_does_not_count():
    assert len(fitting("Mul")) > 1


def test_the_label_of_a_node_has_to_be_that_of_the_kernel():
    labelled = node("_MklMatMul", T=FLOAT)
    assert devices.fitting_kernels(labelled, "CPU") == ()
    labelled.attr["_kernel"].s = b"MklNameChangeOp"
    assert [devices.describe(kernel) for kernel in devices.fitting_kernels(labelled, "CPU")] == [
        "CPU, T in float32, label MklNameChangeOp"
    ]


def test_the_kernel_of_the_highest_priority_is_chosen(monkeypatch):
    low, high = (
        kernel_def_pb2.KernelDef(op="Mul", device_type="GPU", priority=priority)
        for priority in (0, 7)
    )
    monkeypatch.setattr(devices, "registered", lambda op: (low, high))
    assert devices.gpu_choice(node("Mul")) == "GPU, priority 7"


@pytest.mark.parametrize(
    "device, kind", [(CPU, "CPU"), ("/device:GPU:1", "GPU"), ("CPU", "CPU"), ("", "")]
)
def test_the_type_of_a_device_stands_in_its_name(device, kind):
    assert devices.device_type(device) == kind
