"""Questions for a reader, and their answers from records worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.histories import value
from tests.examples.lab import COMPARED, LAB, LINEAR
from tests.examples.walk import EXECUTION, PLACEMENT
from tflab.follow import node_history
from tflab.records.placed import Fate
from tflab.records.timed import Spread
from tflab.report import questions
from tflab.report.contents import Question

RUN = Question(
    "lenet has 14 nodes when the runtime receives it. How many of these will run?",
    (),
    "nodes",
    "10",
    "Fates of the others: 1 removed, 1 fused, 1 folded, 1 unreached. The runtime added 2 nodes "
    "that also ran.",
)
GOES = Question(
    "Which of these nodes of lenet will not be in the graph that runs?",
    ("loss", "matmul", "relu", "w"),
    "",
    "matmul",
    "remapper: fused into relu.",
)
SMALL = Question(
    "Which op of lenet will take most of a step's op time at batch 4?",
    ("MaxPool", "_FusedConv2D"),
    "",
    "_FusedConv2D",
    "It took 62.5 % of it, 100 us a call on average; MaxPool took 37.5 %.",
)
LARGE = Question(
    "Which op of lenet will take most of a step's op time at batch 64?",
    ("Softmax", "_FusedConv2D"),
    "",
    "Softmax",
    "It took 50.0 % of it, 1.30 ms a call on average; _FusedConv2D took 12.5 %.",
)
LONGER = Question(
    "A step of lenet at batch 64 takes how many times as long as one at batch 4?",
    (),
    "x",
    "6.7",
    "1.20 ms and 8.00 ms, untraced medians: 16 x the images took 6.7 x the time; inferred: more "
    "images share the fixed cost of a step and its ops.",
)


def test_the_questions_are_those_that_this_run_can_answer():
    assert questions.questions(LAB) == (RUN, GOES, SMALL, LARGE, LONGER)


def test_where_two_ops_come_close_none_is_asked_for():
    conv, pool, late = COMPARED.rows
    near = replace(pool.cells[4], share=0.625 / 1.29)
    close = replace(COMPARED, rows=(conv, replace(pool, cells={4: near}), late))
    assert list(questions.costs_most(close, 4)) == []
    assert list(questions.costs_most(close, 16)) == []  # there is one op only


def test_how_much_longer_a_step_takes_is_asked_where_it_clearly_does():
    near = replace(COMPARED.steps[64], untraced_ns=Spread(2_500_000, 1_900_000, 3_000_000))
    noise = replace(COMPARED, steps={**COMPARED.steps, 64: near})
    assert list(questions.longer(noise, 4, 64)) == []
    assert list(questions.longer(COMPARED, 4, 4)) == []


def test_images_that_cost_as_much_as_before_are_said_to():
    slow = replace(COMPARED.steps[64], untraced_ns=Spread(24e6, 20e6, 30e6))
    slowed = replace(COMPARED, steps={**COMPARED.steps, 64: slow})
    (question,) = questions.longer(slowed, 4, 64)
    assert question.answer == "20.0"
    assert question.reason.endswith(
        "16 x the images took 20.0 x the time; an image costs no less than before."
    )
    (question,) = questions.longer(replace(slowed, unit="row"), 4, 64)
    assert question.reason.endswith(
        "16 x the rows took 20.0 x the time; a row costs no less than before."
    )


@pytest.mark.parametrize("fate", ["executed", "unreached"])
def test_no_node_is_asked_for_where_none_was_taken(fate):
    ledger = tuple(Fate(row.name, fate, None, None) for row in PLACEMENT.ledger)
    stages = tuple(
        replace(stage, ledger=ledger) if stage is PLACEMENT else stage
        for stage in LAB.walked.stages
    )
    assert list(questions.node_that_goes(replace(LAB.walked, stages=stages))) == []


def test_a_node_whose_branch_was_not_taken_does_not_run():
    made = next(node.name for node in PLACEMENT.nodes if node.name not in FATES)
    placing = replace(PLACEMENT, not_run=("loss", made))
    stages = (*LAB.walked.stages[:2], placing, *LAB.walked.stages[3:])
    walked = replace(LAB.walked, stages=stages)
    assert questions.nodes_that_run(walked) == replace(
        RUN,
        answer="9",
        reason="Fates of the others: 1 removed, 1 fused, 1 folded, 1 in a branch that was not "
        "taken, 1 unreached. The runtime added 1 node that also ran.",
    )
    (written,) = questions.written_nodes_that_run(walked)
    assert written.answer == "3"


# Questions about the program of a reader

FATES = {fate.name: fate.fate for fate in PLACEMENT.ledger}
ADDED = Question(
    "lenet has 7 nodes as written. How many will its gradients and updates add?",
    (),
    "nodes",
    "7",
    "4 nodes for gradients and 3 nodes that update variables.",
)
WRITTEN_RUN = Question(
    "lenet made 7 nodes. How many of these will run?",
    (),
    "nodes",
    "4",
    "Fates of the others: 1 removed, 1 fused, 1 folded.",
)
LONGEST = Question(
    "Which of these nodes of lenet will take longest at batch 16?",
    ("loss", "read", "relu"),
    "",
    "relu",
    "It took 7.10 us a step, loss 2.10 us: medians of 3 traced steps.",
)
DOUBLES = Question(
    "Which of these nodes of lenet will have twice as many elements in its output at batch 32 as "
    "at batch 16?",
    ("loss", "relu", "sum", "w_grad"),
    "",
    "relu",
    "It had 160 and 320 elements; the others had as many as before.",
)


def walked(**changes):
    """The walk with these changes of its execution."""
    stages = (*LINEAR.stages[:-1], replace(EXECUTION, **changes))
    return replace(LINEAR, stages=stages, histories=node_history.histories(stages))


def defined(batch, constant=(10, 5)):
    """The outputs of some nodes; that of w_grad is the larger of those that stay."""
    shapes = {"x": (batch, 4), "relu": (batch, 10), "loss": (), "sum": (5,), "w_grad": constant}
    rows = (value(f"{name}:0", (), shape=shape) for name, shape in shapes.items())
    return tuple(rows)


def test_a_program_is_asked_about_with_its_own_numbers():
    asked = questions.of_program(walked(values=defined(16)), defined(32))
    assert asked == (ADDED, WRITTEN_RUN, GOES, LONGEST, DOUBLES)


def test_what_this_machine_cannot_tell_is_not_asked():
    # In one step, another node took as long as the one with the larger median
    late = [
        run._replace(duration_ns=7_000) if run.name == "loss" else run for run in EXECUTION.runs
    ]
    assert list(questions.takes_longest(walked(runs=tuple(late)))) == []
    assert list(questions.doubles(walked(values=defined(16)), defined(16))) == []
    assert list(questions.doubles(walked(values=defined(16)), defined(32, (20, 5)))) == []


def test_the_answer_says_with_what_a_node_was_merged():
    ledger = tuple(
        replace(row, fate="merged") if row.name == "matmul" else row for row in PLACEMENT.ledger
    )
    stages = tuple(
        replace(stage, ledger=ledger) if stage is PLACEMENT else stage
        for stage in LAB.walked.stages
    )
    (question,) = questions.node_that_goes(replace(LAB.walked, stages=stages))
    assert question.reason == "remapper: merged with relu."
