"""The view of a node's history: all of its parts, and how they read as text."""

from dataclasses import replace

import pytest

from tests.examples.histories import FUSED as HISTORY
from tests.examples.histories import PLAIN
from tests.shown import grid
from tflab.follow import view
from tflab.follow.view import Code, NodeLink, PassLink, Section
from tflab.records.blocks import Frame, Strip
from tflab.records.node_history import Became, Touch
from tflab.records.placed import Fate

MANY = tuple(f"near{n}" for n in range(1, 27))  # two more than are named
MODEL = "by median traced times"
SLACK = (f"not on the critical path, with a slack of 2.40 us {MODEL}",)


def lines(history):
    """The lines of each section by its title."""
    return {section.title: section.lines for section in view.sections(history)}


def test_the_history_of_a_fused_node_in_parts():
    relu = NodeLink("relu", "relu")
    assert view.sections(HISTORY) == (
        Section(
            "frontend",
            "Written",
            "made by a gradient function",
            (
                ("model.py:7  ", Code("y = tf.nn.conv2d(x, w)")),
                ("takes ", NodeLink("split", "split:1"), ", ", NodeLink("read", "read")),
                ("waits for ", NodeLink("ready", "ready")),
                ("makes float32 [?, 3], int64 [...]",),
                ("is used by ", relu, ", ", NodeLink("loss", "loss")),
            ),
        ),
        Section(
            "backward",
            "Differentiated",
            "",
            (
                ("derives ", NodeLink("square", "square")),
                (
                    "_Conv2DGrad (nn_grad.py:577) made ",
                    NodeLink("grads/conv", "grads/conv"),
                    ", ",
                    NodeLink("grads/conv_1", "grads/conv_1"),
                ),
            ),
        ),
        Section(
            "placement",
            "Placed",
            "part of another node's kernel",
            (
                (PassLink(0, "placer"), " (pass 1): given its device"),
                (PassLink(1, "layout"), " (pass 2): its inputs changed"),
                (
                    PassLink(4, "MklLayoutRewritePass"),
                    " (pass 5): rewritten",
                    " from ",
                    "Conv2D to _MklConv2D",
                ),
                (PassLink(6, "remapper"), " (pass 7): fused", " into ", relu),
                ("comes from: layout",),
                (
                    "also does the work of ",
                    NodeLink("bias", "bias:0"),
                    ", ",
                    NodeLink("twin", "twin"),
                ),
                ("continues in ", relu, ": device and kernel are given for that node"),
                ("device CPU:1: the default device",),
                ("kernel registered for _FusedConv2D: label 'mkl'",),
                ("a GPU would use (not run): GPU: cuDNN",),
                ("code that XLA would generate for it; it did not run here:",),
                (Code("f: add; 64 bytes of machine code"),),
                (Code("HLO          %a = add(%x, %y)"),),
                (Code("LLVM IR      fadd a"),),
            ),
        ),
        Section(
            "execution",
            "Executed",
            "",
            (("its computation was done by ", relu, ", which ran as _FusedConv2D"), SLACK),
        ),
    )


