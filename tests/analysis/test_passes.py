"""Passes: from two graphs, what a pass did and who took over what is gone."""

import sys
from dataclasses import replace

import pytest

from tflab.analysis import passes, takeovers
from tflab.records.graph import Node, Tensor
from tflab.records.placed import Pass, Rewrite, Snapshot, Takeover


def node(name: str, op: str, *inputs: str, control: tuple[str, ...] = (), device: str = "") -> Node:
    return Node(name, op, inputs, control, device)


def snapshot(nodes, name=None, group="grappler", moment="after", **rest) -> Snapshot:
    empty = {"iteration": None, "partition": None, "clusters": {}}
    return Snapshot(moment, group, name, nodes=tuple(nodes), **(empty | rest))


def start(nodes) -> Snapshot:
    return snapshot(nodes, group="pre_placement", moment="before")


def one_pass(before, after) -> Pass:
    """What a pass did that took the one graph and left the other."""
    dumps = [start(before), snapshot(after, "any")]
    step, last = passes.compare(tuple(before), dumps, tuple(after))
    assert last == Pass("graph_optimizer", None, len(after), len(after))
    versions = passes.replay([((), before), (step.removed, step.definitions)])
    assert passes.graph_at(versions, 0) == {node.name: node for node in before}
    assert passes.graph_at(versions, 1) == {node.name: node for node in after}
    return replace(step, definitions=())


def summary(steps) -> list[tuple[str, int, int]]:
    return [(step.name, step.before, step.after) for step in steps]


def part(name: str, fate: str, into: str) -> Takeover:
    """A node whose value went into what another one computes."""
    return Takeover(name, fate, into, has_value=False)


X = node("x", "Placeholder")
K = node("k", "Const")

# What became of a node


def test_a_pruned_node_was_removed_and_nobody_took_over():
    assert one_pass([X, K], [X]) == Pass(
        *("any", None, 2, 1),
        removed=("k",),
        taken=(Takeover("k", "removed", None),),
    )


@pytest.mark.parametrize("last", ["loop/exit/_7", "Func/loop/output/_7"])
def test_a_call_that_was_laid_open_is_not_done_by_the_node_that_hands_its_value_out(last):
    before = [X, node("loop", "While", "x"), node("c", "Neg", "loop")]
    inside = [node("loop/body/_1/mul", "Mul", "x", "x"), node(last, "Exit", "loop/body/_1/mul")]
    step = one_pass(before, [X, *inside, node("c", "Neg", last)])
    assert step.taken == (Takeover("loop", "removed", last),)


def test_a_call_whose_values_an_expanded_call_takes_has_an_end_of_its_own():
    before = [
        *(X, node("f", "Call", "x"), node("f_1", "Call", "f:1", "x", "f")),
        node("c", "Neg", "f_1"),
    ]
    bodies = [
        *(node(f"Func/f/output/_{number}", "Identity", "x") for number in (1, 2)),
        node("Func/f_1/input/_10", "Identity", "x"),
        node("Func/f_1/input/_11", "Identity", "Func/f/output/_1"),
        node("Func/f_1/input/_9", "Identity", "Func/f/output/_2"),
        node("Func/f_1/output/_12", "Identity", "Func/f_1/input/_10"),
    ]
    step = one_pass(before, [X, *bodies, node("c", "Neg", "Func/f_1/output/_12")])
    ends = (("f:1", "Func/f/output/_2"), ("f", "Func/f/output/_1"))
    assert step.taken == (
        Takeover("f", "removed", "Func/f/output/_1", ends),
        Takeover("f_1", "removed", "Func/f_1/output/_12"),
    )


def test_a_chain_that_became_one_node_of_the_runtimes_was_fused():
    before = [X, node("a", "Abs", "x"), node("b", "Sqrt", "a"), node("c", "Neg", "b")]
    both = node("b/unary_ops_composition", "_UnaryOpsComposition", "x")
    step = one_pass(before, [X, both, node("c", "Neg", both.name)])
    assert step.taken == (part("a", "fused", both.name), Takeover("b", "fused", both.name))


def test_a_chain_whose_user_changed_in_the_same_pass_was_fused_too():
    """(c * dy) * exp(-x) became (c * exp(-x)) * dy: the user of the chain takes another tensor."""
    first = [X, node("neg", "Neg", "x"), node("exp", "Exp", "neg")]
    others = [node("c", "Const"), node("dy", "Op", "x")]
    before = [*first, *others, node("m", "Mul", "c", "dy"), node("n", "Mul", "m", "exp")]
    both = node("exp/unary_ops_composition", "_UnaryOpsComposition", "x")
    product = [node("m", "Mul", "c", both.name), node("n", "Mul", "dy", "m")]
    kept = [*first, *others, both, *product]
    gone = [X, *others, both, *product]
    dumps = [start(before), snapshot(kept, "arithmetic"), snapshot(gone, "prune")]
    arithmetic, *_ = passes.compare(tuple(before), dumps, tuple(gone))
    fused = {taken.name: (taken.fate, taken.into) for taken in arithmetic.taken}
    assert fused == {"neg": ("fused", both.name), "exp": ("fused", both.name)}


