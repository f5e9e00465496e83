"""Stops: where a drawing halts, the passes between, and a sentence for each state."""

from dataclasses import replace

import pytest

from tests.approval import approve
from tests.examples.walk import STAGES, W_PLACED, X_PLACED
from tests.graph_notation import graph
from tflab.report import graph_states, stops
from tflab.report.contents import State
from tflab.report.stops import Stop

STATES = graph_states.states(STAGES)
NS = {"relu": 7_000.0, "loss": 2_000.0, "read": 0.0}


def test_a_walk_stops_as_written_with_gradients_placed_rewritten_and_as_it_ran():
    lines = []
    for stop in stops.stops(STATES):
        lines.append(f"{stop}, entry {stop.entry}")
        lines += (f"  {tick}" for tick in stops.ticks(STATES, stop))
    lines += ["", *stops.sentences(STATES, NS)]
    approve("report-stops.txt", "\n".join(lines))
    assert stops.count_change(5, 1_239) == "+1,234"


def test_a_walk_that_ended_early_has_the_stops_until_there():
    assert [stop.title for stop in stops.stops(STATES[:4])] == [
        *("Written", "With gradients", "Placed", "Rewritten")
    ]


def test_what_comes_before_the_placer_belongs_to_placing():
    early = State("placement", "lowering", "", (), (), graph("a"))
    placed = stops.stops((STATES[0], early, *STATES[2:]))[1]
    assert placed == Stop("placed", "Placed", "device", 1, 2)
    assert placed.entry == 2


def test_on_several_devices_the_colours_are_counted():
    elsewhere = replace(X_PLACED, device=X_PLACED.device.replace("CPU:0", "CPU:1"))
    state = replace(STATES[2], defined=(elsewhere, W_PLACED, replace(W_PLACED, name="v")))
    assert stops.placed(state) == "The colours are devices: 1 node on CPU:1, 2 nodes on CPU:0."


@pytest.mark.parametrize(
    "sentence, expected",
    [
        (
            stops.rewritten(replace(STATES[3], gone=(), touched=())),
            "Look at the arrows: remapper fuses neighbouring ops into one kernel.",
        ),
        (
            stops.rewritten(replace(STATES[3], title="a_pass, iteration 2", about="", touched=())),
            "Look for what goes (1 node): this is a_pass.",
        ),
        (
            stops.differentiated(replace(STATES[1], defined=(), about="No loss."), "dL/dy = 1"),
            "The drawing is the same as before. No loss.",
        ),
        (stops.ran({}), "These nodes ran."),
        (
            stops.ran({"a": 5.0}, "mean"),
            "Stronger colours mean longer times. a took longest: 5 ns in a traced step (mean).",
        ),
    ],
)
def test_states_that_are_unlike_others_say_so(sentence, expected):
    assert sentence == expected


@pytest.mark.parametrize(
    "length, opening",
    [
        (1, "d: follow the arrows up. The nodes beside each op multiply the gradient by its"),
        (90, f"{'d' * 90}: follow the arrows up"),
        (91, f"{'d' * 91}."),  # it stands alone
        (160, f"{'d' * 160}."),
        (161, "Follow the arrows up: beside each op is its derivative"),  # it would be cut off
    ],
)
def test_the_gradients_open_with_the_chain_rule_of_this_graph_if_it_is_short(length, opening):
    assert list(stops.sentences(STATES, NS, "d" * length))[1].startswith(opening)
