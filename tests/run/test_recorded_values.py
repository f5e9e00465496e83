"""What the debugger wrote of a run is told apart into feeds, variables and results, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from tflab.lifecycle import not_finite
from tflab.records.graph import Node
from tflab.run import groups, recorded_values

pytestmark = pytest.mark.tensorflow


def test_feeds_variables_and_results_are_found_by_the_nodes_that_stand_for_them():
    files = ("_arg_x_0_1", "read", "late", "w", "loss", "split:1")
    ran = SimpleNamespace(
        nodes=(
            Node("_arg_x_0_1", "_Arg"),
            Node("v", "VarHandleOp"),
            Node("late", "ReadVariableOp", ("v",), control_inputs=("update",)),
            Node("read", "ReadVariableOp", ("v",)),
            Node("unread", "VarHandleOp"),
            Node("w", "VariableV2"),
            Node("not_run", "VariableV2"),
        ),
        files=dict.fromkeys(files),
        array=lambda name, call=-1: (name, call),
    )
    # The second of the feeds, by name, is in `_arg_x_0_1`; nothing stands for the first one.
    found = recorded_values.found_in(ran, ("other:0", "x:0"), ("loss:0", "split:1", "train"))
    assert found == {
        "fed": {"x:0": ("_arg_x_0_1", -1)},
        "places": {"_arg_x_0_1": "x:0"},
        "before": {"v": ("read", 0), "w": ("w", 0)},
        "fetched": {"loss:0": ("loss", -1), "split:1": ("split:1", -1)},
    }


def test_an_update_that_took_nan_has_spoiled_its_variable():
    """A variable that another update only read, or that had NaN before, is not spoiled by that."""
    ran = SimpleNamespace(
        nodes=(
            Node("v", "VarHandleOp"),
            Node("w", "VariableV2"),
            Node("update_v", "ResourceApplyGradientDescent", ("v", "rate", "grad:1")),
            Node("update_w", "ApplyGradientDescent", ("w", "rate", "grad")),
            Node("h", "MatMul", ("x", "w")),
        ),
        before={"v": 0, "w": 0},
        bads=dict.fromkeys(("grad:1", "w", "update_w", "h")),
    )
    assert [*not_finite.updates_of(ran)] == [("v", True), ("w", False)]


@pytest.mark.parametrize(("chosen", "again"), [(0, True), (5, False)])
def test_after_the_first_fetched_nan_another_run_is_recorded_unless_one_was_chosen(chosen, again):
    seen = recorded_values.Values(SimpleNamespace(watcher=SimpleNamespace(values=chosen)))
    group = groups.RunGroup(1, "graph", ("loss:0", "text:0", "train"), {})
    recorded = seen.plans[1] = recorded_values.RecordingState(sizes=(8, 1), graphs=b"graphs", run=3)
    for calls, loss in ((5, 1.0), (6, np.inf), (7, np.nan)):
        group.calls = calls
        seen.look(SimpleNamespace(group=group), [np.float32(loss), np.array([b"text"], object)])
        assert (seen.plans[1].before is recorded) == (again and calls > 5)
    assert group.not_finite == {"loss:0": 7}


@pytest.mark.parametrize(
    ("dtype", "shape", "bytes_"), [(1, (2, 3), 24), (9, (), 8), (recorded_values.TEXT, (2,), 2**17)]
)
def test_the_debugger_writes_a_file_of_each_output(dtype, shape, bytes_):
    dims = [SimpleNamespace(size=size) for size in shape]
    tensor = SimpleNamespace(shape=SimpleNamespace(dim=dims), dtype=dtype)
    node = SimpleNamespace(output=[SimpleNamespace(tensor_description=tensor)] * 2)
    stats = SimpleNamespace(dev_stats=[SimpleNamespace(node_stats=[node])])
    assert recorded_values.sizes_of(stats) == (2 * bytes_, 2)


def test_nan_and_infinity_are_text():
    elements = (1.5, float("nan"), float("inf"), -float("inf"), "text", True)
    assert [recorded_values.as_text(element) for element in elements] == [
        *(1.5, "NaN", "Inf", "-Inf", "text", True),
    ]