def test_a_name_alone_makes_no_chain():
    """The new node takes something from which the node of its name does not come."""
    before = [X, node("y", "Op"), node("a", "Neg", "x"), node("b", "Mul", "a", "a")]
    alike = node("a/unary_ops_composition", "_UnaryOpsComposition", "y")
    assert takeovers.compositions(by_name(before), by_name([*before, alike])) == {}
    made = replace(alike, inputs=("x",))
    assert takeovers.compositions(by_name(before), by_name([*before, made])) == {"a": made.name}
    of_two = node("b/unary_ops_composition", "_UnaryOpsComposition", "x")
    assert takeovers.compositions(by_name(before), by_name([*before, of_two])) == {}


def by_name(graph):
    return {one.name: one for one in graph}


def test_each_output_of_a_node_has_the_tensor_that_its_users_take_now():
    call = node("call", "TwoOf", "x")
    users = [node("a", "Neg", "call"), node("b", "Mul", "call:1", "call:2"), node("c", "Op", "x")]
    now = [node("a", "Neg", "new"), node("b", "Mul", "new:3", "x"), node("c", "Op", "x")]
    step = one_pass([X, call, *users], [X, node("new", "Four", "x"), *now])
    outputs = (("call", "new"), ("call:1", "new:3"), ("call:2", "x"))
    assert step.taken == (Takeover("call", "removed", "new", outputs, replaced=True),)


def test_a_loop_that_was_opened_names_in_its_place_what_each_output_is():
    loop, user = node("loop", "While", "x"), node("user", "Neg", "loop:1")
    opened = node("loop", "IdentityN", "exit", "exit_1")
    new = [X, node("exit", "Exit", "x"), node("exit_1", "Exit", "x"), node("user", "Neg", "exit_1")]
    dumps = [start([X, loop, user]), snapshot([*new, opened], "lower"), snapshot(new, "prune")]
    (taken,) = passes.compare((X, loop, user), dumps, tuple(new))[0].taken
    assert taken.outputs == (("loop", "exit"), ("loop:1", "exit_1"))


def test_a_swapped_node_is_the_one_of_its_type_scope_and_name():
    old = [X, node("a/cast", "Cast", "x")]
    made = [node("b/swap_cast", "Cast", "x"), node("a/swap_other", "Cast", "x")]
    made += [node("a/swap_cast", "Cast", "x"), node("a/wrong_cast", "Abs", "x")]

    def settled(*inputs, heir="heir"):
        new = by_name([*old, *made, node("heir", "Reshape", *inputs)])
        return takeovers.settled(old[1], takeovers.Heir(heir, False), by_name(old), new)

    names = [node.name for node in made]
    moved = takeovers.Heir("a/swap_cast", False, is_moved=True)
    assert settled("a/cast", names[3], *names[:3]) == moved
    assert settled(*names[:2]) == takeovers.Heir("heir", False)
    assert settled(heir="a/swap_cast") == moved
    assert settled(heir="x") == takeovers.Heir("x", False)


def test_a_twin_was_merged():
    a, b = node("a", "Neg", "x"), node("b", "Neg", "x")
    assert one_pass(
        [X, a, b, node("c", "Add", "a", "b")], [X, a, node("c", "Add", "a", "a")]
    ) == Pass(
        *("any", None, 4, 3),
        removed=("b",),
        rewired=("c",),
        taken=(Takeover("b", "merged", "a"),),
    )


def test_a_node_that_became_a_constant_was_folded_into_itself():
    user = node("c", "Add", "x", "a")
    assert one_pass([X, K, node("a", "Neg", "k"), user], [X, K, node("a", "Const"), user]) == Pass(
        *("any", None, 4, 4),
        rewritten=(Rewrite("a", "Neg", "Const"),),
        rewired=("a",),
        taken=(Takeover("a", "folded", "a"),),
    )


def test_what_fed_a_node_that_became_a_constant_was_folded_into_it():
    before = [K, node("a", "Neg", "k"), node("b", "Exp", "a")]
    assert one_pass(before, [node("b", "Const")]) == Pass(
        *("any", None, 3, 1),
        removed=("k", "a"),
        rewritten=(Rewrite("b", "Exp", "Const"),),
        rewired=("b",),
        taken=(
            part("k", "folded", "b"),
            part("a", "folded", "b"),
            Takeover("b", "folded", "b"),
        ),
    )


def test_a_value_that_now_comes_from_a_new_constant_was_folded_into_that():
    before = [X, K, node("a", "Neg", "k"), node("b", "Add", "x", "a")]
    after = [X, K, node("folding/a", "Const"), node("b", "Add", "x", "folding/a")]
    assert one_pass(before, after) == Pass(
        *("any", None, 4, 4),
        added=("folding/a",),
        removed=("a",),
        rewired=("b",),
        taken=(Takeover("a", "folded", "folding/a"),),
    )


