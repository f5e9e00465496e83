"""Stops: where a drawing halts, and the passes between, worked out by hand."""

from dataclasses import replace

from tests.examples.walk import STAGES, W_PLACED, X_PLACED
from tflab.records.graph import Node
from tflab.report import graph_states, stops
from tflab.report.contents import State
from tflab.report.stops import Stop, Tick

STATES = graph_states.states(STAGES)


def test_a_walk_stops_as_written_with_gradients_placed_rewritten_and_as_it_ran():
    assert stops.stops(STATES) == (
        Stop("frontend", "Written", "kind", 0, 0),
        Stop("backward", "With gradients", "kind", 1, 1),
        Stop("placed", "Placed", "device", 2, 2),
        Stop("rewritten", "Rewritten", "kind", 3, 5),
        Stop("execution", "Ran", "time", 6, 6),
    )


def test_a_walk_that_ended_early_has_the_stops_until_there():
    assert [stop.title for stop in stops.stops(STATES[:4])] == [
        *("Written", "With gradients", "Placed", "Rewritten")
    ]


def test_what_comes_before_the_placer_belongs_to_placing():
    early = State("placement", "lowering", "", (), (), (Node("a", "Op"),))
    placed = stops.stops((STATES[0], early, *STATES[2:]))[1]
    assert placed == Stop("placed", "Placed", "device", 1, 2)
    assert placed.entry == 2


def test_of_the_passes_that_rewrite_the_first_is_shown_first():
    assert [stop.entry for stop in stops.stops(STATES)] == [0, 1, 2, 3, 6]


def test_a_tick_has_the_pass_its_iteration_and_the_change_in_nodes():
    rewritten = stops.stops(STATES)[3]
    assert stops.ticks(STATES, rewritten) == (
        Tick(3, "remapper", "", "\N{MINUS SIGN}1"),
        Tick(4, "constant_folding", "iteration 2", "\N{MINUS SIGN}1"),
        Tick(5, "feeds_and_fetches", "", "±0"),
    )
    assert stops.count_change(5, 1_239) == "+1,234"


def test_a_stop_with_one_state_needs_no_ticks():
    assert stops.ticks(STATES, stops.stops(STATES)[1]) == ()


# A sentence for each state: what to look at


NS = {"relu": 7_000.0, "loss": 2_000.0, "read": 0.0}


def test_each_state_has_a_sentence_on_what_to_look_at():
    assert list(stops.sentences(STATES, NS)) == [
        "Follow the arrows down to loss: each box is an op that a line of the program created. "
        "Nothing has been computed yet.",
        "Follow the arrows up: beside each op is its derivative, multiplied by the gradient from "
        "below. That is the chain rule.",
        "Each node now shows its device: all run on CPU:0.",
        "Look for what goes (1 node) and what changes (2 nodes): remapper fuses "
        "neighbouring ops into one kernel.",
        "Look for what goes (2 nodes) and what changes (1 node): constant_folding computes "
        "in advance everything that depends only on constants.",
        "Look for what goes (1 node) and what changes (1 node): feeds_and_fetches prunes "
        "the graph to the fetches, and adds nodes for feeds and fetches.",
        "Stronger colours mean longer times. relu took longest: 7.00 us in a traced step (median).",
    ]


def test_on_several_devices_the_colours_are_counted():
    elsewhere = replace(X_PLACED, device=X_PLACED.device.replace("CPU:0", "CPU:1"))
    state = replace(STATES[2], defined=(elsewhere, W_PLACED, replace(W_PLACED, name="v")))
    assert stops.placed(state) == "The colours are devices: 1 node on CPU:1, 2 nodes on CPU:0."


def test_a_pass_that_only_rewires_or_is_not_known_is_said_to():
    only = replace(STATES[3], gone=(), touched=())
    assert stops.rewritten(only) == (
        "Look at the arrows: remapper fuses neighbouring ops into one kernel."
    )
    unknown = replace(STATES[3], title="a_pass, iteration 2", about="", touched=())
    assert stops.rewritten(unknown) == "Look for what goes (1 node): this is a_pass."


def test_a_model_without_a_loss_has_the_same_drawing_again():
    state = replace(STATES[1], defined=(), about="There is no loss.")
    assert (
        stops.differentiated(state, "dL/dy = 1")
        == "The drawing is the same as before. There is no loss."
    )


def test_where_no_node_was_timed_none_took_longest():
    assert stops.ran({}) == "These nodes ran."


def test_the_gradients_open_with_the_chain_rule_of_this_graph():
    gradients = list(stops.sentences(STATES, NS, "dL/dy = dL/d(mul) * d(mul)/dy"))[1]
    assert gradients == (
        "dL/dy = dL/d(mul) * d(mul)/dy: follow the arrows up. The nodes beside each op multiply "
        "the gradient by its factor."
    )


def test_a_long_chain_rule_stands_alone_and_one_that_would_be_cut_off_is_left_out():
    def opening(length):
        return list(stops.sentences(STATES, NS, "d" * length))[1]

    assert opening(90).startswith(f"{'d' * 90}: follow the arrows up")
    assert opening(91) == f"{'d' * 91}."
    assert opening(160) == f"{'d' * 160}."
    assert opening(161) == list(stops.sentences(STATES, NS))[1]
