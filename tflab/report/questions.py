"""Questions: what a reader may predict before looking, with the answers measured in this run.

Questions whose answer could be noise are omitted: none about times from a busy machine, and none
about the most expensive op if two are close.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tflab.analysis.fates import fates_in_step
from tflab.follow.view import PREPOSITIONS
from tflab.records.measured import Comparison
from tflab.report.contents import Lab, Question, Walked
from tflab.units import percent, plural, three_digits, time

OPTIONS = 4  # of a multiple-choice question
CLEAR = 1.3  # times the share of the next op: a smaller difference may be noise
TAKEN = ("fused", "merged", "folded", "removed")  # fates that are asked about
PLAIN = ("VarHandleOp", "ReadVariableOp", "Const", "Placeholder")  # ops that make poor options


def questions(lab: Lab) -> tuple[Question, ...]:
    """Return the questions that this run can answer."""
    asked = list(of_program(lab.walked)) if lab.walked else []
    if lab.compared:
        sizes = lab.compared.batch_sizes
        for size in (sizes[0], sizes[-1]):
            asked += costs_most(lab.compared, size)
        asked += longer(lab.compared, sizes[0], sizes[-1])
    return tuple(asked)


def of_program(walked: Walked) -> tuple[Question, ...]:
    """Return the questions about the graph of one program."""
    return (*nodes_that_run(walked), *node_that_goes(walked))


def node_that_goes(walked: Walked) -> Iterator[Question]:
    """Ask which forward node will not run: never a feed."""
    fates = {fate.name: fate for fate in walked.placement.ledger}
    forward = sorted(walked.stages[0].nodes, key=lambda node: node.op in PLAIN)
    names = (node.name for node in forward if node.op != "Placeholder")
    known = [fates[name] for name in names if name in fates]
    stay = [fate.name for fate in known if fate.fate == "executed"]
    gone = next((fate for fate in known if fate.fate in TAKEN), None)
    if gone is None or len(stay) < OPTIONS - 1:
        return
    is_other = gone.into not in (None, gone.name)
    heir = f" {PREPOSITIONS[gone.fate]} {gone.into}" if is_other else ""
    yield Question(
        f"Which of these nodes of {walked.model} will not be in the graph that runs?",
        gone.name,
        f"{gone.by}: {gone.fate}{heir}.",
        options=tuple(sorted((gone.name, *stay[: OPTIONS - 1]))),
    )


def nodes_that_run(walked: Walked) -> Iterator[Question]:
    """Ask how many nodes of the forward graph run."""
    placing = walked.placement
    fate_of = fates_in_step(placing.ledger, placing.not_run)
    names = [node.name for node in walked.stages[0].nodes]
    if not all(name in fate_of for name in names):
        return
    fates = Counter(fate_of[name] for name in names)
    run = fates.pop("executed", 0)
    others = ", ".join(f"{count} {fate}" for fate, count in fates.most_common())
    yield Question(
        f"{walked.model} has {plural(len(names), 'node')} as written. How many of these "
        "will run under their own name?",
        str(run),
        f"Fates of the others: {others or 'none'}.",
        unit="nodes",
    )


def costs_most(comparison: Comparison, size: int) -> Iterator[Question]:
    """Ask which op type costs most, if that is clear."""
    rows = [row for row in comparison.rows if size in row.cells]
    ranked = sorted(rows, key=lambda row: -row.cells[size].share)[:OPTIONS]
    if len(ranked) < 2 or ranked[0].cells[size].share < CLEAR * ranked[1].cells[size].share:
        return
    most, then = ranked[0].cells[size], ranked[1].cells[size]
    yield Question(
        f"Which op type of {comparison.model} will take most of the time of all ops at batch size "
        f"{size}?",
        ranked[0].key,
        f"It took {percent(most.share)} of it, {time(most.mean_ns)} a call on average; "
        f"{ranked[1].key} took {percent(then.share)}.",
        options=tuple(sorted(row.key for row in ranked)),
    )


def longer(comparison: Comparison, small: int, large: int) -> Iterator[Question]:
    """Ask how much longer a step takes at the largest batch."""
    before, after = comparison.steps[small], comparison.steps[large]
    if after.untraced_ns.p10 <= before.untraced_ns.p90:
        return  # the difference may be noise
    ratio = three_digits(after.mean_step_ns / before.mean_step_ns)
    yield Question(
        f"A step of {comparison.model} at batch size {large} takes how many times as long as "
        f"one at batch size {small}?",
        ratio,
        f"Means of untraced steps: {time(before.mean_step_ns)} and {time(after.mean_step_ns)}; "
        f"{large / small:g} x the {comparison.unit}s took {ratio} x the time.",
        unit="x",
    )
