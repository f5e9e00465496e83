"""The panel beside a drawing: all of its lines, from lives made by hand."""

from dataclasses import replace

from tflab.records import Assignment, Fate, Kernel, Life, Machined, Origin, Source, Tensor, Touch
from tflab.report import panel
from tflab.report.drawn import State
from tflab.report.panel import Code, Link, Moment, Section

NEAR = tuple(f"near{n}" for n in range(1, 27))  # two more than are written out
FUSED = Life(
    name="layer/MatMul",
    op="MatMul",
    kind="forward",
    source=Source("project/model.py", 7, "build", "y = tf.matmul(x, w)"),
    inputs=("split:1", "read"),
    control_inputs=("ready",),
    outputs=(Tensor("float32", (None, 3)), Tensor("int64", None)),
    consumers=("layer/Relu", "loss"),
    gradient_function="_MatMulGrad (math_grad.py:1404)",
    gradient_nodes=("grads/MatMul", "grads/MatMul_1"),
    no_gradient="is not to be told",
    derived_from="layer/Square",
    fate=Fate("layer/MatMul", "fused", "remapper", "layer/Relu"),
    origin=Origin("layer/MatMul", "placer"),
    touches=(
        Touch("placer", 0, "moved", ""),
        Touch("layout", 1, "rewired", ""),
        Touch("MklLayoutRewritePass", 4, "rewritten", "MatMul to _MklMatMul"),
        Touch("remapper", 6, "fused", "layer/Relu"),
    ),
    carrier="layer/Relu",
    carries=("bias:0", "twin"),
    ran_as="_FusedMatMul",
    ran_outputs=(Tensor("float32", (16, 3)),),
    assignment=Assignment("layer/Relu", "/job:localhost/device:CPU:1", "the default device"),
    kernel=Kernel("layer/Relu", "_FusedMatMul", "CPU", "T=float", 2, "label 'mkl'", "GPU: cuBLAS"),
    code=(
        Machined("layer/MatMul", "dot in fusion", ("fmul a", "fmul b", "fmul c"), (), 8, True, ()),
    ),
    slack_ns=2_400.0,
)
PLAIN = Life("x", "Placeholder", "runtime", None, (), (), ())
STATES = tuple(
    State(stage, title, "", (), (), (), place=place)
    for stage, title, place in (
        ("frontend", "Written", None),
        ("backward", "With gradients", None),
        ("placement", "layout", 1),
        ("placement", "MklLayoutRewritePass", 4),
        ("placement", "remapper", 6),
        ("execution", "Ran", None),
    )
)


def lines(life, states=()):
    """The lines by the titles of their sections."""
    return {section.title: section.lines for section in panel.sections(life, states)}


def test_the_panel_of_a_fused_node_is_told_whole():
    assert panel.sections(FUSED, STATES) == (
        Section(
            "Written",
            0,
            (
                ("Written by the program.",),
                ("model.py:7  ", Code("y = tf.matmul(x, w)")),
                ("takes ", Link("split", "split:1"), ", ", Link("read", "read")),
                ("waits for ", Link("ready", "ready")),
                ("makes float32 [?, 3], int64 [...]",),
                ("is used by ", Link("layer/Relu", "layer/Relu"), ", ", Link("loss", "loss")),
            ),
        ),
        Section(
            "Differentiated",
            1,
            (
                ("derives ", Link("layer/Square", "layer/Square")),
                (
                    "_MatMulGrad (math_grad.py:1404) made ",
                    Link("grads/MatMul", "grads/MatMul"),
                    ", ",
                    Link("grads/MatMul_1", "grads/MatMul_1"),
                ),
            ),
        ),
        Section(
            "Placed",
            2,
            (
                ("placer", ": given its device"),
                (Moment(2, "layout"), ": its inputs changed"),
                (
                    Moment(3, "MklLayoutRewritePass"),
                    ": rewritten",
                    " from MatMul to _MklMatMul",
                ),
                (
                    Moment(4, "remapper"),
                    ": fused",
                    " into ",
                    Link("layer/Relu", "layer/Relu"),
                ),
                ("fate: fused into a node that does its work too",),
                ("comes from: placer",),
                ("lives on in ", Link("layer/Relu", "layer/Relu")),
                ("does the work of ", Link("bias", "bias:0"), ", ", Link("twin", "twin"), " too"),
                ("device CPU:1: the default device",),
                ("kernel of _FusedMatMul: label 'mkl'",),
                ("a GPU would use (not run): GPU: cuBLAS",),
                ("code that XLA generates for it:",),
                (Code("HLO      dot in fusion"),),
                (Code("LLVM     fmul a"),),
                (Code("         fmul b   (1 more like it)"),),
                (
                    Code(
                        "         8 elements at once, a fused multiply-add: one instruction for "
                        "two operations"
                    ),
                ),
            ),
        ),
        Section(
            "Executed",
            5,
            (
                (
                    "its work was done by ",
                    Link("layer/Relu", "layer/Relu"),
                    ", which ran as _FusedMatMul",
                ),
                ("slack 2.40 us: it could take that much longer at no cost",),
            ),
        ),
    )


