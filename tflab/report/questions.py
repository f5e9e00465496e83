"""Questions: what a reader may predict before looking, with the answers measured in this run.

Questions whose answer could be noise are omitted: none about times from a busy machine, and none
about the most expensive op if two are close.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tflab.analysis import critical_path
from tflab.analysis.fates import fates_in_step
from tflab.analysis.gradient_graph import gradient_name
from tflab.records.measured import Comparison
from tflab.records.stages import Backward
from tflab.records.values import Value
from tflab.report.contents import Lab, Question, Walked, title_of
from tflab.report.storage import with_heir
from tflab.units import percent, plural, time
from tflab.views.values import number

OPTIONS = 4  # of a multiple-choice question
CLEAR = 1.3  # times the share of the next op: a smaller difference may be noise
TAKEN = ("fused", "merged", "folded", "removed")  # fates that are asked about, the best first
PLAIN = ("VarHandleOp", "ReadVariableOp", "Const", "Placeholder")  # ops that make poor options


def questions(lab: Lab) -> tuple[Question, ...]:
    """Return the questions that this run can answer."""
    asked: list[Question] = []
    if lab.walked:
        asked += nodes_that_run(lab.walked)
        asked += (*node_that_goes(lab.walked), *about_gradients(lab.walked))
    if lab.compared:
        sizes = lab.compared.batch_sizes
        for size in (sizes[0], sizes[-1]):
            asked += costs_most(lab.compared, size)
        asked += longer(lab.compared, sizes[0], sizes[-1])
    return tuple(asked)


def node_that_goes(walked: Walked) -> Iterator[Question]:
    """Ask which node of the forward graph does not survive, if one of some does not: best an op
    that computes something, and never a feed, because another node replaces it."""
    fates = {fate.name: fate for fate in walked.placement.ledger}
    forward = sorted(walked.stages[0].nodes, key=lambda node: node.op in PLAIN)
    taken = [
        (node.op in PLAIN, TAKEN.index(fates[node.name].fate), fates[node.name])
        for node in forward
        if node.op != "Placeholder" and node.name in fates and fates[node.name].fate in TAKEN
    ]
    stay = [
        node.name for node in forward if node.name in fates and fates[node.name].fate == "executed"
    ]
    if not taken or len(stay) < OPTIONS - 1:
        return
    *_, gone = min(taken, key=lambda row: row[:2])
    yield Question(
        f"Which of these nodes of {title_of(walked.model)} will not be in the graph that runs?",
        gone.name,
        f"{gone.by}: {with_heir(gone)}.",
        options=tuple(sorted((gone.name, *stay[: OPTIONS - 1]))),
    )


# Questions about the program of a reader


def of_program(walked: Walked) -> tuple[Question, ...]:
    """Return the questions about one program."""
    return (
        *nodes_added(walked),
        *nodes_that_run(walked),
        *node_that_goes(walked),
        *takes_longest(walked),
        *about_gradients(walked),
    )


def nodes_added(walked: Walked) -> Iterator[Question]:
    """Ask how many nodes the gradients and the optimiser add."""
    written, derived = walked.stages[:2]
    if not isinstance(derived, Backward) or not derived.added_nodes:
        return
    added, updates = len(derived.added_nodes), len(derived.update_nodes)
    if len(derived.nodes) - len(written.nodes) != added:
        return
    others = f" and {plural(updates, 'node')} that update variables" if updates else ""
    yield Question(
        f"{title_of(walked.model)} has {plural(len(written.nodes), 'node')} as written. How many "
        f"will its gradients{' and updates' if updates else ''} add?",
        str(added),
        f"{plural(added - updates, 'node')} for gradients{others}.",
        unit="nodes",
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
        f"{title_of(walked.model)} has {plural(len(names), 'node')} as written. How many of these "
        "will run under their own name?",
        str(run),
        f"Fates of the others: {others or 'none'}.",
        unit="nodes",
    )


def takes_longest(walked: Walked) -> Iterator[Question]:
    """Ask which node takes longest, if one of them does in every step."""
    step = walked.execution
    drawn = [run for run in step.runs if run.name in walked.histories]
    median = critical_path.median_per_step(drawn)
    ranked = sorted(median, key=lambda name: -median[name])[:OPTIONS]
    if len(ranked) < 2:
        return
    spent = critical_path.per_step(drawn)
    longest, *others = (spent[name].values() for name in ranked)
    if min(longest) <= max(map(max, others)):
        return
    most, then = ranked[:2]
    yield Question(
        f"Which of these nodes of {title_of(walked.model)} will take longest at batch "
        f"{step.batch_size}?",
        most,
        f"It took {time(median[most])} a step, and {then} took {time(median[then])} (medians of "
        f"{plural(step.steps, 'traced step')}).",
        options=tuple(sorted(ranked)),
    )


def costs_most(comparison: Comparison, size: int) -> Iterator[Question]:
    """Ask which op costs most, if that is clear."""
    rows = [row for row in comparison.rows if size in row.cells]
    ranked = sorted(rows, key=lambda row: -row.cells[size].share)[:OPTIONS]
    if len(ranked) < 2 or ranked[0].cells[size].share < CLEAR * ranked[1].cells[size].share:
        return
    most, then = ranked[0].cells[size], ranked[1].cells[size]
    yield Question(
        f"Which op of {title_of(comparison.model)} will take most of a step's op time at batch "
        f"{size}?",
        ranked[0].key,
        f"It took {percent(most.share)} of it, {time(most.mean_ns)} a call on average; "
        f"{ranked[1].key} took {percent(then.share)}.",
        options=tuple(sorted(row.key for row in ranked)),
    )


def longer(comparison: Comparison, small: int, large: int) -> Iterator[Question]:
    """Ask how much longer a step takes at the largest batch."""
    if small == large:
        return
    before, after = (comparison.steps[size].untraced_ns for size in (small, large))
    if after.p10 <= before.p90:
        return  # the difference may be noise
    first, last = before.median, after.median
    ratio = last / first
    yield Question(
        f"A step of {title_of(comparison.model)} at batch {large} takes how many times as long as "
        f"one at batch {small}?",
        f"{ratio:.1f}",
        f"The untraced medians are {time(first)} and {time(last)}: {large / small:g} x the "
        f"{comparison.unit}s took {ratio:.1f} x the time.",
        unit="x",
    )


# Questions about gradients: which way a step moves a variable, from the program's values

SMALL = 100  # nodes of a graph that is shown node by node


def numbers_of(value: Value) -> tuple[float, ...]:
    """Return all numbers of a tensor; none if they are too many, or not all finite."""
    is_finite = value.values is not None and value.mean is not None and not value.not_finite
    return tuple(map(float, value.values or ())) if is_finite else ()


def about_gradients(walked: Walked) -> Iterator[Question]:
    """Ask which way the step moved the first variable that is a number, against its gradient."""
    for history in walked.histories.values() if len(walked.histories) <= SMALL else ():
        value = history.values[0] if history.values else None
        if value is None or value.after is None or history.gradient is None:
            continue
        before, after = numbers_of(value), tuple(value.after.values or ())
        gradient = numbers_of(history.gradient)
        if not len(before) == len(after) == len(gradient) == 1:
            continue
        (was,), (now,), (slope,) = before, after, gradient
        if (now - was) * slope < 0:
            name = history.name
            yield Question(
                f"On the first batch of {title_of(walked.model)}, {gradient_name(name)} is "
                f"{number(slope)} where {name} is {number(was)}. Will the step make {name} larger "
                "or smaller?",
                "larger" if now > was else "smaller",
                f"The step moves against the gradient: after it, {name} was {number(now)}.",
                options=("larger", "smaller"),
            )
            return
