"""Gradient nodes: formulas, where they lead and what is bookkeeping, of a graph made by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests import graph_notation
from tests.approval import approve
from tests.graph_notation import graph
from tflab.analysis import chain_rule, formulas
from tflab.analysis.chain_rule import GATES, SAME, STARTS, WHOLE, ZEROS
from tflab.analysis.expressions import NOWHERE, Name, Points, text
from tflab.analysis.gradient_graph import GradientGraph
from tflab.records.graph import GradientCall, Link, Node, Tensor
from tflab.records.stages import Gradient

# The graph: loss = mean(x * y) over four rows, as `tf.gradients` makes it

FOUR = (Tensor("float32", (4,)),)
ONE = (Tensor("float32", ()),)
INTS = (Tensor("int32", (1,)),)
GRAD = "gradients/mul_grad"
OUTPUTS = {  # of the nodes that are no vectors of four numbers
    "y": (Tensor("resource", ()),),
    "train": (),
    f"{GRAD}/tuple/group_deps": (),
    f"{GRAD}/Sum": (Tensor("float32", (1,)),),
    **dict.fromkeys(("axes", "gradients/loss_grad/shape", f"{GRAD}/axes"), INTS),
    **dict.fromkeys(("gradients/Shape", f"{GRAD}/shape"), (Tensor("int32", (0,)),)),
    **dict.fromkeys(("mul/Read", "loss", "gradients/Const", "gradients/start"), ONE),
    **dict.fromkeys(("gradients/loss_grad/Const", f"{GRAD}/Reshape"), ONE),
    f"{GRAD}/tuple/control_dependency_1": ONE,
}


def nodes(text):
    """Nodes in the notation of graphs; `L` is the scope of the loss's gradient, `M` that of mul."""
    text = text.replace("L/", "gradients/loss_grad/").replace("M/", f"{GRAD}/")
    return tuple(replace(n, outputs=OUTPUTS.get(n.name, FOUR)) for n in graph(text))


FORWARD = nodes(
    """x=Placeholder; y=VarHandleOp; mul/Read=ReadVariableOp(y); mul=Mul(x,mul/Read); axes=Const;
    loss=Mean(mul,axes)"""
)
SHARED = nodes(
    """gradients/Shape=Const; gradients/Const=Const;
    gradients/start=Fill(gradients/Shape,gradients/Const)"""
)
OF_LOSS = nodes(
    """L/shape=Const; L/Tile=Tile(gradients/start,L/shape); L/Const=Const;
    L/truediv=RealDiv(L/Tile,L/Const)"""
)
OF_MUL = nodes(
    """M/Mul=Mul(L/truediv,mul/Read); M/Mul_1=Mul(x,L/truediv); M/axes=Const;
    M/Sum=Sum(M/Mul_1,M/axes); M/shape=Const; M/Reshape=Reshape(M/Sum,M/shape);
    M/tuple/group_deps=NoOp(^M/Mul,^M/Reshape); M/tuple/control_dependency=Identity(M/Mul);
    M/tuple/control_dependency_1=Identity(M/Reshape)"""
)
UPDATE = nodes("train=ResourceApplyGradientDescent(y,M/tuple/control_dependency_1)")
NODES = (*FORWARD, *SHARED, *OF_LOSS, *OF_MUL, *UPDATE)
END = f"{GRAD}/tuple/control_dependency_1"  # the gradient by y


def names(nodes):
    return tuple(node.name for node in nodes)


GRADIENTS = (
    Gradient("mul", "Mul", "_MulGrad", names(OF_MUL), None),
    Gradient("loss", "Mean", "_MeanGrad", names(OF_LOSS), None),
)
CALLS = (
    GradientCall("loss", ("gradients/start",), ("gradients/loss_grad/truediv", None)),
    GradientCall(
        "mul", ("gradients/loss_grad/truediv",), (f"{GRAD}/tuple/control_dependency", END)
    ),
    GradientCall("mul/Read", (END,), (END,)),
)
ATTRIBUTES = {
    "axes": {"value": [0]},
    "gradients/Shape": {"value": []},
    "gradients/Const": {"value": 1.0},
    "gradients/loss_grad/shape": {"value": [4]},
    "gradients/loss_grad/Const": {"value": 4.0},
    f"{GRAD}/axes": {"value": [0]},
    f"{GRAD}/shape": {"value": []},
}


