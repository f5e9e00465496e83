"""Formulas of single nodes that depend on shapes, axes and attributes, worked out by hand."""

import pytest

from tflab.analysis import formulas
from tflab.analysis.expressions import length, text
from tflab.records.graph import Node, Tensor


def node(name, op, shape, *inputs, dtype="float32", **attributes):
    return Node(name, op, inputs, (), outputs=(Tensor(dtype, shape),)), {name: attributes}


def ints(name, value):
    shape = (len(value),) if isinstance(value, list) else ()
    return node(name, "Const", shape, dtype="int32", value=value)


def last(op, shape, *inputs, dtype="float32", **attributes):
    """The node whose formula is looked at."""
    return node("n", op, shape, *inputs, dtype=dtype, **attributes)


def axes(*values):
    return ints("axes", [*values])


GIVEN = (  # what every graph has
    node("a", "Placeholder", (2, 3)),
    node("rows", "Placeholder", (None, 3)),
    node("free", "Placeholder", None),
    node("one", "Placeholder", ()),
    node("v", "Placeholder", (4,)),
    node("small", "Placeholder", (3,)),
    *(
        node(f"{of}/dims", "Shape", (2,), of, dtype="int32")
        for of in ("a", "rows", "free", "small")
    ),
    ints("zero", 0),
)


def composer_of(*graph):
    nodes = [made for made, _ in (*GIVEN, *graph)]
    attributes = {name: about for _, given in (*GIVEN, *graph) for name, about in given.items()}
    return formulas.Composer(nodes, attributes)


def formula(*graph):
    composer = composer_of(*graph)
    known = formulas.composed(composer, composer.nodes.values(), lambda node, tensor: None)
    return known[graph[-1][0].name]


def restored(before, axis, ones, filled=False):
    """What the gradient of a reduction does with its incoming gradient: it restores the axes."""
    kept = node("ones", "Fill", (1,), "one", "value", dtype="int32")
    return (
        ints("every", [0, 1, 2]),
        axes(*axis),
        node("dims", "Placeholder", (3,), dtype="int32"),
        ints("value", ones),
        kept if filled else ints("ones", ones),
        node("shape", "DynamicStitch", None, "every", "axes", "dims", "ones", dtype="int32"),
        last("Reshape", None, before, "shape"),
    )


def broadcast(small, large):
    """A sum over what broadcasting `small` to `large` repeated."""
    inputs = (f"{small}/dims", f"{large}/dims")
    made = node("axes", "BroadcastGradientArgs", (None,), *inputs, dtype="int32")
    return made, last("Sum", None, large, "axes")


def sum_of_ones(shape, goal, *between):
    """A sum over all elements of ones in the shape of another tensor."""
    return (
        node("c", "Const", (), value=1.0),
        node("many", "Fill", shape, goal, "c"),
        *between,
        axes(0, 1),
        last("Sum", (), between[-1][0].name if between else "many", "axes"),
    )


