"""Passes: from two graphs, what a pass did and who took over what is gone."""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests import graph_notation
from tests.graph_notation import graph, graphs
from tests.records_by_hand import a_pass
from tflab.analysis import passes
from tflab.analysis.fates import Indexed, Replacement, Step
from tflab.records.graph import Node
from tflab.records.placed import Pass, Rewrite, Snapshot


def snapshot(nodes, name, clusters: Mapping[str, str] | None = None) -> Snapshot:
    return Snapshot("after", "grappler", name, None, None, tuple(nodes), clusters or {})


def by_name(nodes) -> dict[str, Node]:
    return {node.name: node for node in nodes}


def steps_between(graphs, clusters: Mapping[str, str] | None = None) -> list[Pass]:
    """What each pass did that led from one of these graphs to the next."""
    before, *after = graphs
    dumps = [snapshot(before, None, clusters)]
    dumps += [snapshot(nodes, f"pass{at}") for at, nodes in enumerate(after)]
    *steps, last = passes.compare(before, dumps, after[-1])
    assert last == a_pass("graph_optimizer", None, len(after[-1]), len(after[-1]))
    versions = passes.replay([((), before), *((s.removed, s.definitions) for s in steps)])
    for state, nodes in enumerate(graphs):
        every = [version for own in versions.values() for version in own]
        assert by_name(v.node for v in every if v.first <= state <= v.last) == by_name(nodes)
    return steps


