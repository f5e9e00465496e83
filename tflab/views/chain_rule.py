"""View of the chain rule: its equation for this graph, its steps, the derivatives, the drawing of
the gradient graph, and the bookkeeping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from tflab.records.blocks import Block, Column, Frame, Strip, Table, shortened
from tflab.records.gradients import Derivative, Link
from tflab.records.stages import Backward
from tflab.units import plural
from tflab.views import numbered
from tflab.views.gradient_drawing import drawing
from tflab.views.words import LONGEST, counted

# gradient nodes; a larger graph has only the table of steps
DRAWN_WHOLE = 64
SPELLED_OUT = 6  # steps from the loss to a variable that are written out
NAMED = 5  # nodes in a sentence
NO_FORMULA = "tflab has no formula that was seen to give the values"
FACTORS = 5  # of a product that is written out; of a longer one the first and the last


def opening(stage: Backward) -> Iterator[Block]:
    """The equation of the chain rule for this graph, and its steps."""
    from tflab.analysis import chain_rule  # `--help` does not need NumPy

    if not stage.chain_rule:
        return
    first = stage.chain_rule[0]
    yield from sentences(stage, chain_rule.path(stage.chain_rule, first.forward))
    yield from steps(stage.chain_rule)
    if stage.derivatives:
        yield derivatives(stage.derivatives)
    others = stage.variable_count - len(stage.derivatives)
    if others > 0:
        yield (
            f"{others:,} of {plural(stage.variable_count, 'derivative')} "
            f"{'is' if others == 1 else 'are'} not written as a formula: "
            f"{stage.no_formula or NO_FORMULA}."
        )
    yield from exceptions(stage)


def exceptions(stage: Backward) -> Iterator[str]:
    """Where the program itself sets the gradient."""
    if stage.stopped:
        through = "it" if len(stage.stopped) == 1 else "them"
        yield (
            f"stop_gradient ends gradients at {name_list(stage.stopped)}: the derivatives "
            f"leave out how the loss depends on variables through {through}. "
            "Finite differences include it."
        )
    if stage.custom_gradients:
        have = "has" if len(stage.custom_gradients) == 1 else "have"
        yield (
            f"{name_list(stage.custom_gradients)} {have} a custom gradient: TensorFlow takes what "
            "that function returns for the derivative, whether or not it is the derivative."
        )


def differs_by_design(stage: Backward) -> str:
    """` (the graph has stop_gradient, which they ignore)`, where gradients and differences are not
    of the same function. TensorFlow's own functions contain stop_gradient too."""
    if all(check.agrees for check in stage.gradient_checks):
        return ""
    causes = [
        *["stop_gradient"] * bool(stage.stopped),
        *["a custom gradient"] * bool(stage.custom_gradients),
    ]
    return f" (the graph has {' and '.join(causes)}, which they ignore)" if causes else ""


def name_list(names: Sequence[str]) -> str:
    return numbered.listed(names, NAMED)


def equation(stage: Backward) -> str:
    """`dL/dy = dL/d(mul) * d(mul)/dy`: the chain rule along the longest path; "" if there is
    none."""
    from tflab.analysis import chain_rule  # `--help` does not need NumPy

    if not stage.chain_rule:
        return ""
    return equation_of(chain_rule.path(stage.chain_rule, stage.chain_rule[0].forward))


def equation_of(way: Sequence[Link]) -> str:
    """The equation; if gradients also come back on other paths, only one of its terms."""
    others = "" if all(link.alone for link in way) else " + ..."
    return f"{total(way[-1].by)} = {chain(names_on(way))}{others}"


def names_on(way: Sequence[Link]) -> list[str]:
    """The stations of a path: its ops if they are few, otherwise its layers."""
    return [link.by for link in way] if len(way) <= SPELLED_OUT else layers(way)


def sentences(stage: Backward, way: Sequence[Link]) -> Iterator[str]:
    first = way[0]
    known = stage.program.model.loss if stage.program else None
    loss = first.forward if known is None else known.op.name
    formula = f" = {first.computes}" if first.computes and loss == first.forward else ""
    yield f"The chain rule, for this graph: {equation_of(way)}. L is {loss}{formula}."
    yield (
        "Going back from the loss, each op's gradient function turns the gradient with respect to "
        "its output into the gradients with respect to its inputs. One pass gives the gradients of "
        "all variables."
    )
    if any(" by " in link.gradient for link in way):
        yield ("A value that is used several times receives the sum of the gradients of its uses.")


def total(name: str) -> str:
    return f"dL/{differential(name)}"


