"""View of flowed derivatives: the derivatives of the backward stage, and their values in the
recorded step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tflab.records.blocks import Block, Column, shortened
from tflab.records.gradients import FlowedDerivative
from tflab.records.graph import graph_def_name
from tflab.views.chain_rule import first, total
from tflab.views.words import LONGEST

AT_RANDOM = (
    "The variables start at random values that differ between sessions, so these derivatives "
    "cannot be compared with those of the backward stage."
)


def blocks(rows: Sequence[FlowedDerivative]) -> Iterable[Block]:
    """The two values of each derivative side by side, and whether they agree."""
    if not rows:
        return
    from tflab.analysis.flowed import agrees  # NumPy, which `--help` does not need

    yield shortened(
        "The derivatives: as the backward stage computed them, and in one recorded step",
        (
            Column("variable", lambda row: row.variable, name=True),
            Column("derivative", lambda row: row.formula, elastic=True, least=26, spare=2),
            Column("computed", lambda row: first(row.value), right=True),
            Column("flowed", flowed, right=True),
            Column("differ by", difference, right=True),
            Column("held by", holder, elastic=True, name=True, spare=1),
        ),
        rows,
        LONGEST,
    )
    compared = [row for row in rows if row.difference is not None]
    if any(row.flowed is not None for row in rows) and not compared:
        yield AT_RANDOM
    yield from (difference_sentence(row) for row in compared if not agrees(row))


def flowed(row: FlowedDerivative) -> str:
    return "not by itself" if row.flowed is None else first(row.flowed)


def difference(row: FlowedDerivative) -> str:
    return "" if row.difference is None else f"{row.difference:.1e}"


def holder(row: FlowedDerivative) -> str:
    return graph_def_name(row.tensor or "")


def difference_sentence(row: FlowedDerivative) -> str:
    """A derivative with another value in the recorded step."""
    return (
        f"{total(row.variable)} differs by more than rounding: the backward stage computed "
        f"{first(row.value)}, and {holder(row)} had {first(row.flowed)} in the recorded step."
    )
