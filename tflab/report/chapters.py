"""Chapters: a report as the chapters for which the measurements suffice.

Each chapter consists of tables of other commands' views, plots, and sentences that say how its
numbers were obtained. The report of the lab has the same parts in the order of the lab's steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite

from tflab.analysis import critical_path, fates, timeline
from tflab.analysis.slow_steps import LEAST_STEPS
from tflab.compare import CONFIGURATIONS, view
from tflab.compare.findings import GREW, shares
from tflab.exporters import plots
from tflab.records.blocks import Column, Fact, Table, fact_table, numbers, sentences, table
from tflab.records.graph import Node, node_of
from tflab.records.measured import Compared, Comparison, History, OpStats
from tflab.records.stages import Backward
from tflab.records.values import Maps
from tflab.report import contents, drawing, graph_states, questions
from tflab.report.contents import Chapter, DrawnGraph, Lab, Lane, Part, Report, Walked, nodes_of
from tflab.runtime import trace
from tflab.train import view as training_view
from tflab.train.view import classified
from tflab.units import percent, plural, size, three_digits, time
from tflab.views import backward, execution, frontend, op_table, placement, words
from tflab.views import stages as views

ABOUT = "What TensorFlow does between a line of Python and the machine."
PARTIAL = " Partial: these are the measurements before the interruption."
TOP = 10  # rows of a table of ops
STORED = ("VarHandleOp", "ReadVariableOp", "AssignVariableOp", "Const")  # variables, constants
ONEDNN = "Types that begin with _Mkl are oneDNN's, which the runtime uses for the program's."
PEAK = "The memory peak is the most alive at once in a traced step, of what its ops requested."
NO_CAUSE = (
    f"No single cause stands out. Looked for, in {LEAST_STEPS} or more traced steps: a node that "
    "takes half of a step, many small ops, ops that only move data, time outside of all ops."
)
Draft = tuple[str, str, Iterable[Part], str]  # name of a chapter, its title, parts and result
Row = list[plots.graph.Box | plots.graph.Lane]


def report(lab: Lab, command: str, names: Sequence[str] = contents.CHAPTERS) -> Report:
    """Return the report with those of these chapters that were measured; `command` repeats it."""
    handed_in = names == ("lab",)
    made = [*hand_in(lab)] if "lab" in names else []
    made += (
        Chapter(title, whole, folded=name in contents.REFERENCE, result=result)
        for name, title, content, result in drafts(lab)
        if name in names and (whole := tuple(content))
    )
    return Report(
        title=f"{'Lab report' if handed_in else 'From Python to op runs'}: {lab.model}",
        about=f"{ABOUT}{PARTIAL * lab.interrupted}",
        command=command,
        questions=() if handed_in else questions.questions(lab),
        chapters=tuple(made),
        numbers=tuple(results(lab)),
    )


def results(lab: Lab) -> Iterator[Fact]:
    """Yield the results on the first screen: nodes, step times, the most expensive op type."""
    if lab.walked:
        graphs = {"as written": lab.walked.stages[0].nodes}
        for stage in lab.walked.stages:
            if isinstance(stage, Backward) and stage.added_nodes:
                graphs["with gradients"] = stage.nodes
        graphs["that runs"] = lab.walked.placement.nodes
        counts = " / ".join(f"{len(nodes):,}" for nodes in graphs.values())
        yield Fact("nodes of the graph", counts, " / ".join(graphs))
    if lab.compared:
        steps = lab.compared.steps
        times = " / ".join(time(step.untraced_ns.median) for step in steps.values())
        at = " / ".join(map(str, steps))
        yield Fact(f"median step of {lab.compared.phase}", times, f"batch size {at}")
        last = lab.compared.batch_sizes[-1]
        if rows := lab.compared.tables.get(last):
            first = [row for row in rows[:2] if rows[0].share < questions.CLEAR * row.share]
            shares = " and ".join(percent(row.share) for row in first)
            keys = ", ".join(row.key for row in first)
            label = f"most expensive op type{'s' * (len(first) > 1)}"
            yield Fact(label, keys, f"{shares} of the op time at batch size {last}")
    if lab.history and lab.history.epochs and classified(lab.history):
        accuracy = training_view.accuracy_percent(lab.history.epochs[-1].test_accuracy)
        epoch, data = lab.history.epochs[-1].epoch, lab.history.settings.data
        yield Fact("test accuracy", accuracy, f"after epoch {epoch}, {data}")


def drafts(lab: Lab) -> Iterator[Draft]:
    """Yield every chapter that was measured except the hand-in, in the order of a report."""
    walked, compared, history = lab.walked, lab.compared, lab.history
    if walked:
        yield "graph", f"The stages of {lab.model}", graph(walked), ""
    if walked and (maps := walked.execution.maps) and len(maps.maps) > 1:
        yield "network", "What the network saw", network(walked, maps), ""
    if history or not lab.interrupted:
        parts = (*(curves(history) if history else ()), *trained(lab))
        yield "training", training_title(history), parts, ""
    if walked:
        title = f"The ten most expensive ops of {graph_states.phase(walked.stages)}"
        yield "ops", title, top_ops(walked), ""
    if compared:
        yield "batch-sizes", "Batch sizes", batch_sizes(compared), ""
        causes = [reason.sentence for reason in compared.diagnosis]
        slow = sentences("Largest cost first", causes) if causes else NO_CAUSE
        yield "slow", "Why a step is slow", (slow,), ""
    if walked:
        title = f"Where a step's time goes in {graph_states.phase(walked.stages)}"
        yield "times", title, times(walked), ""
    if compared:
        result = " ".join(map("A step with {}".format, view.decided(compared)))
        yield "configurations", "Configurations", configurations(compared), result
    if walked:
        peak = walked.execution.memory.peak_bytes
        result = f"at most {size(peak)} alive at once" if peak else ""
        yield "memory", "Memory", memory(walked), result
    named = dict(lab.environment)
    result = ", ".join(named[name] for name in ("Framework", "Operating system") if name in named)
    yield "environment", "Environment", (fact_table(Fact(*row) for row in lab.environment),), result


# How numbers were obtained


def warm(walked: Walked) -> str:
    step = walked.execution
    return (
        f"{plural(step.steps, 'untraced step')} of {graph_states.phase(walked.stages)} and as many "
        "traced ones, alternating, after "
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
    yield views.story(walked.stages)
    nodes = walked.stages[0].nodes
    if any(node.source for node in nodes):
        yield frontend.lines(nodes)
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
        f"Times in the graph, and its colours by time: {warm(walked)} The times at each batch size "
        f"in the panel are statistics of traced steps.{known}"
    )


# A step: its most expensive ops, its time, its memory, and what the network saw


def top_ops(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    yield contents.picture("op_bars", plots.op_bars.draw, step.top_ops, "node")
    yield execution.most_expensive(step)
    yield warm(walked)


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


def memory(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    if not execution.compiled(step.nodes):
        yield contents.picture("memory", plots.memory.draw, step.memory.curve)
    if facts := list(execution.memory_facts(step.memory, step.nodes)):
        yield fact_table(facts)
    yield from execution.holders(step.memory, step.nodes)
    yield f"Memory is what each op requested from its allocators in traced steps. {warm(walked)}"


def network(walked: Walked, maps: Maps) -> Iterator[Part]:
    yield (
        "From top to bottom, the image passes through the layers: each row shows the output of a "
        "layer, with one tile for each channel. On the right, from bottom to top, is the gradient "
        "of the loss with respect to each of these numbers."
    )
    yield contents.picture("feature_maps", plots.feature_maps.draw, maps)


# A training, with its curves and its epochs


def training_title(history: History | None) -> str:
    return "Loss and accuracy" if history is None or classified(history) else "Loss"


def trained(lab: Lab) -> Iterator[Part]:
    """Yield what was trained, and how."""
    if lab.history is None:
        yield f"{lab.model} has no loss, so it cannot be trained."
        return
    plan, done = lab.history.settings, len(lab.history.epochs)
    rates = sorted({step.rate for step in lab.history.steps})
    ends = " to ".join(f"{rate:.3g}" for rate in dict.fromkeys((rates[0], rates[-1])))
    weights = lab.walked.weights if lab.walked else {}
    facts = (
        Fact("data", plan.data),
        Fact("rows", f"{plan.train_rows:,} for training, {plan.test_rows:,} for the test"),
        Fact("batch size", f"{plan.batch_size}"),
        Fact("parameters", f"{sum(weights.values()):,}" if weights else ""),
        Fact("optimiser", lab.optimizer),
        Fact("range of learning rates", ends if isfinite(rates[0]) else ""),
        Fact("epochs", f"{done} of {plan.epochs} asked", f"the recipe has {lab.recipe_epochs}"),
        Fact(
            "repeated by",
            f"python -m tflab.train --model {lab.model} --epochs {plan.epochs} "
            f"--batch-size {plan.batch_size} --rows {plan.train_rows}",
        ),
    )
    yield fact_table(fact for fact in facts if fact.value)
    if lab.walked:
        yield layer_table(lab.walked)


def curves(history: History) -> Iterator[Part]:
    yield contents.picture("curves", plots.curves.draw, history)
    yield from training_view.blocks(history, brief=True)


# Comparisons of batch sizes and configurations


def batch_sizes(comparison: Comparison) -> Iterator[Part]:
    yield from found(comparison)
    yield contents.picture("batch_sizes", plots.batch_sizes.draw, comparison)
    yield view.at_each_size(comparison, TOP)
    yield view.protocol(comparison)


def found(comparison: Comparison) -> Iterator[Part]:
    """Yield the batch sizes with their most expensive op types, and what changed in between."""
    sizes = comparison.batch_sizes

    def share(row: Compared, size: int) -> float:
        return row.cells[size].share if size in row.cells else 0

    dearest = {size: max(comparison.rows, key=lambda row: share(row, size)) for size in sizes}
    said = {size: finding(dearest[size].key, dearest[size].cells[size]) for size in sizes}
    yield table(
        "The untraced step at each batch size, and what was found",
        ((size, comparison.steps[size]) for size in sizes),
        *view.steps(comparison).columns,
        Column("found", lambda row: said[row[0]], elastic=True),
    )
    small, large = sizes[0], sizes[-1]
    first, last = dearest[small], dearest[large]
    leads = share(first, small) - share(last, small), share(last, large) - share(first, large)
    if min(leads) >= GREW:
        at_large = f"{last.key} at {large}"
        yield f"The most expensive op type changes: {first.key} at batch size {small}, {at_large}."
    for pair in pairwise(sizes):
        yield from grown(comparison, last, *pair)
    if small != large:
        yield from shares(comparison.rows, sizes)
        yield view.headline(comparison)


def finding(op_type: str, row: OpStats) -> str:
    share, mean = percent(row.share), time(row.mean_ns)
    return f"{op_type} takes {share} of the time of all ops, {mean} a call."


def grown(comparison: Comparison, row: Compared, small: int, large: int) -> Iterator[str]:
    """Yield how the calls of an op type change with the batch, if their work is known to grow."""
    cell, smaller, steps = row.cells[large], row.cells.get(small), comparison.steps
    if (
        not (smaller and smaller.flops and cell.flops)
        or cell.calls / steps[large].steps != smaller.calls / steps[small].steps
        or cell.flops <= smaller.flops
    ):
        return
    yield (
        f"From batch size {small} to {large}, a call of {row.key} takes "
        f"{three_digits(cell.mean_ns / smaller.mean_ns)} times as long ({time(cell.mean_ns)} "
        f"instead of {time(smaller.mean_ns)}) for {three_digits(cell.flops / smaller.flops)} times "
        "the FLOPs."
    )


def configurations(comparison: Comparison) -> Iterator[Part]:
    names = tuple(dict.fromkeys(row.config for row in comparison.configs))
    if names:
        yield from execution.load_line(comparison.load)
        yield (
            f"An untraced step of {comparison.phase}, with the runtime's defaults and with one "
            f"setting changed. All use the same weights and {comparison.unit}s. They ran in other "
            "processes than the batch sizes, so their times differ from those."
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
        yield Chapter("Step 2: training", tuple(trained(lab)))
    if lab.walked:
        yield Chapter("Step 3: data-flow graph", tuple(picture_of_graph(lab.walked)))
    if lab.history:
        title = f"Step 4: {training_title(lab.history).lower()}"
        yield Chapter(title, tuple(curves(lab.history)))
    if compared := lab.compared:
        types = types_of_ops(compared, lab.walked)
        yield Chapter("Step 5: the ten most expensive ops", tuple(types))
        drawn = contents.picture("batch_sizes", plots.batch_sizes.draw, compared)
        ops = view.at_each_size(compared, TOP)
        yield Chapter("Step 6: batch sizes", (*found(compared), PEAK, ops, drawn))
        changes = (
            " ".join(map("A step with {}".format, view.decided(compared))),
            *configurations(compared),
        )
        yield Chapter("Step 7: hardware and configuration", tuple(filter(None, changes)))


def types_of_ops(comparison: Comparison, walked: Walked | None) -> Iterator[Part]:
    last = comparison.batch_sizes[-1]
    rows = comparison.tables[last]
    yield from (finding(row.key, row) for row in rows[:1])
    traced = plural(comparison.steps[last].steps, "traced step")
    yield f"A row is an op type: its calls and total in {traced}, and its mean time of a call."
    ops = {node.name: node.op for node in walked.stages[0].nodes} if walked else {}
    costs = op_table.costs(comparison, last, TOP)
    own = Column("in the program", lambda row: in_program(row, ops), elastic=True)
    yield replace(costs, columns=(*costs.columns, *([own] if any(map(own.cell, rows)) else [])))
    if any(row.key.startswith("_Mkl") for row in rows[:TOP]):
        yield ONEDNN
    if len(rows) < TOP:
        yield f"A step runs only {plural(len(rows), 'type')} of op: the table has them all."
    yield contents.picture("op_bars", plots.op_bars.draw, rows, "op")
    yield from (*execution.load_line(comparison.load), view.protocol(comparison))


def in_program(row: OpStats, ops: Mapping[str, str]) -> str:
    """Return `2 Conv2D, 2 Relu` for a type whose nodes do the work of these ops of the program."""
    names = (name for name in (*row.fused_from, *row.nodes) if name in ops)
    return words.counted(ops[name] for name in names) or fates.ROLES.get(row.key, "")


def picture_of_graph(walked: Walked) -> Iterator[Part]:
    """Yield the picture of the forward graph, and where all nodes are shown."""
    rows, shapes, _ = layers(walked)
    whole = len(walked.stages[0].nodes) <= frontend.DRAWN_WHOLE
    without = "" if whole else ", without variables and constants"
    yield contents.picture("graph", plots.graph.draw, walked.model, rows, shapes)
    yield (
        f"This is the forward graph as written{without}. "
        "TensorBoard's Graphs shows the graph that ran, with its gradients, node by node. The "
        f"command python -m tflab.lifecycle --model {walked.model} --logdir "
        f"runs/{walked.model} writes it, and tensorboard --logdir runs shows it."
    )


def layer_table(walked: Walked) -> Table:
    rows, shapes, parameters = layers(walked)
    outputs = {source: shape for (source, _), shape in reversed(shapes.items())}
    return table(
        "The layers, with the shape of their output (?: any size)",
        (entry for row in rows for entry in row if isinstance(entry, plots.graph.Box)),
        Column("layer", lambda layer: layer.label, name=True),
        Column("op types", lambda layer: layer.about, name=True),
        Column("output", lambda layer: outputs.get(layer.name, ""), name=True),
        numbers("parameters", lambda layer: f"{parameters[layer.name]:,}"),
    )


def layers(walked: Walked) -> tuple[list[Row], dict[tuple[str, str], str], Counter[str]]:
    """Return rows with the layers of the forward graph that the step needs, the shape of the tensor
    from one to another, and for each the elements of the variables that it is the first to use."""
    unneeded = {fate.name for fate in walked.placement.ledger if fate.fate == "unreached"}
    nodes = {node.name: node for node in walked.stages[0].nodes if node.name not in unneeded}
    whole = len(walked.stages[0].nodes) <= frontend.DRAWN_WHOLE
    drawn = {name: node for name, node in nodes.items() if whole or node.op not in STORED}
    before = drawing.Waits(
        {name: drawn.keys() & map(node_of, node.inputs) for name, node in drawn.items()}
    )
    paths = [(tuple(name.split("/")), name) for name in drawn]
    boxes = drawing.without_outer_scope(drawing.parts(paths, before, least=2), before)
    inside = {box.name: nodes_of(box) for box in boxes}
    layer_of = {name: layer for layer, names in inside.items() for name in names}
    shapes: dict[tuple[str, str], str] = {}
    for name, node in drawn.items():
        for tensor in node.inputs:
            source = node_of(tensor)
            if source in drawn and layer_of[source] != layer_of[name]:
                edge = layer_of[source], layer_of[name]
                shapes.setdefault(edge, shape_of(tensor, nodes))
            while source in nodes and source not in drawn:  # back to the variable
                layer_of.setdefault(source, layer_of[name])
                source = node_of((*nodes[source].inputs, "")[0])
    parameters: Counter[str] = Counter()
    for name, count in walked.weights.items():
        parameters[layer_of.get(name, "")] += count

    def shown(entry: contents.Box | Lane) -> plots.graph.Box | plots.graph.Lane:
        if isinstance(entry, Lane):
            return plots.graph.Lane(entry.source, entry.target)
        about = words.counted(nodes[name].op for name in inside[entry.name])
        return plots.graph.Box(entry.name, entry.label.removesuffix(f"/{about}"), about)

    return [[*map(shown, row)] for row in drawing.rows(boxes, before)], shapes, parameters


def shape_of(tensor: str, nodes: Mapping[str, Node]) -> str:
    """Return `?x14x14x6`; empty for a scalar or an unknown rank."""
    slot = int(tensor.partition(":")[2] or 0)
    shapes = [output.shape or () for output in nodes[node_of(tensor)].outputs]
    extents = [extent for shape in shapes[slot : slot + 1] for extent in shape]
    return "x".join("?" if extent is None else f"{extent}" for extent in extents)
