"""Gradient search: graphs by hand whose names say nothing, and every node that is a gradient."""

import pytest

from tests.gradients_by_hand import GRAD, NODES, SHARED, node
from tflab.analysis.gradient_search import Found, Search, Training, counting, search
from tflab.records.graph import Tensor

FLOAT = (Tensor("float32", ()),)
INTS = (Tensor("int32", (1,)),)
HANDLE = (Tensor("resource", ()),)


def scalar(name, op, *inputs, after=()):
    return node(name, op, *inputs, outputs=FLOAT, after=after)


def variable(name):
    return node(name, "VarHandleOp", outputs=HANDLE)


# loss = mean((x * w) * (x * w)); the gradient of w is sum(2 * x * x * w / 4)
FORWARD = (
    node("x", "Placeholder"),
    variable("w"),
    scalar("read", "ReadVariableOp", "w"),
    node("p", "Mul", "x", "read"),
    node("q", "Square", "p"),
    node("axes", "Const", outputs=INTS),
    scalar("l", "Mean", "q", "axes"),
)
BACKWARD = (
    node("1", "Const", outputs=(Tensor("int32", (0,)),)),
    scalar("2", "Const"),
    scalar("3", "Fill", "1", "2"),
    node("4", "Shape", "q", outputs=INTS),
    node("5", "Tile", "3", "4"),
    node("6", "Prod", "4", "axes", outputs=(Tensor("int32", ()),)),
    scalar("7", "Cast", "6"),
    node("8", "RealDiv", "5", "7"),
    node("9", "Mul", "8", "p"),
    node("10", "Mul", "x", "9"),
    scalar("11", "Sum", "10", "axes"),
)
GRADIENTS = tuple(str(number) for number in range(1, 12))
STEP = (node("u", "ResourceApplyGradientDescent", "w", "rate", "11", outputs=()),)
RATE = scalar("rate", "Const")
TRAIN = (node("t", "NoOp", outputs=(), after=("u",)),)
WHOLE = (*FORWARD, *BACKWARD, RATE, *STEP, *TRAIN)


def test_what_leads_from_a_loss_to_an_update_is_found_without_names():
    assert search(WHOLE, {"2"}) == Found((Training("l", ("u",), ("t",)),), GRADIENTS)


def test_the_gradients_of_a_product_and_a_mean_are_those_that_its_variable_needs():
    found = search(NODES, {"gradients/Const"})
    assert found.trainings == (Training("loss", ("train",), ("train",)),)
    unused = {f"{GRAD}/Mul", f"{GRAD}/tuple/group_deps", f"{GRAD}/tuple/control_dependency"}
    # What waits for the group of both gradients is needed only by way of it, as here nothing does.
    assert set(found.gradients) == {n.name for n in NODES[6:-1]} - unused
    assert {n.name for n in SHARED} <= set(found.gradients)


def test_without_a_tensor_of_ones_or_an_update_there_are_none():
    assert search(FORWARD, set()) == Found((), ())
    assert search((*FORWARD, *BACKWARD), {"2"}) == Found((), ())
    lone = Training(None, ("u",), ("t",))
    assert search(WHOLE, set()) == Found((lone,), ())


def test_ones_in_the_forward_graph_and_first_values_of_ones_are_no_gradients():
    first = node("first", "AssignVariableOp", "w", "ones", outputs=())
    mask = (scalar("one", "Const"), node("mask", "OnesLike", "x"), node("m", "Mul", "x", "mask"))
    forward = (FORWARD[0], *mask, *FORWARD[1:3], node("p", "Mul", "m", "read"), *FORWARD[4:])
    nodes = (*forward, scalar("ones", "Const"), first, *BACKWARD, RATE, *STEP, *TRAIN)
    assert search(nodes, {"one", "ones", "2"}) == search(WHOLE, {"2"})


def test_where_folding_left_a_constant_of_ones_gradients_start_there():
    nodes = tuple(scalar("3", "Const") if n.name == "3" else n for n in WHOLE)
    nodes = tuple(n for n in nodes if n.name not in ("1", "2"))
    assert search(nodes, {"3"}) == Found((Training("l", ("u",), ("t",)),), GRADIENTS[2:])


def test_gradients_may_start_at_ones_that_are_like_the_loss():
    nodes = tuple(scalar("3", "OnesLike", "l") if n.name == "3" else n for n in WHOLE)
    nodes = tuple(n for n in nodes if n.name not in ("1", "2"))
    assert search(nodes, set()) == Found((Training("l", ("u",), ("t",)),), GRADIENTS[2:])


def test_a_loss_is_the_sum_of_which_it_is_a_term():
    total = (scalar("l2", "L2Loss", "read"), scalar("sum", "AddV2", "l", "l2"))
    average = scalar("average", "Mul", "sum", "rate")
    nodes = (*FORWARD, *total, *BACKWARD, RATE, average, *STEP, *TRAIN)
    assert search(nodes, {"2"}).trainings[0].loss == "sum"


