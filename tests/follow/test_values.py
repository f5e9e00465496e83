"""The values of a recorded step in a node's history: from records worked out by hand."""

from dataclasses import replace

from tests.views.test_values import value
from tflab.follow import values, view
from tflab.follow.view import Aside, Code, NodeLink
from tflab.records.gradients import GradientNode
from tflab.records.graph import Node, Source, Tensor
from tflab.records.node_history import NodeHistory
from tflab.records.placed import Fate
from tflab.records.values import Defined

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


def defined(row, held_by=""):
    """What the program defines a tensor as: by default, the tensor that ran of its name held it."""
    same = row.tensor.removesuffix(":0")
    return Defined(**vars(row) | {"agrees": None}, held_by=same if held_by == "" else held_by)


GATE = replace(BACK, tensor="gate_1:0", node="gate_1")
SEED = replace(ONE, tensor="seed:0", node="seed", shape=())
DEFINED = (
    *map(defined, (MUL, LOSS, PRODUCT, SUM, BACK)),
    defined(GATE, "back"),
    defined(SEED, None),
)
KNOWN = values.with_values(HISTORIES, MEANINGS, VALUES, DEFINED, RAN)


def texts(known):
    return [
        "".join(part if isinstance(part, str) else part.text for part in line)
        for line in view.value_lines(known)
    ]


def lines(name):
    return texts(KNOWN[name])


def test_a_node_has_the_values_that_the_program_defines_and_a_placeholder_what_was_fed():
    assert {name: node.values for name, node in KNOWN.items() if node.values} == {
        "x": (X,),
        "y": (Y,),
        "seed": (defined(SEED, None),),
        **{row.node: (defined(row),) for row in (MUL, LOSS, PRODUCT, SUM, BACK)},
        "gate_1": (defined(GATE, "back"),),
    }


def test_a_gradient_is_what_the_node_is_by_definition_that_computes_it():
    assert {name: node.gradient for name, node in KNOWN.items() if node.gradient} == {
        "y": defined(SUM),
        "mul": defined(GATE, "back"),
        "loss": defined(SEED, None),
    }


def test_no_gradient_is_taken_from_the_graph_that_ran_alone():
    known = values.with_values(HISTORIES, MEANINGS, VALUES, (), RAN)
    assert not any(node.gradient for node in known.values())


def test_a_gradient_has_as_many_elements_as_what_it_is_the_gradient_of():
    rows = replace(BACK, shape=(1,), values=(6.0,))  # as of a lookup, that are for some rows only
    known = values.with_values(HISTORIES, MEANINGS, (), (defined(MUL), defined(rows)), ())
    assert known["mul"].gradient is None


def test_a_node_that_did_not_run_took_nothing_unless_the_recorded_step_has_its_value():
    dead = {"mul": replace(HISTORIES["mul"], not_run=True)}
    known = values.with_values(dead, MEANINGS, (X, Y), (), RAN)["mul"]
    assert (known.not_run, known.taken) == (True, ())
    known = values.with_values(dead, MEANINGS, (X, Y, MUL), (), RAN)["mul"]
    assert (known.not_run, known.taken) == (False, (X, Y))


OTHER = replace(MUL, values=(9.0, 9.0), agrees=False)


def test_a_node_that_ran_with_other_inputs_has_both_values():
    reference = (defined(MUL, None),)
    known = values.with_values(HISTORIES, MEANINGS, (X, Y, OTHER), reference, RAN)["mul"]
    assert known.values == reference
    assert known.own_values == (OTHER,)
    assert known.other_inputs == ("_arg_x", "y", "unknown")
    assert view.sections(known)[-2].about == "runs under its own name, with other inputs"
    assert texts(known) == [
        "took x in the recorded step: 1, 2",
        "took y in the recorded step: 0.5",
        "mul in a step without graph passes (no node that took its place has this value): 0.5, 1",
        "a node with this name ran, but with other inputs: it ran as Op of _arg_x, y, unknown",
        "held by mul in the recorded step: all 9 (2)",
    ]
    assert values.missing(known) is None


def test_a_node_whose_definition_is_not_known_shows_nothing_under_its_name():
    known = values.with_values(HISTORIES, MEANINGS, (OTHER,), (), RAN)["mul"]
    assert (known.values, known.own_values) == ((), (OTHER,))


def test_a_node_that_has_no_value_says_what_became_of_it():
    known = values.with_values(HISTORIES, MEANINGS, VALUES, (), RAN)
    assert {name: values.missing(node) for name, node in known.items()} == {
        **dict.fromkeys(("x", "y", "mul", "loss", "product", "sum", "back")),
        "seed": "folded",
        "gate": "unreached",
        "gate_1": "removed",
        "fused": "fused",
    }
    assert values.missing(replace(known["gate"], outputs=())) is None  # it had none to have


def test_the_values_and_the_gradient_read_as_lines():
    assert lines("y") == [
        "before the recorded step: 0.5",
        "after the recorded step: 2.25",
        "dL/dy, computed by sum in the recorded step: -3.5",
    ]
    assert lines("x") == ["fed to x in the recorded step: 1, 2"]
    assert lines("mul") == [
        "took x in the recorded step: 1, 2",
        "took y in the recorded step: 0.5",
        "held by mul in the recorded step: 0.5, 1",
        "dL/d(mul), computed by gate_1 in the recorded step: all 6 (2)",
    ]
    many = replace(KNOWN["back"], values=(replace(BACK, calls=3),) * 6)
    assert ["".join(map(str, (s[0], s[2]))) for s in values.sentences(replace(many, taken=()))] == [
        *["held by back in the recorded step, the last time of 3: all 6 (2)"] * 4,
        "and 2 more outputs",
    ]


def test_a_node_that_was_fused_has_what_the_node_took_and_held_that_does_its_work():
    assert KNOWN["fused"].taken == KNOWN["back"].taken == (LOSS, ONE)
    assert lines("fused") == [
        "took loss in the recorded step: 7",
        "took one in the recorded step: 1",
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
        "and 2 more inputs",
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
    gate = "These nodes wait until all gradients of an op are ready, and pass them on unchanged."
    assert list(view.backward_lines(KNOWN["gate"])) == [
        (Aside(f"bookkeeping (gate): {gate}"),),
        ("is dL/dy",),
        ("made by math_grad.py:1433  ", Code("gy = mul(x, grad)")),
    ]


def test_the_values_stand_among_what_was_executed():
    executed = view.sections(KNOWN["mul"])[-1]
    assert executed.title == "Executed"
    assert executed.lines[:2] == (
        ("took ", NodeLink("x", "x"), " in the recorded step: 1, 2"),
        ("took ", NodeLink("y", "y"), " in the recorded step: 0.5"),
    )
    assert executed.lines[2] == ("held by mul in the recorded step", ": 0.5, 1")
    assert executed.lines[3][1] == NodeLink("gate_1", "gate_1")
