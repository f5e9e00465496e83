"""Life: what the stages say of one name, put together."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tflab.errors import UsageError
from tflab.follow import node_history
from tflab.follow import view as story
from tflab.records import (
    Assignment,
    Backward,
    CriticalPath,
    Fate,
    Frontend,
    Gradient,
    Kernel,
    Machined,
    Node,
    Origin,
    Pass,
    Placement,
    Rewrite,
    Row,
    Source,
    Taken,
    Tensor,
    Touch,
)
from tflab.records.placed import Generated

LINE = Source("model.py", 7, "build", "y = tf.nn.relu(tf.matmul(x, w))")
CPU = "/device:CPU:0"

X = Node("x", "Placeholder", source=LINE, outputs=(Tensor("float32", (None, 4)),))
MATMUL = Node("matmul", "MatMul", inputs=("x", "w"), source=LINE)
RELU = Node(
    "relu", "Relu", inputs=("matmul",), source=LINE, outputs=(Tensor("float32", (None, 4)),)
)
SEED = Node("gradients/seed", "Const")
RELU_GRAD = Node("gradients/relu_grad", "ReluGrad", inputs=("gradients/seed", "relu"))
TRAIN = Node("train", "NoOp", control_inputs=("gradients/relu_grad",))
FEED = Node("_arg_x", "_Arg", outputs=(Tensor("float32", (16, 4)),))
FUSED = Node("relu", "_FusedMatMul", inputs=("_arg_x", "w"), outputs=(Tensor("float32", (16, 4)),))
PASSING = Node("passing", "Identity", inputs=("x",))

FRONTEND = Frontend(None, (X, MATMUL, RELU))
BACKWARD = Backward(
    None,
    (X, MATMUL, RELU, SEED, RELU_GRAD, TRAIN),
    gradients=(
        Gradient("relu", "Relu", "_ReluGrad (nn_grad.py:1)", ("gradients/relu_grad",)),
        Gradient("x", "Placeholder", None, (), "no trainable variable is behind it"),
    ),
    update_nodes=("train",),
)
PLACEMENT = Placement(
    None,
    (FEED, FUSED),
    passes=(
        Pass("placer", None, 3, 4, added=("passing",), moved=("relu",), definitions=(PASSING,)),
        Pass(
            "remapper",
            0,
            4,
            2,
            removed=("matmul", "passing"),
            rewritten=(Rewrite("relu", "Relu", "_FusedMatMul"),),
            rewired=("relu",),
            taken=(Taken("matmul", "fused", "relu"), Taken("passing", "removed", None)),
        ),
    ),
    ledger=(
        Fate("x", "removed", "feeds", "_arg_x"),
        Fate("matmul", "fused", "remapper", "relu"),
        Fate("relu", "executed", "remapper", None),
    ),
    origins=(Origin("_arg_x", "feed"),),
    assignments=(Assignment("relu", CPU, "the default device"),),
    kernels=(Kernel("relu", "_FusedMatMul", CPU, "T=float32", 1, "CPU", None),),
    generated=(Generated("c", (), 1, (), (Machined("matmul", "dot", (), (), 1, False, ()),), {}),),
)
PATH = CriticalPath(("relu",), 10.0, 1.0, slack=(("_arg_x", 5.0), ("relu", 0.0)))


def row(key: str) -> Row:
    return Row(key, ("_FusedMatMul",), (key,), (), 1, 8, 8, 8, 8, 8, 1, 1, 64, 32, 4.0, 0.5, 0.1)


@pytest.fixture(scope="module")
def found():
    return node_history.lives((FRONTEND, BACKWARD, PLACEMENT))


def test_every_node_of_every_stage_has_a_life_and_the_users_come_first(found):
    assert list(found) == [
        *("x", "matmul", "relu", "gradients/seed", "gradients/relu_grad", "train"),
        *("passing", "_arg_x"),
    ]
    kinds = [one.kind for one in found.values()]
    assert kinds == [*["forward"] * 3, *["gradient"] * 2, "update", "runtime", "runtime"]


def test_a_fused_node_lives_on_in_its_carrier(found):
    fused = found["matmul"]
    assert fused.op == "MatMul"
    assert fused.fate == Fate("matmul", "fused", "remapper", "relu")
    assert (fused.carrier, fused.ran_as) == ("relu", "_FusedMatMul")
    assert fused.kernel == PLACEMENT.kernels[0]
    assert fused.assignment == PLACEMENT.assignments[0]
    assert fused.touches == (Touch("remapper", 1, "fused", "relu"),)
    assert [one.hlo for one in fused.code] == ["dot"]


def test_a_carrier_knows_whose_work_it_does_and_what_each_pass_did_to_it(found):
    carrier = found["relu"]
    assert carrier.carries == ("matmul",)
    assert carrier.touches == (
        Touch("placer", 0, "moved", ""),
        Touch("remapper", 1, "rewritten", "Relu to _FusedMatMul"),
        Touch("remapper", 1, "rewired", ""),
    )
    assert carrier.outputs == RELU.outputs  # as written, where the batch is not known
    assert carrier.ran_outputs == FUSED.outputs


def test_a_forward_node_and_its_gradient_know_each_other(found):
    assert found["relu"].gradient_nodes == ("gradients/relu_grad",)
    assert found["relu"].gradient_function == "_ReluGrad (nn_grad.py:1)"
    assert found["gradients/relu_grad"].derived_from == "relu"
    assert found["x"].no_gradient == "no trainable variable is behind it"


def test_a_node_knows_who_takes_its_outputs(found):
    assert found["x"].consumers == ("matmul",)
    assert found["relu"].consumers == ("gradients/relu_grad",)


def test_what_a_pass_made_and_another_removed_has_a_life_too(found):
    assert found["passing"].op == "Identity"
    assert found["passing"].carrier is None
    assert [touch.what for touch in found["passing"].touches] == ["added", "removed"]


def test_times_and_slack_are_those_of_the_carrier():
    rows = (row("relu"), row("_arg_x"))
    lived = node_history.measured(
        node_history.lives((FRONTEND, BACKWARD, PLACEMENT))["matmul"], PATH, {16: rows}
    )
    assert lived.times == ((16, row("relu")),)
    assert (lived.slack_ns, lived.critical) == (0.0, True)


def test_a_node_that_nobody_carries_has_no_times():
    lone = node_history.written(FRONTEND, None)["matmul"]
    assert node_history.measured(lone, PATH, {16: (row("matmul"),)}) == lone


def test_a_walk_that_stopped_early_tells_what_it_knows():
    assert node_history.lives((FRONTEND,))["matmul"].fate is None
    assert node_history.lives((FRONTEND, BACKWARD))["relu"].gradient_nodes == (
        "gradients/relu_grad",
    )


def test_a_name_that_does_not_exist_gets_the_nearest_ones(found):
    assert node_history.of("matmul:0", found) is found["matmul"]
    with pytest.raises(UsageError, match=r"no node 'matmull'.*nearest names are matmul"):
        node_history.of("matmull", found)
    with pytest.raises(UsageError, match=r"no node '<b>' in the graph\.$"):
        node_history.of("<b>", found)


def test_the_story_goes_from_the_line_to_the_time(found):
    lived = replace(found["matmul"], times=((16, row("relu")),), critical=True)
    strip, table = story.tell(lived)
    assert strip.title == "The life of matmul (MatMul)"
    assert [frame.heading for frame in strip.frames] == [
        *("1  Written", "3  Placed", "4  Executed")
    ]
    written, placed, executed = (frame.lines for frame in strip.frames)
    assert written[0] == "model.py:7  y = tf.nn.relu(tf.matmul(x, w))"
    assert placed[:2] == ("remapper (pass 2): fused into relu", "lives on in relu")
    assert executed == ("on the longest chain of dependent ops: the step waits for it",)
    assert table.title == "What it took in a warm, traced step, all of relu"
    assert [cells[:2] for cells in table.cells()] == [("16", "1")]


def test_the_shape_as_written_stands_in_the_first_stage_and_the_one_that_ran_in_the_last(found):
    strip, *_ = story.tell(found["relu"])
    assert "makes float32 [?, 4]" in strip.frames[0].lines
    assert strip.frames[-1].heading == "4  Executed"
    assert strip.frames[-1].lines == ("makes float32 [16, 4]",)


def test_a_node_without_a_line_is_written_by_a_program_or_read_from_a_file(found):
    alone = replace(found["matmul"], source=None)
    abouts = [
        next(iter(story.tell(one))).frames[0].about
        for one in (alone, replace(alone, from_file=True), replace(found["matmul"], from_file=True))
    ]
    assert abouts == ["written by the program", "read from a file", "written by the program"]


def test_the_forward_nodes_of_a_model_that_is_a_file_are_from_it(tmp_path):
    path = tmp_path / "frozen.pb"
    path.touch()
    for name, told in ((str(path), True), ("toy", False)):
        frontend = replace(FRONTEND, program=SimpleNamespace(name=name))
        lived = node_history.lives((frontend, BACKWARD))
        assert [lived[node].from_file for node in ("matmul", "train")] == [told, False]


def test_the_story_leaves_out_what_never_happened(found):
    (strip,) = story.tell(node_history.lives((FRONTEND,))["x"])
    assert [frame.heading for frame in strip.frames] == ["1  Written"]
