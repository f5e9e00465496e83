"""The values of a recorded step in a node's history: from records worked out by hand."""

from dataclasses import replace

from tests.views.test_values import value
from tflab.follow import values, view
from tflab.follow.view import Aside, Code, NodeLink
from tflab.records import Fate, GradientNode, Node, NodeHistory, Source, Tensor

LINE = Source("lib/math_grad.py", 1433, "_MulGrad", "gy = mul(x, grad)")


def history(name, kind="gradient", fate="executed", into=None):
    became = Fate(name, fate, None, into)
    outputs = (Tensor("float32", None),)
    blank = NodeHistory(name, "Op", kind, None, (), (), outputs, fate=became)
    return replace(blank, carrier=name if fate == "executed" else into, ran_as="Op")


def meaning(name, formula, towards, complete=True, bookkeeping=None, used=True):
    return GradientNode(name, formula, towards, complete, used, bookkeeping, LINE)


MEANINGS = (
    meaning("seed", "1", "dL/d(loss)", bookkeeping="start"),
    meaning("product", "x * dL/d(mul)", "dL/dy", complete=False),
    meaning("sum", "sum(x * dL/d(mul))", "dL/dy"),
    meaning("gate", "", "dL/dy", bookkeeping="gate"),
    meaning("back", "2 * error", "dL/d(mul)"),
    meaning("gate_1", "", "dL/d(mul)", bookkeeping="gate"),
    meaning("fused", "mul * 2", "dL/dx", used=False),
)
HISTORIES = {
    node.name: node
    for node in (
        history("x", "forward", "removed", "_arg_x"),
        history("y", "forward"),
        history("mul", "forward"),
        history("loss", "forward"),
        history("seed", fate="folded", into="one"),
        history("product"),
        history("sum"),
        history("gate", fate="unreached"),
        history("back"),
        history("gate_1", fate="removed", into="back"),
        history("fused", fate="fused", into="back"),
    )
}
ONE = value("one:0", (1.0,), (1,), "Const", "constant")
Y = value("y", (0.5,), (), "VarHandleOp", "variable", after=(2.25,))
X = replace(value("x:0", (1.0, 2.0), (2,), "_Arg", "fed"), node="_arg_x")
MUL = value("mul:0", (0.5, 1.0), (2,))
LOSS = value("loss:0", (7.0,), ())
PRODUCT = value("product:0", (3.0, 4.0), (2,))
SUM = value("sum:0", (-3.5,), ())
BACK = value("back:0", (6.0, 6.0), (2,))
VALUES = (ONE, Y, X, MUL, LOSS, PRODUCT, SUM, BACK)
RAN = (
    Node("y", "VarHandleOp"),
    Node("_arg_x", "_Arg"),
    Node("mul", "Mul", ("_arg_x", "y", "unknown")),
    Node("sum", "Sum", ("product",)),
    Node("back", "Mul", ("loss", "one")),
)
KNOWN = values.with_values(HISTORIES, MEANINGS, VALUES, RAN)


def lines(name):
    return [
        "".join(part if isinstance(part, str) else part.text for part in line)
        for line in view.value_lines(KNOWN[name])
    ]


def test_a_node_has_the_values_of_its_own_outputs_and_a_placeholder_what_was_fed():
    assert {name: node.values for name, node in KNOWN.items() if node.values} == {
        "x": (X,),
        "y": (Y,),
        "mul": (MUL,),
        "loss": (LOSS,),
        "product": (PRODUCT,),
        "sum": (SUM,),
        "back": (BACK,),
    }


def test_a_gradient_is_what_the_node_held_that_computes_it_or_stands_in_for_it():
    assert {name: node.gradient for name, node in KNOWN.items() if node.gradient} == {
        "y": SUM,
        "mul": BACK,  # by the gate, which was removed for it
        "loss": ONE,
    }


def test_of_several_nodes_that_hold_a_gradient_the_last_is_named():
    gate = replace(SUM, tensor="gate:0", node="gate")
    histories = {**HISTORIES, "gate": history("gate")}
    assert values.with_values(histories, MEANINGS, (Y, SUM, gate), ())["y"].gradient is gate


