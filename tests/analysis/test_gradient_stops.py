"""Gradient stops: at which ops the gradient of a node ends on its way from the loss."""

import pytest

from tests.graph_notation import graph, parts
from tflab.analysis import gradient_graph

NONE = gradient_graph.RETURNED_NONE
CHAIN = "w; a=Mul(w); f=Floor(a); b=Mul(f); loss=Mean(b)"
TWO = "w; f=Floor(w); g=Floor(w); y=Add(f,g); loss=Mean(y)"
FAR = "w; a=Mul(w); f=Floor(a); g=Mul(w); y=Add(f,g); loss=Mean(y)"
LOOP = "w; e=Enter(w); m=Merge(e,n); r=Round(m); n=Next(r); x=Exit(m); loss=Mean(x)"


def stops_of(text, given, without="", none="", node="w"):
    """`f: w > a > f > b > loss` for each stop of a node. `given` are the inputs that got a
    gradient, `none` those that got none: `loss b, b f`."""
    handed = {tuple(pair.split()): "" for pair in parts(given, ",")}
    handed |= {tuple(pair.split()): NONE for pair in parts(none, ",")}
    stops = gradient_graph.stops(graph(text), "loss", dict.fromkeys(without.split(), "no"), handed)
    return [f"{end}: {' > '.join(stops.path(node, end))}" for end in stops.at(node)]


@pytest.mark.parametrize(
    "text, given, without, none, expected",
    [
        (CHAIN, "loss b, b f, f a, a w", "", "", []),
        (CHAIN, "loss b, b f", "", "f a", ["f: w > a > f > b > loss"]),
        (CHAIN, "loss b, b f", "f", "", ["f: w > a > f > b > loss"]),
        (CHAIN, "", "", "loss b", ["loss: w > a > f > b > loss"]),
        # The nearest of several: no function is called behind an integer
        (CHAIN, "loss b, b f", "f a", "", ["a: w > a > f > b > loss"]),
        (CHAIN, "loss b", "a", "", ["a: w > a > f > b > loss"]),
        (CHAIN, "loss b", "", "", []),  # nothing is known of why
        (TWO, "loss y, y f, y g", "f", "g w", ["f: w > f > y > loss", "g: w > g > y > loss"]),
        (TWO, "loss y, y f, y g, g w", "f", "", []),  # one way has a gradient
        (FAR, "loss y, y f, y g, g w", "f", "", []),
        (LOOP, "loss x, x m, m n, n r", "r", "m e", ["m: w > e > m > x > loss"]),
        ("w; v; loss=Mean(v)", "loss v", "", "", []),
    ],
)
def test_a_stop_is_the_op_that_hands_no_gradient_on(text, given, without, none, expected):
    assert stops_of(text, given, without, none) == expected


def test_at_most_three_stops_are_named_also_of_several_ways_and_far_from_them():
    floors = [(f"f{n}", "ab"[n % 2]) for n in range(10)]
    nodes = "; ".join(f"{floor}=Floor({of})" for floor, of in floors)
    text = f"w; a=Mul(w); b=Mul(w); {nodes}; loss=AddN({','.join(floor for floor, _ in floors)})"
    given = ", ".join(f"loss {floor}" for floor, _ in floors)
    none = ", ".join(map(" ".join, floors))
    assert [len(stops_of(text, given, none=none, node=node)) for node in "aw"] == [3, 3]


def test_a_gradient_of_zeros_is_no_way_for_the_gradient():
    handed = {("loss", "s"): "", ("s", "a"): gradient_graph.ZEROS, ("a", "w"): ""}
    stops = gradient_graph.stops(graph("w; a=Mul(w); s=Sign(a); loss=Mean(s)"), "loss", {}, handed)
    assert (stops.at("w"), stops.reasons) == (("s",), {"s": gradient_graph.ZEROS})
