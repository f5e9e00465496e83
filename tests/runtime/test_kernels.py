"""Kernels: the registrations of the runtime that fit a node, its device and its types."""

from collections import Counter

import pytest
from tensorflow.core.framework import attr_value_pb2, kernel_def_pb2, node_def_pb2

from tests import walks
from tflab.records.placed import Kernel
from tflab.runtime import devices

pytestmark = pytest.mark.tensorflow

FLOAT, INT32, STRING = 1, 3, 7  # of tensorflow/core/framework/types.proto
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"

every_model = pytest.mark.parametrize("name", walks.WHOLE)


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


@every_model
@pytest.mark.parametrize("device_count", [1, 2])
def test_every_executed_node_has_one_kernel_of_the_type_that_runs(name, device_count, walked):
    stage = walked(name, device_count)["placement"]
    ran = Counter((node.name, node.op, node.device) for node in stage.nodes)
    assert Counter((kernel.name, kernel.op, kernel.device) for kernel in stage.kernels) == ran


@every_model
def test_for_every_node_of_a_model_a_registration_is_found(name, walked):
    assert [
        kernel for kernel in walked(name)["placement"].kernels if kernel.registrations < 1
    ] == []


def test_the_kernel_of_a_product_has_every_field(walked):
    assert of(walked("toy")["placement"])["mul"] == Kernel(
        name="mul",
        op="Mul",
        device=CPU,
        types="T=float32",
        registrations=1,
        constraints="CPU, T in float32",
        on_gpu="GPU, T in float32",
    )


def test_a_node_that_computes_nothing_has_one_kernel_for_all_devices(walked):
    train = of(walked("toy")["placement"])["train"]
    assert (train.op, train.types, train.constraints, train.on_gpu) == (
        *("NoOp", "", "any device", "any device"),
    )


def test_a_node_that_the_runtime_made_is_looked_up_for_a_gpu_as_well(walked):
    fed = of(walked("toy")["placement"])["_arg_x_0_1"]
    assert fed.on_gpu == "any device, T in float32"


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


def test_the_types_of_a_node_have_to_fit():
    assert fitting("Mul", T=FLOAT) == ["CPU, T in float32"]
    assert fitting("Mul", T=STRING) == []


def test_a_constraint_on_a_type_that_the_node_does_not_have_does_not_count():
    assert len(fitting("Mul")) > 1


def test_an_op_without_a_kernel_for_a_device_has_none_there():
    assert fitting("StringJoin", "CPU") == ["CPU"]
    assert fitting("StringJoin", "GPU") == []
    assert devices.gpu_choice(node("StringJoin")) is None


def test_the_kernels_for_every_device_count_only_where_a_device_has_none_of_its_own():
    assert fitting("Const", "GPU", dtype=FLOAT) == ["GPU, dtype in float32"]
    assert fitting("Const", "GPU", dtype=INT32) == ["any device, dtype in int32"]


def test_the_label_of_a_node_has_to_be_that_of_the_kernel():
    labelled = node("_MklMatMul", T=FLOAT)
    assert devices.fitting_kernels(labelled, "CPU") == ()
    labelled.attr["_kernel"].s = b"MklNameChangeOp"
    assert [devices.describe(kernel) for kernel in devices.fitting_kernels(labelled, "CPU")] == [
        "CPU, T in float32, label MklNameChangeOp"
    ]


def test_a_type_that_nobody_knows_has_no_kernels():
    assert devices.registered("NoSuchOp") == ()


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