def test_no_gradient_comes_from_a_node_that_computes_something_else_too():
    half = replace(ONE, values=(0.5,))
    assert values.with_values(HISTORIES, MEANINGS, (half, LOSS), ())["loss"].gradient is None
    fused = values.with_values(HISTORIES, MEANINGS, (X, BACK), ())["x"]
    assert fused.gradient is None


def test_a_gradient_has_as_many_elements_as_what_it_is_the_gradient_of():
    rows = replace(BACK, shape=(1,), values=(6.0,))  # as of a lookup, that are for some rows only
    assert values.with_values(HISTORIES, MEANINGS, (MUL, rows), ())["mul"].gradient is None


def test_a_node_that_did_not_run_by_itself_says_what_became_of_it():
    assert {name: values.missing(node) for name, node in KNOWN.items()} == {
        **dict.fromkeys(("x", "y", "mul", "loss", "product", "sum", "back")),
        "seed": "folded",
        "gate": "unreached",
        "gate_1": "removed",
        "fused": "fused",
    }
    assert values.missing(replace(KNOWN["gate"], outputs=())) is None  # it had none to have


def test_the_values_and_the_gradient_read_as_lines():
    assert lines("y") == [
        "before the recorded step: 0.5",
        "after the step: 2.25",
        "dL/dy, which sum held: -3.5",
    ]
    assert lines("x") == ["fed to x in the recorded step: 1, 2"]
    assert lines("mul") == [
        "took x: 1, 2",
        "took y: 0.5",
        "held by mul in the recorded step: 0.5, 1",
        "dL/d(mul), which back held: all 6 (2)",
    ]
    many = replace(KNOWN["back"], values=(replace(BACK, calls=3),) * 6)
    assert [sentence[0] for sentence in values.sentences(replace(many, taken=()))] == [
        *["held by back in the recorded step, the last time of 3: all 6 (2)"] * 4,
        "and 2 outputs more",
    ]


def test_a_node_that_was_fused_has_what_the_node_took_and_held_that_does_its_work():
    assert KNOWN["fused"].taken == KNOWN["back"].taken == (LOSS, ONE)
    assert lines("fused") == [
        "took loss: 7",
        "took one: 1",
        "held by back in the recorded step: all 6 (2)",
    ]
    # What takes a removed node's place is no work of that node
    assert {name: node.carrier_values for name, node in KNOWN.items() if node.carrier_values} == {
        "fused": (BACK,)
    }


def test_of_many_inputs_the_first_are_told():
    many = replace(KNOWN["fused"], taken=(LOSS,) * 6, carrier_values=())
    assert [sentence[0] for sentence in values.sentences(many)] == [
        *["took "] * 4,
        "and 2 inputs more",
    ]


def test_a_formula_says_where_it_leads_and_who_made_it():
    made = ("made by math_grad.py:1433  ", Code("gy = mul(x, grad)"))
    assert list(view.meaning_lines(MEANINGS[1])) == [
        ("computes ", Code("x * dL/d(mul)"), ", which leads to dL/dy"),
        made,
    ]
    assert list(view.meaning_lines(replace(MEANINGS[6], line=None))) == [
        ("computes ", Code("mul * 2"), ", which is dL/dx; no variable needs it"),
    ]


def test_bookkeeping_is_an_aside_with_its_reason():
    gate = "An op's gradients wait for one another here, and are handed on unchanged."
    assert list(view.backward_lines(KNOWN["gate"])) == [
        (Aside(f"bookkeeping (gate): {gate}"),),
        ("is dL/dy",),
        ("made by math_grad.py:1433  ", Code("gy = mul(x, grad)")),
    ]


def test_the_values_stand_among_what_was_executed():
    executed = view.sections(KNOWN["mul"])[-1]
    assert executed.title == "Executed"
    assert executed.lines[:2] == (
        ("took ", NodeLink("x", "x"), ": 1, 2"),
        ("took ", NodeLink("y", "y"), ": 0.5"),
    )
    assert executed.lines[2] == ("held by mul in the recorded step: 0.5, 1",)
    assert executed.lines[3][1] == NodeLink("back", "back")
