"""Abreast: several ways to run a step, side by side, in as many tables as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TypeVar

from tflab.records.blocks import Column, Table
from tflab.records.measured import ConfigTimes
from tflab.records.verdicts import Verdict
from tflab.units import time

BESIDE = 2  # other ways that fit next to the default

Item = TypeVar("Item")


def steps_abreast(title: str, rows: Sequence[ConfigTimes]) -> Iterator[Table]:
    """The untraced step at each batch size: the default, and next to it a few other ways per
    table."""
    measured = {(row.batch_size, row.config): row for row in rows}
    usual, *others = dict.fromkeys(row.config for row in rows) or [""]

    def column(config: str) -> Column:
        def cell(batch: int) -> str:
            row = measured[batch, config]
            step = time(row.untraced_ns.median)
            return f"{step} ({ratio_text(row.verdict)})" if row.verdict else step

        return Column(config, cell, right=True)

    for part in chunks(others, BESIDE):
        yield Table(
            title,
            (Column("batch", str, right=True), *map(column, (usual, *part))),
            tuple(dict.fromkeys(row.batch_size for row in rows)),
        )


def ratio_text(verdict: Verdict) -> str:
    """`1.35 x [1.30, 1.40]`, or `alike` or `cannot tell` with the interval."""
    if verdict.word in ("slower", "faster"):
        return f"{verdict.ratio:.2f} x [{verdict.low:.2f}, {verdict.high:.2f}]"
    if verdict.word != "withheld" and isfinite(verdict.low) and isfinite(verdict.high):
        return f"{verdict.word} [{verdict.low:.2f}, {verdict.high:.2f}]"
    return verdict.word


def chunks(items: Sequence[Item], count: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + count] for start in range(0, len(items), count))
