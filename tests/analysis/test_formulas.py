"""Formulas of single nodes: each rule of a type, worked out by hand."""

import pytest

from tflab.analysis import formulas
from tflab.analysis.expressions import text
from tflab.records.graph import Node, Tensor


def node(name, op, shape, *inputs, dtype="float32"):
    return Node(name, op, inputs, (), outputs=(Tensor(dtype, shape),))


def const(name, value):
    shape = (len(value),) if isinstance(value, list) else ()
    return node(name, "Const", shape, dtype="int32"), {name: {"value": value}}


A = node("a", "Placeholder", (2, 3))
ROWS = node("rows", "Placeholder", (None, 3))
FREE = node("free", "Placeholder", None)
ONE = node("one", "Placeholder", ())
DIMS = node("dims", "Shape", (2,), "a", dtype="int32")


def formula(*graph, notes=None):
    """The text of the last of these nodes. A pair is a constant and its value."""
    nodes = [item[0] if isinstance(item, tuple) else item for item in graph]
    attributes = {name: dict(about) for name, about in (notes or {}).items()}
    for item in graph:
        attributes |= item[1] if isinstance(item, tuple) else {}
    composer = formulas.Composer(nodes, attributes)
    return formulas.composed(composer, nodes, lambda node, tensor: None)[nodes[-1].name]


def over(op, axes, before=A, after=(2,), **about):
    """A reduction of the matrix `a`, or of another tensor, over these axes."""
    last = node("last", op, after, before.name, "axes")
    return formula(before, const("axes", axes), last, notes={"last": about} if about else None)


@pytest.mark.parametrize(
    ("found", "written"),
    [
        (lambda: over("Sum", [0, 1], after=()), "sum(a)"),
        (lambda: over("Sum", [1]), "sum(a, axis=1)"),
        (lambda: over("Sum", -2, after=(3,)), "sum(a, axis=0)"),
        (lambda: over("Max", [0, -1], after=()), "max(a)"),
        (lambda: over("Mean", [1], after=(2, 1), keep_dims=True), "mean(a, axis=1, keepdims=True)"),
        (lambda: over("Sum", [0, 1], FREE, ()), "sum(free, axis=(0, 1))"),
        (lambda: over("Sum", []), "a"),
        (
            lambda: formula(
                A, node("axes", "Placeholder", (1,)), node("s", "Sum", (), "a", "axes")
            ),
            "s",
        ),
        (lambda: over("Prod", [0], ROWS, (3,)), "prod(rows, axis=0)"),
    ],
)
def test_a_reduction_names_its_axes_unless_it_goes_over_all(found, written):
    assert text(found()) == written


def test_the_product_of_a_shape_is_the_number_of_elements():
    product = node("n", "Prod", (), "dims", "axes", dtype="int32")
    found = formula(A, DIMS, const("axes", [0]), product)
    assert (text(found), found.shape) == ("size(a)", (2, 3))


def gather(before, axes):
    dims = node("dims", "Shape", (2,), before.name, dtype="int32")
    taken = node("taken", "GatherV2", (1,), "dims", "axes", "zero", dtype="int32")
    return formula(before, dims, const("axes", axes), const("zero", 0), taken)


def test_dimensions_that_are_taken_from_a_shape():
    assert text(gather(A, [1])) == "shape(a, 1)"
    assert text(gather(A, [1, 0])) == "shape(a)"  # all of them
    assert text(gather(FREE, [0, 1])) == "shape(free, 0, 1)"
    assert text(gather(A, [])) == "taken"
    taken = node("taken", "GatherV2", (1,), "a", "axes", "zero")
    assert text(formula(A, const("axes", [0]), const("zero", 0), taken)) == "taken"


def shaped(op, to, after, before=A):
    return formula(before, const("to", to), node("new", op, after, before.name, "to"))