def test_a_convolution_and_its_bias_were_fused_into_the_rewritten_relu():
    weights = [X, node("w", "ReadVariableOp"), node("bias", "ReadVariableOp")]
    before = [
        *weights,
        node("conv", "Conv2D", "x", "w"),
        node("add", "BiasAdd", "conv", "bias"),
        node("relu", "Relu", "add"),
    ]
    assert one_pass(before, [*weights, node("relu", "_FusedConv2D", "x", "w", "bias")]) == Pass(
        *("any", None, 6, 4),
        removed=("conv", "add"),
        rewritten=(Rewrite("relu", "Relu", "_FusedConv2D"),),
        rewired=("relu",),
        taken=(part("conv", "fused", "relu"), part("add", "fused", "relu")),
    )


def test_a_node_that_only_passes_on_what_its_input_now_does_for_it_was_fused():
    relu, user = node("relu", "Relu", "bn"), node("y", "Exp", "relu")
    before = [X, node("bn", "Norm", "x"), relu, user]
    passed_on = node("relu", "Identity", "bn")
    assert one_pass(before, [X, node("bn", "_NormEx", "x"), passed_on, user]) == Pass(
        *("any", None, 4, 4),
        rewritten=(Rewrite("bn", "Norm", "_NormEx"), Rewrite("relu", "Relu", "Identity")),
        taken=(part("relu", "fused", "bn"),),
    )
    assert one_pass(before, [X, node("bn", "Norm", "x"), passed_on, user]).taken == ()


def test_a_node_was_fused_into_a_new_one_that_does_more():
    before = [X, node("a", "Neg", "x"), node("b", "Abs", "a"), node("c", "Exp", "b")]
    after = [X, node("both", "NegAbs", "x"), node("c", "Exp", "both")]
    assert one_pass(before, after) == Pass(
        *("any", None, 4, 3),
        added=("both",),
        removed=("a", "b"),
        rewired=("c",),
        taken=(part("a", "fused", "both"), Takeover("b", "fused", "both")),
    )


def test_a_constant_whose_user_no_longer_needs_it_was_removed_and_not_fused():
    """The exponent of a power that the arithmetic optimiser turned into a product."""
    before = [X, K, node("power", "Pow", "x", "k")]
    square = node("square", "Square", "x")
    step = one_pass(before, [X, square, node("power", "Mul", "x", "square")])
    assert step.taken == (Takeover("k", "removed", None),)
    kept = one_pass(before, [X, node("power", "Square", "x")])
    assert kept.taken == (Takeover("k", "removed", None),)


def test_the_heir_of_an_input_is_found_where_a_pass_exchanged_the_inputs():
    """Common subgraph elimination sorts the inputs of a product."""
    one, other = node("one", "Square", "x"), node("other", "Square", "x")
    before = [X, one, other, node("c", "Mul", "x", "one")]
    step = one_pass(before, [X, other, node("c", "Mul", "other", "x")])
    assert step.taken == (Takeover("one", "merged", "other"),)
    twice = [X, node("i", "Identity", "x"), node("c", "Mul", "x", "i")]
    assert one_pass(twice, [X, node("c", "Mul", "x", "x")]).taken == (
        Takeover("i", "removed", "x"),
    )


def test_an_identity_was_removed_and_its_users_take_the_value_from_where_it_came():
    before = [X, node("i", "Identity", "x"), node("a", "Neg", "i")]
    assert one_pass(before, [X, node("a", "Neg", "x")]) == Pass(
        *("any", None, 3, 2),
        removed=("i",),
        rewired=("a",),
        taken=(Takeover("i", "removed", "x"),),
    )


def test_an_identity_of_an_identity_is_no_twin():
    first = node("i", "Identity", "x")
    before = [X, first, node("j", "Identity", "i"), node("a", "Neg", "j")]
    after = [X, first, node("a", "Neg", "i")]
    assert one_pass(before, after).taken == (Takeover("j", "removed", "i"),)


def test_a_node_that_carried_only_control_was_removed_without_an_heir():
    before = [X, node("group", "NoOp", control=("x",)), node("a", "Neg", "x", control=("group",))]
    assert one_pass(before, [X, node("a", "Neg", "x", control=("x",))]) == Pass(
        *("any", None, 3, 2),
        removed=("group",),
        rewired=("a",),
        taken=(Takeover("group", "removed", None),),
    )


def test_a_constant_that_was_copied_was_removed_in_favour_of_its_first_copy():
    copies = [node("k/1", "Const"), node("k/2", "Const")]
    before = [K, node("a", "Neg", "k"), node("b", "Abs", "k")]
    after = [*copies, node("a", "Neg", "k/1"), node("b", "Abs", "k/2")]
    assert one_pass(before, after) == Pass(
        *("any", None, 3, 4),
        added=("k/1", "k/2"),
        removed=("k",),
        rewired=("a", "b"),
        taken=(Takeover("k", "removed", "k/1"),),
    )


def test_a_fed_placeholder_was_removed_in_favour_of_an_argument():
    after = [node("_arg_x_0_0", "_Arg"), node("a", "Neg", "_arg_x_0_0")]
    assert one_pass([X, node("a", "Neg", "x")], after) == Pass(
        *("any", None, 2, 2),
        added=("_arg_x_0_0",),
        removed=("x",),
        rewired=("a",),
        taken=(Takeover("x", "removed", "_arg_x_0_0"),),
    )