def values(x, y):
    """What each node of the graph computes."""
    mul, quarters = x * y, np.full(4, 0.25)
    sum_of_products = np.array([np.sum(x * quarters)])
    return {
        "x": x,
        "mul/Read": y,
        "mul": mul,
        "loss": np.mean(mul),
        "gradients/Const": np.ones(()),
        "gradients/start": np.ones(()),
        "gradients/loss_grad/Tile": np.ones(4),
        "gradients/loss_grad/Const": np.float64(4),
        "gradients/loss_grad/truediv": quarters,
        f"{GRAD}/Mul": quarters * y,
        f"{GRAD}/Mul_1": x * quarters,
        f"{GRAD}/Sum": sum_of_products,
        f"{GRAD}/Reshape": sum_of_products[0],
        f"{GRAD}/tuple/control_dependency": quarters * y,
        f"{GRAD}/tuple/control_dependency_1": sum_of_products[0],
    }


POINTS = Points(
    (
        values(np.array([1.0, 2, 3, 4]), np.float64(2)),
        values(np.array([-0.5, 0.3, 2, 7]), np.float64(-1.5)),
    ),
    rounding=1e-9,
)
GRAPH = GradientGraph(NODES, GRADIENTS, names(SHARED), CALLS, ATTRIBUTES, POINTS)


# Its nodes


def test_every_gradient_node_of_a_product_and_a_mean():
    rows = []
    for node in chain_rule.described(GRAPH, [END]):
        sign = "= " if node.complete else "> " if node.towards else ""
        towards = f"{sign}{node.towards or ''}".ljust(13)
        about = " not used" * (not node.used)
        kind = node.bookkeeping or "-"
        rows.append(f"{node.name:<45}{node.formula:<21}{towards}{kind}{about}")
    approve("gradient-nodes.txt", "\n".join(rows))


def test_the_steps_of_the_chain_rule():
    assert chain_rule.links(GRAPH, [END]) == (
        Link("loss", "mean(mul)", "mul", "mul", "dL/d(mul)", "dL/d(loss) / 4", True),
        Link("mul", "x * y", "y", "mul/Read", "dL/dy", "sum(x * dL/d(mul))", True),
    )


def test_why_a_step_has_no_formula(monkeypatch):
    def why(**changed):
        (step, _) = chain_rule.links(replace(GRAPH, **changed), [END])
        return step.formula, step.lacks

    divided = "gradients/loss_grad/truediv"
    assert why() == ("dL/d(loss) / 4", "")
    assert why(points=NOWHERE) == ("", "no values could be computed")
    others = tuple(one | {divided: 2 * one[divided]} for one in POINTS.values)
    unlike = ("", "the values did not confirm the formula")
    assert why(points=replace(POINTS, values=others)) == unlike
    unknown = [replace(n, op="Odd") if n.name == divided else n for n in NODES]
    assert why(nodes=tuple(unknown)) == ("", "tflab has no rule for such gradients")
    same = Node("same", "Identity", (divided,), outputs=FOUR)
    after = [*NODES[:-1], same, NODES[-1]]
    gradients = (GRADIENTS[0], replace(GRADIENTS[1], nodes=(*GRADIENTS[1].nodes, "same")))
    points = replace(POINTS, values=tuple(one | {"same": one[divided]} for one in POINTS.values))
    long = replace(GRAPH, nodes=tuple(after), gradients=gradients, points=points)
    monkeypatch.setattr(formulas.composed, "__defaults__", (1, ()))
    assert long.lacks("same") == "the formula is too long"


def test_a_step_that_leads_to_no_variable_is_none_of_them():
    """Clipping takes the gradient by x, too; it is on no way to a variable."""
    ends = [f"{GRAD}/tuple/control_dependency", END]
    assert chain_rule.links(GRAPH, ends) == chain_rule.links(GRAPH, [END])
    placeholder = replace(NODES[1], op="Placeholder")
    fed = replace(GRAPH, nodes=(NODES[0], placeholder, *NODES[2:]))
    by = [link.by for link in chain_rule.links(fed, ends)]
    assert by == ["mul", "x", "mul/Read", "y"]  # without variables there are no such ways