@pytest.mark.parametrize(
    ("found", "written"),
    [
        (lambda: shaped("Reshape", [3, 2], (3, 2)), "reshape(a, (3, 2))"),
        (lambda: shaped("Reshape", [1, 2, 3], (1, 2, 3)), "a"),  # it broadcasts as before
        (lambda: shaped("Reshape", [-1], (None,), FREE), "reshape(free, (-1,))"),
        (lambda: shaped("ExpandDims", 2, (2, 3, 1)), "expand_dims(a, 2)"),
        (lambda: shaped("ExpandDims", 0, (1, 2, 3)), "a"),
        (
            lambda: formula(A, ROWS, DIMS, node("new", "Reshape", (2, 3), "rows", "dims")),
            "reshape(rows, shape(a))",
        ),
        (lambda: formula(ROWS, node("new", "Squeeze", (3,), "rows")), "new"),
        (lambda: formula(A, FREE, node("new", "Reshape", (6,), "a", "free")), "new"),
        (lambda: shaped("Transpose", [1, 0], (3, 2)), "transpose(a)"),
        (lambda: shaped("Transpose", [0, 1], (2, 3)), "transpose(a, (0, 1))"),
        (lambda: formula(A, FREE, node("new", "Transpose", (3, 2), "a", "free")), "new"),
    ],
)
def test_what_moves_numbers_is_written_only_where_it_changes_how_they_broadcast(found, written):
    assert text(found()) == written


def kept(axes, ones, before=ROWS, filled=False):
    """What the gradient of a reduction does with its incoming gradient: it restores the axes."""
    value = const("ones", ones)
    if filled:
        value = node("ones", "Fill", (1,), "count", "ones/value", dtype="int32")
    return formula(
        before,
        const("every", [0, 1, 2]),
        const("axes", axes),
        node("dims", "Placeholder", (3,), dtype="int32"),
        const("count", [1]),
        const("ones/value", ones),
        value,
        node("shape", "DynamicStitch", None, "every", "axes", "dims", "ones", dtype="int32"),
        node("new", "Reshape", None, before.name, "shape"),
    )


@pytest.mark.parametrize(
    ("found", "written"),
    [
        (lambda: kept([1], [1]), "expand_dims(rows, 1)"),
        (lambda: kept([1], 1, filled=True), "expand_dims(rows, 1)"),
        (lambda: kept([2, 1], [1, 1], node("v", "Exp", (4,))), "expand_dims(expand_dims(v, 1), 2)"),
        (lambda: kept([1], [2]), "new"),
        (lambda: kept([1], [1], node("v", "Exp", (4,))), "new"),
        (lambda: kept([1], [1], FREE), "new"),
    ],
)
def test_a_reshape_that_restores_reduced_axes_names_them(found, written):
    assert text(found()) == written


def bias(shape, **about):
    notes = {"b": about} if about else None
    return text(formula(node("g", "X", shape), node("b", "BiasAddGrad", (4,), "g"), notes=notes))


def test_the_gradient_of_a_bias_is_a_sum_over_all_but_the_channels():
    assert bias((5, 4)) == "sum(g, axis=0)"
    assert bias((5, 2, 2, 4)) == "sum(g, axis=(0, 1, 2))"
    assert bias(None) == "b"
    assert bias((5, 4, 2, 2), data_format="NCHW") == "b"


def product(op="MatMul", **about):
    last = node("p", op, (3, 3), "a", "rows")
    return text(formula(A, ROWS, last, notes={"p": about}))


def test_a_product_of_matrices_names_the_transposed_ones():
    assert product() == "matmul(a, rows)"
    assert product(transpose_a=True) == "matmul(transpose(a), rows)"
    assert product(transpose_b=True, transpose_a=False) == "matmul(a, transpose(rows))"
    assert (
        product("BatchMatMulV2", adj_x=True, adj_y=True) == "matmul(transpose(a), transpose(rows))"
    )


