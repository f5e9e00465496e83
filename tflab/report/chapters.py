"""Chapters: a report as the chapters for which the measurements suffice.

Each chapter consists of tables of other commands' views, plots, and sentences that say how its
numbers were obtained. The report of the lab has the same parts in the order of the lab's steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tflab.analysis import critical_path, timeline
from tflab.analysis.slow_steps import LEAST_STEPS
from tflab.compare import CONFIGURATIONS, view
from tflab.exporters import plots
from tflab.exporters.plots.graph import Edge, Track
from tflab.records.blocks import Column, Fact, fact_table, numbers, sentences, table
from tflab.records.graph import Node, node_of
from tflab.records.measured import Compared, Comparison, History
from tflab.records.stages import Backward, Execution
from tflab.records.values import Maps
from tflab.report import contents, drawing, questions
from tflab.report.contents import (
    Box,
    Chapter,
    DrawnGraph,
    Lab,
    Part,
    Report,
    Walked,
    nodes_of,
)
from tflab.runtime import trace
from tflab.train import view as training_view
from tflab.train.view import classified
from tflab.units import percent, plural, size, three_digits, time
from tflab.views import backward, execution, frontend, op_table, placement
from tflab.views import stages as views

ABOUT = "What TensorFlow does between a line of Python and the machine."
ABOUT_LAB = "Each part names its step of the lab."
PARTIAL = " Partial: these are the measurements before the interruption."
TOP = 10  # rows of a table of ops
NAMED = 3  # nodes of no layer; more have no names in the picture of the graph
PEAK = "The memory peak is the most alive at once in a traced step, of what its ops requested."
NO_CAUSE = (
    "tflab looked for one node that takes half of a step (the nodes of an op type are not added "
    "up), many small ops, ops that only move data, and time outside of all ops. At batch sizes "
    f"with at least {LEAST_STEPS} traced steps, none of these stands out."
)
Draft = tuple[str, str, Iterable[Part], str]  # name of a chapter, its title, parts and result


def report(lab: Lab, command: str, names: Sequence[str] = contents.CHAPTERS) -> Report:
    """Return the report with those of these chapters that were measured; `command` repeats it."""
    handed_in = names == ("lab",)
    made = [*hand_in(lab)] if "lab" in names else []
    made += (
        Chapter(title, whole, folded=name in contents.REFERENCE, result=result)
        for name, title, content, result in drafts(lab, names)
        if name in names and (whole := tuple(content))
    )
    return Report(
        title=f"{'Lab report' if handed_in else 'From Python to op runs'}: {lab.model}",
        about=f"{ABOUT_LAB if handed_in else ABOUT}{PARTIAL * lab.interrupted}",
        command=command,
        questions=() if handed_in else questions.questions(lab),
        chapters=tuple(made),
        numbers=tuple(results(lab)),
    )


def results(lab: Lab) -> Iterator[Fact]:
    """Yield the results on the first screen: nodes, step times, the most expensive op type."""
    if lab.walked:
        which, graphs = zip(*graph_sizes(lab.walked), strict=True)
        yield Fact("nodes", " / ".join(f"{len(nodes):,}" for nodes in graphs), " / ".join(which))
    if lab.compared:
        steps = lab.compared.steps
        times = " / ".join(time(step.untraced_ns.median) for step in steps.values())
        at = " / ".join(map(str, steps))
        yield Fact("median step", times, f"{lab.compared.phase}, batch {at}")
        last = lab.compared.batch_sizes[-1]
        if rows := lab.compared.tables.get(last):
            dearest = max(rows, key=lambda row: row.share)
            note = f"{percent(dearest.share)} of the time of all ops at batch size {last}"
            yield Fact("most expensive op type", dearest.key, note)
    if lab.history and lab.history.epochs and classified(lab.history):
        accuracy = training_view.accuracy_percent(lab.history.epochs[-1].test_accuracy)
        epoch, data = lab.history.epochs[-1].epoch, lab.history.settings.data
        yield Fact("test accuracy", accuracy, f"after epoch {epoch}, {data}")


def drafts(lab: Lab, names: Sequence[str]) -> Iterator[Draft]:
    """Yield every chapter that was measured except the hand-in, in the order of a report."""
    walked, compared, history = lab.walked, lab.compared, lab.history
    if walked:
        yield "graph", f"The stages of {lab.model}", graph(walked), ""
    if walked and (maps := walked.execution.maps) and len(maps.maps) > 1:
        yield "network", "What the network saw", network(walked, maps), ""
    if history or not lab.interrupted:
        parts = trained(lab.model, history), *(curves(history) if history else ())
        yield "training", training_title(history), parts, ""
    if walked:
        yield "ops", "The ten most expensive ops", top_ops(walked), ""
    if compared:
        yield "batch-sizes", "Batch sizes", batch_sizes(compared), ""
        causes = [reason.sentence for reason in compared.diagnosis]
        slow = sentences("Largest cost first", causes) if causes else NO_CAUSE
        how = [view.protocol(compared)] * ("batch-sizes" not in names)
        yield "slow", "Why a step is slow", (slow, *how), ""
    if walked:
        yield "times", "Where a step's time goes", times(walked), ""
    if compared:
        result = " ".join(view.decided(compared))
        yield "configurations", "Configurations", configurations(compared), result
    if walked:
        peak = walked.execution.memory.peak_bytes
        result = f"at most {size(peak)} alive at once" if peak else ""
        yield "memory", "Memory", memory(walked), result
    named = dict(lab.environment)
    result = ", ".join(named[name] for name in ("Framework", "Operating system") if name in named)
    yield "environment", "Environment", (fact_table(Fact(*row) for row in lab.environment),), result


# How numbers were obtained


def warm(step: Execution) -> str:
    return (
        f"{plural(step.steps, 'untraced step')} and as many traced ones, alternating, after "
        f"{plural(step.warmup_steps, 'warm-up step')} of each; batch size {step.batch_size}."
    )


# The graph: its drawing, its sizes, and the fates of its nodes


def graph(walked: Walked) -> Iterator[Part]:
    step, placing = walked.execution, walked.placement
    ns = critical_path.median_per_step(step.runs)
    yield DrawnGraph(
        name=walked.model,
        drawing=drawing.draw(walked.stages, walked.histories),
        histories=walked.histories,
        ns=ns,
    )
    nodes = walked.stages[0].nodes
    if any(node.source for node in nodes):
        yield frontend.lines(nodes)
    yield views.story(walked.stages)
    for stage in walked.stages:
        if isinstance(stage, Backward):
            yield from backward.chain_rule_tables(stage)
    if placing.passes:
        yield placement.fate_counts(placing)
        if facts := list(placement.balance(placing)):
            yield fact_table(facts)
    known = ""
    if step.values_step and step.values:
        known = f" Values and gradients are the program's in {step.values_step.which}, not timed."
    yield (
        f"Times in the graph, and its colours by time: {warm(step)} The times at each "
        f"batch size in the panel are statistics of traced steps.{known}"
    )


# A step: its most expensive ops, its time, its memory, and what the network saw


def top_ops(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    updates = any(history.kind == "update" for history in walked.histories.values())
    yield (
        "The graphs, their nodes, times and memory are from a step of "
        f"{'training' if updates else 'inference'}. The "
        "comparisons of batch sizes and configurations are from inference, with the same weights "
        "for all."
    )
    yield contents.picture("op_bars", plots.op_bars.draw, step.top_ops, "node")
    yield execution.top_table("The most expensive nodes", step.top_ops, step, "node")
    yield warm(step)


def times(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    yield from execution.load_line(step.load)
    owners = execution.owners(step.time_ledger, step.wall_ns, step.steps)
    yield fact_table([*execution.step_times(step), *owners])
    middle = timeline.median_step(step.step_times)
    runs = [run for run in step.runs if run.step == middle.step and run.name != trace.EXECUTOR]
    drawn = contents.picture("timeline", plots.timeline.draw, runs, middle, step.critical_path)
    title = plots.timeline.headline(runs, middle, {*step.critical_path.nodes})
    slices = plots.timeline.slices(runs, middle, step.critical_path)
    yield replace(drawn, title=title, slices=slices)
    yield fact_table(execution.parallel(step.critical_path))
    yield warm(step)


def memory(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    if not execution.compiled(step.nodes):
        yield contents.picture("memory", plots.memory.draw, step.memory.curve)
    if facts := list(execution.memory_facts(step.memory, step.nodes)):
        yield fact_table(facts)
    yield from execution.holders(step.memory, step.nodes)
    yield (
        "The numbers are computed from the memory that each op requested from its allocators in "
        f"traced steps. {warm(step)}"
    )


def network(walked: Walked, maps: Maps) -> Iterator[Part]:
    yield (
        "From top to bottom, the image passes through the layers: each row shows the output of a "
        "layer, with one tile for each channel. On the right, from bottom to top, is the gradient "
        "of the loss with respect to each of these numbers. A max-pool passes its gradient only "
        "to the largest of its elements, and a ReLU only to those above 0: the rest is white."
    )
    yield contents.picture("feature_maps", plots.feature_maps.draw, maps)


# A training, with its curves and its epochs


def training_title(history: History | None) -> str:
    return "Loss and accuracy" if history is None or classified(history) else "Loss"


def trained(model: str, history: History | None) -> str:
    if history is None:
        return f"{model} has no loss, so it cannot be trained."
    settings = history.settings
    return (
        f"For this report, {model} was trained on {settings.data}. The command python -m "
        f"tflab.train --model {model} --epochs {settings.epochs} --batch-size "
        f"{settings.batch_size} --rows {settings.train_rows} repeats the training."
    )


def curves(history: History) -> Iterator[Part]:
    yield contents.picture("curves", plots.curves.draw, history)
    if history.epochs:
        yield training_view.epochs(history)
    means = "Losses and accuracies" if classified(history) else "Losses"
    yield f"{means} are means over rows; the test uses all test rows at the end of each epoch."


# Comparisons of batch sizes and configurations


def batch_sizes(comparison: Comparison) -> Iterator[Part]:
    yield from found(comparison)
    yield contents.picture("batch_sizes", plots.batch_sizes.draw, comparison)
    yield view.at_each_size(comparison, TOP)
    if comparison.findings:
        yield sentences(view.FINDINGS, comparison.findings)
    yield view.steps(comparison)
    yield view.protocol(comparison)


def found(comparison: Comparison) -> Iterator[Part]:
    """Yield a table of the batch sizes, each with a sentence on the op whose share is largest at
    the last of them, and a paragraph on the change from the first to the last."""
    steps, sizes = comparison.steps, comparison.batch_sizes
    small, large = sizes[0], sizes[-1]
    row = max(comparison.rows, key=lambda row: row.cells[large].share if large in row.cells else 0)
    before = dict(pairwise(reversed(sizes)))
    rates = {size: steps[size].mean_images_per_second for size in sizes}
    yield table(
        "The untraced step at each batch size, and what was found",
        sizes,
        numbers("batch", str),
        numbers("median step", lambda size: time(steps[size].untraced_ns.median)),
        numbers("mean step", lambda size: time(1e9 * size / rates[size])),
        numbers(f"{comparison.unit}s a second", lambda size: view.rate_text(rates[size])),
        numbers("memory peak", lambda at: size(steps[at].peak_bytes)),
        Column("found", lambda at: finding(comparison, row, at, before.get(at, 0)), elastic=True),
    )
    if small != large:
        yield from (finding(comparison, row, large, small), view.headline(comparison))


def finding(comparison: Comparison, row: Compared, size: int, before: int) -> str:
    """Return a sentence on an op at a batch size: its share and, if the work of a call is known to
    grow with the batch, how both changed since the size before."""
    cell, smaller, steps = row.cells.get(size), row.cells.get(before), comparison.steps
    if not cell:
        return f"{row.key} did not run."
    share = percent(cell.share)
    if (
        not (smaller and smaller.flops and cell.flops)
        or cell.calls / steps[size].steps != smaller.calls / steps[before].steps
        or cell.flops <= smaller.flops
    ):
        return f"{row.key} takes {share} of the time of all ops, {time(cell.mean_ns)} a call."
    first = percent(smaller.share)
    change = f"stays {share}" if first == share else f"goes from {first} to {share}"
    return (
        f"From batch size {before} to {size}, a call of {row.key} takes "
        f"{three_digits(cell.mean_ns / smaller.mean_ns)} times as long ({time(cell.mean_ns)} "
        f"instead of {time(smaller.mean_ns)}) for {three_digits(cell.flops / smaller.flops)} times "
        f"the FLOPs; its share of the time of all ops {change}."
    )


def configurations(comparison: Comparison) -> Iterator[Part]:
    names = tuple(dict.fromkeys(row.config for row in comparison.configs))
    if names:
        yield from execution.load_line(comparison.load)
        yield (
            f"An untraced step of {comparison.phase}, with the runtime's defaults and with one "
            f"setting changed. All use the same weights and {comparison.unit}s."
        )
        yield table(
            "What was changed",
            names,
            Column("configuration", lambda name: name),
            Column("what it means", lambda name: CONFIGURATIONS[name].about, elastic=True),
        )
        yield from (*view.configs(comparison), *view.basis(comparison))
    skipped = ", ".join(name for name in contents.CONFIGS if name not in names)
    if skipped and not comparison.interrupted:
        yield f"Without effect on this machine, so not measured: {skipped}."


# The report of the lab, step by step


def hand_in(lab: Lab) -> Iterator[Chapter]:
    """Yield the steps of the lab, as far as they were measured."""
    yield Chapter("Step 1: environment", (fact_table(Fact(*row) for row in lab.environment),))
    if lab.history or not lab.interrupted:
        yield Chapter("Step 2: training", (trained(lab.model, lab.history),))
    if lab.walked:
        yield Chapter("Step 3: data-flow graph", tuple(picture_of_graph(lab.walked)))
    if lab.history:
        title = f"Step 4: {training_title(lab.history).lower()}"
        yield Chapter(title, tuple(curves(lab.history)))
    if compared := lab.compared:
        yield Chapter("Step 5: the ten most expensive ops", tuple(types_of_ops(compared)))
        drawn = contents.picture("batch_sizes", plots.batch_sizes.draw, compared)
        ops = view.at_each_size(compared, TOP)
        yield Chapter("Step 6: batch sizes", (*found(compared), PEAK, ops, drawn))
        changes = " ".join(view.decided(compared)), *configurations(compared)
        yield Chapter("Step 7: hardware and configuration", tuple(filter(None, changes)))


def types_of_ops(comparison: Comparison) -> Iterator[Part]:
    last = comparison.batch_sizes[-1]
    rows = comparison.tables[last]
    yield op_table.costs(comparison, last, TOP)
    if len(rows) < TOP:
        yield f"A step runs only {plural(len(rows), 'type')} of op: the table has them all."
    yield contents.picture("op_bars", plots.op_bars.draw, rows, "op")
    yield from (*execution.load_line(comparison.load), view.protocol(comparison))


def graph_sizes(walked: Walked) -> list[tuple[str, tuple[Node, ...]]]:
    """Return (title, nodes) of the graph: as written, with gradients if it got any, as it runs."""
    grown = [s.nodes for s in walked.stages if isinstance(s, Backward) and s.added_nodes]
    return [
        ("as written", walked.stages[0].nodes),
        *(("with gradients", nodes) for nodes in grown),
        ("that runs", walked.placement.nodes),
    ]


def picture_of_graph(walked: Walked) -> Iterator[Part]:
    """Yield the picture of the graph, and where all of its nodes are shown."""
    *_, (which, nodes), _ = graph_sizes(walked)
    yield contents.picture("graph", plots.graph.draw, walked.model, *layers(walked, nodes))
    yield (
        f"The picture has the graph {which}. TensorBoard's Graphs shows the graph that ran, node "
        f"by node. The command python -m tflab.lifecycle --model {walked.model} --logdir "
        f"runs/{walked.model} writes it, and tensorboard --logdir runs shows it."
    )


def layers(walked: Walked, nodes: tuple[Node, ...]) -> tuple[list[Track], list[Edge]]:
    """Return the outer boxes of the drawing that contain some of these nodes, and their edges. In
    a row, boxes with an edge to the track on their right come last, next to it."""
    by_name = {node.name: node for node in nodes}
    place: dict[str, tuple[str, int, int]] = {}  # of a node: its box, track and row
    tracks: list[tuple[str, list[list[tuple[str, str, str]]]]] = []
    for number, track in enumerate(drawing.draw(walked.stages, walked.histories).tracks):
        tracks.append((track.label, [[] for _ in track.rows]))
        rows = ((at, box) for at, row in enumerate(track.rows) for box in row)
        for at, box in ((at, box) for at, box in rows if isinstance(box, Box)):
            if inside := [by_name[name] for name in nodes_of(box) if name in by_name]:
                place.update((node.name, (box.name, number, at)) for node in inside)
                names = ", ".join(node.name.rpartition("/")[2] for node in inside)
                label = box.label or (names if len(inside) <= NAMED else "other nodes")
                about = inside[0].op if len(inside) == 1 else f"{len(inside)} nodes"
                tracks[-1][1][at].append((box.name, label, about))
    edges: dict[tuple[str, str], str] = {}
    beside: set[str] = set()
    for target, tensor in ((node.name, tensor) for node in nodes for tensor in node.inputs):
        name, number, at = place[target]
        source, *of_source = place.get(node_of(tensor), place[target])
        if source != name:
            same_track = of_source[0] == number
            edges.setdefault((source, name), shape_of(tensor, by_name) if same_track else "")
            beside.update([source] * (of_source == [number - 1, at]))
    for shown in (row for _, every in tracks for row in every):
        shown.sort(key=lambda box: box[0] in beside)
    return [*tracks], [(*ends, shape) for ends, shape in edges.items()]


def shape_of(tensor: str, nodes: Mapping[str, Node]) -> str:
    """Return `?x14x14x6`; empty for a scalar or an unknown rank."""
    slot = int(tensor.partition(":")[2] or 0)
    shapes = [output.shape or () for output in nodes[node_of(tensor)].outputs]
    extents = [extent for shape in shapes[slot : slot + 1] for extent in shape]
    return "x".join("?" if extent is None else f"{extent}" for extent in extents)