def test_the_longest_way_is_the_one_that_is_told():
    def link(forward, source):
        return Link(forward, "", source, source, "", "", True)

    pairs = ("loss c", "loss b", "c b", "b a", "c a", "loss d")
    links = [link(*pair.split()) for pair in pairs]
    way = chain_rule.path(links, "loss")
    assert [f"{link.forward} {link.source}" for link in way] == ["loss c", "c b", "b a"]


def derivatives(graph):
    known = chain_rule.derivatives(graph, {"y": END})
    return {variable: text(formula) for variable, formula in known.items()}


def test_a_derivative_has_nothing_left_but_variables_and_what_is_fed():
    assert derivatives(GRAPH) == {"y": "sum(x / 4)"}


@pytest.mark.parametrize(
    ("name", "op"),
    [
        # The last op takes the largest product, and its formula says so; the values are of the sum
        ("mul_grad/Sum", "Max"),
        ("loss_grad/Tile", "NoRule"),  # so the name of a gradient node would be left
    ],
)
def test_a_derivative_with_a_step_that_is_wrong_or_unknown_has_no_formula(name, op):
    nodes = tuple(
        replace(node, op=op) if node.name == f"gradients/{name}" else node for node in NODES
    )
    assert derivatives(replace(GRAPH, nodes=nodes)) == {}


def between_x_and_mul(*ops):
    """The graph with ops between x, which is then what the loss is derived by, and the product."""
    names = ["x", *ops]
    added = [Node(op, op, (taken, "axes"), outputs=FOUR) for taken, op in pairwise(names)]
    forward = [replace(n, inputs=(names[-1], "mul/Read")) if n.name == "mul" else n for n in NODES]
    functions = {"Exp": "_ExpGrad", "Log": "_LogGrad"}
    known = tuple(Gradient(op, op, functions.get(op), (), None) for op in ops)
    nodes, gradients = (forward[0], *added, *forward[1:]), (*GRAPH.gradients, *known)
    return replace(GRAPH, nodes=nodes, gradients=gradients)


@pytest.mark.parametrize(
    "ops, known",
    [
        (["StopGradient"], ("StopGradient",)),
        (["Exp", "PyFunc"], ("PyFunc",)),
        (["Exp", "StopGradient"], ("StopGradient",)),
        (["StopGradient", "Log"], ()),  # no gradient came to it
        (["ArgMax", "StopGradient"], ()),  # there was none before it, either
        (["Exp"], ()),
        (["Floor", "Exp", "StopGradient"], ()),
    ],
)
def test_stop_gradient_is_named_where_it_ends_a_gradient(ops, known):
    assert chain_rule.stopped(between_x_and_mul(*ops), ["x"]) == known
    assert chain_rule.stopped(between_x_and_mul(*ops), ["y"]) == ()  # nothing on its way


def test_stop_gradient_is_not_named_where_the_gradient_is_0():
    zeros = tuple(
        {**values, f"{GRAD}/tuple/control_dependency": np.zeros(4)} for values in POINTS.values
    )
    graph = replace(between_x_and_mul("StopGradient"), points=replace(POINTS, values=zeros))
    assert chain_rule.stopped(graph, ["x"]) == ()


def described(graph):
    return {
        node.name.removeprefix("gradients/"): node for node in chain_rule.described(graph, [END])
    }


def with_node(node, value, forward=None):
    """The graph with one more node, of the gradient of `forward`, and its value at each point."""
    known = tuple(at | {node.name: value(at)} for at in POINTS.values)
    gradients = (Gradient(forward, "Op", "", (node.name,), None),) if forward else ()
    return replace(
        GRAPH,
        nodes=(*NODES, node),
        gradients=(*GRAPH.gradients, *gradients),
        points=replace(POINTS, values=known),
    )


