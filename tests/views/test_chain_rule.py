"""The view of the chain rule, from records made by hand."""

from dataclasses import replace
from types import SimpleNamespace

from tests.examples.printed import approve_view
from tests.graph_notation import graph
from tests.records_by_hand import a_backward
from tflab.analysis.chain_rule import GATES, STARTS, WHOLE
from tflab.records.blocks import fact_table
from tflab.records.graph import Derivative, GradientNode, Link, Tensor
from tflab.views import backward

FLOAT = (Tensor("float32", (None,)),)
LINKS = (
    Link("loss", "mean(mul)", "mul", "mul", "dL/d(mul)", "dL/d(loss) / 4", True),
    Link("mul", "x * y", "y", "read/y", "dL/dy", "sum(x * dL/d(mul))", True),
    Link("mul", "x * y", "x2", "read/x", "dL/d(x2)", "dL/d(mul) * y", True),
)


def described(name, formula, towards=None, complete=False, used=True, kind=None):
    return GradientNode(f"gradients/{name}", formula, towards, complete, used, kind)


GRADIENT_NODES = (
    described("start", "1", "dL/d(loss)", True, kind=STARTS),
    described("shape", "", kind=WHOLE),
    described("div", "dL/d(loss) / 4", "dL/d(mul)", True),
    described("Mul", "dL/d(mul) * y", "dL/d(x2)", True, used=False),
    described("Mul_1", "x * dL/d(mul)", "dL/dy"),
    described("gate", "", "dL/dy", True, kind=GATES),
    described("deps", "", kind=GATES),
)
NODES = tuple(
    replace(node, outputs=() if node.op == "NoOp" else FLOAT)
    for node in graph(
        """x=Placeholder; mul=Mul(x); other=Exp(x); gradients/start=Fill;
        gradients/shape=Shape(mul); gradients/div=RealDiv(gradients/start,gradients/shape);
        gradients/Mul=Mul(gradients/div); gradients/Mul_1=Mul(x,gradients/div);
        gradients/gate=Identity(gradients/Mul_1,^gradients/deps);
        gradients/deps=NoOp(^gradients/Mul,^gradients/Mul_1); train=ApplyAdam(y,gradients/gate)"""
    )
)
STAGE = a_backward(
    None,
    NODES,
    variable_count=3,
    gradient_nodes=GRADIENT_NODES,
    chain_rule=LINKS,
    derivatives=(
        Derivative("y", "mean(x)", 1.23456789, 4.4e-8, 2e-8),
        Derivative("w", "x + w", [[0.5, 2.0], [3.0, 4.0]], None, 0.0),
        Derivative("v", "x", [7.0], 0.0, 0.0),
    ),
)
COST = SimpleNamespace(model=SimpleNamespace(loss=SimpleNamespace(op=SimpleNamespace(name="cost"))))
MANY = tuple(described(f"n{n}", "a", "dL/dy") for n in range(65))


def chain_of(*names):
    """Links along these ops, the last of which takes the variable w."""
    pairs = zip(names, [*names[1:], "w"], strict=True)
    links = (Link(a, f"Op({b})", b, b, f"dL/d({b})", f"{b} by hand", True) for a, b in pairs)
    return {"chain_rule": tuple(links), "derivatives": (), "no_formula": "they are large"}


# Title -> what is different
VARIANTS = {
    "the loss of the program has another name": {"program": COST},
    "no derivative is written for a reason": {"derivatives": (), "no_formula": "they are large"},
    "the program ends a gradient and gives its own": {
        "stopped": ("stop",),
        "custom_gradients": ("sign",),
    },
    "steps without a formula": {
        "chain_rule": (
            replace(LINKS[0], formula="", lacks="there is no rule"),
            *LINKS[1:],
            replace(LINKS[2], formula="", lacks="the values differ", by="z"),
        )
    },
    "one derivative without a formula": {"variable_count": 4, "no_formula": "it is large"},
    "two derivatives are facts": {"derivatives": STAGE.derivatives[:2], "variable_count": 2},
    "an equation of five lines": {
        "chain_rule": (Link("loss", "", "y" * 200, "", "dL/d(y)", "by hand", True),)
    },
    "of many layers the first and the last": chain_of(*(f"layer{n}/op" for n in range(9))),
    "a gradient of several parts": {
        "chain_rule": (
            LINKS[0],
            replace(LINKS[1], gradient="dL/dy by mul", alone=False),
            replace(LINKS[2], gradient="rows of dL/d(x2) by mul[1]", alone=False),
        )
    },
    "the largest graph that is drawn": {"gradient_nodes": MANY[:64]},
    "a graph that is too large to draw": {"gradient_nodes": MANY},
    "no gradients": {"gradient_nodes": (), "chain_rule": ()},
}


def blocks(stage):
    return [fact_table(backward.chain_rule_facts(stage)), *backward.chain_rule_tables(stage)]


def test_the_chain_rule_of_a_graph_its_steps_its_drawing_and_its_bookkeeping():
    variants = {title: blocks(replace(STAGE, **to)) for title, to in VARIANTS.items()}
    approve_view("views-chain-rule.txt", blocks(STAGE), variants)


def test_bookkeeping_is_dim_in_the_drawing():
    table = backward.drawing(STAGE)
    dim = [row[1].name for row in table.rows if table.tone(row) == "less"]
    assert dim == ["gradients/start", "gradients/shape", "gradients/gate"]