@pytest.mark.parametrize(
    ("written", "graph"),
    [
        # reductions
        ("sum(a)", [axes(0, 1), last("Sum", (), "a", "axes")]),
        ("sum(a, axis=1)", [axes(1), last("Sum", (2,), "a", "axes")]),
        ("sum(a, axis=0)", [ints("axes", -2), last("Sum", (3,), "a", "axes")]),
        ("max(a)", [axes(0, -1), last("Max", (), "a", "axes")]),
        (
            "mean(a, axis=1, keepdims=True)",
            [axes(1), last("Mean", (2, 1), "a", "axes", keep_dims=True)],
        ),
        (
            "sum(a, axis=0)",
            [
                axes(0),
                node("s", "Sum", (1, 3), "a", "axes", keep_dims=True),
                ints("to", [3]),
                last("Reshape", (3,), "s", "to"),
            ],
        ),
        ("sum(free, axis=(0, 1))", [axes(0, 1), last("Sum", (), "free", "axes")]),
        ("a", [axes(), last("Sum", (2, 3), "a", "axes")]),
        ("a", [axes(), last("Mean", (2, 3), "a", "axes")]),
        ("n", [last("Sum", (), "a", "one")]),  # the axes are known only at run time
        ("prod(rows, axis=0)", [axes(0), last("Prod", (3,), "rows", "axes")]),
        ("sum_to(a, shape(small))", broadcast("small", "a")),
        ("sum_to(a, shape(free))", broadcast("free", "a")),
        ("a", broadcast("a", "a")),
        # one number stands for all elements, and a sum counts them
        ("6", sum_of_ones((2, 3), "a/dims")),
        ("size(rows)", sum_of_ones((None, 3), "rows/dims")),
        ("-size(rows)", sum_of_ones((None, 3), "rows/dims", node("m", "Neg", (None, 3), "many"))),
        ("n", sum_of_ones((None, 3), "free")),
        # of a bias, over all but the channels
        ("sum(g, axis=0)", [node("g", "X", (5, 4)), last("BiasAddGrad", (4,), "g")]),
        ("sum(g, axis=(0, 1, 2))", [node("g", "X", (5, 2, 2, 4)), last("BiasAddGrad", (4,), "g")]),
        ("n", [last("BiasAddGrad", (4,), "free")]),
        ("n", [node("g", "X", (5, 4, 2)), last("BiasAddGrad", (4,), "g", data_format="NCHW")]),
        # shapes
        ("size(a)", [axes(0), last("Prod", (), "a/dims", "axes", dtype="int32")]),
        ("shape(a, 1)", [axes(1), last("GatherV2", (1,), "a/dims", "axes", "zero")]),
        ("shape(a)", [axes(1, 0), last("GatherV2", (2,), "a/dims", "axes", "zero")]),
        ("shape(free, 0, 1)", [axes(0, 1), last("GatherV2", (2,), "free/dims", "axes", "zero")]),
        ("n", [axes(), last("GatherV2", (0,), "a/dims", "axes", "zero")]),
        ("n", [axes(0), last("GatherV2", (1,), "a", "axes", "zero")]),
        # what moves numbers is written only where it changes how they broadcast
        ("reshape(a, (3, 2))", [ints("to", [3, 2]), last("Reshape", (3, 2), "a", "to")]),
        ("a", [ints("to", [1, 2, 3]), last("Reshape", (1, 2, 3), "a", "to")]),
        ("reshape(free, (-1,))", [ints("to", [-1]), last("Reshape", (None,), "free", "to")]),
        ("reshape(rows, shape(a))", [last("Reshape", (2, 3), "rows", "a/dims")]),
        ("n", [last("Reshape", (6,), "a", "free")]),
        ("n", [last("Squeeze", (3,), "rows")]),
        ("expand_dims(a, 2)", [ints("to", 2), last("ExpandDims", (2, 3, 1), "a", "to")]),
        ("a", [ints("to", 0), last("ExpandDims", (1, 2, 3), "a", "to")]),
        ("expand_dims(rows, 1)", restored("rows", [1], [1])),
        ("expand_dims(rows, 1)", restored("rows", [1], 1, filled=True)),
        ("expand_dims(expand_dims(v, 1), 2)", restored("v", [2, 1], [1, 1])),
        ("n", restored("rows", [1], [2])),
        ("n", restored("v", [1], [1])),
        ("n", restored("free", [1], [1])),
        ("transpose(a)", [ints("to", [1, 0]), last("Transpose", (3, 2), "a", "to")]),
        ("transpose(a, (0, 1))", [ints("to", [0, 1]), last("Transpose", (2, 3), "a", "to")]),
        ("n", [last("Transpose", (3, 2), "a", "free")]),
        # products of matrices
        ("matmul(a, rows)", [last("MatMul", (3, 3), "a", "rows")]),
        ("matmul(transpose(a), rows)", [last("MatMul", (3, 3), "a", "rows", transpose_a=True)]),
        (
            "matmul(a, transpose(rows))",
            [last("MatMul", (3, 3), "a", "rows", transpose_b=True, transpose_a=False)],
        ),
        (
            "matmul(transpose(a), transpose(rows))",
            [last("BatchMatMulV2", (3, 3), "a", "rows", adj_x=True, adj_y=True)],
        ),
        # that a number is repeated is not written
        ("one", [last("Fill", (2, 3), "a/dims", "one")]),
        ("1", [last("OnesLike", (2, 3), "a")]),
        ("a", [ints("by", [1, 2]), last("Tile", (2, 6), "a", "by")]),
        # others
        ("a + rows", [last("AddN", (2, 3), "a", "rows")]),
        ("a", [last("AddN", (2, 3), "a")]),
        *(("n", [last("Cast", (2, 3), "a", dtype=of)]) for of in ("int32", "uint8", "bool")),
        ("a", [last("Cast", (2, 3), "a", dtype="float64")]),
        ("n", [last("NoRule", (2, 3), "a")]),
        ("n", [last("Mul", (2, 3), "a", "a", "a")]),  # an op has other inputs than its rule
        ("2.5 * a", [node("c", "Const", (), value=2.5), last("Mul", (2, 3), "c", "a")]),
        ("c * a", [node("c", "Const", (), value=float("inf")), last("Mul", (2, 3), "c", "a")]),
        ("c * a", [node("c", "Const", (), value=True), last("Mul", (2, 3), "c", "a")]),
    ],
)
def test_the_formula_of_a_node(written, graph):
    assert text(formula(*graph)) == written


