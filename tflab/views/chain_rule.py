"""View of the chain rule: its equation for this graph, the derivatives, its steps, the drawing of
the gradient graph, and the bookkeeping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from tflab.records.blocks import Block, Column, Fact, Frame, Strip, Table, shortened
from tflab.records.gradients import Derivative, Link
from tflab.records.stages import Backward
from tflab.units import plural
from tflab.views import group_alike
from tflab.views.gradient_drawing import drawing
from tflab.views.words import LONGEST, counted

# gradient nodes; a larger graph has only the table of steps
DRAWN_WHOLE = 64
SPELLED_OUT = 6  # steps from the loss to a variable that are written out
NAMED = 5  # nodes in a sentence
EQUATION = 160  # characters of an equation that is on the one screen, which are two lines
FEW = 2  # derivatives that are facts; more have a table
NO_FORMULA = "tflab has no formula that was seen to give the values"
STOPS = (
    "derivatives leave out how the loss depends on variables through it, finite differences do not"
)
CUSTOM = (
    "TensorFlow takes what this function returns for the derivative, whether or not it is; finite "
    "differences do not"
)
BACKWARDS = (
    "Going back from the loss, each op's gradient function turns the gradient with respect to its "
    "output into the gradients with respect to its inputs. A value that is used several times "
    "receives the sum of the gradients of its uses. One pass gives the gradients of all variables."
)
FACTORS = 5  # of a product that is written out; of a longer one the first and the last


def facts(stage: Backward) -> Iterator[Fact]:
    """Yield the equation of the chain rule for this graph, the derivatives if they are few, and
    what is not written or not derived."""
    if equation_text := equation(stage):
        long = len(equation_text) > EQUATION
        yield Fact("chain rule", equation_text, detail=long)
        yield Fact("L", loss(stage), detail=True)
    if len(stage.derivatives) <= FEW:
        for row in stage.derivatives:
            note = f"for the first batch; finite differences {difference(row)}"
            yield Fact(total(row.variable), f"{row.formula} = {first(row.value)}", note)
    missing = stage.variable_count - len(stage.derivatives)
    if stage.chain_rule and missing > 0:
        of = f"{missing:,} of {plural(stage.variable_count, 'derivative')}"
        yield Fact("without formula", of, stage.no_formula or NO_FORMULA)
    steps_missing = sum(not link.formula for link in stage.chain_rule)
    if steps_missing:
        of = f"{steps_missing:,} of {plural(len(stage.chain_rule), 'step')}"
        yield Fact("without formula", of, NO_FORMULA, detail=True)
    if stage.stopped:
        yield Fact("stop_gradient", name_list(stage.stopped), STOPS)
    if stage.custom_gradients:
        yield Fact("custom gradient", name_list(stage.custom_gradients), CUSTOM)
    if stage.gradient_nodes:
        helpers = sum(bool(node.bookkeeping) for node in stage.gradient_nodes)
        of = f"{helpers:,} of {plural(len(stage.gradient_nodes), 'gradient node')}"
        yield Fact("bookkeeping", of, "only handle shapes, counts and order", detail=True)
    undecided = sum(not node.decided for node in stage.gradient_nodes)
    if undecided:
        yield Fact("perhaps bookkeeping", plural(undecided, "node"), "values unknown", detail=True)


def tables(stage: Backward) -> Iterator[Block]:
    """Yield the steps of the chain rule, the derivatives if they are many, and the gradient graph:
    drawn if it is small, and its bookkeeping."""
    written = [link for link in stage.chain_rule if link.formula]
    if written:
        yield BACKWARDS
        yield steps(written)
    if len(stage.derivatives) > FEW:
        yield derivatives(stage.derivatives)
    if 0 < len(stage.gradient_nodes) <= DRAWN_WHOLE:
        yield drawing(stage)
    if any(node.bookkeeping for node in stage.gradient_nodes):
        yield bookkeeping(stage)


def name_list(names: Sequence[str]) -> str:
    return group_alike.listed(names, NAMED)


def loss(stage: Backward) -> str:
    """`loss = mean(error)`; only the name if the chain begins at another node."""
    first = stage.chain_rule[0]
    known = stage.program.model.loss if stage.program else None
    name = first.forward if known is None else known.op.name
    return f"{name} = {first.computes}" if first.computes and name == first.forward else str(name)


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


def steps(links: Sequence[Link]) -> Table:
    """Return a row for each gradient; an op that returns several is named once."""
    firsts = {id(next(group)) for _, group in groupby(links, lambda link: link.forward)}

    def once(link: Link, text: str) -> str:
        return text if id(link) in firsts else ""

    return shortened(
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
        links,
        LONGEST,
    )


def derivatives(rows: Sequence[Derivative]) -> Table:
    return shortened(
        "The derivatives as formulas, and their values for the first batch",
        (
            Column("variable", lambda row: row.variable),
            Column("derivative", lambda row: row.formula, elastic=True, least=34),
            Column("value", lambda row: first(row.value), right=True),
            Column("finite differences", difference, spare=1),
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
    return "not compared" if row.difference is None else f"differ by {row.difference:.1e}"


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
    return Strip("Bookkeeping, by kind", frames)