def test_a_node_that_is_used_by_its_second_output_has_an_heir_all_the_same():
    twins = [node("s", "Split", "x"), node("t", "Split", "x")]
    before = [X, *twins, node("a", "Add", "s:1", "t:1")]
    after = [X, twins[0], node("a", "Add", "s:1", "s:1")]
    assert one_pass(before, after).taken == (Takeover("t", "merged", "s", (("t:1", "s:1"),)),)


def test_an_heir_is_looked_for_past_other_nodes_that_are_gone():
    before = [K, node("a", "Neg", "k"), node("i", "Identity", "a"), node("out", "Exp", "i")]
    after = [K, node("new", "Const"), node("out", "Exp", "new")]
    assert one_pass(before, after).taken == (
        Takeover("a", "folded", "new"),
        Takeover("i", "folded", "new"),
    )


def test_nodes_in_a_circle_that_are_gone_have_no_heir():
    before = [X, node("merge", "Merge", "next"), node("next", "NextIteration", "merge")]
    assert one_pass(before, [X]).taken == (
        Takeover("merge", "removed", None),
        Takeover("next", "removed", None),
    )


# Names that a pass uses again, and values that are not where a node was


def test_a_product_that_became_a_factor_of_another_one_was_not_folded():
    """(x * k) * m became x * (k * m), and the second product has the name of the first."""
    m, user = node("m", "Const"), node("u", "Exp", "b")
    before = [X, K, m, node("a", "Mul", "x", "k"), node("b", "Mul", "a", "m"), user]
    step = one_pass(before, [X, node("a", "Const"), node("b", "Mul", "x", "a"), user])
    assert step.taken == (
        part("k", "folded", "a"),
        Takeover("m", "removed", None),
        Takeover("a", "removed", None),
    )


def test_a_chain_of_products_that_were_reordered_was_not_folded():
    m, y = node("m", "Const"), node("y", "Erf", "x")
    first = [X, K, m, y, node("a", "Mul", "x", "k"), node("b", "Mul", "a", "y")]
    before = [*first, node("c", "Mul", "b", "m"), node("d", "Mul", "c", "k")]
    now = [node("c", "Const"), node("d", "Mul", "x", "e"), node("e", "Mul", "y", "c")]
    step = one_pass(before, [X, K, y, *now])
    fates = {taken.name: (taken.fate, taken.into) for taken in step.taken}
    assert fates == {
        "a": ("removed", None),
        "b": ("removed", None),
        "c": ("removed", None),
        "m": ("folded", "c"),
    }


def test_random_numbers_are_not_folded_although_their_shape_is_known():
    draw, user = node("r", "RandomUniform", "k"), node("u", "Exp", "b")
    before = [K, draw, node("a", "Mul", "r", "k"), node("b", "Mul", "a", "k"), user]
    step = one_pass(before, [K, draw, node("a", "Const"), node("b", "Mul", "r", "a"), user])
    assert step.taken == (Takeover("a", "removed", None),)


def test_a_product_with_zero_was_folded_and_waits_for_its_factor():
    user, zero = node("u", "Exp", "a"), node("a", "Const", control=("x",))
    step = one_pass([X, K, node("a", "Mul", "x", "k"), user], [X, K, zero, user])
    assert step.taken == (Takeover("a", "folded", "a"),)


def test_a_known_shape_and_what_is_computed_from_it_were_folded():
    user = node("u", "Reshape", "x", "a")
    before = [X, K, node("s", "Shape", "x"), node("a", "Pack", "s", "k"), user]
    step = one_pass(before, [X, node("a", "Const"), user])
    assert step.taken == (
        part("k", "folded", "a"),
        part("s", "folded", "a"),
        Takeover("a", "folded", "a"),
    )


def test_a_constant_divisor_went_into_a_constant_factor():
    before = [X, K, node("cast", "Cast", "k"), node("u", "RealDiv", "x", "cast")]
    step = one_pass(before, [X, node("recip", "Const"), node("u", "Mul", "x", "recip")])
    assert step.taken == (part("k", "folded", "recip"), part("cast", "folded", "recip"))


def test_the_input_of_a_twin_is_the_twin_of_its_input():
    m = node("m", "Const")
    before = [K, m, node("a", "Pack", "k"), node("b", "Pack", "m"), node("u", "Mul", "a", "b")]
    step = one_pass(before, [K, node("a", "Pack", "k"), node("u", "Mul", "a", "a")])
    assert step.taken == (Takeover("m", "merged", "k"), Takeover("b", "merged", "a"))


def test_of_two_constants_of_a_sum_that_both_changed_another_user_decides():
    consts = [node(name, "Const") for name in ("a", "b", "c", "d")]
    add, now = node("u", "Add", "a", "b"), node("u", "Add", "c", "d")
    unclear = one_pass([*consts, add], [*consts[2:], now]).taken
    assert unclear == (Takeover("a", "removed", None), Takeover("b", "removed", None))
    other = [node("v", "Neg", "a")], [node("v", "Neg", "d")]
    clear = one_pass([*consts, add, *other[0]], [*consts[2:], now, *other[1]]).taken
    assert clear == (Takeover("a", "merged", "d"), Takeover("b", "merged", "c"))


