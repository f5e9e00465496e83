"""View of backward: the nodes that each gradient function made, and whether the gradients are
right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite

from tflab.records.blocks import Block, Column, Table, shortened
from tflab.records.stages import Backward, Gradient, GradientCheck
from tflab.units import plural
from tflab.views import chain_rule, frontend, numbered
from tflab.views.words import LONGEST, counted


def blocks(stage: Backward) -> Iterable[Block]:
    if stage.inferred:
        yield "The graph came with gradients. Nothing was added."
        return
    if not stage.added_nodes:
        why = stage.program.model.not_trained if stage.program else ""
        why = why or "The model has no loss or no optimiser, and its graph holds no gradients."
        yield f"{why} There is nothing to differentiate, so nothing was added."
        return
    yield from chain_rule.opening(stage)
    node_count = sum(len(gradient.nodes) for gradient in stage.gradients)
    yield (
        f"{plural(len(stage.added_nodes), 'node')} added to "
        f"{plural(len(stage.gradients), 'forward node')}: {node_count:,} from gradient functions, "
        f"{len(stage.shared_nodes):,} shared by several forward ops, and "
        f"{len(stage.update_nodes):,} from the optimiser. Nothing is computed yet."
    )
    yield from chain_rule.nodes(stage)
    yield derived(stage)
    yield reasons(stage.gradients)
    new = [function for function in stage.functions if function.name in stage.added_functions]
    if new:
        yield frontend.function_table("Functions added for the gradients", new)
    yield from gradient_checks(stage)
    if stage.processed:
        yield (
            f"What the optimiser gets for {chain_rule.name_list(stage.processed)} is not the "
            f"gradient of the loss itself: other nodes change it first."
        )


def derived(stage: Backward) -> Table:
    """Ops that are numbered alike and have like gradients are one row if there are many ops."""
    types = {node.name: node.op for node in stage.nodes}
    kinds = {g.forward: counted(types[name] for name in g.nodes) for g in stage.gradients}
    rows = [[gradient] for gradient in stage.gradients[::-1] if gradient.nodes]
    groups = numbered.groups(
        (gradient for (gradient,) in rows),
        lambda g: g.forward,
        lambda g: (g.op, g.function, kinds[g.forward]),
    )
    table = shortened(
        "Forward ops in the order of differentiation (last first), and their gradient nodes",
        (
            Column("forward node", lambda row: numbered.label([g.forward for g in row])),
            Column("type", lambda row: row[0].op),
            Column(
                "gradient function",
                lambda row: (row[0].function or "").partition(" ")[0],
                spare=1,
            ),
            Column("nodes", lambda row: nodes_of(row), right=True),
            Column("types", lambda row: kinds[row[0].forward], elastic=True, least=28, spare=2),
        ),
        groups if len(rows) > LONGEST else rows,
        LONGEST,
    )
    return replace(table, everything=lambda: rows) if len(rows) > LONGEST else table


def nodes_of(alike: Sequence[Gradient]) -> str:
    """`5`, or `5 each`"""
    return f"{len(alike[0].nodes):,}{' each' if len(alike) > 1 else ''}"


def reasons(gradients: Iterable[Gradient]) -> Table:
    """Forward ops without gradient nodes, by reason."""
    names: dict[str, list[str]] = {}
    for gradient in gradients:
        if gradient.reason:
            names.setdefault(gradient.reason, []).append(gradient.forward)
    return Table(
        "Forward ops without gradient nodes, and why",
        (
            Column("because", lambda row: row[0]),
            Column("nodes", lambda row: str(len(row[1])), right=True),
            Column("which", lambda row: numbered.listed(row[1], LONGEST), elastic=True),
        ),
        tuple(names.items()),
    )


def not_finite(stage: Backward) -> str:
    """The variables whose check has no result, as a sentence; "" if all have one."""
    odd = [one.tensor for one in stage.gradient_checks if not isfinite(one.max_relative_error)]
    if not odd:
        return ""
    return f"the gradient or the difference of {chain_rule.name_list(odd)} is NaN or infinite"


def error(check: GradientCheck) -> str:
    if check.zero:
        return "both 0"
    known = isfinite(check.max_relative_error)
    return f"{check.max_relative_error:.1e}" if known else "not finite"


def worst(checks: Iterable[GradientCheck]) -> GradientCheck | None:
    """The check with the largest error, among those of gradients that are not 0."""
    others = [check for check in checks if not check.zero]
    return max(others, key=lambda check: check.max_relative_error, default=None)


def result(stage: Backward) -> str:
    """`largest relative error 1.2e-06, 2 gradients 0 within rounding`"""
    checks = stage.gradient_checks
    zeros = sum(check.zero for check in checks)
    largest = worst(checks)
    if largest is None:
        return f"{'it is' if zeros == 1 else 'all are'} 0 within rounding"
    also = f", {plural(zeros, 'gradient')} 0 within rounding" if zeros else ""
    return f"largest relative error {error(largest)}{also}"


def zeros(checks: Iterable[GradientCheck]) -> str:
    """The variables whose gradient is 0, as a sentence; "" if there are none."""
    names = [check.tensor for check in checks if check.zero]
    if not names:
        return ""
    be = "is" if len(names) == 1 else "are"
    return (
        f"The gradient{'s' * (len(names) > 1)} of {chain_rule.name_list(names)} {be} 0 within "
        f"rounding, and so {be} the difference{'s' * (len(names) > 1)}."
    )


def gradient_checks(stage: Backward) -> Iterable[Block]:
    if not stage.gradient_checks:
        yield f"Gradients were not checked: {stage.unchecked}."
        return
    yield shortened(
        "Gradients compared with finite differences in "
        f"{stage.gradient_checks[0].precision} on {stage.data}, at "
        f"weights slightly off the initial ones",
        (
            Column("variable", lambda check: check.tensor),
            Column("elements", lambda c: f"{c.elements} of {c.size:,}", right=True),
            Column("largest relative error", error, right=True),
        ),
        stage.gradient_checks,
        LONGEST,
    )
    largest = worst(stage.gradient_checks)
    sentences = [zeros(stage.gradient_checks)]
    if odd := not_finite(stage):
        sentences = [f"T{odd[1:]}.", *sentences]
    elif largest:
        relative = f"The largest relative error is {error(largest)}, in {largest.tensor}."
        sentences = [relative, *sentences]
    yield unchecked(stage) + " ".join(filter(None, sentences))
    if ignored := chain_rule.differs_by_design(stage):
        yield f"The error may come from finite differences{ignored}."


def unchecked(stage: Backward) -> str:
    """How many variables were not checked, which, and why."""
    if len(stage.gradient_checks) >= stage.variable_count:
        return ""
    names: dict[str, list[str]] = {}
    for name, reason in stage.unchecked_variables:
        names.setdefault(reason, []).append(name)
    reasons = "; ".join(f"{chain_rule.name_list(n)} ({reason})" for reason, n in names.items())
    checked = f"Checked: {len(stage.gradient_checks)} of {stage.variable_count:,} variables"
    return f"{checked}{f', not {reasons}' if reasons else ''}. "
