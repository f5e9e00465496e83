"""Questions: what a reader may predict before looking, with the answers measured in this run.

Questions whose answer could be noise are omitted: none about times from a busy machine, and none
about the most expensive op if two are close.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tflab.analysis import quality
from tflab.records import Comparison, Fate, Node
from tflab.report import gradient_questions
from tflab.report.contents import Lab, Question, Walked
from tflab.report.selection import called
from tflab.units import percent, plural, time

OPTIONS = 4  # of a multiple-choice question
CLEAR = 1.3  # times the share of the next op: a smaller difference may be noise
TAKEN = ("fused", "merged", "folded", "removed")  # fates that are asked about, the best first
PLAIN = ("VarHandleOp", "ReadVariableOp", "Const", "Placeholder")  # ops that make poor options


def questions(lab: Lab) -> tuple[Question, ...]:
    """The questions that this run can answer."""
    asked: list[Question] = []
    if lab.walked:
        asked += (nodes_that_run(lab.walked), *node_that_goes(lab.walked))
    if lab.toy:
        asked += gradient_questions.questions(lab.toy)
    if lab.compared and not quality.disturbed(lab.compared.quality):
        sizes = lab.compared.batch_sizes
        for size in (sizes[0], sizes[-1]):
            asked += costs_most(lab.compared, size)
        asked += longer(lab.compared, sizes[0], sizes[-1])
    return tuple(asked)


def nodes_that_run(walked: Walked) -> Question:
    placing = walked.placement
    fates = Counter(fate.fate for fate in placing.ledger)
    left = fates.pop("executed", 0)
    others = ", ".join(f"{count} {fate}" for fate, count in fates.most_common())
    made = len(placing.nodes) - left
    return Question(
        f"{called(walked.model)} has {plural(len(placing.user_nodes), 'node')} when the runtime "
        "receives it. How many of these will run?",
        (),
        "nodes",
        str(left),
        f"Fates of the others: {others or 'none'}. The runtime added {plural(made, 'node')} that "
        "also ran.",
    )


def node_that_goes(walked: Walked) -> Iterator[Question]:
    """Which node of the forward graph does not survive, if there is exactly one such among some."""
    fates = {fate.name: fate for fate in walked.placement.ledger}
    forward = sorted(walked.stages[0].nodes, key=lambda node: node.op in PLAIN)
    gone = next(of_fate(forward, fates), None)
    stay = [
        node.name for node in forward if node.name in fates and fates[node.name].fate == "executed"
    ]
    if gone is None or len(stay) < OPTIONS - 1:
        return
    into = f" into {gone.into}" if gone.into else ""
    yield Question(
        f"Which of these nodes of {called(walked.model)} will not be in the graph that runs?",
        tuple(sorted((gone.name, *stay[: OPTIONS - 1]))),
        "",
        gone.name,
        f"{gone.by}: {gone.fate}{into}.",
    )


def of_fate(nodes: Sequence[Node], fates: dict[str, Fate]) -> Iterator[Fate]:
    """The fates of nodes that were removed, the best to ask about first."""
    for kind in TAKEN:
        for node in nodes:
            if node.name in fates and fates[node.name].fate == kind:
                yield fates[node.name]


def costs_most(comparison: Comparison, size: int) -> Iterator[Question]:
    """Which op costs most, if that is clear."""
    rows = [row for row in comparison.rows if size in row.cells]
    ranked = sorted(rows, key=lambda row: -row.cells[size].share)[:OPTIONS]
    if len(ranked) < 2 or ranked[0].cells[size].share < CLEAR * ranked[1].cells[size].share:
        return
    most, then = ranked[0].cells[size], ranked[1].cells[size]
    yield Question(
        f"Which op of {called(comparison.model)} will take most of a step's op time at batch "
        f"{size}?",
        tuple(sorted(row.key for row in ranked)),
        "",
        ranked[0].key,
        f"It took {percent(most.share)} of it, {time(most.mean_ns)} a call on average; "
        f"{ranked[1].key} took "
        f"{percent(then.share)}.",
    )


def longer(comparison: Comparison, small: int, large: int) -> Iterator[Question]:
    """How much longer a step takes at the largest batch."""
    if small == large:
        return
    before, after = (comparison.steps[size].untraced_ns for size in (small, large))
    if after.p10 <= before.p90:
        return  # the difference may be noise
    first, last = before.median, after.median
    ratio = last / first
    article = "an" if comparison.unit == "image" else "a"
    why = f"{article} {comparison.unit} costs no less than before"
    if ratio < large / small:
        why = f"inferred: more {comparison.unit}s share the fixed cost of a step and its ops"
    yield Question(
        f"A step of {called(comparison.model)} at batch {large} takes how many times as long as "
        f"one at batch {small}?",
        (),
        "x",
        f"{ratio:.1f}",
        f"{time(first)} and {time(last)}, untraced medians: {large / small:g} x the "
        f"{comparison.unit}s took {ratio:.1f} x the time; {why}.",
    )