def test_identities_of_a_sum_were_removed_in_favour_of_what_they_passed_on():
    made = [X, node("a", "Neg", "x"), node("b", "Abs", "x"), node("c", "Exp", "x")]
    passed = [node("i", "Identity", "a"), node("j", "Identity", "i"), node("l", "Identity", "b")]
    before = [*made, *passed, node("u", "AddN", "j", "l", "c")]
    step = one_pass(before, [*made, node("u", "AddN", "a", "b", "c")])
    assert step.taken == (
        Takeover("i", "removed", "a"),
        Takeover("j", "removed", "a"),
        Takeover("l", "removed", "b"),
    )


def test_of_two_nodes_that_undo_each_other_only_the_second_was_bypassed():
    before = [X, node("t", "Transpose", "x"), node("s", "Transpose", "t"), node("u", "Exp", "s")]
    step = one_pass(before, [X, node("u", "Exp", "x")])
    assert step.taken == (Takeover("t", "removed", None), Takeover("s", "removed", "x"))


def lines_run(length):
    """How many lines of Python run until a chain of so many nodes is taken out."""
    chain = [X, *(node(f"n{i}", "Neg", f"n{i - 1}" if i else "x") for i in range(length))]
    lines = 0

    def count(frame, event, _):
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()  # of a measurement of coverage
    sys.settrace(count)
    try:
        taken = one_pass(chain, [X]).taken
    finally:
        sys.settrace(before)
    assert len(taken) == length
    return lines


def test_a_long_chain_is_taken_out_in_linear_time():
    assert lines_run(2_000) < 2.5 * lines_run(1_000)  # a look along the chain for each makes it 4


def test_a_node_may_get_another_input_another_device_or_both():
    before = [X, K, node("a", "Neg", "x"), node("b", "Abs", "x"), node("c", "Exp", "x")]
    after = [
        *(X, K, node("a", "Neg", "k"), node("b", "Abs", "x", device="CPU:1")),
        node("c", "Exp", "x", control=("k",), device="CPU:1"),
    ]
    assert one_pass(before, after) == Pass(
        *("any", None, 5, 5), rewired=("a", "c"), moved=("b", "c")
    )


def test_an_heir_is_looked_for_past_users_that_are_gone():
    before = [K, node("a", "Neg", "k"), node("u", "Abs", "a"), node("v", "Exp", "a")]
    after = [K, node("new", "Const"), node("v", "Exp", "new")]
    assert one_pass(before, after).taken == (
        Takeover("a", "folded", "new"),
        Takeover("u", "removed", None),
    )


def test_what_fed_a_node_that_stayed_has_no_heir_from_beyond_it():
    before = [K, node("a", "Neg", "k"), node("b", "Abs", "a"), node("c", "Exp", "b")]
    before += [node("d", "Log", "c")]
    after = [K, node("b", "Abs"), node("new", "Const"), node("d", "Log", "new")]
    assert one_pass(before, after).taken == (
        Takeover("a", "removed", None),
        Takeover("c", "folded", "new"),
    )


@pytest.mark.parametrize(
    ("inputs", "relu"),
    [
        (("Norm", "_NormEx", "Norm", "Norm"), node("relu", "Relu", "bn")),  # did not pass on
        (("Norm", "Norm", "Norm", "_NormEx"), node("relu", "Identity", "other")),  # not its input
        (("_NormEx", "_NormEx", "Norm", "Norm"), node("relu", "Identity", "bn")),  # as before
        (("Norm", "NormEx", "Norm", "Norm"), node("relu", "Identity", "bn")),  # not the runtime's
    ],
)
def test_only_a_node_that_passes_on_what_its_rewritten_input_does_was_fused(inputs, relu):
    bn, bn_after, other, other_after = inputs
    before = [X, node("bn", bn, "x"), node("other", other, "x"), node("relu", "Relu", "bn")]
    after = [X, node("bn", bn_after, "x"), node("other", other_after, "x"), relu]
    assert one_pass(before, after).taken == ()


# Nodes that lose their work in one pass and go in another

USER = node("u", "Exp", "a")


def takes(*graphs) -> list[tuple[Takeover, ...]]:
    """What each pass took that led from one of these graphs to the next."""
    before, *after = map(tuple, graphs)
    dumps = [start(before), *(snapshot(nodes, f"pass{at}") for at, nodes in enumerate(after))]
    return [step.taken for step in passes.compare(before, dumps, after[-1])[:-1]]


def test_a_node_that_was_replaced_and_removed_later_was_taken_by_the_pass_that_replaced_it():
    old, square = node("a", "Mul", "x", "x"), node("sq", "Square", "x")
    user = node("u", "Exp", "sq")
    assert takes([X, old, USER], [X, old, square, user], [X, square, user]) == [
        (Takeover("a", "removed", "sq", replaced=True),),
        (Takeover("a", "removed", None),),
    ]


def test_a_node_whose_value_takes_several_new_nodes_was_not_replaced_by_the_last():
    """The product of the sum and k has the value of a; one kernel alone does not compute it."""
    before = [X, K, node("a", "Pow", "x", "x"), USER]
    made = [node("sum", "Add", "x", "x"), node("product", "Mul", "sum", "k")]
    step = one_pass(before, [X, K, *made, node("u", "Exp", "product")])
    assert step.taken == (Takeover("a", "removed", "product"),)


