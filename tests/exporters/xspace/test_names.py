"""Names: what XProf counts as an op. That it does is tested with XProf, in test_xspace."""

import pytest

from tflab.exporters.xspace import plane as xspace_plane


@pytest.mark.parametrize(
    "node, op, name",
    [
        ("conv1/Relu", "_MklNativeFusedConv2D", "conv1/Relu:_MklNativeFusedConv2D"),
        ("_arg_images_0_0", "_Arg", "runtime/arg_images_0_0:_Arg"),
        ("_SOURCE", "NoOp", "runtime/SOURCE:NoOp"),
        ("__X_", "NoOp", "runtime/X_:NoOp"),
        ("a:b", "Op", "a_b:Op"),
        ("Größe", "Op", "Gr__e:Op"),
        ("日本", "Op", "./__:Op"),
        ("a b\nc", "Op", "a_b_c:Op"),
        ("-x", "Op", "./-x:Op"),
        ("", "Op", "./:Op"),
        ("train", "NoOp", "./train:NoOp"),
        ("test_accuracy", "Mean", "./test_accuracy:Mean"),
        ("train/Adam", "NoOp", "train/Adam:NoOp"),
        ("Iterator", "IteratorV2", "./Iterator:IteratorV2"),
        ("IteratorGetNext", "IteratorGetNext", "IteratorGetNext:IteratorGetNext"),
        ("IDLE", "NoOp", "./IDLE:NoOp"),
        ("x", "Addons>Sparsemax", "x:Addons_Sparsemax"),
        ("x", "unknown", "x:_unknown"),
        ("x", "", "x:_"),
    ],
)
def test_a_name_is_made_to_fit(node, op, name):
    assert xspace_plane.event_names([(node, op)]) == {(node, op): name}


def test_names_that_become_the_same_are_numbered_and_those_that_fit_stay():
    kinds = [("_arg_x", "A"), ("__arg_x", "A"), ("runtime/arg_x", "A"), ("a b", "A"), ("a:b", "A")]
    expected = {
        ("runtime/arg_x", "A"): "runtime/arg_x:A",
        ("__arg_x", "A"): "runtime/arg_x-2:A",
        ("_arg_x", "A"): "runtime/arg_x-3:A",
        ("a b", "A"): "a_b:A",
        ("a:b", "A"): "a_b-2:A",
    }
    assert xspace_plane.event_names(kinds) == xspace_plane.event_names(kinds[::-1]) == expected


def test_the_types_of_one_node_are_told_apart():
    assert xspace_plane.event_names([("a", "Conv2D"), ("a", "_FusedConv2D")]) == {
        ("a", "Conv2D"): "a:Conv2D",
        ("a", "_FusedConv2D"): "a-2:_FusedConv2D",
    }


@pytest.mark.parametrize(
    "node, shown",
    [("a/conv1/Relu", "Relu (a/conv1/Relu)"), ("mul", "mul"), ("/x", "/x"), ("x/", "x/"), ("", "")],
)
def test_the_last_part_of_a_name_is_shown_first(node, shown):
    assert xspace_plane.display_name(node) == shown


def test_devices_are_named_without_their_task():
    task = "/job:localhost/replica:0/task:0"
    names = [f"{task}/device:CPU:0", f"{task}/cpu:0", "/device:GPU:0/stream:13", "/gpu:0/memcpy"]
    assert xspace_plane.short_device_names(names) == {
        f"{task}/device:CPU:0": "CPU:0",
        f"{task}/cpu:0": "cpu:0",
        "/device:GPU:0/stream:13": "GPU:0/stream:13",
        "/gpu:0/memcpy": "gpu:0/memcpy",
    }


def test_devices_of_several_tasks_are_named_with_their_task():
    names = [f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in (0, 1)]
    assert list(xspace_plane.short_device_names(names).values()) == [
        "worker 0, CPU:0",
        "worker 1, CPU:0",
    ]


def test_a_device_without_a_task_has_none_beside_those_of_several_tasks():
    names = [f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in (0, 1)]
    short = xspace_plane.short_device_names([*names, "/device:XLA_CPU:0"])
    assert short == {
        "/device:XLA_CPU:0": "XLA_CPU:0",
        names[0]: "worker 0, CPU:0",
        names[1]: "worker 1, CPU:0",
    }


def test_devices_that_cannot_be_told_apart_keep_their_names():
    names = [f"/job:worker/replica:{replica}/task:0/device:CPU:0" for replica in (0, 1)]
    assert xspace_plane.short_device_names([*names, "no device"]) == {
        name: name for name in [*names, "no device"]
    }
