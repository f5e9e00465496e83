"""View of backward: the chain rule for this graph, the nodes that each gradient function made, and
whether the gradients are right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from tflab.analysis.gradient_stops import ZEROS
from tflab.records.blocks import Block, Column, Fact, Table, numbers, table
from tflab.records.gradients import GradientStop
from tflab.records.stages import Backward, Gradient, GradientCheck
from tflab.units import plural
from tflab.views import access_order, chain_rule, frontend
from tflab.views.words import counted, graph_size, listed, place

TITLE = "Backward: gradient functions add the other half of the graph"
NAMED = 5  # variables in a fact
NO_LOSS = "the model has no loss or no optimiser, and its graph holds no gradients"


def facts(stage: Backward) -> list[Fact]:
    facts = [Fact("graph", f"{graph_size(stage.nodes)}, {len(stage.added_nodes):,} nodes new")]
    facts += [*stops(stage), *access_order.facts(stage.unordered)]
    if stage.inferred:
        return [*facts, Fact("added", "nothing", "the graph came with gradients")]
    if not stage.added_nodes:
        why = stage.program.model.not_trained if stage.program else ""
        return [*facts, Fact("added", "nothing to differentiate", why.rstrip(".") or NO_LOSS)]
    return [*facts, *added(stage), *chain_rule.facts(stage), *checks(stage)]


def stops(stage: Backward) -> Iterator[Fact]:
    """Yield where the gradients of variables stop, with the variables for which they do."""
    for reason, where, names in stop_rows(stage.gradient_stops):
        label = "only zeros" if reason == ZEROS else "no gradient"
        verb = "reaches" if len(names) == 1 else "reach"
        way = f" {verb} the loss by {where}" if where else ""
        yield Fact(label, f"{listed(names, NAMED)}{way}", reason)


def stop_rows(listed: Iterable[GradientStop]) -> list[tuple[str, str, list[str]]]:
    """Return each place where gradients stop, with the reason and the variables."""
    rows: dict[tuple[str, str], list[str]] = {}
    for stop in listed:
        line = f", {at}" if (at := place(stop.source)) else ""
        where = f"{stop.node} ({stop.op}{line})" if stop.node else ""
        rows.setdefault((stop.reason, where), []).append(stop.variable)
    return [(*key, names) for key, names in rows.items()]


def stop_table(listed: Sequence[GradientStop]) -> Table:
    return table(
        "Where gradients stop, from each variable to the loss",
        listed,
        Column("variable", lambda stop: stop.variable, name=True),
        Column("way to the loss", lambda stop: " > ".join(stop.path[1:]), elastic=True),
        Column("stops at", lambda stop: stop.node),
        Column("line", lambda stop: place(stop.source)),
        Column("because", lambda stop: stop.reason, elastic=True, least=30),
    )


def added(stage: Backward) -> Iterator[Fact]:
    """Yield how many nodes each source added."""
    functions = sum(bool(gradient.nodes) for gradient in stage.gradients)
    by_functions = sum(len(gradient.nodes) for gradient in stage.gradients)
    of = f"of {functions:,} of {plural(len(stage.gradients), 'forward node')}"
    yield Fact("by gradient functions", plural(by_functions, "node"), of, detail=True)
    yield Fact("shared", plural(len(stage.shared_nodes), "node"), "by several ops", detail=True)
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


def tables(stage: Backward) -> list[Block]:
    first = [stop_table(stage.gradient_stops)] if stage.gradient_stops else []
    if stage.inferred or not stage.added_nodes:
        return [*first]
    new = [function for function in stage.functions if function.name in stage.added_functions]
    blocks: list[Block] = [*first, *chain_rule.tables(stage), derived(stage)]
    if new:
        blocks.append(frontend.function_table("Functions added for the gradients", new))
    if stage.gradient_checks:
        blocks.append(checked(stage))
    return blocks


def derived(stage: Backward) -> Table:
    ops = {node.name: node.op for node in stage.nodes}

    def types(row: Gradient) -> str:
        return counted(ops[name] for name in row.nodes)

    return table(
        "Forward ops in the order of differentiation (last first), and their gradient nodes",
        [gradient for gradient in stage.gradients[::-1] if gradient.nodes],
        Column("forward node", lambda row: row.forward, name=True),
        Column("type", lambda row: row.op),
        Column("gradient function", lambda row: (row.function or "").split(" ")[0], spare=1),
        numbers("nodes", lambda row: f"{len(row.nodes):,}"),
        Column("types", types, elastic=True, spare=2),
    )


def checked(stage: Backward) -> Table:
    return table(
        f"Gradients compared with finite differences on {stage.data}, at weights slightly off the "
        "initial ones",
        stage.gradient_checks,
        Column("variable", lambda check: check.tensor),
        numbers("elements", lambda c: f"{c.elements} of {c.size:,}"),
        numbers("largest relative error", error),
    )


def error(check: GradientCheck) -> str:
    if check.zero:
        return "both 0"
    known = isfinite(check.max_relative_error)
    return f"{check.max_relative_error:.1e}" if known else "not finite"