def test_a_transpose_that_became_an_attribute_of_a_new_product_was_fused_with_it():
    before = [X, node("t", "Transpose", "x"), node("m", "MatMul", "x", "t"), node("u", "Exp", "m")]
    step = one_pass(before, [X, node("fold_m", "MatMul", "x", "x"), node("u", "Exp", "fold_m")])
    assert step.taken == (part("t", "fused", "fold_m"), Takeover("m", "fused", "fold_m"))


def test_a_cast_that_moved_up_beyond_an_identity_and_a_reshape_is_the_new_cast():
    """The heir of the identity has its value, and the users of the cast take that."""
    before = [X, node("g/shape", "Reshape", "x"), node("g/same", "Identity", "g/shape")]
    before += [node("c/cast", "Cast", "g/same"), node("u", "Exp", "c/cast")]
    made = [node("c/new_new_cast", "Cast", "x"), node("g/new_shape", "Reshape", "c/new_new_cast")]
    made += [node("g/new_same", "Identity", "g/new_shape")]
    step = one_pass(before, [X, *made, node("u", "Exp", "g/new_same")])
    moved = {taken.name: taken for taken in step.taken}["c/cast"]
    assert moved == Takeover("c/cast", "removed", "c/new_new_cast", (), False, replaced=True)
    assert not [taken for taken in step.taken if taken.fate == "fused"]


def test_a_node_that_was_replaced_and_stays_was_not_taken():
    old, square = node("a", "Mul", "x", "x"), node("sq", "Square", "x")
    after = [X, old, square, node("u", "Exp", "sq")]
    assert takes([X, old, USER], after, after) == [(), ()]


def test_a_node_that_one_user_still_takes_keeps_its_work():
    old, square, other = node("a", "Mul", "x", "x"), node("sq", "Square", "x"), node("v", "L", "a")
    user = node("u", "Exp", "sq")
    steps = takes([X, old, USER, other], [X, old, square, user, other], [X, square, user])
    assert steps == [(), (Takeover("a", "removed", None), Takeover("v", "removed", None))]


def test_a_node_that_was_replaced_by_one_of_its_type_was_removed_in_favour_of_it():
    old, new = node("a", "Mul", "x", "k"), node("a_1", "Mul", "x", "k")
    user = node("u", "Exp", "a_1")
    assert takes([X, K, old, USER], [X, K, old, new, user], [X, K, new, user]) == [
        (Takeover("a", "removed", "a_1", replaced=True),),
        (Takeover("a", "removed", None),),
    ]


def test_what_only_a_replaced_node_used_has_lost_its_work_too_but_no_constant_has():
    chain = [X, K, node("i", "Neg", "x", "k"), node("j", "Log", "i"), node("a", "Abs", "j", "k")]
    new, user = node("n", "Both", "x"), node("u", "Exp", "n")
    (first, _) = takes([*chain, USER], [*chain, new, user], [X, new, user])
    assert first == (
        part("i", "fused", "n"),
        part("j", "fused", "n"),
        Takeover("a", "fused", "n"),
    )


def test_a_constant_that_lost_its_user_is_not_in_what_that_takes_now():
    square = node("square", "Square", "x")
    graphs = [X, K, node("u", "Pow", "x", "k")], [X, K, square, node("u", "Mul", "x", "square")]
    first, last = takes(*graphs, [X, square, node("u", "Mul", "x", "square")])
    assert (first, last[:1]) == ((), (Takeover("k", "removed", None),))


def test_inputs_that_change_places_or_are_fewer_replace_nothing():
    a, b = node("a", "Neg", "x"), node("b", "Abs", "x")
    for was, now in ((("a", "b"), ("b", "b")), (("a", "b"), ("b",)), (("a", "x"), ("x",))):
        graphs = [X, a, b, node("u", "AddN", *was)], [X, a, b, node("u", "AddN", *now)]
        first, last = takes(*graphs, [X, b, node("u", "AddN", *now)])
        assert (first, last[:1]) == ((), (Takeover("a", "removed", None),))


def test_a_node_that_lost_its_work_and_found_an_heir_at_its_end_is_left_to_that():
    old, square, user = node("a", "Mul", "x"), node("sq", "Square", "x"), node("u", "Exp", "sq")
    again = [X, old, square, node("u", "Exp", "a")]
    graphs = [X, old, USER], [X, old, square, user], again, [X, square, user]
    assert takes(*graphs) == [(), (), (Takeover("a", "removed", "sq"),)]


# XLA


