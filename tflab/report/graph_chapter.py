"""The chapter of a graph: its sizes, its drawing, and the fates of its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.analysis import critical_path
from tflab.records.blocks import Column, Table, fact_table
from tflab.records.graph import Source
from tflab.records.stages import Backward, Execution
from tflab.report import contents, drawing
from tflab.report.contents import DrawnGraph, Method, Part, Walked
from tflab.views import chain_rule, placement, values
from tflab.views import stages as views
from tflab.views.words import listed, place

SHORT = 12  # lines of a program that is shown completely
NAMES = 40  # of the nodes that one line made


def parts(walked: Walked, name: str) -> Iterator[Part]:
    step, placing = walked.execution, walked.placement
    yield DrawnGraph(
        name=name,
        drawing=drawing.draw(walked.stages, walked.histories),
        histories=walked.histories,
        ns=critical_path.median_per_step(step.runs),
        batch_size=step.batch_size,
    )
    yield layout(walked) + values_note(step)
    yield from lines(walked)
    yield views.story(walked.stages)
    if backward := differentiated(walked):
        yield from chain_rule.tables(backward)
    if step.values_step and step.values_step.path:
        yield values.path(step.values_step)
    if placing.passes:
        yield placement.fate_counts(placing)
        if facts := list(placement.balance(placing)):
            yield fact_table(facts)
    yield Method(
        f"Times in the graph, and its colours by time: {contents.warm(step)} The times at each "
        f"batch size in the panel are statistics of traced steps.{values_source(step)}",
        f"{contents.walking(walked)}\n"
        f"python -m tflab.follow {example(walked)} --model {walked.model}",
    )


def lines(walked: Walked) -> Iterator[Table]:
    """A short program: each line with the nodes that it made."""
    by_line: dict[Source, list[str]] = {}
    for node in walked.stages[0].nodes:
        if node.source:
            by_line.setdefault(node.source, []).append(node.name)
    if 0 < len(by_line) <= SHORT:
        yield Table(
            "The program line by line, with the nodes that each line made",
            (
                Column("line", lambda row: place(row[0])),
                Column("code", lambda row: row[0].code, elastic=True),
                Column(
                    "nodes",
                    lambda row: listed(row[1], NAMES),
                    elastic=True,
                ),
            ),
            tuple(by_line.items()),
        )


def differentiated(walked: Walked) -> Backward | None:
    return next((stage for stage in walked.stages if isinstance(stage, Backward)), None)


def values_note(step: Execution) -> str:
    """A sentence that the drawing shows values before the stage that computes them."""
    if step.values_step is None or not step.values:
        return ""
    return (
        " Nothing is computed before the graph runs: the numbers in the drawing are the program's "
        f"values in {step.values_step.which}."
    )


def values_source(step: Execution) -> str:
    """Which step the values are from, if there are any."""
    if step.values_step is None or not step.values:
        return ""
    return f" Values and gradients are the program's, in {step.values_step.which}; not timed."


def more_than_forward(walked: Walked) -> Iterator[str]:
    """The nodes that the graph has besides forward nodes."""
    kinds = {history.kind for history in walked.histories.values()}
    if "gradient" in kinds:
        yield "gradients"
    if "update" in kinds:
        yield "updates"


def layout(walked: Walked) -> str:
    """Where in the drawing each kind of node is."""
    if not list(more_than_forward(walked)):
        return "In the drawing, the data flow down."
    return (
        "In the drawing, the forward ops go down on the left, the gradients go up beside them, "
        "each next to its layer, and the updates of the variables are on the right."
    )


def example(walked: Walked) -> str:
    """The slowest forward node, or the one that was fused into the slowest."""
    forward = [node.name for node in walked.stages[0].nodes]
    ns = critical_path.median_per_step(walked.execution.runs)
    return max(forward, key=lambda name: ns.get(walked.histories[name].carrier or "", 0))


# The chapter of a graph on two devices: where nodes are, and which tensors are sent


def placed(on_two: Walked, name: str) -> Iterator[Part]:
    """`on_two` is a walk of a model on two devices, up to its placement."""
    placing = on_two.placement
    yield (
        "If an edge leads from one device to the other, the runtime cuts it: a _Send on one device "
        "passes the tensor to a _Recv on the other."
    )
    yield placement.partitions(placing)
    yield fact_table(placement.transferred(placing))
    graph = drawing.draw(on_two.stages, on_two.histories)
    yield DrawnGraph(
        name=f"{name} on two devices",
        drawing=graph,
        histories=on_two.histories,
        ns={},
        batch_size=placing.batch_size,
        start=len(graph.states) - 1,
    )
    yield placement.transfers(placing)
    yield Method(
        "Devices, _Send and _Recv are read from the runtime's own dumps; the bytes follow from "
        f"the shapes at batch size {placing.batch_size}.",
        f"python -m tflab.lifecycle --model {on_two.model} --devices {len(placing.partitions)} "
        "--stage placement",
    )
