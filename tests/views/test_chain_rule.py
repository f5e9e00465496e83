"""The view of the chain rule: every sentence and every cell, of records made by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.records_by_hand import read, source
from tests.shown import layout
from tflab.analysis.gradient_nodes import GATES, SHAPES, STARTS, WHY
from tflab.records.blocks import Frame, Strip
from tflab.records.gradients import Derivative, GradientNode, Link
from tflab.records.graph import Node, Tensor
from tflab.records.stages import Backward
from tflab.views import chain_rule, gradient_drawing

FLOAT = (Tensor("float32", (None,)),)
LINKS = (
    Link("loss", "mean(mul)", "mul", "mul", "dL/d(mul)", "dL/d(loss) / 4", True),
    Link("mul", "x * y", "y", "read/y", "dL/dy", "sum(x * dL/d(mul))", True),
    Link("mul", "x * y", "x2", "read/x", "dL/d(x2)", "dL/d(mul) * y", True),
)


def described(name, formula, towards=None, complete=False, used=True, kind=None, line=None):
    return GradientNode(f"gradients/{name}", formula, towards, complete, used, kind, line)


LINE = source(282, "return truediv(grad)", "math_grad.py")
GRADIENT_NODES = (
    described("start", "1", "dL/d(loss)", True, kind=STARTS),
    described("shape", "", kind=SHAPES),
    described("div", "dL/d(loss) / 4", "dL/d(mul)", True, line=LINE),
    described("Mul", "dL/d(mul) * y", "dL/d(x2)", True, used=False),
    described("Mul_1", "x * dL/d(mul)", "dL/dy"),
    described("gate", "", "dL/dy", True, kind=GATES),
    described("deps", "", kind=GATES),
)
NODES = (
    Node("x", "Placeholder", outputs=FLOAT),
    Node("mul", "Mul", ("x",), outputs=FLOAT),
    Node("other", "Exp", ("x",), outputs=FLOAT),
    Node("gradients/start", "Fill", outputs=FLOAT),
    Node("gradients/shape", "Shape", ("mul",), outputs=FLOAT),
    Node("gradients/div", "RealDiv", ("gradients/start", "gradients/shape"), outputs=FLOAT),
    Node("gradients/Mul", "Mul", ("gradients/div",), outputs=FLOAT),
    Node("gradients/Mul_1", "Mul", ("x", "gradients/div"), outputs=FLOAT),
    Node("gradients/gate", "Identity", ("gradients/Mul_1",), ("gradients/deps",), outputs=FLOAT),
    Node("gradients/deps", "NoOp", (), ("gradients/Mul", "gradients/Mul_1")),
    Node("train", "ApplyAdam", ("y", "gradients/gate"), outputs=FLOAT),
)
DERIVATIVES = (
    Derivative("y", "mean(x)", 1.23456789, 4.4e-8, 2e-8),
    Derivative("w", "x + w", [[0.5, 2.0], [3.0, 4.0]], None, 0.0),
    Derivative("v", "x", [7.0], 0.0, 0.0),
)
STAGE = Backward(
    None,
    NODES,
    variable_count=2,
    gradient_nodes=GRADIENT_NODES,
    chain_rule=LINKS,
    derivatives=DERIVATIVES,
)
NONE = "tflab has no formula that was seen to give the values"
GOING_BACK = (
    "Going back from the loss, each op's gradient function turns the gradient with respect to its "
    "output into the gradients with respect to its inputs. One pass gives the gradients of all "
    "variables."
)


def opening(stage):
    return list(map(read, chain_rule.opening(stage)))


def test_it_opens_with_the_chain_rule_of_this_graph():
    assert opening(STAGE) == [
        "The chain rule, for this graph: dL/dy = dL/d(mul) * d(mul)/dy. L is loss = mean(mul).",
        GOING_BACK,
        [
            "The chain rule step by step, from the loss back to the variables",
            ("forward op", "computes", "hands back dL/d(...)", "which is"),
            ("loss", "mean(mul)", "mul", "dL/d(loss) / 4"),
            ("mul", "x * y", "y", "sum(x * dL/d(mul))"),
            ("", "", "x2", "dL/d(mul) * y"),
            "",
        ],
        [
            "The derivatives as formulas, and their values for the first batch",
            ("variable", "derivative", "value", "finite differences"),
            ("y", "mean(x)", "1.23457", "differ by 4.4e-08"),
            ("w", "x + w", "0.5, ...", "none"),
            ("v", "x", "7", "differ by 0.0e+00"),
            "",
        ],
    ]


def test_a_chain_that_is_not_known_from_the_loss_on_names_the_loss():
    loss = SimpleNamespace(op=SimpleNamespace(name="cost"))
    program = SimpleNamespace(model=SimpleNamespace(loss=loss))
    assert opening(replace(STAGE, program=program))[0] == (
        "The chain rule, for this graph: dL/dy = dL/d(mul) * d(mul)/dy. L is cost."
    )


def test_without_a_derivative_nothing_is_said_of_them():
    blocks = opening(replace(STAGE, derivatives=()))
    assert blocks[3:] == [f"2 of 2 derivatives are not written as a formula: {NONE}."]
    blocks = opening(replace(STAGE, derivatives=(), no_formula="they are too large"))
    assert blocks[3:] == ["2 of 2 derivatives are not written as a formula: they are too large."]


def test_where_the_program_ends_a_gradient_or_gives_its_own_is_said():
    one = opening(replace(STAGE, stopped=("stop",), custom_gradients=("sign",)))
    assert one[-2:] == [
        "stop_gradient ends gradients at stop: the derivatives leave out how the loss depends on "
        "variables through it. Finite differences include it.",
        "sign has a custom gradient: TensorFlow takes what that function returns for the "
        "derivative, whether or not it is the derivative.",
    ]
    names = tuple("abcdefg")
    many = opening(replace(STAGE, stopped=names, custom_gradients=names[:5]))
    assert many[-2].startswith("stop_gradient ends gradients at a, b, c, d, e and 2 more: ")
    assert "through them" in many[-2]
    assert many[-1].startswith("a, b, c, d, e have a custom gradient: ")


def test_steps_without_a_formula_are_counted_and_an_op_still_stands_once():
    links = (replace(LINKS[0], formula=""), *LINKS[1:], replace(LINKS[2], formula="", by="z"))
    _, _, table, sentence, *_ = opening(replace(STAGE, chain_rule=links))
    assert table[2:4] == [
        ("mul", "x * y", "y", "sum(x * dL/d(mul))"),
        ("", "", "x2", "dL/d(mul) * y"),
    ]
    assert sentence == f"2 of 4 steps are not written as a formula: {NONE}."


def test_one_derivative_without_a_formula_is_counted():
    assert opening(replace(STAGE, variable_count=4))[-1] == (
        f"1 of 4 derivatives is not written as a formula: {NONE}."
    )


def chain_of(*names):
    """Links along these ops, the last of which takes the variable w."""
    pairs = zip(names, [*names[1:], "w"], strict=True)
    return tuple(Link(a, f"Op({b})", b, b, f"dL/d({b})", f"{b} by hand", True) for a, b in pairs)


LAYERS = ("loss/mean", "loss/ce", "d2/bias", "d2/mul", "d1/bias", "d1/mul", "c/relu", "c/conv")


def test_a_long_chain_is_told_along_the_tensors_between_its_layers():
    stage = replace(STAGE, chain_rule=chain_of(*LAYERS), derivatives=())
    assert opening(stage)[:2] == [
        "The chain rule, for this graph: dL/dw = dL/d(d2/bias) * d(d2/bias)/d(d1/bias) * "
        "d(d1/bias)/d(c/relu) * d(c/relu)/dw. L is loss/mean = Op(loss/ce).",
        GOING_BACK,
    ]


def test_a_chain_that_comes_back_to_a_layer_names_no_tensor_twice():
    names = ("s/mean", "s/ce", "s/mul", "s/look/Identity", "s/look", "w/a", "w/b")
    equation = opening(replace(STAGE, chain_rule=chain_of(*names)))[0].partition(". L is ")[0]
    assert equation == (
        "The chain rule, for this graph: dL/dw = dL/d(s/look/Identity) * "
        "d(s/look/Identity)/d(s/look) * d(s/look)/d(w/a) * d(w/a)/dw"
    )


def test_a_step_names_what_its_gradient_is_with_respect_to():
    link = Link("a/mul", "", "a/y", "a/read/y", "", "", True)
    gradients = {
        "dL/d(a/y)": "a/y",
        "dL/d(a/y) by a/mul": "a/y, in part",
        "dL/d(a/y) by a/mul[1]": "a/y, as input 1",
        "rows of dL/d(a/y)": "rows of a/y",
        "rows of dL/d(a/y) by a/mul": "rows of a/y, in part",
    }
    for gradient, text in gradients.items():
        assert chain_rule.with_respect_to(replace(link, gradient=gradient)) == text


def test_of_many_layers_the_first_and_the_last_are_named():
    names = [f"layer{number}/op" for number in range(9)]
    sentence = opening(replace(STAGE, chain_rule=chain_of(*names)))[0]
    assert sentence.startswith(
        "The chain rule, for this graph: dL/dw = dL/d(layer1/op) * d(layer1/op)/d(layer2/op) * "
        "d(layer2/op)/d(layer3/op) * ... * d(layer7/op)/d(layer8/op) * d(layer8/op)/dw. "
    )


def test_a_gradient_of_several_parts_is_said_to_be_added_up():
    links = (LINKS[0], replace(LINKS[1], gradient="dL/dy by mul", alone=False))
    chain, told, added, *_ = opening(replace(STAGE, chain_rule=links))
    assert chain.startswith(
        "The chain rule, for this graph: dL/dy = dL/d(mul) * d(mul)/dy + .... L is "
    )
    assert told == GOING_BACK
    assert added == (
        "A value that is used several times receives the sum of the gradients of its uses."
    )


def test_a_large_gradient_graph_is_not_drawn_but_has_its_steps():
    many = tuple(described(f"n{n}", "a", "dL/dy") for n in range(65))
    small, large = (replace(STAGE, gradient_nodes=nodes) for nodes in (many[:64], many))
    assert opening(small) == opening(large) == opening(STAGE)
    assert [block.title.partition(",")[0] for block in chain_rule.nodes(small)] == [
        "The gradient graph",
        "Bookkeeping: 0 of 64 nodes",
    ]
    assert [block.title for block in chain_rule.nodes(large)] == ["Bookkeeping: 0 of 65 nodes"]


def test_nodes_that_may_be_bookkeeping_are_counted():
    nodes = tuple(described(f"n{n}", "a", "dL/dy") for n in range(4))
    for unknown, also in (
        (1, "1 more may be bookkeeping: its values are unknown"),
        (2, "2 more may be bookkeeping: their values are unknown"),
    ):
        some = (*(replace(node, decided=False) for node in nodes[:unknown]), *nodes[unknown:])
        strip = chain_rule.bookkeeping(replace(STAGE, gradient_nodes=some))
        assert strip.title == f"Bookkeeping: 0 of 4 nodes; {also}"


def test_of_many_steps_the_first_40_are_shown():
    names = [f"layer{number}/op" for number in range(42)]
    _, _, table, *_ = opening(replace(STAGE, chain_rule=chain_of(*names)))
    assert [row[0] for row in table[2:-1]] == names[:40]
    assert table[-1] == "... and 2 more"


def test_inputs_without_inputs_of_their_own_are_drawn_right_before_their_node():
    nodes = (Node("b", "Const"), Node("z", "Exp", ("b",)), Node("n", "Op", ("a:1", "z", "b")))
    drawn = gradient_drawing.leaves_last((Node("a", "Const"), *nodes))
    assert [node.inputs for node in drawn] == [(), (), ("b",), ("z", "a:1", "b")]


def test_the_gradient_graph_is_drawn_with_what_it_takes_and_who_takes_it():
    table = gradient_drawing.drawing(STAGE)
    assert read(table) == [
        "The gradient graph, from the loss down to the updates (-> a step towards that gradient, "
        "= that gradient; in brackets: bookkeeping)",
        ("", "node", "computes"),
        ("●  ", "mul", "forward: x * y"),
        ("●  ", "shape", "[shape]"),
        ("│ ●", "start", "[start] = dL/d(loss)"),
        ("●─╯", "div", "dL/d(loss) / 4 = dL/d(mul)"),
        ("│ ●", "x", "fed"),
        ("├─●", "Mul_1", "x * dL/d(mul) -> dL/dy"),
        ("│ ●", "gate", "[gate] = dL/dy"),
        ("│ ●", "train", "update: ApplyAdam"),
        ("●  ", "Mul", "not used: dL/d(mul) * y = dL/d(x2)"),
        "",
    ]
    dim = [row.name for row in table.rows if table.dimmed(row)]
    assert dim == ["shape", "start", "gate"]
    assert layout(table) == [
        "",
        "node gives way to 16 in the middle",
        "computes gives way to 46",
    ]


def test_bookkeeping_has_its_kinds_and_reasons_the_most_frequent_first():
    *_, strip = chain_rule.nodes(STAGE)
    assert strip == Strip(
        "Bookkeeping: 4 of 7 nodes",
        (
            Frame("gate", "2 nodes: Identity, NoOp", (WHY[GATES],)),
            Frame("start", "1 node: Fill", (WHY[STARTS],)),
            Frame("shape", "1 node: Shape", (WHY[SHAPES],)),
        ),
    )


@pytest.mark.parametrize("part", [chain_rule.opening, chain_rule.nodes])
def test_without_gradients_there_is_nothing_to_tell(part):
    assert list(part(Backward(None, NODES))) == []


def test_the_chain_rule_of_a_graph_as_one_equation():
    assert chain_rule.equation(STAGE) == "dL/dy = dL/d(mul) * d(mul)/dy"
    assert chain_rule.equation(replace(STAGE, chain_rule=())) == ""
