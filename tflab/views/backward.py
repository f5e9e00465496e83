"""View of backward: the chain rule for this graph, the nodes that each gradient function made, and
whether the gradients are right."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from tflab.analysis.gradient_graph import ZEROS
from tflab.records.blocks import Block, Column, Fact, numbers, table
from tflab.records.gradients import GradientStop
from tflab.records.stages import Backward, Gradient, GradientCheck
from tflab.units import plural
from tflab.views import chain_rule, frontend
from tflab.views.words import counted, graph_size, grouped, listed, place

TITLE = "Backward: gradient functions add the other half of the graph"
NAMED = 5  # variables in a fact


def facts(stage: Backward) -> Iterator[Fact]:
    yield Fact("graph", f"{graph_size(stage.nodes)}, {len(stage.added_nodes):,} nodes new")
    yield from stops(stage)
    yield from frontend.unordered(stage.unordered)
    if not stage.added_nodes:
        yield Fact("added", "nothing", stage.unchecked)
        return
    yield from added(stage)
    yield from chain_rule.facts(stage)
    yield from checks(stage)


def stops(stage: Backward) -> Iterator[Fact]:
    """Yield where the gradients of variables stop, with the variables for which they do."""

    def where(stop: GradientStop) -> str:
        about = ", ".join(filter(None, (stop.op, place(stop.source))))
        return f"{stop.node} ({about})" if stop.node else ""

    rows = grouped(((stop.reason, where(stop)), stop.variable) for stop in stage.gradient_stops)
    for (reason, end), names in rows.items():
        label = "only zeros" if reason == ZEROS else "no gradient"
        verb = "reaches" if len(names) == 1 else "reach"
        way = f" {verb} the loss by {end}" if end else ""
        yield Fact(label, f"{listed(names, NAMED)}{way}", reason)


def added(stage: Backward) -> Iterator[Fact]:
    """Yield how many nodes each source added."""
    made = [len(gradient.nodes) for gradient in stage.gradients if gradient.nodes]
    of = f"of {len(made):,} of {plural(len(stage.gradients), 'forward node')}"
    yield Fact("by gradient functions", plural(sum(made), "node"), of, detail=True)
    shared = len(stage.added_nodes) - sum(made) - len(stage.update_nodes)
    yield Fact("shared", plural(shared, "node"), "by several ops", detail=True)
    yield Fact("by the optimiser", plural(len(stage.update_nodes), "node"), detail=True)


def checks(stage: Backward) -> Iterator[Fact]:
    """Yield the results of the comparison with finite differences."""
    made = stage.gradient_checks
    if not made:
        yield Fact("checked", "nothing", stage.unchecked)
        return
    zero = [check.tensor for check in made if check.zero]
    odd = [check.tensor for check in made if not isfinite(check.max_relative_error)]
    errors = [c.max_relative_error for c in made if not c.zero and c.tensor not in odd]
    worst = f", largest relative error {max(errors):.1e}" if errors else ""
    of_all = f"{len(made):,} of {plural(stage.variable_count, 'variable')}"
    yield Fact("checked", of_all + worst, f"by finite differences in {made[0].precision}")
    if odd:
        yield Fact("NaN or infinite", listed(odd, NAMED), "the gradient or the difference")
    if zero:
        yield Fact("0 within rounding", listed(zero, NAMED), "gradients and differences")


def tables(stage: Backward) -> Iterator[Block]:
    """Yield where gradients stop, the chain rule, and what was added and checked."""
    if stage.gradient_stops:
        yield table(
            "Where gradients stop, from each variable to the loss",
            stage.gradient_stops,
            Column("variable", lambda stop: stop.variable, name=True),
            Column("way to the loss", lambda stop: " > ".join(stop.path[1:]), elastic=True),
            Column("stops at", lambda stop: stop.node),
            Column("line", lambda stop: place(stop.source)),
            Column("because", lambda stop: stop.reason, elastic=True, least=30),
        )
    if not stage.added_nodes:
        return
    yield from chain_rule.tables(stage)
    ops = {node.name: node.op for node in stage.nodes}

    def types(row: Gradient) -> str:
        return counted(ops[name] for name in row.nodes)

    yield table(
        "Forward ops in the order of differentiation (last first), and their gradient nodes",
        (gradient for gradient in stage.gradients[::-1] if gradient.nodes),
        Column("forward node", lambda row: row.forward, name=True),
        Column("type", lambda row: row.op),
        Column("gradient function", lambda row: (row.function or "").split(" ")[0], spare=1),
        numbers("nodes", lambda row: f"{len(row.nodes):,}"),
        Column("types", types, elastic=True, spare=2),
    )
    new = [function for function in stage.functions if function.name in stage.added_functions]
    if new:
        yield frontend.function_table("Functions added for the gradients", new)
    if stage.gradient_checks:
        yield table(
            "Gradients compared with finite differences, at weights slightly off the initial ones",
            stage.gradient_checks,
            Column("variable", lambda check: check.tensor),
            numbers("elements", lambda check: f"{check.elements} of {check.size:,}"),
            numbers("largest relative error", error),
        )


def error(check: GradientCheck) -> str:
    if check.zero:
        return "both 0"
    known = isfinite(check.max_relative_error)
    return f"{check.max_relative_error:.1e}" if known else "not finite"
