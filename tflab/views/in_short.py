"""In short: each stage as a few facts and a table, so that all stages fit on one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tflab.records.blocks import Block, Column, Table
from tflab.records.graph import Node, edge_count
from tflab.records.stages import Backward, Execution, Frontend, Placement, Stage
from tflab.units import percent, plural, short_device, size, time
from tflab.views import (
    chain_rule,
    execution,
    network,
    numbered,
    op_table,
    pass_log,
    placement,
    values,
)
from tflab.views.backward import not_finite, result
from tflab.views.chain_rule import total
from tflab.views.values import number
from tflab.views.words import counted, place

DEVICES = 3  # devices that are named
DERIVATIVES = 2  # derivatives that are printed
LINES = 7  # lines of the program, if these are all of them
ROWS = 5  # rows of a longer table
EQUATION = 320  # characters of an equation, which are four lines
FETCHES = 4  # that are named
MOSTLY_KERNELS = 0.9  # of the time of ops: above that it need not be said
Fact = tuple[str, str]  # a label, and its text


def blocks(stage: Stage) -> list[Block]:
    """The blocks of a stage on the one screen."""
    return list(VIEWS[type(stage)](stage))


def facts(rows: Iterable[Fact]) -> Table:
    """One fact per line, without a title or headers."""
    columns = Column("", lambda row: row[0]), Column("", lambda row: row[1])
    return Table("", columns, tuple(rows))


# Frontend


def built(stage: Frontend) -> Iterator[Block]:
    yield from stage.notes
    if stage.functions:
        inner_nodes = plural(sum(len(function.nodes) for function in stage.functions), "node")
        yield f"{plural(len(stage.functions), 'function')} with {inner_nodes} of their own."
    lined = any(node.source for node in stage.nodes)
    yield lines_of(stage) if lined else types_of(stage)


def counts(stage: Frontend) -> str:
    return f"{plural(len(stage.nodes), 'node')} and {plural(edge_count(stage.nodes), 'edge')}"


def lines_of(stage: Frontend) -> Table:
    """The lines that made the most nodes, in the order of the program."""
    by_line: dict[tuple[str, int], list[Node]] = {}
    for node in stage.nodes:
        if node.source:
            by_line.setdefault((node.source.file, node.source.line), []).append(node)
    made = sum(map(len, by_line.values()))
    of = "" if made == len(stage.nodes) else f"{made:,} of "
    some = len(by_line) > LINES
    most = sorted(by_line, key=lambda line: -len(by_line[line]))[: ROWS if some else LINES]

    def code(nodes: list[Node]) -> str:
        return nodes[0].source.code if nodes[0].source else ""

    return Table(
        f"{plural(len(by_line), 'line')} of the program made {of}{counts(stage)}"
        + (f"; the {ROWS} that made the most nodes" if some else ""),
        (
            Column("line", lambda nodes: place(nodes[0].source)),
            Column("code", code, elastic=True, least=28),
            Column("nodes", lambda nodes: f"{len(nodes):,}", right=True),
            Column("ops", lambda nodes: counted(node.op for node in nodes), elastic=True, least=24),
        ),
        tuple(nodes for line, nodes in by_line.items() if line in most),
    )


def types_of(stage: Frontend) -> Table:
    """The most frequent types of a graph without source lines."""
    types = Counter(node.op for node in stage.nodes).most_common(ROWS)
    return Table(
        f"The file contains {counts(stage)}; the most frequent ops",
        (
            Column("op", lambda row: row[0]),
            Column("nodes", lambda row: f"{row[1]:,}", right=True),
        ),
        tuple(types),
    )


# Backward


def derived(stage: Backward) -> Iterator[Block]:
    if stage.inferred:
        yield "The graph came with gradients; nothing was added."
    elif not stage.added_nodes:
        yield "There is nothing to differentiate, so nothing was added."
    if rows := tuple(gradient_facts(stage)):
        yield facts(rows)


def gradient_facts(stage: Backward) -> Iterator[Fact]:
    if stage.added_nodes:
        functions = sum(bool(gradient.nodes) for gradient in stage.gradients)
        yield (
            "added",
            f"{plural(len(stage.added_nodes), 'node')}: gradients of "
            f"{plural(functions, 'forward op')}"
            f"{', and what the optimiser needs' if stage.update_nodes else ''}",
        )
    helpers = sum(bool(node.bookkeeping) for node in stage.gradient_nodes)
    if helpers and all(node.decided for node in stage.gradient_nodes):
        yield (
            "of these",
            f"{helpers:,} of {plural(len(stage.gradient_nodes), 'gradient node')} only handle "
            "shapes, counts and order",
        )
    equation = chain_rule.equation(stage)
    if 0 < len(equation) <= EQUATION:
        yield "chain rule", equation
    complete = stage.derivatives
    if len(complete) <= DERIVATIVES:
        for derivative in complete:
            value = number(derivative.value) if isinstance(derivative.value, float) else ""
            batch = f", for the first batch {value}" if value else ""
            yield total(derivative.variable), f"{derivative.formula}{batch}"
    if stage.gradient_checks:
        checked_in = stage.gradient_checks[0].precision
        coarse = "" if checked_in == "float64" else f" in {checked_in}"
        yield (
            "checked",
            f"{plural(len(stage.gradient_checks), 'gradient')} by finite differences{coarse}"
            f": {not_finite(stage) or result(stage)}"
            f"{chain_rule.differs_by_design(stage)}",
        )
    elif stage.added_nodes and not stage.inferred:
        yield "checked", f"no: {stage.unchecked}"


# Placement


def placed(stage: Placement) -> Iterator[Block]:
    yield facts(run_facts(stage))
    yield from stage.notes
    if stage.ledger:
        yield placement.fate_counts(stage)
    if stage.toggle:
        yield placement.toggled(stage.toggle)


def run_facts(stage: Placement) -> Iterator[Fact]:
    devices = sorted(short_device(part.device) for part in stage.partitions)
    where = ", ".join(devices) if len(devices) <= DEVICES else plural(len(devices), "device")
    yield "fetches", numbered.listed(stage.fetches, FETCHES)
    run = f"{plural(len(stage.nodes), 'node')} on {where}"
    if stage.ledger:
        runtime = len(stage.origins)
        own_nodes = f"{len(stage.nodes) - runtime:,} of the {len(stage.user_nodes):,} built"
        run += f": {own_nodes}, {runtime:,} made by the runtime"
    if stage.not_run:
        yield "remain", f"{run}; {placement.not_taken(stage)}"
    else:
        yield "run", run
    compiled = [fate for fate in stage.ledger if fate.fate == "compiled"]
    if compiled:
        clusters = len({fate.into for fate in compiled})
        yield (
            "compiled",
            f"{plural(len(compiled), 'node')} by XLA, as {plural(clusters, 'cluster')}",
        )
    lost = pass_log.unreached(stage) | {fate.name for fate in compiled}
    if fused := [line for step in stage.passes for line in pass_log.fusions(step, lost)]:
        other_fusions = f"; {plural(len(fused) - 1, 'other fusion')}" if len(fused) > 1 else ""
        yield "fused", fused[0] + other_fusions
    if stage.transfers:
        yield "transfers", placement.cuts(stage)


# Execution


def executed(stage: Execution) -> Iterator[Block]:
    yield from values.not_finite(stage)
    yield from execution.load_line(stage.load)
    yield from execution.partial(stage.interrupted, stage.failure)
    yield facts(step_facts(stage))
    if stage.top_ops:
        columns = op_table.key("node"), *op_table.columns(("type", "self", "share"))
        title = (
            f"The most expensive of {plural(len(stage.top_ops), 'node')}, by self time in "
            f"{plural(stage.steps, 'traced step')}"
        )
        yield Table(title, columns, tuple(stage.top_ops[:ROWS]))
    if stage.race:
        yield execution.raced(stage.race)
    yield from network.blocks(stage)
    yield from execution.costs(stage)


def step_facts(stage: Execution) -> Iterator[Fact]:
    step = stage.untraced_step_ns
    yield (
        "step",
        f"{time(step.median)} at batch size {stage.batch_size} (p10 {time(step.p10)}, p90 "
        f"{time(step.p90)}; {plural(stage.steps, 'untraced step')})",
    )
    if stage.wall_ns:
        owners = (
            f"{percent(owner.ns / stage.wall_ns)} {owner.owner.partition(' (')[0]}"
            for owner in stage.time_ledger
        )
        yield "time", ", ".join(owners)
    if stage.kernel_time and stage.kernel_time.share < MOSTLY_KERNELS:
        yield (
            "kernels",
            f"{percent(stage.kernel_time.share)} of the time of all ops; in the rest the executor "
            "prepares inputs and hands outputs on",
        )
    if stage.critical_path.nodes:
        chain = plural(len(stage.critical_path.nodes), "op run")
        yield "order", f"critical path: {chain}, {time(stage.critical_path.ns)} in a traced step"
    if stage.memory.peak_bytes and not execution.compiled(stage.nodes):
        yield "memory", f"at most {size(stage.memory.peak_bytes)} alive at once"
    if stage.values_step and len(stage.values_step.path) > 1:
        first, *_, last = stage.values_step.path
        moves = (
            f"{name} from {number(start)} to {number(last.variables[name])}"
            for name, start in first.variables.items()
        )
        yield "training", f"{plural(last.step, 'step')} moved {' and '.join(moves)}"


VIEWS: dict[type, Callable[[Any], Iterator[Block]]] = {
    Frontend: built,
    Backward: derived,
    Placement: placed,
    Execution: executed,
}
