"""The chapter of a graph: every sentence and cell, from walks that were worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.histories import value
from tests.examples.lab import LINEAR, STAGES, TOY, WALKING, WARM, shown
from tests.records_by_hand import source
from tests.shown import grid
from tflab.records.gradients import Link
from tflab.records.graph import Node
from tflab.records.stages import Backward, Execution
from tflab.records.values import PathPoint, ValuesStep
from tflab.report import drawing, graph_chapter
from tflab.report.contents import DrawnGraph, Method
from tflab.runtime import trace

pytestmark = pytest.mark.usefixtures("undrawn")


def test_the_life_of_a_graph_is_its_sizes_its_drawing_and_its_account():
    assert shown(graph_chapter.parts(LINEAR, "a linear model")) == [
        "a linear model was written as 7 nodes. With its gradients and updates, it has 14. The "
        "runtime kept 10 of them, and added 2 nodes of its own. A step took 4.10 ms for a batch "
        "of 16 (the median of 3 untraced steps). The forward ops go down on the left; the "
        "gradients go up beside them, each next to its layer; the updates of the variables are "
        "on the right.",
        DrawnGraph(
            name="a linear model",
            drawing=drawing.draw(STAGES, LINEAR.histories),
            histories=LINEAR.histories,
            ns={trace.EXECUTOR: 10, "read": 400, "relu": 7_100, "loss": 2_100},
            batch_size=16,
        ),
        [
            "What became of the 14 nodes of the graph",
            ("fate", "nodes", "meaning", "by"),
            ("executed", "10", "runs under its own name", "rewritten: 2 by remapper"),
            ("removed", "1", "bypassed, replaced or not used", "1 by feeds_and_fetches"),
            ("fused", "1", "part of another node's kernel", "1 by remapper"),
            ("folded", "1", "computed in advance, now a constant", "1 by constant_folding"),
            ("unreached", "1", "not needed by the fetches", "1 by constant_folding"),
            0,
        ],
        "10 executed under their own name + 2 made by the runtime (1 folded constant, 1 feed) = 12 "
        "that run.",
        [
            "The nodes that did not run as they were written, by name",
            ("fate", "pass", "nodes"),
            ("removed", "feeds_and_fetches", "x"),
            ("fused", "remapper", "matmul"),
            ("folded", "constant_folding", "dim"),
            ("unreached", "constant_folding", "seed"),
            0,
        ],
        Method(
            f"Colours and times in the graph: {WARM} The times at each batch size in the panel "
            "are statistics of traced steps.",
            f"{WALKING}\npython -m tflab.follow matmul --model lenet",
        ),
    ]


def test_the_life_of_a_graph_without_gradients_or_passes_says_nothing_of_them():
    parts = shown(graph_chapter.parts(TOY, "x*y + z"))
    assert parts[0] == (
        "x*y + z was written as 2 nodes. The runtime kept 1 of them, and added 2 nodes of its "
        "own. A step took 62.0 us for a batch of 5 (the median of 7 untraced steps). The data "
        "flow down."
    )
    assert parts[2:] == [
        Method(
            "Colours and times in the graph: 7 untraced steps and as many traced ones, "
            "alternating, after 4 warm-up steps of each; batch size 5. The times at each batch "
            "size in the panel are statistics of traced steps.",
            "python -m tflab.lifecycle --model toy --steps 7\npython -m tflab.follow x --model toy",
        )
    ]


def test_a_short_program_is_shown_line_by_line_with_the_nodes_of_each():
    here, there = source(4, "c = a * b"), source(5, "loss = tf.reduce_mean(c)")
    nodes = (
        Node("a", "Const", source=here),
        Node("loss/axis", "Const", source=there),
        Node("mul", "Mul", ("a", "a"), source=here),
        Node("loss", "Mean", ("mul", "loss/axis"), source=there),
        Node("made", "NoOp"),
    )
    walked = replace(LINEAR, stages=(replace(STAGES[0], nodes=nodes), *STAGES[1:]))
    assert grid(next(graph_chapter.parts(walked, "a linear model"))) == [
        "The program line by line, with the nodes that each line made",
        ("line", "code", "nodes"),
        ("model.py:4", "c = a * b", "a, mul"),
        ("model.py:5", "loss = tf.reduce_mean(c)", "loss/axis, loss"),
        0,
    ]
    in_a_loop = tuple(Node(f"add_{at}", "Add", source=here) for at in range(41))
    walked = replace(LINEAR, stages=(replace(STAGES[0], nodes=in_a_loop), *STAGES[1:]))
    (table,) = graph_chapter.lines(walked)
    assert [cells[2] for cells in table.cells()] == ["add_0 (41 alike)"]
    many = tuple(Node(str(at), "Const", source=source(at, "")) for at in range(13))
    long = replace(LINEAR, stages=(replace(STAGES[0], nodes=many), *STAGES[1:]))
    assert list(graph_chapter.lines(long)) == []


def test_a_graph_with_gradients_that_nobody_applies_tells_of_those_alone():
    histories = {name: node for name, node in LINEAR.histories.items() if node.kind != "update"}
    derived = replace(LINEAR, histories=histories)
    assert graph_chapter.sizes(derived) == "written as 7 nodes. With its gradients, it has 14"
    assert graph_chapter.layout(derived) == (
        "The forward ops go down on the left; the gradients go up beside them, each next to its "
        "layer."
    )


def test_a_graph_from_a_file_was_read(tmp_path):
    path = tmp_path / "frozen.pb"
    path.touch()
    assert graph_chapter.sizes(replace(TOY, model=str(path))) == "read from a file as 2 nodes"


def test_the_life_of_a_graph_says_where_its_variables_moved_and_its_chain_rule():
    points = (
        PathPoint(0, None, {"y": 0.0, "z": 1.0}),
        PathPoint(1, 6.954, {"y": 0.91696, "z": 2.1}),
    )
    step = ValuesStep("the first", 1, (), points, {"y": 3.0, "z": 2.0}, ())
    link = Link("loss", "mean(w)", "w", "read", "dL/dw", "dL/d(loss)", True)
    known = {
        Backward: {"chain_rule": (link,)},
        Execution: {
            "values_step": step,
            "values": (value("w", (1.0,)),),
        },
    }
    stages = tuple(replace(stage, **known.get(type(stage), {})) for stage in STAGES)
    walked = replace(LINEAR, stages=stages)
    parts = shown(graph_chapter.parts(walked, "a model"))
    about, drawn, rule, _, steps, _, path, *_, recipe = parts
    assert about.endswith(
        " Nothing is computed before the graph runs: the numbers in the drawing are the "
        "program's values in the first."
    )
    assert rule == "The chain rule, for this graph: dL/dw = dL/dw. L is loss = mean(w)."
    assert steps[2:] == [("loss", "mean(w)", "w", "dL/d(loss)"), 0]
    assert drawn.chain_rule == "dL/dw = dL/dw"
    assert recipe.how.endswith(" Values and gradients are the program's, in the first; not timed.")
    assert path == [
        "Training moves the variables towards those that the data were generated with: y = 3, z = "
        "2",
        ("after step", "y", "z", "loss before it"),
        ("0", "0", "1", ""),
        ("1", "0.917", "2.1", "6.95"),
        0,
    ]
