"""The title of each stage and the line that sums it up, and the words that views share."""

import pytest

from tests.records_by_hand import CPU_1, source
from tflab import units
from tflab.records.graph import Node, Tensor
from tflab.records.placed import Partition
from tflab.records.stages import Backward, Execution, Frontend, Placement
from tflab.records.timed import CriticalPath, Memory, Spread
from tflab.views import stages, words

NODES = (
    Node("x", "Placeholder"),
    Node("exp", "Exp", ("x",)),
    Node("mul", "Mul", ("x", "exp"), ("x",)),
    Node("end", "NoOp", (), ("mul", "exp")),
)
FRONTEND = Frontend(None, NODES)
BACKWARD = Backward(None, NODES, added_nodes=("n",) * 1_002)
PLACEMENT = Placement(
    None, NODES, user_nodes=NODES[:3], partitions=(Partition("a", ("x",)), Partition("b", ()))
)
EXECUTION = Execution(
    program=None,
    nodes=NODES,
    batch_size=16,
    data="MNIST",
    warmup_steps=3,
    steps=4,
    untraced_step_ns=Spread(2_400_000, 2_100_000, 3_300_000),
    traced_step_ns=Spread(2_700_000, 2_200_000, 3_600_000),
    runs=(),
    step_times=(),
    top_ops=(),
    top_types=(),
    time_ledger=(),
    wall_ns=10_400_000,
    critical_path=CriticalPath((), 0, 0),
    memory=Memory((), 0),
)


@pytest.mark.parametrize(
    "stage, title, summary",
    [
        (FRONTEND, "Frontend: Python calls become nodes", "4 nodes, 6 edges"),
        (
            BACKWARD,
            "Backward: gradient functions add the other half of the graph",
            "4 nodes, 6 edges, 1,002 of the nodes new",
        ),
        (
            PLACEMENT,
            "Placement: the graph is rewritten, given devices and cut into partitions",
            "4 nodes, 6 edges on 2 devices",
        ),
        (
            EXECUTION,
            "Execution: ops run in the order of their dependencies",
            "4 nodes, 6 edges, 2.40 ms a step",
        ),
    ],
)
def test_a_stage_has_a_title_and_a_line_that_sums_it_up(stage, title, summary):
    assert (stages.title(stage), stages.summary(stage)) == (title, summary)


def test_one_node_and_one_device_are_singular():
    stage = Placement(None, (Node("a", "Exp", ("a",)),), partitions=(Partition("a", ("a",)),))
    assert stages.summary(stage) == "1 node, 1 edge on 1 device"


def test_a_source_is_its_file_without_folders_and_its_line():
    assert words.place(source(7)) == "model.py:7"
    assert words.place(None) == ""


@pytest.mark.parametrize(
    "tensor, text",
    [
        (Tensor("float32", (None, 10)), "float32 [?, 10]"),
        (Tensor("int64", ()), "int64 []"),
        (Tensor("bool", None), "bool [...]"),
        (Tensor("bool", (0, 3)), "bool [0, 3]"),
    ],
)
def test_a_tensor_is_its_dtype_and_shape(tensor, text):
    assert words.tensor(tensor) == text


def test_a_device_is_its_kind_and_number():
    assert units.short_device(CPU_1) == "CPU:1"


def test_things_are_counted_the_most_frequent_first():
    assert words.counted(["Exp", "Const", "Log", "Const"]) == "2 Const, Exp, Log"