def test_the_members_of_a_cluster_are_compiled_and_end_in_what_runs_it():
    a, b = node("a", "Neg", "x"), node("b", "Exp", "a")
    out = node("_retval_b_0_0", "_Retval", "b")
    clustered = node("cluster_0", "cluster_0", "x")
    built = [
        X,
        node("cluster_0_1/xla_compile", "_XlaCompile", "x"),
        node("cluster_0_1/xla_run", "_XlaRun", "x", "cluster_0_1/xla_compile"),
        replace(out, inputs=("cluster_0_1/xla_run",)),
    ]
    marked = snapshot([X, a, b, out], "Mark", clusters=dict.fromkeys("ab", "cluster_0"))
    encapsulated = snapshot([X, clustered, replace(out, inputs=("cluster_0",))], "Encapsulate")
    steps = passes.compare((X, a, b, out), [marked, encapsulated, snapshot(built, "Build")], built)
    assert [step.taken for step in steps] == [
        (part("a", "compiled", "cluster_0"), part("b", "compiled", "cluster_0")),
        (part("cluster_0", "compiled", "cluster_0_1/xla_run"),),
        (),
    ]


def test_a_cluster_whose_values_nobody_takes_is_compiled_and_run_all_the_same():
    a, b = node("a", "Neg", "x"), node("b", "Exp", "a")
    clustered = [X, node("cluster_0", "cluster_0", "x")]
    built = [
        X,
        node("cluster_0_1/xla_run", "_XlaRun", "x", "cluster_0_1/xla_compile"),
        node("cluster_0_1/xla_compile", "_XlaCompile", "x"),
    ]
    marked = snapshot([X, a, b], "Mark", clusters=dict.fromkeys("ab", "cluster_0"))
    dumps = [marked, snapshot(clustered, "Encapsulate"), snapshot(built, "Build")]
    steps = passes.compare((X, a, b), dumps, tuple(built))
    assert [step.taken for step in steps] == [
        (part("a", "compiled", "cluster_0"), part("b", "compiled", "cluster_0")),
        (part("cluster_0", "compiled", "cluster_0_1/xla_run"),),
        (),
    ]


# The order of passes


def test_a_phase_that_changed_nothing_is_a_pass_all_the_same():
    dumps = [start([X]), snapshot([X], "first", iteration=0), snapshot([X], "second", iteration=1)]
    assert passes.compare((X,), dumps, (X,)) == (
        Pass("first", 0, 1, 1),
        Pass("second", 1, 1, 1),
        Pass("graph_optimizer", None, 1, 1),
    )


def test_a_first_dump_that_is_not_the_users_graph_is_a_pass_of_its_own():
    first, *_ = passes.compare((X, K), [start([X])], (X,))
    assert first == Pass(
        "pre_placement", None, 2, 1, removed=("k",), taken=(Takeover("k", "removed", None),)
    )


def test_what_grappler_does_outside_its_passes_is_its_own():
    dumps = [
        snapshot([X, K], moment="before", iteration=0),
        snapshot([X, K], "pruner", iteration=0),
        snapshot([X], iteration=0),
        snapshot([X]),
    ]
    steps = passes.compare((X, K), dumps, (X,))
    assert summary(steps) == [("pruner", 2, 2), ("grappler", 2, 1), ("graph_optimizer", 1, 1)]


def test_the_steps_of_the_runtime_between_its_groups_of_passes_have_names():
    def before(group, *nodes):
        return snapshot(nodes, group=group, moment="before")

    dumps = [
        start([X, K]),
        before("post_placement", X, K),
        before("post_rewrite_for_exec", X),
        before("post_partitioning", X, node("send", "_Send", "x")),
    ]
    assert summary(passes.compare((X, K), dumps, (X,))) == [
        ("placer", 2, 2),
        ("feeds_and_fetches", 2, 1),
        ("partitioner", 1, 2),
        ("graph_optimizer", 2, 1),
    ]


def test_a_pass_that_runs_once_for_each_partition_is_one_pass_over_all_of_them():
    def part(device, name, op, moment="after"):
        return snapshot(
            [node(f"{device}{index}", op) for index in range(2)],
            name,
            *("post_partitioning", moment),
            partition=device,
        )

    whole = snapshot([X], "last", group="post_rewrite_for_exec")
    dumps = [
        whole,
        *(part("a", None, "Relu", "before"), part("a", "Mkl", "_MklRelu"), part("a", None, "Relu")),
        *(part("b", None, "Relu", "before"), part("b", "Mkl", "_MklRelu"), part("b", None, "Relu")),
    ]
    steps = passes.compare((X,), dumps[:-1], part("a", None, "_MklRelu").nodes)
    assert summary(steps)[:2] == [("partitioner", 1, 4), ("Mkl", 4, 4)]
    assert [change.name for change in steps[1].rewritten] == ["a0", "a1", "b0", "b1"]


CLIENT, FIRST, SECOND = (f"/job:{task}/device:CPU:0" for task in ("client", "w:0", "w:1"))


def test_the_nodes_of_other_tasks_are_sent_and_not_removed():
    here, one = node("here", "NoOp", device=CLIENT), node("one", "Relu", device=FIRST)
    two, three = node("two", "Abs", device=SECOND), node("three", "Exp", device=SECOND)
    send = node("here_S1", "_Send", device=CLIENT)
    parts = {"group": "post_partitioning", "partition": "client"}
    dumps = [
        snapshot([here, one, two, three], "last", group="post_rewrite_for_exec"),
        snapshot([here, send], moment="before", **parts),
        snapshot([here, send], "Mkl", **parts),
    ]
    ran = (here, send, replace(one, op="_MklRelu"), two, three, node("one_S2", "_Recv"))
    cut, mkl, tasks = passes.compare((here, one, two, three), dumps, ran)
    assert summary((cut, mkl, tasks)) == [
        ("partitioner", 4, 5),
        ("Mkl", 5, 5),
        ("tasks", 5, 6),
    ]
    assert cut.sent == (("/job:w:0", ("one",)), ("/job:w:1", ("two", "three")))
    assert (cut.added, cut.removed, mkl.sent, tasks.sent) == (("here_S1",), (), (), ())
    assert tasks.rewritten == (Rewrite("one", "Relu", "_MklRelu"),)
    assert tasks.added == ("one_S2",)