def test_what_a_formula_does_not_give_is_not_written_as_that_formula():
    """With a mean over five elements instead of four, the four values are not what it says."""
    wrong = replace(GRAPH, attributes=ATTRIBUTES | {"gradients/loss_grad/Const": {"value": 5.0}})
    assert derivatives(wrong) == {}
    assert described(wrong)["loss_grad/truediv"].formula == ""
    assert described(wrong)["mul_grad/Mul_1"].formula == "x * dL/d(mul)"
    first, second = chain_rule.links(wrong, [END])
    assert (first.formula, first.computes) == ("", "mean(mul)")
    assert second.formula == "sum(x * dL/d(mul))"  # the last step is right


def test_without_values_nothing_is_said_of_them():
    unknown = replace(GRAPH, points=NOWHERE)
    assert derivatives(unknown) == {}
    nodes = described(unknown)
    assert {node.formula for node in nodes.values()} == {""}
    assert {node.bookkeeping for node in nodes.values()} == {None, WHOLE, GATES, SAME}
    # What changes no number is bookkeeping also without values
    assert nodes["mul_grad/tuple/control_dependency_1"].bookkeeping == GATES
    assert nodes["mul_grad/Reshape"].bookkeeping == SAME


def test_a_kind_is_only_said_of_a_node_with_such_numbers():
    first, second = POINTS.values
    second = second | {"gradients/start": second["gradients/start"] + 1}
    other = replace(GRAPH, points=replace(POINTS, values=(first, second)))
    assert described(GRAPH)["start"].bookkeeping == STARTS
    assert described(other)["start"].bookkeeping is None


@pytest.mark.parametrize(
    ("forward", "node", "returned", "kind"),
    [
        ("mul", Node("n", "ZerosLike", ("x",), outputs=FOUR), ("n",), ZEROS),
        # The gradient of a reshape is a reshape; only what it passes on besides is bookkeeping
        ("flat", Node("n", "Reshape", (f"{GRAD}/Mul", "axes"), outputs=FOUR), (), None),
        ("flat", Node("n", "Identity", (f"{GRAD}/Mul",), outputs=FOUR), (), SAME),
    ],
)
def test_the_kind_of_a_node_depends_on_its_forward_op_and_on_what_is_returned(
    forward, node, returned, kind
):
    flat = Node("flat", "Reshape", ("x", "axes"), outputs=FOUR)
    graph = with_node(node, lambda at: np.zeros(4), forward)
    calls = (*GRAPH.calls, GradientCall("flat", (), returned))
    graph = replace(graph, nodes=(*graph.nodes, flat), calls=calls)
    assert described(graph)["n"].bookkeeping == kind


def graph_of(text, called, gradient_nodes=""):
    """The reader of a graph in which each called op returns the gradients `gx` of its inputs x."""
    nodes = graph_notation.graph(text)
    takes = {node.name: node.inputs for node in nodes}
    calls = [
        GradientCall(
            name, ("seed",), tuple(f"g{one}" if one in wanted else None for one in takes[name])
        )
        for name, wanted in called.items()
    ]
    gradients = (Gradient("loss", "Add", "", tuple(gradient_nodes.split()), None),)
    return GradientGraph(nodes, gradients, (), tuple(calls), {})


CHAINS = {  # graph | called ops with the inputs that they have a gradient of | gradient nodes
    "a chain": "x; a=Neg(x); loss=Exp(a) | loss a, a x",
    "no gradient function was asked for what the other use of x contributes": """
        x; a=Neg(x); b=Floor(x); loss=Add(a,b) | loss a, a x""",
    "what a gradient function received has no other part": """
        x; y=Exp(x); a=Neg(y); b=Floor(y); loss=Add(a,b) | loss a, a y, y x""",
    "nor has what a variable is": """
        v=VarHandleOp; r=ReadVariableOp(v); a=Neg(r); b=Floor(r); loss=Add(a,b) | loss a, a r""",
    "a gradient node that leads to the loss is no forward use": """
        x; a=Neg(x); old=Mul(x); loss=Add(a,old) | loss a, a x | old""",
}
TABLES = {  # uses of a table e | nodes that its gradients make
    "of two lookups the rows are put one after the other": """
        g=Gather(e); h=Gather(e) | both=ConcatV2(dg,dh,axis); i=ConcatV2(ig,ih,axis)""",
    "with another use the rows become a tensor of all rows": """
        g=Gather(e); m=Exp(e) | all_g=UnsortedSegmentSum(dg,ig); sum=AddN(all_g,dm)""",
    "clipping makes it one too": """
        g=Gather(e) | all_g=UnsortedSegmentSum(dg,ig); clip=Mul(all_g,c)""",
    "what is no gradient of rows is not put together": """
        m=Exp(e); n=Log(e) | both=ConcatV2(dm,dn,axis); one=UnsortedSegmentSum(dm,i)""",
}