def test_of_a_node_of_the_runtime_only_its_maker_is_told():
    assert panel.sections(PLAIN, ()) == (Section("Written", None, (("Made by the runtime.",),)),)


def test_what_was_done_to_a_node_names_the_other_one_as_the_deed_asks():
    whats = ("folded", "compiled", "merged", "removed", "added")
    deeds = [
        tuple(panel.touched(Touch("a pass", 1, what, "" if what == "added" else "other"), 3))
        for what in whats
    ]
    other = Link("other", "other")
    assert deeds == [
        (Moment(3, "a pass"), ": folded", " into ", other),
        (Moment(3, "a pass"), ": compiled", " into ", other),
        (Moment(3, "a pass"), ": merged", " with ", other),
        (Moment(3, "a pass"), ": removed", " for ", other),
        (Moment(3, "a pass"), ": added"),
    ]


def test_a_node_that_nothing_derives_says_why():
    life = replace(FUSED, gradient_nodes=(), derived_from=None)
    assert lines(life)["Differentiated"] == (("no gradient: is not to be told",),)


def test_a_node_whose_work_nobody_did_did_not_run():
    life = replace(FUSED, carrier=None)
    assert lines(life)["Executed"] == (("It did not run.",),)


def test_a_node_that_ran_itself_tells_as_what_and_its_outputs_where_they_are_others():
    life = replace(FUSED, carrier="layer/MatMul", critical=True)
    ran = ("ran as _FusedMatMul",)
    waited = ("on the longest chain of dependent ops: the step waits for it",)
    assert lines(life)["Executed"] == (ran, ("made float32 [16, 3]",), waited)
    assert lines(replace(life, ran_outputs=life.outputs))["Executed"] == (ran, waited)
    assert lines(replace(life, ran_outputs=(), slack_ns=None))["Executed"] == (ran, waited)
    assert ("lives on in ", Link("layer/MatMul", "layer/MatMul")) not in lines(life)["Placed"]


def test_a_kernel_that_the_executor_needs_not_is_told_as_such():
    kernel = replace(FUSED.kernel, constraints="", on_gpu=None)
    told = lines(replace(PLAIN, kernel=kernel))["Placed"]
    assert told == (("kernel of _FusedMatMul: needs none",),)


def test_of_very_many_neighbours_the_first_are_links_and_the_others_a_number():
    told = list(panel.links(NEAR))
    assert told[0::2] == [Link(name, name) for name in NEAR[:24]]
    assert told[1::2] == [", "] * 23 + [" and 2 more"]
    assert list(panel.links(NEAR[:24]))[-1] == Link("near24", "near24")


def test_a_section_goes_to_the_first_state_of_its_stage():
    sections = {section.title: section.state for section in panel.sections(FUSED, STATES)}
    assert sections == {"Written": 0, "Differentiated": 1, "Placed": 2, "Executed": 5}
    sections = {section.title: section.state for section in panel.sections(FUSED, STATES[:1])}
    assert sections == {"Written": 0, "Differentiated": None, "Placed": None, "Executed": None}