def differential(name: str) -> str:
    """`dy`; `d(mul)` if the name needs brackets to be readable."""
    return f"d{name}" if name.isalpha() and len(name) == 1 else f"d({name})"


def chain(names: Sequence[str]) -> str:
    """`dL/d(error) * d(error)/d(add) * d(add)/dy`; of a long one the first and the last factors."""
    before = ["L", *names]
    factors = [
        f"{'dL' if name == 'L' else differential(name)}/{differential(following)}"
        for name, following in zip(before, names, strict=False)
    ]
    if len(factors) > FACTORS:
        factors[FACTORS - 2 : -2] = ["..."]
    return " * ".join(factors)


def layers(way: Sequence[Link]) -> list[str]:
    """The tensors by which a path enters another name scope, and the variable at the end."""
    scopes = [link.forward.rpartition("/")[0] or link.forward for link in way]
    return [
        link.by
        for link, scope, following in zip(way, scopes, [*scopes[1:], None], strict=True)
        if scope != following
    ]


def with_respect_to(link: Link) -> str:
    """The input of a step, as far as the gradient is that of it: `y`, `y, in part` if other ops
    contribute, `y, as input 1` if the op takes it several times, and `rows of y`."""
    rows = "rows of " * link.gradient.startswith("rows of ")
    _, part, place = link.gradient.partition(f" by {link.forward}")
    return f"{rows}{link.by}" + (f", as input {place[1:-1]}" if place else ", in part" * bool(part))


def steps(links: Sequence[Link]) -> Iterator[Block]:
    """A row for each gradient that a variable needs and that has a formula; an op that returns
    several is named once."""
    written = [link for link in links if link.formula]
    first = {id(next(group)) for _, group in groupby(written, lambda link: link.forward)}

    def once(link: Link, text: str) -> str:
        return text if id(link) in first else ""

    if written:
        yield shortened(
            "The chain rule step by step, from the loss back to the variables",
            (
                Column("forward op", lambda link: once(link, link.forward), name=True),
                Column(
                    "computes",
                    lambda link: once(link, link.computes),
                    elastic=True,
                    least=20,
                    spare=1,
                ),
                Column("hands back dL/d(...)", with_respect_to, name=True),
                Column("which is", lambda link: link.formula, elastic=True, least=34),
            ),
            written,
            LONGEST,
        )
    if others := len(links) - len(written):
        yield (
            f"{others:,} of {plural(len(links), 'step')} {'is' if others == 1 else 'are'} not "
            f"written as a formula: {NO_FORMULA}."
        )


def derivatives(rows: Sequence[Derivative]) -> Table:
    return shortened(
        "The derivatives as formulas, and their values for the first batch",
        (
            Column("variable", lambda row: row.variable),
            Column("derivative", lambda row: row.formula, elastic=True, least=34),
            Column("value", lambda row: first(row.value), right=True),
            Column("finite differences", difference, right=True, spare=1),
        ),
        rows,
        LONGEST,
    )


def first(number: Any) -> str:
    """A number, or the first of many."""
    many = False
    while isinstance(number, list):
        many = many or len(number) > 1
        number = number[0] if number else float("nan")
    return f"{number:.6g}{', ...' if many else ''}"


def difference(row: Derivative) -> str:
    return "none" if row.difference is None else f"differ by {row.difference:.1e}"


def nodes(stage: Backward) -> Iterator[Block]:
    """The gradient graph, drawn if it is small, and the nodes that add nothing to the formula."""
    if not stage.gradient_nodes:
        return
    if len(stage.gradient_nodes) <= DRAWN_WHOLE:
        yield drawing(stage)
    yield bookkeeping(stage)


def bookkeeping(stage: Backward) -> Strip:
    """The kinds of bookkeeping, with their reasons and their number of nodes by type."""
    from tflab.analysis.gradient_nodes import WHY  # the same

    types = {node.name: node.op for node in stage.nodes}
    kinds = Counter(node.bookkeeping for node in stage.gradient_nodes if node.bookkeeping)
    frames = tuple(
        Frame(
            kind,
            plural(count, "node")
            + ": "
            + counted(types[n.name] for n in stage.gradient_nodes if n.bookkeeping == kind),
            (WHY[kind],),
        )
        for kind, count in kinds.most_common()
        if kind
    )
    total = plural(len(stage.gradient_nodes), "node")
    unknown = sum(not node.decided for node in stage.gradient_nodes)
    whose = "its" if unknown == 1 else "their"
    also = f"; {unknown:,} more may be bookkeeping: {whose} values are unknown" if unknown else ""
    return Strip(f"Bookkeeping: {sum(kinds.values())} of {total}{also}", frames)