@pytest.mark.parametrize(
    ("whole", "graph"),
    [
        ((5, 7), []),
        ((7, 9), [last("AddV2", (2,), "two", "five", dtype="int32")]),
        ((1, 1), [last("FloorMod", (2,), "five", "two", dtype="int32")]),
        ((0, 0), [last("FloorMod", (2,), "five", "zero", dtype="int32")]),
        ((2, 4, 6), [ints("stop", 7), last("Range", (3,), "two", "stop", "two", dtype="int32")]),
        (None, [ints("far", 42), last("Range", (20,), "two", "far", "two", dtype="int32")]),
        (None, [last("Range", (3,), "two", "one", "two", dtype="int32")]),
        (None, [last("Mul", (2,), "two", "five", dtype="int32")]),
        (None, [ints("half", [0.5])]),
        (None, [node("c", "Const", (), value=2)]),
    ],
)
def test_whole_numbers_that_the_graph_decides(whole, graph):
    nodes = [ints("two", 2), ints("five", [5, 7]), *graph]
    assert composer_of(*nodes).whole[nodes[-1][0].name] == whole


@pytest.mark.parametrize("one, other", [(1, [0, 1]), ([0, 1], 1), ([1, 0], [0, 2])])
def test_axes_that_are_added_up_are_broadcast(one, other):
    added = node("axes", "AddV2", (2,), "o", "p", dtype="int32")
    cube = node("w", "Placeholder", (2, 3, 4))
    graph = [ints("o", one), ints("p", other), added, cube, last("Sum", (2,), "w", "axes")]
    assert text(formula(*graph)) == "sum(w, axis=(1, 2))"


def test_a_deep_graph_is_composed_without_recursion_and_long_formulas_are_cut():
    deep = [node("n0", "Placeholder", ())]
    deep += [node(f"n{i}", "AddV2", (), f"n{i - 1}", f"n{i - 1}") for i in range(1, 3_000)]
    composer = composer_of(*deep)
    known = formulas.composed(composer, composer.nodes.values(), lambda node, tensor: None)
    assert max(map(length, known.values())) <= 2 * formulas.MOST + 1


def test_the_second_output_of_a_cross_entropy_has_its_own_formula():
    loss = node("n", "SoftmaxCrossEntropyWithLogits", (2,), "a", "rows")
    composer = composer_of(loss)
    known = formulas.composed(composer, composer.nodes.values(), lambda node, tensor: None)
    assert text(known["n"]) == "cross_entropy(a, rows)"
    assert text(known["n:1"]) == "softmax(a) - rows"


@pytest.mark.parametrize(("whole", "known"), [((), {"b", "c", "d"}), (("b", "c", "d"), {"b"})])
def test_whole_nodes_have_no_formula_that_is_too_long(whole, known):
    graph = (node("b", "Mul", (), "one", "one"), node("c", "AddN", (), "b", "b", "v"))
    composer = composer_of(*graph, node("d", "Neg", (), "c"))
    *_, b, c, d = composer.nodes.values()
    assert {*formulas.composed(composer, (b, c, d), lambda *_: None, 4, whole)} == known