def test_a_pass_over_one_partition_leaves_the_others_as_they_were():
    def part(device, name, *nodes):
        return snapshot(nodes, name, "post_partitioning", partition=device)

    y, z = node("y", "Abs"), node("z", "Exp")
    dumps = [part("a", "Mkl", X, K), part("b", "Mkl", y), part("a", "Only", X), snapshot([z])]
    assert summary(passes.compare((X, K), dumps, (z,))) == [
        ("Mkl", 2, 3),
        ("Only", 3, 2),
        ("grappler", 2, 1),
        ("graph_optimizer", 1, 1),
    ]


def test_a_pass_of_the_whole_graph_that_comes_again_is_told_again():
    dumps = [start([X, K]), snapshot([X, K], "pruner"), snapshot([X], "pruner")]
    assert summary(passes.compare((X, K), dumps, (X,))) == [
        ("pruner", 2, 2),
        ("pruner", 2, 1),
        ("graph_optimizer", 1, 1),
    ]


def test_only_a_dump_before_a_group_of_passes_is_the_step_that_led_there():
    dumps = [
        start([X]),
        snapshot([X], group="post_placement", moment="before"),
        snapshot([X], group="post_placement"),
    ]
    assert summary(passes.compare((X,), dumps, (X,))) == [
        ("placer", 1, 1),
        ("graph_optimizer", 1, 1),
    ]


# Purposes


def test_every_step_between_the_groups_of_passes_has_a_purpose():
    assert set(passes.STEPS.values()) <= set(passes.PURPOSES)


def test_a_purpose_is_one_phrase():
    for purpose in passes.PURPOSES.values():
        assert purpose[0].islower() and not purpose.endswith(".") and "\n" not in purpose


# The replay


def test_each_version_of_a_node_stands_from_its_definition_to_the_next_or_until_it_goes():
    changed = node("a", "Sqrt", "x")
    again = node("k", "Const", device="CPU:1")
    versions = passes.replay(
        [
            ((), [X, K, node("a", "Neg", "x")]),
            (["k"], []),
            ((), [changed]),
            (["x"], [again]),
            ((), []),
        ]
    )
    assert versions == {
        "x": [passes.Version(0, 2, X)],
        "k": [passes.Version(0, 0, K), passes.Version(3, 4, again)],
        "a": [passes.Version(0, 1, node("a", "Neg", "x")), passes.Version(2, 4, changed)],
    }
    assert list(versions) == ["x", "k", "a"]
    assert [passes.graph_at(versions, state) for state in range(5)] == [
        {"x": X, "k": K, "a": node("a", "Neg", "x")},
        {"x": X, "a": node("a", "Neg", "x")},
        {"x": X, "a": changed},
        {"k": again, "a": changed},
        {"k": again, "a": changed},
    ]


def test_what_was_never_there_can_go_and_nothing_leaves_nothing():
    assert passes.replay([(["unknown"], [X])]) == {"x": [passes.Version(0, 0, X)]}
    assert passes.replay([]) == {}


def test_a_replay_of_the_passes_goes_through_every_dump():
    before, between = [X, K, node("a", "Neg", "x")], [X, node("a", "Neg", "x")]
    after = [X, node("a", "Sqrt", "x")]
    dumps = [start(before), snapshot(between, "first"), snapshot(after, "second")]
    steps = passes.compare(tuple(before), dumps, tuple(after))
    versions = passes.replay([((), before), *((step.removed, step.definitions) for step in steps)])
    states = [tuple(passes.graph_at(versions, state).values()) for state in range(4)]
    assert states == [tuple(before), tuple(between), tuple(after), tuple(after)]


def test_outputs_of_a_node_that_is_gone_are_what_its_users_take_now():
    two = Node("two", "Split", outputs=(Tensor("float32", ()),) * 2)
    first, second = Node("first", "Exp", ("two",)), Node("second", "Exp", ("two:1",))
    old = {item.name: item for item in (two, first, second)}
    users = {"two": [("first", 0), ("second", 0)]}

    def found(**takes):
        new = [replace(old[name], inputs=(taken,)) for name, taken in takes.items()]
        return takeovers.outputs_at_users("two", old, {n.name: n for n in (X, two, *new)}, users)

    assert found(first="x", second="x:3") == (("two", "x"), ("two:1", "x:3"))
    assert found(first="x", second="two:1") == ()  # the node itself is there, under its name
    assert found(first="two", second="gone") == ()
    assert found(first="two", second="x:3") == (("two:1", "x:3"),)
