"""Questions for a reader, and their answers from records worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.lab import COMPARED, LAB, LINEAR
from tests.examples.printed import approve_text
from tests.examples.walk import PLACEMENT
from tflab.records.placed import Fate
from tflab.records.timed import Spread
from tflab.report import questions


def told(asked) -> str:
    """The questions, each with its options or its unit, its answer and the reason."""
    return "".join(
        f"{one.text}\n  {' | '.join(one.options) or one.unit}\n  {one.answer}: {one.reason}\n"
        for one in asked
    )


def placed(**changes):
    """The walk with these changes of its placement."""
    stages = (replace(stage, **changes) if stage is PLACEMENT else stage for stage in LINEAR.stages)
    return replace(LINEAR, stages=tuple(stages))


def slowed(median, p10, **changes):
    """The comparison with another step at batch 64."""
    step = replace(COMPARED.steps[64], untraced_ns=Spread(median, p10, 30e6))
    return replace(COMPARED, steps={**COMPARED.steps, 64: step}, **changes)


MADE = next(n.name for n in PLACEMENT.nodes if n.name not in {f.name for f in PLACEMENT.ledger})
BRANCH = placed(not_run=("loss", MADE))
MERGED = placed(
    ledger=tuple(
        replace(row, fate="merged") if row.name == "matmul" else row for row in PLACEMENT.ledger
    )
)
FATES = {"w": "fused", "matmul": "removed"}  # an op is asked about before a variable
PLAIN = placed(
    ledger=tuple(replace(row, fate=FATES.get(row.name, "executed")) for row in PLACEMENT.ledger)
)


def test_the_questions_are_those_that_this_run_can_answer():
    variants = {
        "a branch that was not taken": questions.nodes_that_run(BRANCH),
        "a node that was merged": questions.node_that_goes(MERGED),
        "a variable that was fused, and an op that was removed": questions.node_that_goes(PLAIN),
        "rows that cost as much": questions.longer(slowed(24e6, 20e6, unit="row"), 4, 64),
    }
    usual = told(questions.questions(LAB))
    approve_text(
        "report-questions.txt", usual, {title: told(asked) for title, asked in variants.items()}
    )


POOL, CONV, LATE = COMPARED.rows
NEAR = replace(CONV.cells[4], share=0.75 / 1.29)
CLOSE = replace(COMPARED, rows=(POOL, replace(CONV, cells={4: NEAR}), LATE))
NONE_TAKEN = {
    fate: placed(ledger=tuple(Fate(row.name, fate, None, None) for row in PLACEMENT.ledger))
    for fate in ("executed", "unreached")
}


@pytest.mark.parametrize(
    "asked",
    [
        questions.costs_most(CLOSE, 4),
        questions.costs_most(CLOSE, 16),  # there is one op only
        questions.longer(slowed(2.5e6, 0.89e6), 4, 64),
        questions.longer(COMPARED, 4, 4),
        questions.node_that_goes(NONE_TAKEN["executed"]),
        questions.node_that_goes(NONE_TAKEN["unreached"]),
    ],
)
def test_nothing_is_asked_whose_answers_are_not_all_known_clear_and_different(asked):
    assert list(asked) == []
