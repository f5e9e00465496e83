"""The notation of graphs says what the records say."""

import pytest

from tests import graph_notation
from tflab.records.graph import Node
from tflab.records.placed import Fate, Pass, Rewrite, Takeover


def test_graphs():
    x, a = Node("x", "Op"), Node("f/a", "Neg", ("x", "x:1"), ("k", "l"), "/device:CPU:0")
    first, then = graph_notation.graphs(
        "x; f/a=Neg(x,^k,x:1, ^l)@/device:CPU:0 => f/a; x=Abs; y(x)"
    )
    assert (first, then) == ((x, a), (a, Node("x", "Abs"), Node("y", "Op", ("x",))))


def test_what_passes_did():
    passes = graph_notation.passes(
        "p: +a, -b, c Relu>Elu, ~d, @e, f fused in g; x replaced y (x=y x:1=z:2), b removed"
    )
    outputs = (("x", "y"), ("x:1", "z:2"))
    assert passes[0] == Pass(
        *("p", None, 0, 0, ("a",), ("b",), (Rewrite("c", "Relu", "Elu"),), ("d",), ("e",)),
        taken=(Takeover("f", "fused", "g", has_value=False),),
    )
    x, b = Takeover("x", "removed", "y", outputs, replaced=True), Takeover("b", "removed", None)
    assert (
        passes[1].taken
        == (x, b)
        == graph_notation.takeovers("x replaced y (x=y x:1=z:2), b removed")
    )
    assert graph_notation.takeovers("nothing") == ()


def test_fates():
    assert graph_notation.fates("p: a fused in b, c executed; d replaced e (d:1=e)") == [
        Fate("a", "fused", "p", "b", has_value=False),
        Fate("c", "executed", "p", None),
        Fate("d", "removed", None, "e", (("d:1", "e"),), replaced=True),
    ]


@pytest.mark.parametrize("text", ["a=", "a=Neg(x", "a b"])
def test_what_is_no_node_is_refused(text):
    with pytest.raises(ValueError, match="notation"):
        graph_notation.graph(text)
