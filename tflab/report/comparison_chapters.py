"""The chapters of comparisons: batch sizes and configurations."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.compare import CONFIGURATIONS, DEFAULT, view
from tflab.exporters import plots
from tflab.records.blocks import Column, Table
from tflab.records.measured import Compared, Comparison
from tflab.report import contents
from tflab.report.contents import TOP, Method, Part
from tflab.units import percent, plural, time
from tflab.views import execution, op_table


def configurations(comparison: Comparison, seconds: int) -> Iterator[Part]:
    """`seconds` is the time spent on comparing them."""
    names = tuple(dict.fromkeys(row.config for row in comparison.configs))
    if not names:
        yield "No configuration was compared with the default."
        return
    yield from execution.load_line(comparison.load)
    yield (
        f"An untraced step of {comparison.phase}, with the runtime's defaults and with one "
        f"setting changed. All use the same weights and {comparison.unit}s."
    )
    yield Table(
        "What was changed",
        (
            Column("configuration", lambda name: name),
            Column("what it means", lambda name: CONFIGURATIONS[name].about, elastic=True),
        ),
        names,
    )
    yield from view.configs(comparison)
    yield configurations_recipe(comparison, names, seconds)


def configurations_recipe(comparison: Comparison, names: tuple[str, ...], seconds: int) -> Method:
    number = min(row.verdict.observations for row in comparison.configs if row.verdict)
    others = " ".join(name for name in names if name != DEFAULT)
    return Method(
        f"The comparison has {plural(number, 'observation')}, each in new processes that take "
        f"turns. After {plural(seconds, 'second')} no new observation started, except those that "
        "a verdict requires. The command takes longer and shows more.",
        f"{contents.comparing(comparison)} --configs {others}",
    )


def batch_sizes(comparison: Comparison) -> Iterator[Part]:
    yield table(comparison)
    yield contents.picture("batch_sizes", plots.batch_sizes.draw, comparison)
    if len(comparison.batch_sizes) > 1:
        yield view.side_by_side(comparison, TOP, comparison.batch_sizes)
    yield from view.findings(comparison)
    yield view.steps(comparison)
    yield contents.swept(comparison)


def table(comparison: Comparison) -> Table:
    """One row for each batch size, with what was found at it."""
    steps = comparison.steps
    return Table(
        "Findings at each batch size",
        (
            Column("batch", str, right=True),
            Column("median step", lambda size: time(steps[size].untraced_ns.median), right=True),
            Column(
                f"{comparison.unit}s a second",
                lambda size: f"{steps[size].mean_images_per_second:,.0f}",
                right=True,
            ),
            Column("found", lambda size: finding_at(comparison, size), elastic=True),
        ),
        comparison.batch_sizes,
    )


def finding_at(comparison: Comparison, size: int) -> str:
    """`From batch 1 to 16, a call of Conv2D takes 2.3 times as long for 16 times the images ...`,
    about the dearest op; only its share if it did not run as often in a step of the size before."""
    largest = max(
        (row for row in comparison.rows if size in row.cells),
        key=lambda row: row.cells[size].share,
    )
    cell, name = largest.cells[size], largest.key
    before = max((smaller for smaller in comparison.batch_sizes if smaller < size), default=0)
    smaller = largest.cells.get(before)
    calls = cell.calls / comparison.steps[size].steps
    if not smaller or smaller.calls / comparison.steps[before].steps != calls:
        return f"{name} takes {percent(cell.share)} of the op time, {time(cell.mean_ns)} a call."
    return (
        f"From batch {before} to {size}, a call of {name} takes "
        f"{cell.mean_ns / smaller.mean_ns:.1f} times as long for {size / before:g} times the "
        f"{comparison.unit}s; its share of the op time goes from {percent(smaller.share)} to "
        f"{percent(cell.share)}."
    )


def dearest(comparison: Comparison) -> Table:
    """The ops that took most of the time at the largest batch size."""
    size = comparison.batch_sizes[-1]
    rows = comparison.tables.get(size, ())
    of = f"{min(len(rows), TOP)} most expensive of {len(rows)} op types"
    return Table(
        f"The {of} at batch {size}, {comparison.phase}",
        (op_table.key("op"), *op_table.columns(("calls", "total", "mean", "share"))),
        rows[:TOP],
    )


def calls_at_each_size(comparison: Comparison) -> Table:
    """The time of each of the dearest ops at every batch size, as its calls times their mean."""

    def column(size: int) -> Column:
        def cell(row: Compared) -> str:
            stats = row.cells.get(size)
            if stats is None:
                return ""
            calls = f"{stats.calls:,} x {time(stats.mean_ns)}"
            return f"{calls} = {time(stats.total_ns)}, {percent(stats.share)}"

        return Column(f"batch {size}", cell, right=True)

    return Table(
        "Calls x mean = total, and share of the op time, at each batch size",
        (op_table.key("op"), *map(column, comparison.batch_sizes)),
        tuple(view.in_order(comparison, TOP)[:TOP]),
    )