def broadcast(shape, before):
    """A sum over what broadcasting a tensor of the first shape to the second one repeated."""
    small, large = node("small", "X", shape), node("large", "X", before)
    dims = [node(f"{of}/dims", "Shape", (2,), of, dtype="int32") for of in ("small", "large")]
    axes = node("axes", "BroadcastGradientArgs", (None,), "small/dims", "large/dims", dtype="int32")
    return formula(small, large, *dims, axes, node("s", "Sum", None, "large", "axes"))


def test_a_sum_over_broadcast_axes_leads_back_to_the_shape_before():
    assert text(broadcast((3,), (2, 3))) == "sum_to(large, shape(small))"
    assert text(broadcast((2, 3), (2, 3))) == "large"
    assert text(broadcast(None, (2, 3))) == "sum_to(large, shape(small))"


def test_other_rules():
    assert text(formula(A, ROWS, node("n", "AddN", (2, 3), "a", "rows"))) == "a + rows"
    assert text(formula(A, node("n", "AddN", (2, 3), "a"))) == "a"
    for dtype, written in (("int32", "n"), ("uint8", "n"), ("bool", "n"), ("float64", "a")):
        assert text(formula(A, node("n", "Cast", (2, 3), "a", dtype=dtype))) == written
    assert text(formula(A, node("n", "NoRule", (2, 3), "a"))) == "n"
    unlike = node("n", "Mul", (2, 3), "a", "a", "a")  # an op has other inputs than its rule
    assert text(formula(A, unlike)) == "n"


def test_a_number_that_is_repeated_is_counted():
    six = node("n", "Fill", (2, 3), "dims", "one")
    total = node("t", "Sum", (), "n", "axes")
    assert text(formula(A, DIMS, ONE, six, const("axes", [0, 1]), total)) == "6 * one"
    assert text(formula(A, node("n", "OnesLike", (2, 3), "a"))) == "1"
    tiled = node("n", "Tile", (2, 6), "a", "by")
    assert text(formula(A, const("by", [1, 2]), tiled)) == "a"
    total = node("t", "Sum", (), "n", "axes")
    free = node("free", "Placeholder", None)
    repeated = node("n", "Tile", (2,), "free", "by")  # perhaps of one number
    assert text(formula(free, const("by", [2]), repeated, const("axes", [0]), total)) == "sum(free)"


def test_a_number_that_is_repeated_as_often_as_a_tensor_has_elements():
    dims = node("dims", "Shape", (2,), "rows", dtype="int32")
    filled = node("n", "Fill", (None, 3), "dims", "one")
    total = node("t", "Sum", (), "n", "axes")
    found = formula(ROWS, ONE, dims, filled, const("axes", [0, 1]), total)
    assert text(found) == "size(rows) * one"


def whole(*graph):
    nodes = [item[0] if isinstance(item, tuple) else item for item in graph]
    attributes = {}
    for item in graph:
        attributes |= item[1] if isinstance(item, tuple) else {}
    return formulas.Composer(nodes, attributes).whole[nodes[-1].name]


def test_whole_numbers_that_the_graph_decides():
    two, five = const("two", 2), const("five", [5, 7])

    def of(op, *inputs):
        return node("n", op, (2,), *inputs, dtype="int32")

    assert whole(five) == (5, 7)
    assert whole(two, five, of("AddV2", "two", "five")) == (7, 9)
    assert whole(two, five, of("FloorMod", "five", "two")) == (1, 1)
    assert whole(const("zero", 0), five, of("FloorMod", "five", "zero")) == (0, 0)
    start, stop, step = const("start", 1), const("stop", 6), const("step", 2)
    assert whole(start, stop, step, of("Range", "start", "stop", "step")) == (1, 3, 5)
    assert whole(start, const("far", 41), step, of("Range", "start", "far", "step")) is None
    assert whole(two, five, of("Mul", "two", "five")) is None
    assert whole(const("half", [0.5])) is None
    assert whole((node("c", "Const", ()), {"c": {"value": 2}})) is None
