"""Names: what XProf counts as an op. That it does is tested with XProf, in test_xspace."""

import pytest

from tflab.exporters.xspace import plane as xspace_plane

TASK = "/job:localhost/replica:0/task:0"
WORKERS = [f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in (0, 1)]
REPLICAS = [f"/job:worker/replica:{replica}/task:0/device:CPU:0" for replica in (0, 1)]


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
    expected = {
        ("runtime/arg_x", "A"): "runtime/arg_x:A",
        ("__arg_x", "A"): "runtime/arg_x-2:A",
        ("_arg_x", "A"): "runtime/arg_x-3:A",
        ("a b", "A"): "a_b:A",
        ("a:b", "A"): "a_b-2:A",
        ("a", "Conv2D"): "a:Conv2D",  # and so are the types of one node
        ("a", "_FusedConv2D"): "a-2:_FusedConv2D",
    }
    for kinds in (sorted(expected), sorted(expected, reverse=True)):
        assert xspace_plane.event_names(kinds) == expected


@pytest.mark.parametrize(
    "node, shown",
    [("a/conv1/Relu", "Relu (a/conv1/Relu)"), ("mul", "mul"), ("/x", "/x"), ("x/", "x/"), ("", "")],
)
def test_the_last_part_of_a_name_is_shown_first(node, shown):
    assert xspace_plane.display_name(node) == shown


@pytest.mark.parametrize(
    "short",
    [
        {  # of one task: without it
            f"{TASK}/device:CPU:0": "CPU:0",
            f"{TASK}/cpu:0": "cpu:0",
            "/device:GPU:0/stream:13": "GPU:0/stream:13",
            "/gpu:0/memcpy": "gpu:0/memcpy",
        },
        {  # of several tasks
            WORKERS[0]: "worker 0, CPU:0",
            WORKERS[1]: "worker 1, CPU:0",
            "/device:XLA_CPU:0": "XLA_CPU:0",
        },
        {name: name for name in (*REPLICAS, "no device")},  # they cannot be told apart
    ],
)
def test_devices_have_short_names_that_are_apart(short):
    assert xspace_plane.short_device_names(short) == short
