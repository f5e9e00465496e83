"""The view of the backward stage: every sentence and every cell, of records made by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.records_by_hand import read
from tflab.records.blocks import in_full
from tflab.records.graph import Call, Function, Node
from tflab.records.stages import Backward, Gradient, GradientCheck
from tflab.views import backward, stages

FORWARD = (
    Node("x", "Placeholder"),
    Node("w", "VarHandleOp"),
    Node("mul", "Mul"),
    Node("labels", "Placeholder"),
    Node("loss", "Mean"),
    Node("print", "Print"),
    Node("mul/Read", "ReadVariableOp"),
)
ADDED = (
    Node("gradients/grad_ys_0", "Fill"),
    Node("gradients/loss/Tile", "Tile"),
    Node("gradients/loss/Shape", "Shape"),
    Node("gradients/mul/Shape", "Shape"),
    Node("gradients/mul/Mul", "Mul"),
    Node("gradients/mul/Mul_1", "Mul"),
    Node("gradients/AddN", "AddN"),
    Node("gradients/ys", "Const"),
    Node("train/apply", "ResourceApplyGradientDescent"),
    Node("train", "NoOp"),
)
NO_VARIABLE = "it does not depend on a trainable variable"
GRADIENTS = (
    Gradient("x", "Placeholder", None, (), NO_VARIABLE),
    Gradient("w", "VarHandleOp", None, (), "it has no inputs, so its gradient goes no further"),
    Gradient(
        "mul",
        "Mul",
        "_MulGrad (math_grad.py:1404)",
        ("gradients/mul/Shape", "gradients/mul/Mul", "gradients/mul/Mul_1"),
    ),
    Gradient("labels", "Placeholder", None, (), NO_VARIABLE),
    Gradient(
        "loss",
        "Mean",
        "_MeanGrad (math_grad.py:270)",
        ("gradients/loss/Tile", "gradients/loss/Shape"),
    ),
    Gradient("print", "Print", None, (), NO_VARIABLE),
    Gradient("mul/Read", "ReadVariableOp", "_ReadGrad", (), "its gradient is passed on"),
)
CHECKS = (
    GradientCheck("conv/kernel", 2.51e-07, 8, 2_400, "float64"),
    GradientCheck("conv/bias", 1.24e-06, 5, 16, "float64"),
    GradientCheck("dense/kernel", 7.5e-08, 6, 840, "float64"),
)
OLD = Function("old_1", (Call("cond", "then_branch"),), (Node("a", "Exp"),))
NEW = Function("grad_2", (Call("gradients/cond", "else_branch"),), (Node("a", "Neg"),) * 3)
STAGE = Backward(
    program=None,
    nodes=(*FORWARD, *ADDED),
    added_nodes=tuple(node.name for node in ADDED),
    gradients=GRADIENTS,
    gradient_checks=CHECKS,
    data="MNIST",
    variable_count=4,
    unchecked_variables=(("dense/bias", "it is not float32"),),
    update_nodes=("train/apply", "train"),
    shared_nodes=("gradients/grad_ys_0", "gradients/AddN", "gradients/ys"),
    functions=(OLD, NEW),
    added_functions=("grad_2",),
)

DERIVED = ("forward node", "type", "gradient function", "nodes", "types")
CHECKED = ("variable", "elements", "largest relative error")


def shown(stage: Backward) -> list:
    return list(map(read, stages.blocks(stage)))


def test_the_view_tells_what_came_from_which_op_what_did_not_and_whether_it_is_right():
    assert shown(STAGE) == [
        "10 nodes added to 7 forward nodes: 5 from gradient functions, 3 shared by several forward "
        "ops, and 2 from the optimiser. Nothing is computed yet.",
        [
            "Forward ops in the order of differentiation (last first), and their gradient nodes",
            DERIVED,
            ("loss", "Mean", "_MeanGrad", "2", "Tile, Shape"),
            ("mul", "Mul", "_MulGrad", "3", "2 Mul, Shape"),
            "",
        ],
        [
            "Forward ops without gradient nodes, and why",
            ("because", "nodes", "which"),
            ("it does not depend on a trainable variable", "3", "x, labels, print"),
            ("it has no inputs, so its gradient goes no further", "1", "w"),
            ("its gradient is passed on", "1", "mul/Read"),
            "",
        ],
        [
            "Functions added for the gradients",
            ("function", "called by", "nodes", "types"),
            ("grad_2", "else_branch of gradients/cond", "3", "3 Neg"),
            "",
        ],
        [
            "Gradients compared with finite differences in float64 on MNIST, at weights slightly "
            "off the initial ones",
            CHECKED,
            ("conv/kernel", "8 of 2,400", "2.5e-07"),
            ("conv/bias", "5 of 16", "1.2e-06"),
            ("dense/kernel", "6 of 840", "7.5e-08"),
            "",
        ],
        "Checked: 3 of 4 variables, not dense/bias (it is not float32). The largest relative error "
        "is 1.2e-06, in conv/bias.",
    ]


def test_a_gradient_that_is_not_finite_is_said():
    checks = (GradientCheck("w", float("nan"), 4, 9, "float64"), *CHECKS[:1])
    (*_, table, sentence) = shown(replace(STAGE, gradient_checks=checks, variable_count=2))
    assert table[2:-1] == [("w", "4 of 9", "not finite"), ("conv/kernel", "8 of 2,400", "2.5e-07")]
    assert sentence == "The gradient or the difference of w is NaN or infinite."


def test_without_new_functions_there_is_no_table_of_them():
    others = [block for block in shown(STAGE) if block[0] != "Functions added for the gradients"]
    assert shown(replace(STAGE, added_functions=())) == others


@pytest.mark.parametrize(
    "count, sentence",
    [
        (3, "The largest relative error is 1.2e-06, in conv/bias."),
        (
            1_003,
            "Checked: 3 of 1,003 variables. The largest relative error is 1.2e-06, in conv/bias.",
        ),
    ],
)
def test_the_number_of_checked_variables_is_given_where_some_were_not(count, sentence):
    stage = replace(STAGE, variable_count=count, unchecked_variables=())
    assert shown(stage)[-1] == sentence


def test_variables_that_were_not_checked_are_named_by_reason():
    others = (("a", "too many"), ("b", "the loss does not depend on it"), ("c", "too many"))
    stage = replace(STAGE, variable_count=6, unchecked_variables=others)
    assert shown(stage)[-1] == (
        "Checked: 3 of 6 variables, not a, c (too many); b (the loss does not depend on it). "
        "The largest relative error is 1.2e-06, in conv/bias."
    )


def test_differences_in_less_than_float64_say_so_and_give_no_reason():
    checks = (GradientCheck("w", 3.14e-02, 4, 9, "float32"),)
    *_, table, sentence = shown(replace(STAGE, gradient_checks=checks, variable_count=1))
    assert table == [
        "Gradients compared with finite differences in float32 on MNIST, at weights slightly off "
        "the initial ones",
        CHECKED,
        ("w", "4 of 9", "3.1e-02"),
        "",
    ]
    assert sentence == "The largest relative error is 3.1e-02, in w."


def test_differences_that_ignore_a_stopped_gradient_are_named_as_a_reason():
    agreeing = replace(STAGE, stopped=("s",))
    assert not any("may come from" in str(block) for block in shown(agreeing))
    far = (GradientCheck("w", 0.02, 4, 9, "float64"),)
    assert shown(replace(agreeing, gradient_checks=far, variable_count=1))[-1] == (
        "The error may come from finite differences (the graph has stop_gradient, which they "
        "ignore)."
    )
    coarse = (GradientCheck("w", 0.02, 4, 9, "float32", tolerance=0.03),)
    assert shown(replace(agreeing, gradient_checks=coarse, variable_count=1))[-1] == (
        "The largest relative error is 2.0e-02, in w."
    )


def test_gradients_that_are_0_have_no_error():
    zeros = tuple(GradientCheck(name, 0.0, 4, 9, "float64", zero=True) for name in "ab")
    checks = (*zeros, GradientCheck("w", 3e-7, 4, 9, "float64"))
    *_, table, sentence = shown(replace(STAGE, gradient_checks=checks, variable_count=3))
    assert [row[2] for row in table[2:-1]] == ["both 0", "both 0", "3.0e-07"]
    assert sentence == (
        "The largest relative error is 3.0e-07, in w. The gradients of a, b are 0 within rounding, "
        "and so are the differences."
    )
    assert shown(replace(STAGE, gradient_checks=zeros[:1], variable_count=1))[-1] == (
        "The gradient of a is 0 within rounding, and so is the difference."
    )


def test_gradients_that_are_changed_before_the_optimiser_are_not_those_of_the_loss():
    assert shown(replace(STAGE, processed=("w", "b")))[-1] == (
        "What the optimiser gets for w, b is not the gradient of the loss itself: other nodes "
        "change it first."
    )


def test_forty_checks_are_listed_and_the_others_counted():
    checks = tuple(
        GradientCheck(f"w{n}", (n + 1) * 1e-9, n + 2, n + 1_000, "float64") for n in range(42)
    )
    *_, table, sentence = shown(replace(STAGE, gradient_checks=checks, variable_count=42))
    assert table[2:-1] == [
        (f"w{n}", f"{n + 2} of 1,{n:03}", f"{(n + 1) * 1e-9:.1e}") for n in range(40)
    ]
    assert table[-1] == "... and 2 more"
    assert sentence == "The largest relative error is 4.2e-08, in w41."


def test_gradients_that_were_not_checked_have_a_reason():
    stage = replace(STAGE, gradient_checks=(), unchecked="no variable is of a float type")
    assert shown(stage)[-1] == "Gradients were not checked: no variable is of a float type."


def test_forty_forward_ops_are_listed_from_the_last_and_the_others_counted():
    gradients = tuple(
        Gradient(f"n{n}", "Mul", f"_Grad{n} (file.py:1)", ("gradients/AddN",)) for n in range(43)
    )
    table = shown(replace(STAGE, gradients=gradients))[1]
    assert table[2:] == [
        *((f"n{n}", "Mul", f"_Grad{n}", "1", "AddN") for n in range(42, 2, -1)),
        "... and 3 more",
    ]


def test_a_model_without_a_loss_has_nothing_added():
    assert shown(Backward(None, FORWARD)) == [
        "The model has no loss or no optimiser, and its graph holds no gradients. There is "
        "nothing to differentiate, so nothing was added."
    ]


def test_a_model_that_could_be_trained_says_why_nothing_is_added():
    program = SimpleNamespace(model=SimpleNamespace(not_trained="'m' is compiled with 'mse'."))
    assert shown(Backward(program, FORWARD)) == [
        "'m' is compiled with 'mse'. There is nothing to differentiate, so nothing was added."
    ]


def test_of_many_forward_ops_those_that_are_numbered_alike_are_one_row():
    gradients = [
        Gradient(f"step_{n}/{kind}", kind, f"_{kind}Grad", ("gradients/loss/Tile",) * size)
        for n in range(21)
        for kind, size in (("Tanh", 1), ("MatMul", 2 if n != 5 else 3))
    ]
    table = backward.derived(replace(STAGE, gradients=tuple(gradients)))
    assert [cells[0:4:3] for cells in table.cells()] == [
        ("step_20/MatMul ... step_0/MatMul (20 alike)", "2 each"),
        ("step_20/Tanh ... step_0/Tanh (21 alike)", "1 each"),
        ("step_5/MatMul", "3"),
    ]
    assert len(in_full(table).rows) == 42


def test_a_graph_that_came_with_gradients_says_so_and_nothing_else():
    stage = replace(STAGE, inferred=True)
    assert list(backward.blocks(stage)) == ["The graph came with gradients. Nothing was added."]
