"""The panel beside a drawing: the parts of a history, as links that the page can follow."""

from dataclasses import replace

from tests.examples.histories import FUSED as HISTORY
from tests.examples.histories import PLAIN
from tflab.follow import view
from tflab.records.gradients import GradientNode
from tflab.report import viewer_data
from tflab.report.contents import State

INDEX = {"conv": 0, "relu": 1, "split": 2, "bias": 3, "x": 4}
STATES = tuple(
    State(stage, title, "", (), (), (), place=place)
    for stage, title, place in (
        ("frontend", "Written", None),
        ("backward", "With gradients", None),
        ("placement", "layout", 1),
        ("placement", "MklLayoutRewritePass", 4),
        ("placement", "remapper", 6),
        ("execution", "Ran", None),
    )
)
RELU = {"node": 1, "text": "relu"}


def text(line):
    """A line of the page without its links."""
    return "".join(
        part if isinstance(part, str) else part.get("text") or part["code"] for part in line
    )


def test_links_go_to_nodes_and_states_by_their_numbers():
    written, differentiated, placed, executed = viewer_data.sections(HISTORY, STATES, INDEX)
    assert written == {
        "title": "Written",
        "about": "made by a gradient function",
        "state": 0,
        "lines": [
            ["model.py:7  ", {"code": "y = tf.nn.conv2d(x, w)"}],
            ["takes ", {"node": 2, "text": "split:1"}, ", ", "read"],
            ["waits for ", "ready"],
            ["makes float32 [?, 3], int64 [...]"],
            ["is used by ", RELU, ", ", "loss"],
        ],
    }
    assert differentiated["lines"][0] == ["derives ", "square"]
    assert placed["lines"][:4] == [
        ["placer", " (pass 1): given its device"],
        [{"state": 2, "text": "layout"}, " (pass 2): its inputs changed"],
        [
            {"state": 3, "text": "MklLayoutRewritePass"},
            *(" (pass 5): rewritten", " from ", "Conv2D to _MklConv2D"),
        ],
        [{"state": 4, "text": "remapper"}, " (pass 7): fused", " into ", RELU],
    ]
    assert executed["lines"][0] == [
        *("its computation was done by ", RELU, ", which ran as _FusedConv2D"),
    ]


def test_the_panel_and_the_terminal_say_the_same():
    strip, *_ = view.blocks(HISTORY)
    shown = viewer_data.sections(HISTORY, STATES, INDEX)
    assert [tuple(map(text, section["lines"])) for section in shown] == [
        frame.lines for frame in strip.frames
    ]
    assert [section["about"] for section in shown] == [frame.about for frame in strip.frames]


def test_a_section_goes_to_the_first_state_of_its_stage():
    def goals(states):
        return {
            section["title"]: section["state"]
            for section in viewer_data.sections(HISTORY, states, INDEX)
        }

    assert goals(STATES) == {"Written": 0, "Differentiated": 1, "Placed": 2, "Executed": 5}
    assert goals(STATES[:1]) == {
        "Written": 0,
        "Differentiated": None,
        "Placed": None,
        "Executed": None,
    }


def test_of_a_node_of_the_runtime_only_its_maker_is_said():
    assert viewer_data.sections(PLAIN, (), INDEX) == [
        {"title": "Written", "about": "made by the runtime", "state": None, "lines": []}
    ]


def test_bookkeeping_is_an_aside_of_the_panel():
    gate = GradientNode("x", "", "dL/dy", True, True, "gate", None)
    (_, differentiated) = viewer_data.sections(replace(PLAIN, meaning=gate), (), INDEX)
    assert differentiated["lines"] == [
        [
            {
                "aside": "bookkeeping (gate): These nodes wait until all gradients of an op are "
                "ready, and pass them on unchanged."
            }
        ],
        ["is dL/dy"],
    ]