def cases(table: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", table.values(), ids=table.keys())


# What a pass did to the graph, whole: a graph => the next : what the pass did

CHANGES = {
    "a pruned node was removed and nobody took over": """
        x; k=Const => x : -k, k removed""",
    "a twin was merged": """
        x; a=Neg(x); b=Neg(x); c=Add(a,b) => x; a; c=Add(a,a) : -b, ~c, b merged a""",
    "a node that became a constant was folded into itself": """
        x; k=Const; a=Neg(k); c=Add(x,a) => x; k; a=Const; c : a Neg>Const, ~a, a folded a""",
    "what fed a node that became a constant was folded into it": """
        k=Const; a=Neg(k); b=Exp(a) => b=Const
        : -k, -a, b Exp>Const, ~b, k folded in b, a folded in b, b folded b""",
    "a value that now comes from a new constant was folded into that": """
        x; k=Const; a=Neg(k); b=Add(x,a) => x; k; folding/a=Const; b=Add(x,folding/a)
        : +folding/a, -a, ~b, a folded folding/a""",
    "a convolution and its bias were fused into the rewritten relu": """
        x; w=ReadVariableOp; bias=ReadVariableOp;
        conv=Conv2D(x,w); add=BiasAdd(conv,bias); relu=Relu(add)
        => x; w; bias; relu=_FusedConv2D(x,w,bias)
        : -conv, -add, relu Relu>_FusedConv2D, ~relu, conv fused in relu, add fused in relu""",
    "a node was fused into a new one that does more": """
        x; a=Neg(x); b=Abs(a); c=Exp(b) => x; both=NegAbs(x); c=Exp(both)
        : +both, -a, -b, ~c, a fused in both, b fused both""",
    "an identity was removed and its users take the value from where it came": """
        x; i=Identity(x); a=Neg(i) => x; a=Neg(x) : -i, ~a, i removed x""",
    "a node that carried only control was removed without an heir": """
        x; group=NoOp(^x); a=Neg(x,^group) => x; a=Neg(x,^x) : -group, ~a, group removed""",
    "a constant that was copied was removed in favour of its first copy": """
        k=Const; a=Neg(k); b=Abs(k) => k/1=Const; k/2=Const; a=Neg(k/1); b=Abs(k/2)
        : +k/1, +k/2, -k, ~a, ~b, k removed k/1""",
    "a fed placeholder was removed in favour of an argument": """
        x=Placeholder; a=Neg(x) => _arg_x_0_0=_Arg; a=Neg(_arg_x_0_0)
        : +_arg_x_0_0, -x, ~a, x removed _arg_x_0_0""",
    "a node may get another input, another device or both": """
        x; k=Const; a=Neg(x); b=Abs(x); c=Exp(x)
        => x; k; a=Neg(k); b=Abs(x)@CPU:1; c=Exp(x,^k)@CPU:1 : ~a, ~c, @b, @c""",
}


@cases(CHANGES)
def test_a_pass(case):
    text, changes = case.split(" : ")
    before, after = graphs(text)
    (step,) = steps_between([before, after])
    expected = graph_notation.one_pass(f"pass0: {changes}", len(before), len(after))
    assert replace(step, definitions=()) == expected


def test_a_node_that_is_read_again_as_it_was_has_not_changed():
    before, after = graph("x; a=Neg(x)"), graph("x; a=Neg(x)")
    dumps = [snapshot(before, None), snapshot(after, "any")]
    step, _ = passes.compare(before, dumps, after)
    assert step == a_pass("any", None, 2, 2)


# What became of nodes: graphs => : what was taken in the first pass; in the second

TAKEN = {
    "a call that was laid open is not done by the last node of its body": """
        x; loop=While(x); c=Neg(loop)
        => x; loop/body/_1/mul=Mul(x,x); loop/exit/_7=Exit(loop/body/_1/mul); c=Neg(loop/exit/_7)
        : loop removed loop/exit/_7""",
    "a chain that became one node of the runtime's was fused": """
        x; a=Abs(x); b=Sqrt(a); c=Neg(b)
        => x; b/unary_ops_composition=_UnaryOpsComposition(x); c=Neg(b/unary_ops_composition)
        : a fused in b/unary_ops_composition, b fused b/unary_ops_composition""",
    # (c * dy) * exp(-x) became (c * exp(-x)) * dy: the user of the chain takes another tensor
    "a chain whose user changed in the same pass was fused too": """
        x; neg=Neg(x); exp=Exp(neg); c=Const; dy(x); m=Mul(c,dy); n=Mul(m,exp)
        => x; neg; exp; c; dy; exp/unary_ops_composition=_UnaryOpsComposition(x);
        m=Mul(c,exp/unary_ops_composition); n=Mul(dy,m)
        => x; c; dy; exp/unary_ops_composition; m; n
        : m removed, neg fused in exp/unary_ops_composition, exp fused exp/unary_ops_composition;
        neg removed, exp removed""",
    # The exponent of a power that the arithmetic optimiser turned into a product
    "a constant whose user takes a new node was removed and not fused": """
        x; k=Const; power=Pow(x,k) => x; square=Square(x); power=Mul(x,square) : k removed""",
    # Common subgraph elimination sorts the inputs of a product
    "the heir of an input is found where a pass exchanged the inputs": """
        x; one=Square(x); other=Square(x); c=Mul(x,one) => x; other; c=Mul(other,x)
        : one merged other""",
    "the heir of an input that another input is already": """
        x; i=Identity(x); c=Mul(x,i) => x; c=Mul(x,x) : i removed x""",
    "a node that is used by its second output has an heir all the same": """
        x; s=Split(x); t=Split(x); a=Add(s:1,t:1) => x; s; a=Add(s:1,s:1) : t merged s""",
    "an heir is looked for past other nodes that are gone": """
        k=Const; a=Neg(k); i=Identity(a); out=Exp(i) => k; new=Const; out=Exp(new)
        : a folded new, i folded new""",
    # (x * k) * m became x * (k * m), and the second product has the name of the first
    "a product that became a factor of another one was not folded": """
        x; k=Const; m=Const; a=Mul(x,k); b=Mul(a,m); u=Exp(b) => x; a=Const; b=Mul(x,a); u
        : k folded in a, m removed, a removed""",
    "inputs of a sorted sum of which several changed have no heirs": """
        x; m=Neg(x); r=Abs(x); d=Exp(x); s=Sum(m); j=Identity(m); k=Identity(s); i=Identity(r);
        u=AddN(j,k,i,d) => x; m; r; d; u=AddN(d,m,m,r)
        : s removed, j removed, k removed, i removed""",
    "a chain of products that were reordered was not folded": """
        x; k=Const; m=Const; y=Erf(x); a=Mul(x,k); b=Mul(a,y); c=Mul(b,m); d=Mul(c,k)
        => x; k; y; c=Const; d=Mul(x,e); e=Mul(y,c)
        : m folded in c, a removed, b removed, c removed""",
    # dy * (2 * a) became a * (dy * 2): the read of a stands in the place of dy, which was folded
    "a value that was folded is not in a variable that stands in its place": """
        k=Const; dy=Identity(k); a=ReadVariableOp; two=Const; m=Mul(a,two); u=Mul(dy,m)
        => dy=Const; a; m=Const; u=Mul(a,m) => a; m; u
        : k folded in dy, dy folded dy, two folded in m, m removed; dy removed""",
    "random numbers are not folded although their shape is known": """
        k=Const; r=RandomUniform(k); a=Mul(r,k); b=Mul(a,k); u=Exp(b)
        => k; r; a=Const; b=Mul(r,a); u : a removed""",
    "a product with zero was folded and waits for its factor": """
        x; k=Const; a=Mul(x,k); u=Exp(a) => x; k; a=Const(^x); u : a folded a""",
    "a known shape and what is computed from it were folded": """
        x; k=Const; s=Shape(x); a=Pack(s,k); u=Reshape(x,a) => x; a=Const; u
        : k folded in a, s folded in a, a folded a""",
    "a constant divisor went into a constant factor": """
        x; k=Const; cast=Cast(k); u=RealDiv(x,cast) => x; recip=Const; u=Mul(x,recip)
        : k folded in recip, cast folded in recip""",
    "the input of a twin is the twin of its input": """
        k=Const; m=Const; a=Pack(k); b=Pack(m); u=Mul(a,b) => k; a; u=Mul(a,a)
        : m merged k, b merged a""",
    "of two constants of a sum that both changed nothing decides": """
        a=Const; b=Const; c=Const; d=Const; u=Add(a,b) => c; d; u=Add(c,d)
        : a removed, b removed""",
    "identities of a sum were removed in favour of what they passed on": """
        x; a=Neg(x); b=Abs(x); c=Exp(x); i=Identity(a); j=Identity(i); l=Identity(b); u=AddN(j,l,c)
        => x; a; b; c; u=AddN(a,b,c) : i removed a, j removed a, l removed b""",
    "what an identity passed on into a rewritten user is not the value of that": """
        x; a=Neg(x); i=Identity(a); b=Abs(i) => x; b=_NegAbs(x) : a fused in b, i removed""",
    "what fed a node that stayed has no heir from beyond it": """
        k=Const; a=Neg(k); b=Abs(a); c=Exp(b); d=Log(c) => k; b=Abs; new=Const; d=Log(new)
        : a removed, c folded new""",
    # The product of the sum and k has the value of a; one kernel alone does not compute it
    "a node whose value takes several new nodes was not replaced by the last": """
        x; k=Const; a=Pow(x,x); u=Exp(a) => x; k; sum=Add(x,x); product=Mul(sum,k); u=Exp(product)
        : a removed product""",
    "a transpose that became an attribute of a new product was fused with it": """
        x; t=Transpose(x); m=MatMul(x,t); u=Exp(m) => x; fold_m=MatMul(x,x); u=Exp(fold_m)
        : t fused in fold_m, m fused fold_m""",
    # The heir of the identity has its value, and the users of the cast take that
    "a cast that moved up beyond an identity and a reshape is the new cast": """
        x; g/shape=Reshape(x); g/same=Identity(g/shape); c/cast=Cast(g/same); u=Exp(c/cast)
        => x; c/new_new_cast=Cast(x); g/new_shape=Reshape(c/new_new_cast);
        g/new_same=Identity(g/new_shape); u=Exp(g/new_same)
        : g/shape replaced in g/new_shape, g/same removed, c/cast replaced in c/new_new_cast""",
    # Nodes that lose their work in one pass and go in another
    "a node that was replaced and removed later was taken by the pass that replaced it": """
        x; a=Mul(x,x); u=Exp(a) => x; a; sq=Square(x); u=Exp(sq) => x; sq; u
        : a replaced sq; a removed""",
    "a node that one user still takes keeps its work": """
        x; a=Mul(x,x); u=Exp(a); v=L(a) => x; a; sq=Square(x); u=Exp(sq); v => x; sq; u
        : nothing; a removed, v removed""",
    "a node that was replaced by one of its type was removed in favour of it": """
        x; k=Const; a=Mul(x,k); u=Exp(a) => x; k; a; a_1=Mul(x,k); u=Exp(a_1) => x; k; a_1; u
        : a replaced a_1; a removed""",
    "what only a replaced node used has lost its work too but no constant has": """
        x; k=Const; i=Neg(x,k); j=Log(i); a=Abs(j,k); u=Exp(a)
        => x; k; i; j; a; n=Both(x); u=Exp(n) => x; n; u
        : i fused in n, j fused in n, a fused n; k removed, i removed, j removed, a removed""",
    "a constant that lost its user is not in what that takes now": """
        x; k=Const; u=Pow(x,k) => x; k; square=Square(x); u=Mul(x,square) => x; square; u
        : nothing; k removed""",
    "an input that is gone from the first place is not replaced": """
        x; a=Neg(x); b=Abs(x); u=AddN(a,b) => x; a; b; u=AddN(b) => x; b; u : nothing; a removed""",
    "a value of the step is in no new constant factor of its user": """
        x; k=Const; a=Mul(x,k); u=Pow(x,a) => x; k; new=Const; u=Mul(x,new) : a removed""",
    "of a call one output may be known before the step although another is not": """
        x; k=Const; f=PartitionedCall(x,k); u=Exp(f:1) => x; k; u=Exp(k) : f removed k""",
    "of another op none is": """
        x; k=Const; f=TwoOf(x,k); u=Exp(f:1) => x; k; u=Exp(k) : f removed""",
    "a product that went into a new product alone was not fused": """
        x; y; a=Mul(x,y); b=Mul(a,y); u=Exp(b) => x; y; c=Mul(x,y); u=Exp(c)
        : a removed, b replaced c""",
    "the input of a node that one of another type replaces is no twin of that one's": """
        k=Const; m=Const; a=Neg(k); b=Exp(m); u=Log(b) => k; a; u=Log(a)
        : m removed, b removed a""",
    "an input that another input takes the place of is not replaced": """
        x; a=Neg(x); b=Abs(x); u=AddN(a,b) => x; a; b; u=AddN(b,b) => x; b; u
        : nothing; a removed""",
    "what fed a node that an old constant replaces is not in that": """
        k=Const; m=Const; b=Neg(m); i=Exp(b); u=Log(i) => k; u=Log(k)
        : m removed, b removed, i removed k""",
    "a node that lost its work and found an heir at its end is left to that": """
        x; a=Mul(x); u=Exp(a) => x; a; sq=Square(x); u=Exp(sq)
        => x; a; sq; u=Exp(a) => x; sq; u=Exp(sq) : nothing; nothing; a removed sq""",
    # What has no heir, because the graphs do not bear it out
    "the equal of an input of a sorted sum is what the sum takes once more": """
        x; a=Exp(x); b=Tanh(x); c=Exp(x); u=AddN(a,b,c) => x; a; b; u=AddN(a,a,b) : c merged a""",
    "the difference of two negated values takes the other one": """
        x; y; m=Neg(x); n=Neg(y); u=Sub(m,n) => x; y; m; n; u=Sub(y,x) => x; y; u
        : nothing; m removed, n removed""",
    "nor has a negated value the new node of the other one": """
        x; y; m=Neg(x); n=Neg(y); u=Sub(m,n) => x; z=Log(y); u=Sub(z,x) : y removed, m removed,
        n removed""",
    "negations that cancel are in no product": """
        x; m=Neg(x); n=Neg(m); u=Add(n,x); v=Exp(u) => x; k=Const; twice=Mul(x,k); v=Exp(twice)
        : m removed, n removed, u replaced twice""",
    "a negated value is not the value": """
        x; n=Neg(x); i=Identity(n); u=Exp(i) => x; u=Exp(x) : n removed, i removed""",
    "a reshape whose input lost its sign has another value now": """
        x; n=Neg(x); r=Reshape(n); t=Transpose(r); m=Neg(t); u=Exp(m)
        => x; r=Reshape(x); t; u=Exp(t) : n removed, r removed, t removed, m removed""",
    "a reshape between two sums does no work of the whole sum": """
        x; y; a=Add(x,y); r=Reshape(a); u=Sub(r,y); v=Exp(u) => x; y; sum=AddN(x,y,y); v=Exp(sum)
        : a fused in sum, r removed, u fused sum""",
    "a transpose does some of a product that transposes": """
        x; y; t=Transpose(x); m=MatMul(t,y); u=Exp(m) => x; y; new=MatMul(x,y); u=Exp(new)
        : t fused in new, m fused new""",
    "users that do not agree on an heir regrouped": """
        x; y; k=Const; a=Add(x,y); u=Mul(a,k); v=Exp(a) => x; y; k; new=Add(y,x); u=Mul(x,k);
        v=Exp(new) : a removed""",
    "a node is in no chain of functions of one number if it only reshapes": """
        x; r=Reshape(x); s=Square(r); u=Exp(s)
        => x; s/unary_ops_composition=_UnaryOpsComposition(x); u=Exp(s/unary_ops_composition)
        : r removed, s fused s/unary_ops_composition""",
    "a sum that was regrouped leaves its name to another value": """
        x; y; z=Const; s=Add(x,y); u=Add(s,z) => x; y; z; s=Add(y,z); u=Add(x,s) => x; y; u=Add(x,y)
        : s removed; z removed, s removed y""",
    "a constant that stands for two inputs of a sum replaces neither": """
        x; k=Const; u=AddN(x,x,k,k) => x; two=Const; u=AddN(x,x,two) : k removed""",
}


def taken(case: str, clusters: Mapping[str, str] | None = None) -> None:
    text, expected = case.split(" : ")
    steps = steps_between(graphs(text), clusters)
    expectations = [*map(graph_notation.takeovers, expected.split(";"))]
    assert [step.taken for step in steps] == expectations


@cases(TAKEN)
def test_what_became_of_nodes(case):
    taken(case)


COMPILED = {
    "the members of a cluster are compiled and end in what runs it": """
        x; a=Neg(x); b=Exp(a); _retval_b_0_0=_Retval(b)
        => x; cluster_0=cluster_0(x); _retval_b_0_0=_Retval(cluster_0)
        => x; cluster_0_1/xla_compile=_XlaCompile(x);
        cluster_0_1/xla_run=_XlaRun(x,cluster_0_1/xla_compile);
        _retval_b_0_0=_Retval(cluster_0_1/xla_run)
        : a compiled in cluster_0, b compiled in cluster_0;
        cluster_0 compiled in cluster_0_1/xla_run""",
    "a cluster whose values nobody takes is compiled and run all the same": """
        x; a=Neg(x); b=Exp(a) => x; cluster_0=cluster_0(x)
        => x; cluster_0_1/xla_run=_XlaRun(x,cluster_0_1/xla_compile);
        cluster_0_1/xla_compile=_XlaCompile(x)
        : a compiled in cluster_0, b compiled in cluster_0;
        cluster_0 compiled in cluster_0_1/xla_run""",
}


@cases(COMPILED)
def test_what_xla_compiles(case):
    taken(case, dict.fromkeys("ab", "cluster_0"))


@pytest.mark.parametrize(
    ("heir", "inputs", "settled"),
    [
        ("heir", "a/cast,a/wrong_cast,b/swap_cast,a/swap_other,a/swap_cast", "a/swap_cast"),
        ("heir", "b/swap_cast,a/swap_other", None),
        ("a/swap_cast", "", "a/swap_cast"),
        ("x", "", None),
    ],
)
def test_a_swapped_node_is_the_one_of_its_type_scope_and_name(heir, inputs, settled):
    old, new = map(
        by_name,
        graphs(
            f"""x; a/cast=Cast(x) => x; a/cast; b/swap_cast=Cast(x); a/swap_other=Cast(x);
            a/swap_cast=Cast(x); a/wrong_cast=Abs(x); heir=Reshape({inputs})"""
        ),
    )
    moved = Replacement(settled or heir, False, is_moved=settled is not None)
    step = Step(Indexed(old.values()), Indexed(new.values()))
    assert step.moved(old["a/cast"], Replacement(heir, False)) == moved


def lines_run(length):
    """How many lines of Python run until a chain of so many nodes is taken out."""
    chain = graph("; ".join(["x", "n0=Neg(x)", *(f"n{i}=Neg(n{i - 1})" for i in range(1, length))]))
    lines = 0

    def count(frame, event, _):
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()  # of a measurement of coverage
    dumps = [snapshot(chain, None), snapshot(chain[:1], "any")]
    sys.settrace(count)
    try:
        (step, _) = passes.compare(chain, dumps, chain[:1])
    finally:
        sys.settrace(before)
    assert len(step.taken) == length
    return lines


def test_a_long_chain_is_taken_out_in_linear_time():
    assert lines_run(2_000) < 2.5 * lines_run(1_000)  # a look along the chain for each makes it 4


# The order of passes: the user's graph => the dumps => the graph that ran | the passes, each with
# the numbers of nodes before and after it, and the nodes that have another type. Of a dump: `<` if
# it is before a group, the group, then `/` pass, `#` iteration, `@` partition

DUMP = re.compile(r"(<?)(\w+)(?:/(\w+))?(?:#(\d))?(?:@(\w+))?")
ORDER = {
    "a phase that changed nothing is a pass all the same": """
        x => <pre_placement: x => grappler/first#0: x => grappler/second#1: x => x
        | first 0 1 1, second 1 1 1, graph_optimizer None 1 1""",
    "a first dump that is not the users graph is a pass of its own": """
        x; k=Const => <pre_placement: x => x | pre_placement None 2 1, graph_optimizer None 1 1""",
    "what grappler does outside its passes is its own": """
        x; k=Const => <grappler#0: x; k => grappler/pruner#0: x; k => grappler#0: x
        => grappler: x => x
        | pruner 0 2 2, grappler 0 2 1, graph_optimizer None 1 1""",
    "the steps of the runtime between its groups of passes have names": """
        x; k=Const => <pre_placement: x; k => <post_placement: x; k => <post_rewrite_for_exec: x
        => <post_partitioning: x; send=_Send(x) => x
        | placer None 2 2, feeds_and_fetches None 2 1, partitioner None 1 2,
        graph_optimizer None 2 1""",
    "a dump after a group of passes is not the step that led there": """
        x => <pre_placement: x => post_placement: x => x | graph_optimizer None 1 1""",
    "a step is told once": """
        x => <pre_placement: x => <post_placement: x => post_placement: x => x
        | placer None 1 1, graph_optimizer None 1 1""",
    "a pass that runs once for each partition is one pass over all of them": """
        x => post_rewrite_for_exec/last: x => <post_partitioning@a: a0=Relu; a1=Relu
        => post_partitioning/Mkl@a: a0=_MklRelu; a1=_MklRelu => post_partitioning@a: a0
        => <post_partitioning@b: b0=Relu; b1=Relu
        => post_partitioning/Mkl@b: b0=_MklRelu; b1=_MklRelu => a0
        | partitioner None 1 4, Mkl None 4 4 a0 a1 b0 b1, post_partitioning None 4 3,
        graph_optimizer None 3 1""",
    "a pass over one partition leaves the others as they were": """
        x; k=Const => post_partitioning/Mkl@a: x; k => post_partitioning/Mkl@b: y=Abs
        => post_partitioning/Only@a: x => grappler: z=Exp => z
        | Mkl None 2 3, Only None 3 2, grappler None 2 1, graph_optimizer None 1 1""",
    "a pass of the whole graph that comes again is told again": """
        x; k=Const => <pre_placement: x; k => grappler/pruner: x; k => grappler/pruner: x => x
        | pruner None 2 2, pruner None 2 1, graph_optimizer None 1 1""",
}


def dump(header, nodes) -> Snapshot:
    before, group, name, iteration, partition = DUMP.fullmatch(header.strip()).groups()
    number = int(iteration) if iteration else None
    return Snapshot("before" if before else "after", group, name, number, partition, nodes, {})


@cases(ORDER)
def test_the_order_of_passes(case):
    text, expected = case.split("|")
    parts = [part.rpartition(": ") for part in text.split("=>")]
    user, *states, ran = graphs(" => ".join(nodes for *_, nodes in parts))
    headers = [header for header, *_ in parts[1:-1]]
    steps = passes.compare(user, list(map(dump, headers, states)), ran)
    summaries = [
        [
            step.name,
            step.iteration,
            step.before,
            step.after,
            *(made.name for made in step.rewritten),
        ]
        for step in steps
    ]
    assert [" ".join(map(str, row)) for row in summaries] == graph_notation.parts(expected, ",")


def test_the_nodes_of_other_tasks_are_sent_and_not_removed():
    client, first, second = (f"/job:{task}/device:CPU:0" for task in ("client", "w:0", "w:1"))
    whole, mine, ran = graphs(
        f"""here=NoOp@{client}; one=Relu@{first}; two=Abs@{second}; three=Exp@{second}
        => here; here_S1=_Send@{client}
        => here; here_S1; one=_MklRelu@{first}; two; three; one_S2=_Recv"""
    )
    headers = (
        "post_rewrite_for_exec/last",
        "<post_partitioning@client",
        "post_partitioning/Mkl@client",
    )
    dumps = list(map(dump, headers, (whole, mine, mine)))
    cut, mkl, tasks = passes.compare(whole, dumps, ran)
    assert [(step.name, step.before, step.after) for step in (cut, mkl, tasks)] == [
        ("partitioner", 4, 5),
        ("Mkl", 5, 5),
        ("tasks", 5, 6),
    ]
    assert cut.sent == (("/job:w:0", ("one",)), ("/job:w:1", ("two", "three")))
    assert (cut.added, cut.removed, mkl.sent, tasks.sent) == (("here_S1",), (), (), ())
    assert tasks.rewritten == (Rewrite("one", "Relu", "_MklRelu"),)
    assert tasks.added == ("one_S2",)


def test_a_task_of_which_one_node_is_here_is_no_other_task():
    nodes = graph("; ".join(f"{name}@/job:w/task:{name}/device:CPU:0" for name in "012") + "; d")
    a, b, c, _ = nodes
    for part, others in (((a,), (b, c)), ((a, b), (c,)), ((a, b, c), ()), ((b, c), (a,))):
        whole = Snapshot("before", "pre_placement", None, None, None, nodes, {})
        cut = Snapshot("before", "post_partitioning", None, None, "0", part, {})
        *_, last = passes.states([whole, cut])
        assert last.sent == others


# Purposes


def test_every_step_between_the_groups_of_passes_has_a_purpose():
    assert set(passes.STEPS.values()) <= set(passes.PURPOSES)


# The replay


def test_a_node_that_changes_and_one_that_comes_back_have_several_versions():
    steps_between(
        graphs("x; k=Const; a=Neg(x) => x; a => x; a=Sqrt(x) => k=Const@CPU:1; a => k; a")
    )
