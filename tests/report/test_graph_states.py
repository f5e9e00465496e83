"""The pass log: a graph's way from what was written to what ran, worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.walk import (
    ARG,
    BACKWARD,
    DECAY,
    DIM,
    EXECUTION,
    FAST_UPDATE,
    FED,
    FED_GRAD,
    FOLDED,
    FORWARD,
    FRONTEND,
    FUSED,
    LOSS,
    PASSES,
    PLACEMENT,
    RAN,
    READ,
    RELU_GRAD,
    SEED,
    SHORT_LOSS,
    STAGES,
    SUM,
    TRAIN,
    W_GRAD,
    W_PLACED,
    WHOLE,
    X_PLACED,
)
from tests.shown import grid, layout
from tflab.analysis import passes
from tflab.records.blocks import Frame
from tflab.records.placed import Pass, Rewrite, Takeover
from tflab.records.stages import Backward
from tflab.report import graph_states
from tflab.report.contents import StandIn, State

WRITTEN = State(
    stage="frontend",
    title="Written",
    about="The lines of the program have become nodes. Nothing is computed yet.",
    lines=("7 nodes, 8 edges",),
    gone=(),
    defined=FORWARD,
)
DIFFERENTIATED = State(
    stage="backward",
    title="With gradients",
    about="Each op's gradient function added the nodes that compute its gradient.",
    lines=(
        "4 nodes to differentiate 2 ops, 3 nodes to update 5 variables",
        "3 gradients compared with finite differences: largest relative error 4.1e-06",
    ),
    gone=(),
    defined=WHOLE[7:],
)
PLACED = (
    State(
        stage="placement",
        title="placer",
        about="gives every node a device",
        lines=("2 nodes given a device",),
        gone=(),
        defined=(X_PLACED, W_PLACED),
        touched=(),
        place=0,
    ),
    State(
        stage="placement",
        title="remapper",
        about="fuses neighbouring ops into one kernel",
        lines=(
            "matmul + relu became one _FusedMatMul, named relu",
            "1 node rewritten: Apply -> FastApply",
        ),
        gone=("matmul",),
        defined=(FUSED, FAST_UPDATE),
        touched=("relu", "update"),
        place=2,
    ),
    State(
        stage="placement",
        title="constant_folding, iteration 2",
        about="computes in advance everything that depends only on constants",
        lines=(
            "1 not needed by the fetches: Fill",
            "folded into the constant dim_folded: dim",
            "1 node added: dim_folded",
        ),
        gone=("dim", "seed"),
        defined=(FOLDED, SHORT_LOSS),
        touched=("dim_folded",),
        place=4,
    ),
    State(
        stage="placement",
        title="feeds_and_fetches",
        about="prunes the graph to the fetches, and adds nodes for feeds and fetches",
        lines=("x is fed through _arg_x", "1 node added: _arg_x"),
        gone=("x",),
        defined=(ARG, FED, FED_GRAD),
        touched=("_arg_x",),
        place=5,
    ),
)
EXECUTED = State(
    stage="execution",
    title="Ran",
    about="The ops ran in the order of their dependencies.",
    lines=(
        "12 nodes on 2 devices, 4.10 ms a step for a batch of 16 (median)",
        "critical path: 3 op runs, 9.60 us in a traced step",
        "largest owner of the wall time of traced steps: at least one op running, 50.0 %",
    ),
    gone=(),
    defined=(),
)


def test_a_walk_has_a_state_for_each_stage_and_each_pass_that_changed_something():
    assert graph_states.states(STAGES) == (WRITTEN, DIFFERENTIATED, *PLACED, EXECUTED)


def test_nodes_whose_branch_no_step_took_did_not_run():
    """A traced step ran `relu`, though the step that placed it did not."""
    dead = replace(PLACEMENT, not_run=("sum", "relu"))
    assert graph_states.as_run(dead, EXECUTION).lines == (
        "11 of 12 nodes on 2 devices, 4.10 ms a step for a batch of 16 (median)",
        *EXECUTED.lines[1:],
    )


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_walk_that_ended_early_has_the_states_until_there(length):
    assert (
        graph_states.states(STAGES[:length])
        == (WRITTEN, DIFFERENTIATED, *PLACED)[: {1: 1, 2: 2, 3: 6}[length]]
    )


def test_a_model_without_a_loss_has_an_empty_state_that_says_why():
    assert graph_states.with_gradients(FRONTEND, Backward(None, FORWARD)) == State(
        stage="backward",
        title="With gradients",
        about="There is nothing to differentiate, so nothing was added.",
        lines=(),
        gone=(),
        defined=(),
    )


def test_a_graph_that_came_with_gradients_is_not_said_to_have_no_loss():
    state = graph_states.with_gradients(FRONTEND, Backward(None, FORWARD, inferred=True))
    assert state.about == "The graph already has its gradients: nothing was added."


def test_gradients_that_were_not_checked_are_not_said_to_have_been():
    assert list(graph_states.grown(replace(BACKWARD, gradient_checks=()))) == [
        "4 nodes to differentiate 2 ops, 3 nodes to update 5 variables"
    ]


def test_a_node_that_changed_is_defined_again():
    renewed = replace(LOSS, control_inputs=())
    backward = replace(BACKWARD, nodes=(*FORWARD[:-1], renewed, SEED))
    assert graph_states.with_gradients(FRONTEND, backward).defined == (renewed, SEED)


def test_a_pass_is_about_what_it_added_what_it_rewrote_and_what_took_over():
    step = Pass(
        "remapper",
        0,
        9,
        8,
        added=("new",),
        rewritten=(Rewrite("relu", "Relu", "_FusedMatMul"),),
        rewired=("far",),
        taken=(
            Takeover("matmul", "fused", "relu"),
            Takeover("copy", "merged", "twin"),
            Takeover("idle", "removed", None),
        ),
    )
    assert graph_states.touched(step) == ("new", "relu", "twin")


def test_a_pass_that_gives_every_node_its_device_is_about_none_of_them():
    step = replace(PASSES[0], added=("copy",), taken=(Takeover("a", "merged", "b"),))
    (state,) = graph_states.after_passes(replace(PLACEMENT, passes=(step,)))
    assert state.touched == ()


def test_the_passes_that_changed_nothing_stand_apart_from_the_states():
    assert graph_states.idle(PLACEMENT) == Frame(
        "3 other runs of passes", "changed nothing", ("layout, memory_optimizer",)
    )
    assert graph_states.idle(replace(PLACEMENT, passes=PASSES[2:3])) is None


def test_a_pass_of_which_another_run_changed_something_is_not_said_to_have_changed_nothing():
    again = replace(PASSES[3], name="remapper")
    assert graph_states.idle(replace(PLACEMENT, passes=(*PASSES, again))) == Frame(
        "4 other runs of passes",
        "changed nothing",
        ("layout, memory_optimizer", "other runs of remapper"),
    )
    once = graph_states.idle(replace(PLACEMENT, passes=PASSES[:3]))
    assert once == Frame("1 other pass", "changed nothing", ("layout",))


def test_a_gradients_node_stands_in_for_the_forward_nodes_that_it_was_merged_with():
    kinds = {"one": "forward", "two": "forward", "grad": "gradient", "twin": "gradient"}
    first = Pass(
        "cse",
        0,
        9,
        6,
        taken=(
            Takeover("one", "merged", "grad"),
            Takeover("two", "merged", "one_more"),  # a forward node took its place
            Takeover("far", "fused", "grad"),
            Takeover("idle", "removed", None),
        ),
    )
    then = Pass("folding", 1, 6, 5, taken=(Takeover("grad", "merged", "twin"),))
    stage = replace(PLACEMENT, passes=(first, then))
    assert graph_states.stand_ins(stage, {**kinds, "one_more": "forward"}) == (
        StandIn("grad", "one", "cse"),
        StandIn("twin", "one", "cse"),
    )


def test_the_graph_of_each_state_is_the_one_before_with_its_changes():
    versions = graph_states.versions(graph_states.states(STAGES))
    graphs = [tuple(passes.graph_at(versions, state).values()) for state in range(7)]
    first, grown, placed, fused, folded, fed, ran = graphs
    assert first == FORWARD
    assert grown == WHOLE
    assert placed == (X_PLACED, W_PLACED, *WHOLE[2:])
    assert fused == (
        *(X_PLACED, W_PLACED, READ, FUSED, DIM, LOSS),
        *(SEED, RELU_GRAD, W_GRAD, SUM, DECAY, FAST_UPDATE, TRAIN),
    )
    assert folded == (
        *(X_PLACED, W_PLACED, READ, FUSED, SHORT_LOSS),
        *(RELU_GRAD, W_GRAD, SUM, DECAY, FAST_UPDATE, TRAIN, FOLDED),
    )
    assert fed == ran == RAN


def test_the_changes_say_of_every_state_what_it_left_and_what_happened():
    assert grid(graph_states.changes(graph_states.states(STAGES))) == [
        "The changes of the graph, step by step",
        ("step", "nodes before", "after", "what happened"),
        ("Written", "0", "7", "7 nodes, 8 edges"),
        (
            "With gradients",
            "7",
            "14",
            "4 nodes to differentiate 2 ops, 3 nodes to update 5 variables; 3 gradients compared "
            "with finite differences: largest relative error 4.1e-06",
        ),
        ("placer", "14", "14", "2 nodes given a device"),
        (
            "remapper",
            "14",
            "13",
            "matmul + relu became one _FusedMatMul, named relu; 1 node rewritten: "
            "Apply -> FastApply",
        ),
        (
            "constant_folding, iteration 2",
            "13",
            "12",
            "1 not needed by the fetches: Fill; folded into the constant dim_folded: dim; "
            "1 node added: dim_folded",
        ),
        ("feeds_and_fetches", "12", "12", "x is fed through _arg_x; 1 node added: _arg_x"),
        (
            "Ran",
            "12",
            "12",
            "12 nodes on 2 devices, 4.10 ms a step for a batch of 16 (median); critical path: 3 "
            "op runs, 9.60 us in a traced step; largest owner of the wall time of traced steps: at "
            "least one op running, 50.0 %",
        ),
        0,
    ]


def test_numbers_of_nodes_stand_right_and_what_happened_gives_way():
    assert layout(graph_states.changes(graph_states.states(STAGES))) == [
        *("step", "nodes before right", "after right", "what happened gives way to 16")
    ]
