"""Stops: where a drawing halts, and the passes between, worked out by hand."""

from tests.report.test_pass_log import STAGES
from tflab.records.graph import Node
from tflab.report import pass_log, stops
from tflab.report.drawn import State
from tflab.report.stops import Stop, Tick

STATES = pass_log.states(STAGES)


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
