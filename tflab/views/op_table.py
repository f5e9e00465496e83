"""Op table: all columns for op statistics, and the tables of one batch size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tflab.analysis import row_labels
from tflab.records.blocks import Column, Table, dearest, numbers, table
from tflab.records.measured import Comparison, OpStats
from tflab.units import in_units, percent, size, three_digits, time

FLOPS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
CODE = 20  # characters of a line's code for which spare columns are omitted
NAMES = {"op": "type that ran", "node": "node", "layer": "layer", "line": "line"}


def text_or_blank(value: float | None, write: Callable[[float], str]) -> str:
    """Return the text of a value, empty if it is unknown."""
    return "" if value is None else write(value)


def last_parts(row: OpStats) -> str:
    """Return the last parts of the fused nodes' names, because the whole names do not fit."""
    return ", ".join(dict.fromkeys(name.rpartition("/")[2] for name in row.fused_from))


def a_step(row: OpStats, ns: float) -> str:
    """Return a part of a row's total as the mean time of a step; empty if it is 0."""
    return time(ns * row.step_ns / row.total_ns) if ns else ""


COLUMNS = {
    "type": Column("type that ran", lambda row: row.op, spare=1),
    "calls": numbers("calls", lambda row: f"{row.calls:,}"),
    "steps": numbers("steps", lambda row: f"{round(row.total_ns / (row.step_ns or 1)):,}"),
    "forward": numbers("forward", lambda row: a_step(row, row.forward_ns)),
    "backward": numbers("backward", lambda row: a_step(row, row.backward_ns)),
    "updates": numbers("updates", lambda row: a_step(row, row.update_ns)),
    "total": numbers("total", lambda row: time(row.total_ns)),
    "mean": numbers("mean", lambda row: time(row.mean_ns)),
    "median": numbers("median", lambda row: time(row.median_ns), 1),
    "step": numbers("a step", lambda row: time(row.step_ns)),
    "share": numbers("share", lambda row: percent(row.share)),
    "share of kind": numbers("share of kind", lambda row: percent(row.share)),
    "requested": numbers("requested", lambda row: size(row.requested_bytes), 2),
    "memory": numbers("memory", lambda row: size(row.requested_bytes), 2),
    "flops": numbers(
        "FLOPs", lambda row: text_or_blank(row.flops, lambda f: in_units(f, FLOPS).rstrip())
    ),
    "all flops": numbers("FLOPs", lambda row: text_or_blank(row.flops, "{:,}".format)),
    "gflops": numbers("GFLOP/s", lambda row: text_or_blank(row.gflops, three_digits)),
    "fused from": Column("fused into it", last_parts, elastic=True, least=15, spare=1),
}

# The columns of each table, besides the key of a row
NODES_MOST_EXPENSIVE = ("type", "calls", "total", "mean", "median", "share")
TIME_OF_CALLS = ("calls", "total", "mean", "share")
TIME_OF_STEPS = ("step", "share")
TIME_OF_LINES = ("forward", "backward", "updates", "step", "share")
WORK = ("requested", "flops", "gflops", "fused from")
ONE_NODE = ("calls", "steps", "median", "memory", "all flops")


def columns(names: Iterable[str], spare: Mapping[str, int] | None = None) -> Iterator[Column]:
    """Yield the columns of these names, some with another priority."""
    for name in names:
        column = COLUMNS[name]
        yield replace(column, spare=(spare or {}).get(name, column.spare))


def key(by: str) -> Column:
    """Return the column with the label of a row."""
    return Column(NAMES[by], lambda row: row.key, elastic=True, name=True)


def keys(by: str, code: Callable[[Any], str | None]) -> tuple[Column, ...]:
    """Return the columns with the label of a row and, for a source line, its code."""
    if by != "line":
        return (key(by),)
    return key(by), Column("code", lambda row: code(row) or "", elastic=True, least=CODE)


def columns_of(chosen: Iterable[Column], row_of: Callable[[Any], OpStats]) -> Iterator[Column]:
    """Yield the same columns for larger rows, in which `row_of` finds the op statistics."""

    def within(column: Column) -> Column:
        return replace(column, cell=lambda item: column.cell(row_of(item)))

    return map(within, chosen)


# Of one batch size


def costs(comparison: Comparison, batch: int, top: int) -> Table:
    """Return the times of the rows: per call, or per step for rows with ops of many kinds."""
    by, rows = comparison.by, comparison.tables.get(batch, ())
    order = "the most expensive first"
    stepwise = row_labels.unit(by) == "step"
    names: Sequence[str] = TIME_OF_STEPS if stepwise else TIME_OF_CALLS
    if by == "layer":
        most = f"the {top} most expensive, " if len(rows) > top else ""
        order = f"{most}in the order of execution"
    everything = (row for each in comparison.tables.values() for row in each)
    if by == "line" and any(row.backward_ns or row.update_ns for row in everything):
        names = TIME_OF_LINES
    return table(
        f"Batch {batch}: {'mean times of a step' if stepwise else 'times'}, {order}",
        ranked(by, rows, top, lambda row: row.total_ns),
        *keys(by, lambda row: row.code),
        *columns(names),
        most=top,
        tone=dearest(rows, lambda row: row.total_ns),
    )


def ranked(
    by: str, rows: Sequence[Any], top: int, time_of: Callable[[Any], float]
) -> Sequence[Any]:
    """Return the rows with the `top` most expensive ones before the others. Layers stay in the
    order of execution, among the first and among the others; other rows are already sorted."""
    if by != "layer" or len(rows) <= top:
        return rows
    times = sorted(map(time_of, rows), reverse=True)
    return sorted(rows, key=lambda row: time_of(row) < times[top - 1]) if top else rows


def work(comparison: Comparison, batch: int, top: int) -> Table:
    """Return the FLOPs and bytes of the rows, in the order of their times."""
    rows = ranked(comparison.by, comparison.tables.get(batch, ()), top, lambda row: row.total_ns)
    uneven = " (requested: of a full step; FLOPs: mean of all)" * bool(comparison.images % batch)
    return table(
        f"Batch {batch}: work per step, in the same order{uneven}",
        rows,
        *keys(comparison.by, lambda row: row.code),
        *(column for column in columns(WORK) if not rows or any(map(column.cell, rows))),
        most=top,
    )
