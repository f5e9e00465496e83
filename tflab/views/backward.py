"""View of backward: the chain rule for this graph, the nodes that each gradient function made, and
whether the gradients are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from math import isfinite
from typing import Any

from tflab.analysis import chain_rule
from tflab.analysis.gradient_graph import ZEROS, gradient_name
from tflab.records.blocks import Block, Column, Fact, Table, numbers, table
from tflab.records.graph import Derivative, GradientNode, GradientStop, Link, grouped
from tflab.records.stages import Backward
from tflab.units import plural
from tflab.views import frontend
from tflab.views.words import counted, graph_size, place

TITLE = "Backward: gradient functions add the other half of the graph"


def facts(stage: Backward) -> Iterator[Fact]:
    yield Fact("graph", f"{graph_size(stage.nodes)}, {len(stage.added_nodes):,} nodes new")
    yield from stops(stage)
    yield from frontend.unordered(stage.unordered)
    if not stage.added_nodes:
        yield Fact("added", "nothing", stage.unchecked)
        return
    made, updates = sum(len(row.nodes) for row in stage.gradients), len(stage.update_nodes)
    shared = len(stage.added_nodes) - made - updates
    around = f"{shared:,} around them (start, zeros, sums)"
    by = f"{made:,} by gradient functions, {around}, {updates:,} by the optimiser"
    yield Fact("new nodes", by, detail=True)
    yield from chain_rule_facts(stage)
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
        yield Fact(label, f"{', '.join(names)}{way}", reason)


def checks(stage: Backward) -> Iterator[Fact]:
    """Yield the results of the comparison with finite differences."""
    made = stage.gradient_checks
    if not made:
        yield Fact("checked", "nothing", stage.unchecked)
        return
    odd = [check.tensor for check in made if not isfinite(check.max_relative_error)]
    errors = [c.max_relative_error for c in made if not c.zero and c.tensor not in odd]
    worst = f", largest relative error {max(errors):.1e}" if errors else ""
    of_all = f"{len(made):,} of {plural(stage.variable_count, 'variable')}"
    if any(check.elements < check.size for check in made):
        of_all += f", up to {max(check.elements for check in made)} elements of each"
    yield Fact("checked", of_all + worst, f"by finite differences in {made[0].precision}")
    if odd:
        yield Fact("NaN or infinite", ", ".join(odd), "the gradient or the difference")


def tables(stage: Backward) -> Iterator[Block]:
    """Yield where gradients stop, the chain rule, and what was added and checked."""
    if stage.gradient_stops:
        yield table(
            "Where gradients stop, from each variable to the loss",
            stage.gradient_stops,
            Column("variable", lambda stop: stop.variable, name=True),
            Column("way to the loss", lambda stop: " > ".join(stop.path[1:]), hanging=True),
            Column("stops at", lambda stop: stop.node, name=True),
            Column("line", lambda stop: place(stop.source)),
            Column("because", lambda stop: stop.reason, hanging=True),
        )
    if not stage.added_nodes:
        return
    yield from chain_rule_tables(stage)
    ops = {node.name: node.op for node in stage.nodes}
    yield table(
        "Forward ops in the order of differentiation (last first), and their gradient nodes",
        (gradient for gradient in stage.gradients[::-1] if gradient.nodes),
        Column("forward node", lambda row: row.forward, name=True),
        Column("op type", lambda row: row.op, spare=3),
        Column("gradient function", lambda row: (row.function or "").split(" ")[0], hanging=True),
        numbers("nodes", lambda row: f"{len(row.nodes):,}"),
        Column(
            "op types", lambda row: counted(ops[name] for name in row.nodes), elastic=True, spare=2
        ),
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
            numbers(
                "largest relative error",
                lambda check: "both 0" if check.zero else f"{check.max_relative_error:.1e}",
            ),
        )


# The chain rule: its equation, the derivatives, its steps, and the gradient graph's drawing

SCOPE = "gradients/"  # of all nodes that tf.gradients adds
DRAWN_WHOLE = 64  # gradient nodes; a larger graph has only the table of steps
FEW = 2  # derivatives that are facts; more have a table
STOPS = "TensorFlow's derivatives omit the paths through it; finite differences include them"
CUSTOM = "TensorFlow takes its result, right or wrong; finite differences do without it"
BACKWARDS = (
    "Going back from the loss, each op's gradient function turns the gradient with respect to its "
    "output into the gradients with respect to its inputs. A value that is used several times "
    "receives the sum of the gradients of its uses. One pass gives the gradients of all variables."
)
FACTORS = 5  # of a product that is written out; of a longer one the first and the last two


def chain_rule_facts(stage: Backward) -> Iterator[Fact]:
    """Yield the chain rule for this graph as an equation, the derivatives if they are few, and the
    nodes that have no formula, stop a gradient or have a custom one."""
    if stage.chain_rule:
        yield Fact("chain rule", equation(stage))
        yield Fact("L", loss(stage), detail=True)
    if len(stage.derivatives) <= FEW:
        for row in stage.derivatives:
            note = f"for the first batch; absolute error {difference(row)}"
            yield Fact(gradient_name(row.variable), f"{row.formula} = {first(row.value)}", note)
    without = {stop.variable for stop in stage.gradient_stops if stop.reason != ZEROS}
    have = stage.variable_count - len(without)
    missing = have - len(stage.derivatives)
    if stage.chain_rule and missing > 0:
        of = f"{missing:,} of {have:,} without a formula"
        yield Fact("derivatives", of, f"because {stage.no_formula}", detail=not stage.derivatives)
    links = stage.chain_rule
    for why, at in grouped((one.lacks, one.forward) for one in links if not one.formula).items():
        of = f"{len(at):,} of {len(links):,} without a formula, at {', '.join(dict.fromkeys(at))}"
        yield Fact("steps", of, f"because {why}", detail=True)
    if stage.stopped:
        yield Fact("gradient ends at", ", ".join(stage.stopped), STOPS)
    if stage.custom_gradients:
        yield Fact("custom gradient", ", ".join(stage.custom_gradients), CUSTOM)


def chain_rule_tables(stage: Backward) -> Iterator[Block]:
    """Yield the steps of the chain rule, the derivatives if they are many, and a small graph."""
    if any(link.formula for link in stage.chain_rule):
        yield BACKWARDS
        yield steps(stage.chain_rule)
    if len(stage.derivatives) > FEW:
        yield table(
            "The derivatives as formulas, and their values for the first batch",
            stage.derivatives,
            Column("variable", lambda row: row.variable),
            Column("derivative", lambda row: row.formula, hanging=True, least=34),
            numbers("value", lambda row: first(row.value)),
            numbers("absolute error", difference, 1),
        )
    if 0 < len(stage.gradient_nodes) <= DRAWN_WHOLE:
        yield drawing(stage)


def loss(stage: Backward) -> str:
    """Return `loss = mean(error)`; only the name if the chain begins at another node."""
    start = stage.chain_rule[0]
    known = stage.program.model.loss if stage.program else None
    name = start.forward if known is None else str(known.op.name)
    return f"{name} = {start.computes}" if start.computes and name == start.forward else name


def equation(stage: Backward) -> str:
    """Return `dL/dy = dL/d(mul) * d(mul)/dy`: the chain rule along the longest path; "" if there is
    none. If gradients also come back on other paths, it is only one of the terms."""
    if not stage.chain_rule:
        return ""
    way = chain_rule.path(stage.chain_rule, stage.chain_rule[0].forward)
    others = "" if all(link.alone for link in way) else " + ..."
    ends = [gradient_name(link.by) for link in way]
    tops = ["dL", *(end.removeprefix("dL/") for end in ends)]
    factors = [f"{top}/{bottom}" for top, bottom in pairwise(tops)]
    if len(factors) > FACTORS:
        factors = [factors[0], "...", *factors[-2:]]
    return f"{ends[-1]} = {' * '.join(factors)}{others}"


def with_respect_to(link: Link) -> str:
    """Return the input that the gradient of a step is with respect to: `y`, `y, in part` if other
    ops contribute, `y, as input 1` if the op takes it several times, and `rows of y`."""
    rows = "rows of " * link.gradient.startswith("rows of ")
    _, part, place = link.gradient.partition(f" by {link.forward}")
    return f"{rows}{link.by}" + (f", as input {place[1:-1]}" if place else ", in part" * bool(part))


def steps(links: Sequence[Link]) -> Table:
    """Return a row for each gradient; an op that returns several is named once."""
    firsts = {id(next(group)) for _, group in groupby(links, lambda link: link.forward)}

    def once(link: Link, text: str) -> str:
        return text if id(link) in firsts else ""

    return table(
        "The chain rule step by step, from the loss back to the variables",
        links,
        Column("forward op", lambda link: once(link, link.forward), name=True),
        Column("computes", lambda link: once(link, link.computes), hanging=True, spare=1),
        Column("hands back dL/d(...)", with_respect_to, name=True),
        Column("which is", lambda link: link.formula or "(no formula)", hanging=True, least=26),
    )


def first(number: Any) -> str:
    """Return a number, or the first of many."""
    many = False
    while isinstance(number, list):
        many = many or len(number) > 1
        number = number[0] if number else float("nan")
    return f"{number:.6g}{', ...' if many else ''}"


def difference(row: Derivative) -> str:
    return "unknown" if row.difference is None else f"{row.difference:.1e}"


def drawing(stage: Backward) -> Table:
    """Return the gradient graph, one node per line, from the loss to the variables; bookkeeping is
    dim. Nodes that only wait for others have no values and are not drawn."""
    purposes = {node.name: node for node in stage.gradient_nodes}
    shown = [node for node in stage.nodes if node.name in purposes and node.outputs]
    order = frontend.ordered([replace(node, control_inputs=()) for node in shown], ())
    rows = zip(frontend.draw(order), (purposes[node.name] for node in order), strict=True)

    def computes(node: GradientNode) -> str:
        unused = node.towards is not None and not node.used  # no variable needs that gradient
        return f"{'not used: ' * unused}{meaning(node)}"

    return table(
        "The gradient graph, from the loss down (-> a step towards that gradient, = that gradient; "
        "in brackets: bookkeeping)",
        rows,
        Column("", lambda row: row[0]),
        Column("node", lambda row: row[1].name.removeprefix(SCOPE), elastic=True, name=True),
        Column("computes", lambda row: computes(row[1]), elastic=True, least=40),
        most=DRAWN_WHOLE,
        drawing=True,
        tone=lambda row: "less" if row[1].bookkeeping else "",
    )


def meaning(node: GradientNode) -> str:
    """Return `x * dL/d(mul) -> dL/dy`; for bookkeeping its kind."""
    content = f"[{node.bookkeeping}]" if node.bookkeeping else node.formula or "no formula"
    if not node.towards:
        return content
    return f"{content} {'=' if node.complete else '->'} {node.towards}"
