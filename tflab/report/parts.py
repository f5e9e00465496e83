"""Parts: what the chapters of a report consist of, each from the measurements that it needs."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from tflab.analysis import critical_path, step_times
from tflab.compare import CONFIGURATIONS, DEFAULT, view
from tflab.exporters import plots
from tflab.records.blocks import Column, Table, fact_table, numbers, table
from tflab.records.measured import Compared, Comparison
from tflab.records.stages import Backward
from tflab.records.trained import History
from tflab.records.values import Maps
from tflab.report import contents, drawing, selection
from tflab.report.contents import EPOCHS, TOP, DrawnGraph, Method, Part, Walked
from tflab.runtime import trace
from tflab.train import view as training_view
from tflab.train.view import classified
from tflab.units import percent, plural, time
from tflab.views import chain_rule, execution, frontend, op_table, placement
from tflab.views import stages as views

# The graph: its drawing, its sizes, and the fates of its nodes


def graph(walked: Walked) -> Iterator[Part]:
    step, placing = walked.execution, walked.placement
    ns = critical_path.median_per_step(step.runs)
    yield DrawnGraph(
        name=selection.title_of(walked.model),
        drawing=drawing.draw(walked.stages, walked.histories),
        histories=walked.histories,
        ns=ns,
    )
    yield directions({history.kind for history in walked.histories.values()})
    nodes = walked.stages[0].nodes
    if any(node.source for node in nodes):
        yield frontend.lines(nodes)
    yield views.story(walked.stages)
    for stage in walked.stages:
        if isinstance(stage, Backward):
            yield from chain_rule.tables(stage)
    if placing.passes:
        yield placement.fate_counts(placing)
        if facts := list(placement.balance(placing)):
            yield fact_table(facts)
    recorded = step.values_step.which if step.values_step and step.values else ""
    known = (
        f" Values and gradients are the program's, in {recorded}; not timed." if recorded else ""
    )
    # The slowest forward node, or one that was fused into the slowest
    carriers = {node.name: walked.histories[node.name].carrier or "" for node in nodes}
    example = max(carriers, key=lambda name: ns.get(carriers[name], 0))
    yield Method(
        f"Times in the graph, and its colours by time: {contents.warm(step)} The times at each "
        f"batch size in the panel are statistics of traced steps.{known}",
        f"{contents.walking(walked)}\npython -m tflab.follow {example} --model {walked.model}",
    )


def directions(kinds: Container[str]) -> str:
    """Return where nodes of these kinds are in the drawing."""
    if "gradient" not in kinds:
        return "In the drawing, the data flow down."
    updates = ", and updates of variables are on the right" if "update" in kinds else ""
    return (
        "In the drawing, the forward ops go down on the left. Gradients go up beside them, each "
        f"next to its layer{updates}."
    )


def on_two_devices(walked: Walked) -> Iterator[Part]:
    """Where the nodes are, and which tensors are sent; `walked` ends with its placement."""
    placing = walked.placement
    yield (
        "If an edge leads from one device to the other, the runtime cuts it: a _Send on one device "
        "passes the tensor to a _Recv on the other."
    )
    yield placement.partitions(placing)
    yield fact_table(placement.transferred(placing))
    drawn = drawing.draw(walked.stages, walked.histories)
    yield DrawnGraph(
        name=f"{selection.title_of(walked.model)} on two devices",
        drawing=drawn,
        histories=walked.histories,
        ns={},
        start=len(drawn.states) - 1,
    )
    yield placement.transfers(placing)
    yield Method(
        "Devices, _Send and _Recv are read from the runtime's own dumps; the bytes follow from "
        f"the shapes at batch size {placing.batch_size}.",
        f"python -m tflab.lifecycle --model {walked.model} --devices {len(placing.partitions)} "
        "--stage placement",
    )


# A step: its most expensive ops, its time, its memory, and what the network saw


def phase(walked: Walked) -> str:
    updates = any(history.kind == "update" for history in walked.histories.values())
    return "training" if updates else "inference"


def top_ops(walked: Walked, compared: Comparison) -> Iterator[Part]:
    step = walked.execution
    yield (
        f"The graphs, their nodes, times and memory are from a step of {phase(walked)}. The "
        "comparisons of batch sizes and configurations are from inference, with the same weights "
        "for all."
    )
    yield contents.picture("op_bars", plots.op_bars.draw, step.top_ops, "node")
    yield execution.top_table("A step's nodes", step.top_ops, step, "node")
    yield Method(contents.warm(step), contents.walking(walked))
    yield from execution.costs(step)
    if step.experiments and step.experiments.control:
        yield Method(
            "The numbers are from untraced steps, which alternate with traced ones.",
            f"{contents.walking(walked)} --experiments",
        )
    yield calls_at_each_size(compared)
    yield contents.swept(compared)


def times(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    yield from execution.load_line(step.load)
    owners = execution.owners(step.time_ledger, step.wall_ns, step.steps)
    yield fact_table([*execution.step_times(step), *owners])
    middle = step_times.median_step(step.step_times)
    runs = [run for run in step.runs if run.step == middle.step and run.name != trace.EXECUTOR]
    drawn = contents.picture("timeline", plots.timeline.draw, runs, middle, step.critical_path)
    title = plots.timeline.headline(runs, middle, {*step.critical_path.nodes})
    slices = plots.timeline.slices(runs, middle, step.critical_path)
    yield replace(drawn, title=title, slices=slices)
    yield fact_table(execution.parallel(step.critical_path))
    yield Method(contents.warm(step), contents.walking(walked))


def memory(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    if not execution.compiled(step.nodes):
        yield contents.picture("memory", plots.memory.draw, step.memory.curve)
    if facts := list(execution.memory_facts(step.memory, step.nodes)):
        yield fact_table(facts)
    yield from execution.holders(step.memory, step.nodes)
    yield Method(
        "The numbers are computed from the memory that each op requested from its allocators in "
        f"traced steps. {contents.warm(step)}",
        contents.walking(walked),
    )


def network(walked: Walked, maps: Maps) -> Iterator[Part]:
    yield (
        "From top to bottom, the image passes through the layers: each row shows the output of a "
        "layer, with one tile for each channel. On the right, from bottom to top, is the gradient "
        "of the loss with respect to each of these numbers. A max-pool passes its gradient only "
        "to the largest of its elements, and a ReLU only to those above 0: the rest is white."
    )
    yield contents.picture("feature_maps", plots.feature_maps.draw, maps)
    yield Method(
        "Every tensor is fetched by one step that is not timed, with the graph passes off. If a "
        "line says softmax, tflab computed it from the scores.",
        contents.walking(walked),
    )


# A training, with its curves and its epochs


def training_title(history: History | None) -> str:
    return "Loss and accuracy" if history is None or classified(history) else "Loss"


def training(model: str, history: History | None) -> Iterator[Part]:
    if history is None:
        yield f"{model} has no loss, so it cannot be trained."
        return
    yield contents.picture("curves", plots.curves.draw, history)
    if history.interrupted:
        yield "Partial: this training ended before its last epoch."
    if history.epochs:
        yield training_view.epochs(history)
    means = "Losses and accuracies" if classified(history) else "Losses"
    yield Method(
        f"Trained for this report. {means} are means over rows; the test uses all test rows at the "
        "end of each epoch.",
        f"python -m tflab.train --model {model} --epochs {len(history.epochs) or EPOCHS} "
        f"--batch-size {history.batch_size}",
    )


# Comparisons of batch sizes and configurations


def batch_sizes(comparison: Comparison) -> Iterator[Part]:
    yield found(comparison)
    yield contents.picture("batch_sizes", plots.batch_sizes.draw, comparison)
    if len(comparison.batch_sizes) > 1:
        yield view.side_by_side(comparison, TOP, comparison.batch_sizes)
    yield from view.findings(comparison)
    yield view.steps(comparison)
    yield contents.swept(comparison)


def found(comparison: Comparison) -> Table:
    """One row for each batch size, with what was found at it."""
    steps = comparison.steps
    return table(
        "Findings at each batch size",
        comparison.batch_sizes,
        numbers("batch", str),
        numbers("median step", lambda size: time(steps[size].untraced_ns.median)),
        numbers(
            f"{comparison.unit}s a second",
            lambda size: f"{steps[size].mean_images_per_second:,.0f}",
        ),
        Column("found", lambda size: finding_at(comparison, size), elastic=True),
    )


def finding_at(comparison: Comparison, size: int) -> str:
    """`From batch 1 to 16, a call of Conv2D takes 2.3 times as long for 16 times the images ...`,
    about the dearest op; only its share if it did not run as often in a step of the size before."""
    largest = max(
        (row for row in comparison.rows if size in row.cells),
        key=lambda row: row.cells[size].share,
    )
    cell, name = largest.cells[size], largest.key
    before = max((smaller for smaller in comparison.batch_sizes if smaller < size), default=0)
    smaller = largest.cells.get(before)
    calls = cell.calls / comparison.steps[size].steps
    if not smaller or smaller.calls / comparison.steps[before].steps != calls:
        return f"{name} takes {percent(cell.share)} of the op time, {time(cell.mean_ns)} a call."
    return (
        f"From batch {before} to {size}, a call of {name} takes "
        f"{cell.mean_ns / smaller.mean_ns:.1f} times as long for {size / before:g} times the "
        f"{comparison.unit}s; its share of the op time goes from {percent(smaller.share)} to "
        f"{percent(cell.share)}."
    )


def dearest(comparison: Comparison) -> Table:
    """The ops that took most of the time at the largest batch size."""
    size = comparison.batch_sizes[-1]
    rows = comparison.tables.get(size, ())
    of = f"{min(len(rows), TOP)} most expensive of {len(rows)} op types"
    return table(
        f"The {of} at batch {size}, {comparison.phase}",
        rows[:TOP],
        op_table.key("op"),
        *op_table.columns(("calls", "total", "mean", "share")),
    )


def calls_at_each_size(comparison: Comparison) -> Table:
    """The time of each of the dearest ops at every batch size, as its calls times their mean."""

    def column(size: int) -> Column:
        def cell(row: Compared) -> str:
            stats = row.cells.get(size)
            if stats is None:
                return ""
            calls = f"{stats.calls:,} x {time(stats.mean_ns)}"
            return f"{calls} = {time(stats.total_ns)}, {percent(stats.share)}"

        return numbers(f"batch {size}", cell)

    return table(
        "Calls x mean = total, and share of the op time, at each batch size",
        view.in_order(comparison, TOP)[:TOP],
        op_table.key("op"),
        *map(column, comparison.batch_sizes),
    )


def configurations(comparison: Comparison) -> Iterator[Part]:
    names = tuple(dict.fromkeys(row.config for row in comparison.configs))
    if not names:
        yield "No configuration was compared with the default."
        return
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
    yield from view.configs(comparison)
    number = min(row.verdict.observations for row in comparison.configs if row.verdict)
    others = " ".join(name for name in names if name != DEFAULT)
    yield Method(
        f"The comparison has {plural(number, 'observation')}, each in new processes that take "
        f"turns. After {plural(selection.CONFIGS_S, 'second')} no new observation started, except "
        "those that a verdict requires. The command takes longer and shows more.",
        f"{contents.comparing(comparison)} --configs {others}",
    )
