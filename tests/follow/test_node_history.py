"""Life: what the stages say of one name, put together."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.records_by_hand import op_stats
from tests.report import test_pass_log
from tests.shown import grid
from tflab.analysis import ledger
from tflab.errors import UsageError
from tflab.follow import node_history
from tflab.follow import node_history as life
from tflab.follow import view as story
from tflab.records import (
    Assignment,
    Backward,
    CriticalPath,
    Fate,
    Frontend,
    Gradient,
    Kernel,
    Life,
    Machined,
    Node,
    OpStats,
    Origin,
    Pass,
    Placement,
    Rewrite,
    Source,
    Taken,
    Tensor,
    Touch,
)
from tflab.records.blocks import Frame, Strip
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
EXECUTION = replace(test_pass_log.EXECUTION, nodes=(FEED, FUSED), critical_path=PATH)


def row(key: str) -> OpStats:
    return op_stats(
        key,
        ops=("_FusedMatMul",),
        nodes=(key,),
        calls=1,
        mean_ns=8,
        median_ns=8,
        p95_ns=8,
        share=1,
        requested_bytes=64,
        flops=32,
        gflops=4.0,
        roof_share=0.1,
    )


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
    assert lived.times == {16: row("relu")}
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
    lived = replace(found["matmul"], times={16: row("relu")}, critical=True)
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


# The history of one node, all that is shown of it

HISTORY = Life(
    name="conv",
    op="Conv2D",
    kind="gradient",
    source=Source("project/model.py", 7, "build", "y = tf.nn.conv2d(x, w)"),
    inputs=("split:1", "b", "c", "d", "e", "f", "g", "h"),
    control_inputs=("ready",),
    outputs=(Tensor("float32", (None, 3)), Tensor("int64", None)),
    consumers=("relu", "loss"),
    gradient_function="_Conv2DGrad (nn_grad.py:577)",
    gradient_nodes=("grads/conv", "grads/conv_1"),
    no_gradient="is not to be told",
    derived_from="square",
    fate=Fate("conv", "fused", "remapper", "relu"),
    origin=Origin("conv", "layout"),
    touches=(
        Touch("placer", 0, "moved", ""),
        Touch("layout", 1, "rewired", ""),
        Touch("MklLayoutRewritePass", 4, "rewritten", "Conv2D to _MklConv2D"),
        Touch("remapper", 6, "fused", "relu"),
    ),
    carrier="relu",
    carries=("bias", "twin"),
    ran_as="_FusedConv2D",
    ran_outputs=(Tensor("float32", (16, 3)),),
    assignment=Assignment("relu", "/job:localhost/device:CPU:1", "the default device"),
    kernel=Kernel("relu", "_FusedConv2D", "CPU", "T=float", 2, "label 'mkl'", "GPU: cuDNN"),
    code=(Machined("conv", "dot in fusion", ("fmul a",), ("0x47 vmulps",), 1, False, ()),),
    times={
        4: op_stats(
            key="relu",
            ops=("_FusedConv2D",),
            nodes=("relu",),
            fused_from=("conv",),
            calls=1_203,
            total_ns=9_000_000,
            self_ns=8_000_000,
            mean_ns=150_000,
            median_ns=120_000,
            p95_ns=310_000,
            share=0.375,
            cumulative_share=0.875,
            requested_bytes=3 * 2**10,
            flops=1_254_400,
            gflops=8.36,
            intensity=12.5,
            roof_share=0.125,
            std_ns=7_000,
            step_ns=451_000,
            step_std_ns=21_000,
            peak_bytes=5 * 2**10,
        ),
        16: op_stats(
            key="relu",
            ops=("_FusedConv2D",),
            nodes=("relu",),
            fused_from=("conv",),
            calls=301,
            total_ns=70_000_000,
            self_ns=60_000_000,
            mean_ns=420_000,
            median_ns=400_000,
            p95_ns=530_000,
            share=0.45,
            cumulative_share=0.95,
            requested_bytes=12 * 2**10,
            flops=None,
            gflops=None,
            intensity=None,
            roof_share=None,
            std_ns=8_000,
            step_ns=1_260_000,
            step_std_ns=None,
            peak_bytes=None,
        ),
    },
    slack_ns=2_400.0,
)


def test_the_history_of_a_fused_node_is_told_whole():
    strip, table = story.tell(HISTORY)
    assert strip == Strip(
        "The life of conv (Conv2D)",
        (
            Frame(
                "1  Written",
                "made by a gradient function",
                (
                    "model.py:7  y = tf.nn.conv2d(x, w)",
                    "takes split:1, b, c, d, e, f and 2 more",
                    "waits for ready",
                    "makes float32 [?, 3], int64 [...]",
                    "is used by relu, loss",
                ),
            ),
            Frame(
                "2  Differentiated",
                "",
                ("derives square", "_Conv2DGrad (nn_grad.py:577) made grads/conv, grads/conv_1"),
            ),
            Frame(
                "3  Placed",
                "fused into a node that does its work too",
                (
                    "placer (pass 1): given its device",
                    "layout (pass 2): its inputs changed",
                    "MklLayoutRewritePass (pass 5): rewritten from Conv2D to _MklConv2D",
                    "remapper (pass 7): fused into relu",
                    "comes from: layout",
                    "lives on in relu",
                    "does the work of bias, twin too",
                    "on CPU:1: the default device",
                    "kernel of _FusedConv2D: label 'mkl'",
                    "a GPU would use: GPU: cuDNN",
                    "as XLA compiles it:",
                    "HLO      dot in fusion",
                    "LLVM     fmul a",
                    "machine  0x47 vmulps",
                    "         one element at a time",
                ),
            ),
            Frame(
                "4  Executed",
                "as _FusedConv2D",
                ("slack 2.40 us: it could take that much longer at no cost to the step",),
            ),
        ),
    )
    assert grid(table) == [
        "What it took in a warm, traced step, all of relu",
        (
            *("batch", "calls", "mean", "median", "p95", "share"),
            *("memory", "FLOPs", "GFLOP/s", "of roof"),
        ),
        (
            *("4", "1,203", "150 us", "120 us", "310 us", "37.5 %"),
            *("3.00 KB", "1,254,400", "8.4", "12.5 %"),
        ),
        ("16", "301", "420 us", "400 us", "530 us", "45.0 %", "12.0 KB", "", "", ""),
        0,
    ]


def test_the_times_of_a_node_that_ran_itself_are_its_own():
    assert story.times(replace(HISTORY, carrier="conv")).title == (
        "What it took in a warm, traced step"
    )


def test_a_node_that_ran_itself_tells_its_outputs_where_they_are_others():
    ran = replace(HISTORY, carrier="conv")
    slack = "slack 2.40 us: it could take that much longer at no cost to the step"
    assert list(story.executed(ran)) == ["makes float32 [16, 3]", slack]
    assert list(story.executed(replace(ran, ran_outputs=ran.outputs))) == [slack]
    assert list(story.executed(replace(ran, ran_outputs=(), slack_ns=None))) == []


def test_a_history_says_why_there_is_no_gradient_and_no_kernel():
    blank = replace(HISTORY, gradient_nodes=(), derived_from=None)
    assert list(story.differentiated(blank)) == ["no gradient: is not to be told"]
    kernel = replace(HISTORY.kernel, constraints="", on_gpu=None)
    alone = Life("x", "Op", "runtime", None, (), (), (), kernel=kernel)
    assert list(story.placed(alone)) == ["kernel of _FusedConv2D: needs none"]


def test_every_deed_and_every_fate_has_its_words():
    deeds = ("added", "removed", "folded", "merged", "compiled")
    assert [story.touched(Touch("a pass", 2, what, "other")) for what in deeds] == [
        "a pass (pass 3): added other",
        "a pass (pass 3): removed for other",
        "a pass (pass 3): folded into other",
        "a pass (pass 3): merged with other",
        "a pass (pass 3): compiled into other",
    ]
    assert set(story.FATES) == set(ledger.FATES)


def test_a_life_holds_all_that_its_stages_and_tables_say():
    rows = (row("_arg_x"), row("relu"))
    other = replace(row("relu"), calls=3)
    lived = life.lives(
        (FRONTEND, BACKWARD, PLACEMENT, EXECUTION), {4: rows, 16: (other, row("_arg_x"))}
    )
    assert lived["relu"] == Life(
        name="relu",
        op="Relu",
        kind="forward",
        source=LINE,
        inputs=("matmul",),
        control_inputs=(),
        outputs=(Tensor("float32", (None, 4)),),
        consumers=("gradients/relu_grad",),
        gradient_function="_ReluGrad (nn_grad.py:1)",
        gradient_nodes=("gradients/relu_grad",),
        fate=Fate("relu", "executed", "remapper", None),
        touches=(
            Touch("placer", 0, "moved", ""),
            Touch("remapper", 1, "rewritten", "Relu to _FusedMatMul"),
            Touch("remapper", 1, "rewired", ""),
        ),
        carrier="relu",
        carries=("matmul",),
        ran_as="_FusedMatMul",
        ran_outputs=(Tensor("float32", (16, 4)),),
        assignment=Assignment("relu", CPU, "the default device"),
        kernel=PLACEMENT.kernels[0],
        times={4: row("relu"), 16: other},
        slack_ns=0.0,
        critical=True,
    )
    assert lived["_arg_x"] == Life(
        name="_arg_x",
        op="_Arg",
        kind="runtime",
        source=None,
        inputs=(),
        control_inputs=(),
        outputs=(Tensor("float32", (16, 4)),),
        consumers=("relu",),
        origin=Origin("_arg_x", "feed"),
        carrier="_arg_x",
        carries=("x",),
        ran_as="_Arg",
        ran_outputs=(Tensor("float32", (16, 4)),),
        times={4: row("_arg_x"), 16: row("_arg_x")},
        slack_ns=5.0,
    )


def test_what_each_pass_did_is_told_in_the_order_in_which_it_did_it():
    step = Pass(
        "a pass",
        None,
        5,
        4,
        added=("new",),
        removed=("old", "gone"),
        rewritten=(Rewrite("kept", "Relu", "_Relu"),),
        rewired=("user",),
        moved=("far",),
        taken=(
            Taken("old", "merged", "kept"),
            Taken("gone", "removed", None),
            Taken("constant", "folded", "constant"),
        ),
    )
    assert list(life.deeds(step)) == [
        ("new", "added", ""),
        ("old", "merged", "kept"),
        ("gone", "removed", ""),
        ("constant", "folded", ""),
        ("kept", "rewritten", "Relu to _Relu"),
        ("user", "rewired", ""),
        ("far", "moved", ""),
    ]


def test_who_takes_two_outputs_of_a_node_is_one_consumer():
    twice = Node("sum", "Add", inputs=("split", "split:1"))
    again = Node("loss", "Mean", inputs=("split:1", "sum"))
    users = {name: list(takers) for name, takers in life.consumers((twice, again)).items()}
    assert users == {"split": ["sum", "loss"], "sum": ["loss"]}


def test_an_error_names_the_five_nearest_names_and_the_graph():
    among = dict.fromkeys([f"layer{n}" for n in range(1, 8)])
    with pytest.raises(UsageError) as error:
        life.of("layer", among, "lenet")
    message = str(error.value)
    assert message.startswith("There is no node 'layer' in the graph of lenet. The nearest names")
    assert message.count("layer") == 1 + 5