def test_the_history_of_a_fused_node_as_text():
    strip, table = view.blocks(replace(HISTORY, code=()))
    assert strip == Strip(
        "The history of conv (Conv2D)",
        (
            Frame(
                "1  Written",
                "made by a gradient function",
                (
                    "model.py:7  y = tf.nn.conv2d(x, w)",
                    "takes split:1, read",
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
                "part of another node's kernel",
                (
                    "placer (pass 1): given its device",
                    "layout (pass 2): its inputs changed",
                    "MklLayoutRewritePass (pass 5): rewritten from Conv2D to _MklConv2D",
                    "remapper (pass 7): fused into relu",
                    "comes from: layout",
                    "also does the work of bias:0, twin",
                    "continues in relu: device and kernel are given for that node",
                    "device CPU:1: the default device",
                    "kernel registered for _FusedConv2D: label 'mkl'",
                    "a GPU would use (not run): GPU: cuDNN",
                ),
            ),
            Frame(
                "4  Executed",
                "",
                ("its computation was done by relu, which ran as _FusedConv2D", *SLACK),
            ),
        ),
    )
    assert grid(table) == [
        "Per call in warm, traced steps, for the whole of relu",
        (
            *("batch", "calls", "mean", "median", "p95", "share"),
            *("memory", "FLOPs", "GFLOP/s"),
        ),
        (
            *("4", "1,203", "150 us", "120 us", "310 us", "37.5 %"),
            *("3.00 KiB", "1,254,400", "8.4"),
        ),
        ("16", "301", "420 us", "400 us", "530 us", "45.0 %", "12.0 KiB", "", ""),
        0,
    ]


def test_stages_that_have_nothing_to_say_are_left_out_and_the_others_keep_their_numbers():
    (strip,) = view.blocks(replace(PLAIN, carrier="x", ran_as="_Arg"))
    assert strip.frames == (
        Frame("1  Written", "made by the runtime", ()),
        Frame("4  Executed", "as _Arg", ()),
    )


def test_the_times_of_a_node_that_ran_itself_are_its_own():
    assert view.times(replace(HISTORY, carrier="conv")).title == ("Per call in warm, traced steps")


def test_a_node_without_a_line_is_written_by_a_program_or_read_from_a_file():
    forward = replace(PLAIN, kind="forward")
    origins = [
        view.origin(history)
        for history in (
            forward,
            replace(forward, from_file=True),
            replace(forward, from_file=True, source=HISTORY.source),
        )
    ]
    assert origins == ["written by the program", "read from a file", "written by the program"]


def test_a_node_that_ran_itself_gives_its_outputs_where_they_are_others():
    ran = replace(HISTORY, carrier="conv")
    made = ("made float32 [16, 3]",)
    waited = (f"on the critical path {MODEL}",)
    assert view.sections(ran)[-1].about == "as _FusedConv2D"
    assert list(view.execution_lines(ran)) == [made, SLACK]
    assert list(view.execution_lines(replace(ran, critical=True))) == [made, waited]
    assert list(view.execution_lines(replace(ran, ran_outputs=ran.outputs))) == [SLACK]
    assert list(view.execution_lines(replace(ran, ran_outputs=(), slack_ns=None))) == []
    became = (Became("conv", "merge", None, None), Became("conv:1", "merge_1", None, None))
    other = replace(ran, carrier="merge", became=became)  # whose outputs are not those of `conv`
    assert list(view.execution_lines(other)) == [SLACK]
    assert not [line for line in lines(ran)["Placed"] if line[0] == "continues in "]


def test_a_node_whose_work_nobody_did_did_not_run():
    removed = Fate("conv", "removed", "dependency_optimizer", None)
    gone = replace(HISTORY, carrier=None, fate=removed)
    assert list(view.execution_lines(gone)) == [("it did not run",)]
    assert list(view.execution_lines(replace(gone, fate=None))) == [("it did not run",)]
    assert list(view.execution_lines(replace(gone, fate=None, touches=()))) == []


def test_of_a_folded_or_removed_node_nobody_did_the_work_in_the_step():
    folded, removed, merged = (
        next(
            iter(view.execution_lines(replace(HISTORY, fate=Fate("conv", fate, "a pass", "relu"))))
        )
        for fate in ("folded", "removed", "merged")
    )
    assert folded[0] == "it was computed before the steps; its value is stored in "
    assert removed[0] == "it did not run; its consumers took the value from "
    assert merged[0] == "its computation was done by "
    bypassed = replace(HISTORY, fate=Fate("conv", "removed", "a pass", "relu"), ran_as="Switch")
    (first, *_) = view.execution_lines(bypassed)
    assert first[0] == "it did not run; its consumers take their value from "
    replaced = replace(HISTORY, fate=Fate("conv", "removed", "a pass", "relu", replaced=True))
    (first, *_) = view.execution_lines(replaced)
    assert first[0] == "its computation was done by "
    assert view.fate_words(replaced.fate) == "removed: a node that a pass made does its work"
    inside = Fate("conv", "folded", "a pass", "relu", has_value=False)
    (first, *_) = view.execution_lines(replace(HISTORY, fate=inside))
    assert first[0] == "it was used before the steps to compute the constant "
    assert view.fate_words(inside) == "used before the steps to compute a constant"


def test_a_removed_node_was_passed_over_or_needed_by_nothing():
    of = [Fate("a", "removed", "a pass", "b"), Fate("a", "removed", "a pass", None)]
    assert list(map(view.fate_words, of)) == [
        "removed: its consumers take its value from another node",
        "bypassed, replaced or not used",
    ]


def test_a_history_says_why_there_is_no_gradient_and_no_kernel():
    blank = replace(HISTORY, gradient_nodes=(), derived_from=None)
    assert list(view.backward_lines(blank)) == [("no gradient: is not to be shown",)]
    kernel = replace(HISTORY.kernel, constraints="", on_gpu=None)
    assert list(view.placement_lines(replace(PLAIN, kernel=kernel))) == [
        ("kernel registered for _FusedConv2D: no constraints",)
    ]


def test_every_change_has_its_preposition():
    changes = ("removed", "folded", "merged", "compiled", "replaced", "bypassed")
    other = NodeLink("other", "other")
    of_pass = PassLink(2, "a pass")
    assert [tuple(view.parts_of_touch(Touch("a pass", 2, what, "other"))) for what in changes] == [
        (of_pass, " (pass 3): removed", " for ", other),
        (of_pass, " (pass 3): folded", " into ", other),
        (of_pass, " (pass 3): merged", " with ", other),
        (of_pass, " (pass 3): compiled", " into ", other),
        (of_pass, " (pass 3): replaced", " by ", other),
        (of_pass, " (pass 3): bypassed", " in favour of ", other),
    ]
    added = tuple(view.parts_of_touch(Touch("a pass", 2, "added", "")))
    assert added == (of_pass, " (pass 3): added")


@pytest.mark.parametrize(
    ("fate", "said"),
    [
        ("compiled", "generated for it"),
        ("fused", "would generate for it; it did not run here"),
        (None, "would generate for it; it did not run here"),
    ],
)
def test_code_ran_only_where_its_node_was_compiled(fate, said):
    known = fate and replace(HISTORY.fate, fate=fate)
    first, *_ = view.code_lines(replace(HISTORY, fate=known))
    assert first == (f"code that XLA {said}:",)


def test_of_very_many_neighbours_the_first_are_links_and_the_others_a_number():
    parts = list(view.links(MANY))
    assert parts[0::2] == [NodeLink(name, name) for name in MANY[:24]]
    assert parts[1::2] == [", "] * 23 + [" and 2 more"]
    assert list(view.links(MANY[:24]))[-1] == NodeLink("near24", "near24")


NOT_TAKEN = "did not run: its branch was not taken in any traced step"


def test_a_node_in_a_branch_that_was_not_taken_did_not_run():
    executed = Fate("conv", "executed", "remapper", None)
    ran = replace(HISTORY, fate=executed, carrier="conv")
    assert view.sections(ran)[-2].about == "runs under its own name"
    dead = replace(ran, not_run=True)
    placed, executed = view.sections(dead)[-2:]
    assert placed == Section(
        "placement",
        "Placed",
        "in the graph that runs, but its branch was not taken in any traced step",
        view.sections(ran)[-2].lines,
    )
    assert executed == Section("execution", "Executed", "", (("it", f" {NOT_TAKEN}"),))
    made = replace(dead, fate=None)  # by the runtime
    assert [section.about for section in view.sections(made)[-2:]] == [placed.about, ""]
    folded = replace(dead, fate=Fate("conv", "folded", "constant_folding", "conv"))
    assert [section.about for section in view.sections(folded)[-2:]] == [
        "computed in advance, now a constant",
        "",
    ]


def test_the_work_of_a_fused_node_was_not_done_if_its_branch_was_not_taken():
    fused = replace(HISTORY, not_run=True)
    assert view.sections(fused)[-2].about == "part of another node's kernel"
    assert view.sections(fused)[-1] == Section(
        "execution", "Executed", "", ((NodeLink("relu", "relu"), f" {NOT_TAKEN}"),)
    )


def test_without_a_traced_run_it_is_not_known_which_branch_was_taken():
    unknown = "is in a branch or after one; no run was traced, so whether it ran is not known"
    executed = Fate("conv", "executed", None, None)
    own = view.sections(replace(HISTORY, fate=executed, carrier="conv", not_run=None))
    assert [section.about for section in own[-2:]] == [
        "in the graph that runs, under its own name",
        "",
    ]
    assert own[-1].lines == (("it", f" {unknown}"),)
    fused = replace(HISTORY, not_run=None)
    assert list(view.execution_lines(fused)) == [(NodeLink("relu", "relu"), f" {unknown}")]
