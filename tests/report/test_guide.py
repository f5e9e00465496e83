"""The guide: what to look at in each state, from records worked out by hand."""

from dataclasses import replace

from tests.report.test_pass_log import STAGES, W_PLACED, X_PLACED
from tflab.report import guide, pass_log

STATES = pass_log.states(STAGES)
NS = {"relu": 7_000.0, "loss": 2_000.0, "read": 0.0}


def test_each_state_has_a_sentence_on_what_to_look_at():
    assert list(guide.sentences(STATES, NS)) == [
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
    assert guide.placed(state) == "The colours are devices: 1 node on CPU:1, 2 nodes on CPU:0."


def test_a_pass_that_only_rewires_or_is_not_known_is_said_to():
    only = replace(STATES[3], gone=(), touched=())
    assert guide.rewritten(only) == (
        "Look at the arrows: remapper fuses neighbouring ops into one kernel."
    )
    unknown = replace(STATES[3], title="a_pass, iteration 2", about="", touched=())
    assert guide.rewritten(unknown) == "Look for what goes (1 node): this is a_pass."


def test_a_model_without_a_loss_has_the_same_drawing_again():
    state = replace(STATES[1], defined=(), about="There is no loss.")
    assert (
        guide.differentiated(state, "dL/dy = 1")
        == "The drawing is the same as before. There is no loss."
    )


def test_where_no_node_was_timed_none_took_longest():
    assert guide.ran({}) == "These nodes ran."


def test_the_gradients_open_with_the_chain_rule_of_this_graph():
    gradients = list(guide.sentences(STATES, NS, "dL/dy = dL/d(mul) * d(mul)/dy"))[1]
    assert gradients == (
        "dL/dy = dL/d(mul) * d(mul)/dy: follow the arrows up. The nodes beside each op multiply "
        "the gradient by its factor."
    )


def test_a_long_chain_rule_stands_alone_and_one_that_would_be_cut_off_is_left_out():
    def opening(length):
        return list(guide.sentences(STATES, NS, "d" * length))[1]

    assert opening(90).startswith(f"{'d' * 90}: follow the arrows up")
    assert opening(91) == f"{'d' * 91}."
    assert opening(160) == f"{'d' * 160}."
    assert opening(161) == list(guide.sentences(STATES, NS))[1]
