"""The states of a graph on its way from what was written to what ran, worked out by hand."""

from dataclasses import replace

import pytest

from tests import graph_notation
from tests.approval import approve
from tests.examples.walk import BACKWARD, FORWARD, FRONTEND, PASSES, PLACEMENT, STAGES
from tests.records_by_hand import a_backward
from tflab.records.graph import GradientStop
from tflab.report import graph_states, viewer_data

STATES = graph_states.states(STAGES)


def told(states) -> str:
    """What each state says, and which nodes it is about."""
    return "\n\n".join(
        "\n".join(
            [
                f"{state.stage}: {state.title} (pass {state.place})",
                state.about,
                *(f"- {line}" for line in state.lines),
                f"gone: {' '.join(state.gone)}",
                *(f"defined: {n.name} {n.op} {n.inputs} {n.device}" for n in state.defined),
                f"touched: {' '.join(state.touched)}",
            ]
        )
        for state in states
    )


def test_a_walk_has_a_state_for_each_stage_and_each_pass_that_changed_something():
    approve("report-states.txt", told(STATES))


@pytest.mark.parametrize("length, count", [(1, 1), (2, 2), (3, 6)])
def test_a_walk_that_ended_early_has_the_states_until_there(length, count):
    assert graph_states.states(STAGES[:length]) == STATES[:count]


def test_states_of_other_walks():
    """There is nothing to differentiate, it was differentiated before, or nothing was checked."""
    stages = [
        a_backward(None, FORWARD, unchecked=why)
        for why in ("no loss", "the graph came with gradients")
    ]
    stages.append(replace(BACKWARD, gradient_checks=()))
    others = [graph_states.with_gradients(FRONTEND, stage) for stage in stages]
    approve("report-other-states.txt", told(others))


def test_the_edge_by_which_a_gradient_does_not_come_back_is_cut():
    paths = ("w", "read", "matmul", "relu", "loss"), ("w", "read", "matmul"), ()
    stops = [GradientStop("w", "relu", "Relu", None, "", path) for path in paths]
    backward = replace(BACKWARD, gradient_stops=(*stops, stops[0]))
    assert graph_states.with_gradients(FRONTEND, backward).cut == (("matmul", "relu"),)


def test_a_pass_is_about_what_it_added_what_it_rewrote_and_what_took_over():
    (step,) = graph_notation.passes(
        "remapper: +new, relu Relu>_FusedMatMul, ~far, matmul fused relu, copy merged twin, "
        "idle removed"
    )
    assert graph_states.touched(step) == ("new", "relu", "twin")


def test_a_pass_that_gives_every_node_its_device_is_about_none_of_them():
    step = replace(PASSES[0], added=("copy",))
    (state,) = graph_states.after_passes(replace(PLACEMENT, passes=(step,)))
    assert state.touched == ()


def stops(states, many_devices=False, lines=()):
    counts = graph_states.node_counts(states, graph_states.versions(states))
    return [*viewer_data.stops(states, counts, [lines, lines], many_devices)]


def test_a_walk_stops_at_each_stage_with_the_passes_between():
    lines = []
    for stop in stops(STATES):
        lines.append(str({**stop, "ticks": len(stop["ticks"])}))
        lines += (f"  {tick}" for tick in stop["ticks"])
    approve("report-stops.txt", "\n".join(lines))
    assert [stop["title"] for stop in stops(STATES[:4])] == ["Frontend", "Backward", "Placement"]


def test_on_several_devices_passes_keep_the_colours_of_devices():
    assert [stop["colour"] for stop in stops(STATES, True)] == ["kind", "kind", "device", "time"]


def test_the_frontend_has_the_colours_of_its_lines_unless_they_are_too_many():
    for count, colour in ((0, "kind"), (8, "line"), (9, "kind")):
        assert stops(STATES, lines=range(count))[0]["colour"] == colour