def of_chain(case):
    nodes, called, *others = case.split("|")
    pairs = dict(pair.split() for pair in called.split(","))
    return graph_of(nodes, pairs, "".join(others))


def of_table(case):
    """The reader of a lookup table, whose gradients are called d and the name of their op."""
    uses, added = case.split("|")
    users = graph_notation.graph(uses)
    made = graph_notation.graph(
        f"seed=Fill; {'; '.join(f'd{user.name}' for user in users)}; {added}"
    )
    nodes = (Node("e", "VarHandleOp"), *users, *made)
    calls = [GradientCall(user.name, ("seed",), (f"d{user.name}",)) for user in users]
    shared = tuple(node.name for node in made if node.op != "Op")
    rows = frozenset(f"d{user.name}" for user in users if user.op == "Gather")
    return GradientGraph(nodes, (), shared, tuple(calls), {}, rows=rows)


def test_the_names_of_gradients():
    rows = []
    for cases, graph_of_case in ((CHAINS, of_chain), (TABLES, of_table)):
        for case, given in cases.items():
            reader = graph_of_case(given)
            rows += [f"# {case}", *(f"{node}: {name}" for node, name in reader.names.items())]
            rows += [*(f"whole {name}: {node}" for name, node in reader.whole.items()), ""]
    approve("gradient-names.txt", "\n".join(rows))


def test_the_derivative_that_a_cross_entropy_computes_is_written_with_names_of_variables():
    reader = graph_of(
        """w=VarHandleOp; r=ReadVariableOp(w); y; e=SoftmaxCrossEntropyWithLogits(r,y)""", {}
    )
    assert text(reader.forward_name("e:1")) == "softmax(w) - y"
    assert text(reader.forward_name("e")) == "e"
    ends_in_1 = graph_of("x; y; e1=SoftmaxCrossEntropyWithLogits(x,y)", {})
    assert text(ends_in_1.forward_name("e1")) == "e1"
    assert text(reader.forward_name("elsewhere:1")) == "elsewhere:1"


def test_the_name_of_another_gradient_node_is_no_formula():
    same = f"{GRAD}/Reshape"
    assert np.array_equal(POINTS.values[0][same], POINTS.values[0][END])
    for name, shown in ((same, ""), ("dL/dy", "dL/dy")):
        reader = replace(GRAPH)
        reader.expressions[END] = Name(name, same)
        assert reader.gradient_text(END) == shown


def test_a_cast_to_fewer_digits_does_not_pass_on_the_same_numbers():
    def kinds(dtype):
        cast = Node("cast", "Cast", (f"{GRAD}/Mul",), outputs=(Tensor(dtype, (4,)),))
        graph = with_node(cast, lambda at: at[f"{GRAD}/Mul"], "x")
        node = described(graph)["cast"]
        return node.bookkeeping, node.formula

    assert kinds("float64") == (SAME, "dL/d(mul) * y")
    assert {kinds(dtype) for dtype in ("float16", "bfloat16", "float8_e5m2")} == {(None, "")}


def test_ones_that_clipping_makes_start_no_chain():
    ones = Node("ones", "Fill", ("axes", "gradients/Const"), outputs=FOUR)
    graph = replace(with_node(ones, lambda at: np.ones(4)), shared=(*GRAPH.shared, "ones"))
    kinds = [described(graph)[name].bookkeeping for name in ("start", "ones")]
    assert kinds == [STARTS, None]