def test_a_loss_is_the_negative_with_which_the_gradients_begin():
    """As with a log likelihood: loss = -mean(...). Otherwise a negative is another value."""
    negative = scalar("m", "Neg", "l")
    assert search((*WHOLE, negative), {"2"}).trainings[0].loss == "l"
    begun = (scalar("3n", "Neg", "3"), node("5", "Tile", "3n", "4"))
    nodes = [one for one in BACKWARD if one.name != "5"]
    nodes[3:3] = begun[:1]
    nodes[5:5] = begun[1:]
    graph = (*FORWARD, negative, *nodes, RATE, *STEP, *TRAIN)
    assert search(graph, {"2"}) == Found(
        (Training("m", ("u",), ("t",)),),
        ("1", "2", "3", "3n", "4", "5", *GRADIENTS[5:]),
    )


def test_a_negative_beside_a_loss_is_no_loss_if_only_some_gradients_begin_with_one():
    """As those of a difference, whose negative the program also computes."""
    negative = scalar("m", "Neg", "l")
    begun = (scalar("3n", "Neg", "3"), node("9n", "Mul", "3n", "8"), node("10", "Mul", "9n", "9"))
    nodes = [one for one in BACKWARD if one.name != "10"]
    place = [one.name for one in nodes].index("11")
    nodes[place:place] = begun
    graph = (*FORWARD, negative, *nodes, RATE, *STEP, *TRAIN)
    assert search(graph, {"2"}).trainings[0].loss == "l"


def test_the_arithmetic_of_an_optimiser_with_variables_of_its_own_is_no_gradient():
    own = (
        variable("m"),
        scalar("read m", "ReadVariableOp", "m"),
        scalar("difference", "Sub", "11", "read m"),
        node("u1", "AssignAddVariableOp", "m", "difference", outputs=()),
        scalar("now", "ReadVariableOp", "m", after=("u1",)),
        scalar("scaled", "Mul", "now", "rate"),
        node("u2", "AssignSubVariableOp", "w", "scaled", outputs=()),
    )
    found = search((*FORWARD, *BACKWARD, RATE, *own), {"2"})
    assert found == Found((Training("l", ("u1", "u2"), ("u1", "u2")),), GRADIENTS)


def test_a_train_op_that_counts_steps_is_the_count():
    count = (
        node("one", "Const", outputs=INTS, after=("t",)),
        node("count", "AssignAddVariableOp", "steps", "one", outputs=()),
    )
    found = search((variable("steps"), *WHOLE, *count), {"2"})
    assert found.trainings == (Training("l", ("u",), ("count",)),)


def test_two_losses_have_each_their_own_updates():
    second = {"l": "k", "axes": "axes2", "q": "r"} | {n: f"b{n}" for n in GRADIENTS}
    second |= {"u": "v", "t": "s"}

    def renamed(old):
        inputs = tuple(second.get(name, name) for name in old.inputs)
        after = tuple(second[name] for name in old.control_inputs)
        return node(second[old.name], old.op, *inputs, outputs=old.outputs, after=after)

    copy = tuple(renamed(old) for old in WHOLE if old.name in second)
    found = search((*WHOLE, *copy), {"2", "b2"})
    assert found.trainings == (Training("l", ("u",), ("t",)), Training("k", ("v",), ("s",)))
    assert found.gradients == (*GRADIENTS, *(f"b{number}" for number in GRADIENTS))


@pytest.mark.parametrize("shape", [(), None])
def test_a_loss_may_have_a_shape_that_nobody_knows(shape):
    loss = node("l", "Mean", "q", "axes", outputs=(Tensor("float32", shape),))
    nodes = tuple(loss if n.name == "l" else n for n in WHOLE)
    assert search(nodes, {"2"}) == search(WHOLE, {"2"})


LOOP = (
    node("x", "Placeholder"),
    variable("w"),
    scalar("read", "ReadVariableOp", "w"),
    node("enter", "Enter", "x"),
    node("merge", "Merge", "enter", "next"),
    node("p", "Mul", "merge", "read"),
    node("next", "NextIteration", "p"),
    node("q", "Exit", "merge"),
    *FORWARD[5:],
)


def test_what_a_loop_brings_back_belongs_to_its_loss():
    assert search((*LOOP, *BACKWARD, RATE, *STEP, *TRAIN), {"2"}) == search(WHOLE, {"2"})


def test_each_node_behind_a_mark_knows_it_also_around_a_loop():
    shape = node("shape", "Shape", "q", outputs=INTS)
    found = Search((*LOOP, shape), frozenset()).behind(["x", "read"])
    both = dict.fromkeys(("merge", "p", "next", "q", "l"), 0b11)
    assert found == {"enter": 0b01} | both


@pytest.mark.parametrize(
    ("op", "dtypes", "expected"),
    [
        ("Mul", ["int32", "int64"], True),
        ("Mul", ["int32", "float32"], False),
        ("Cast", ["float32"], True),
    ],
)
def test_sizes_and_indices_are_what_counts(op, dtypes, expected):
    outputs = tuple(Tensor(dtype, ()) for dtype in dtypes)
    assert counting(node("n", op, outputs=outputs)) is expected
