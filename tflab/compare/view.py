"""The story of a comparison: the same ops at several batch sizes, side by side, then one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from tflab.analysis import batch_fit
from tflab.records import Cell, Compared, Comparison, Fit, OpTotal, StepTimes
from tflab.records.blocks import Block, Column, Frame, Strip, Table, shortened
from tflab.units import percent, plural, size, time
from tflab.views.op_table import NAMES, costs, legend, work

BRIEF = 10  # rows of each table
SIZES_ABREAST = 3  # that fit beside a name and a fit
CONFIGS_ABREAST = 4  # that fit beside `default`
LEVEL_NS = 0.5  # an image; a fit that rises less is not told

Item = TypeVar("Item")


def tell(found: Comparison, top: int) -> Iterable[Block]:
    """All that the command prints; its option says how many rows of a table are shown."""
    for block in blocks(found, top):
        yield replace(block, option="--top") if isinstance(block, Table) else block


def brief(found: Comparison) -> Iterable[Block]:
    """The same with the first rows of each table, for a notebook."""
    return tell(found, BRIEF)


def blocks(found: Comparison, top: int) -> Iterator[Block]:
    if found.interrupted:
        yield "Partial: interrupted, what follows was measured until then."
    if found.failure:
        yield f"Partial: what follows was measured until a step failed. {found.failure}"
    yield opening(found)
    yield steps(found)
    yield units(found)
    for table in (in_all, side_by_side, an_image):
        for sizes in chunks(found.batch_sizes, SIZES_ABREAST):
            yield table(found, top, sizes)
    yield from configs(found)
    if found.findings:
        yield Strip("Findings, each computed from the tables", (Frame("", "", found.findings),))
    for batch in found.tables:
        yield costs(found, batch, top)
        yield work(found, batch, top)
    yield legend(found)
    yield cold(found)


def opening(found: Comparison) -> str:
    upto = "up to " if found.interrupted or found.failure else ""
    traced = (
        f" One step in {found.trace_every:,} was traced: calls, totals and all that is told of ops "
        "are those of the traced steps."
        if found.trace_every > 1
        else ""
    )
    off = f" Graph passes switched off: {', '.join(found.without)}." if found.without else ""
    return (
        f"{found.model}, {found.phase}, {upto}{plural(found.images, 'image')} of {found.data} at "
        "each batch size, each worked on untraced and traced in turn. Warm: the first "
        f"{found.warmup} steps of each batch size are not counted.{traced}{off}"
    )


def steps(found: Comparison) -> Table:
    def traced(row: tuple[int, StepTimes]) -> str:
        some, all_ = row[1].steps, row[1].untraced_steps
        return f"{some:,}" if some == all_ else f"{some:,} of {all_:,}"

    return Table(
        "Steps: median, and the middle eight tenths",
        (
            Column("batch", lambda row: str(row[0]), right=True),
            Column("traced steps", traced, right=True),
            Column("untraced", lambda row: time(row[1].untraced_ns.median), right=True),
            Column("p10", lambda row: time(row[1].untraced_ns.p10), right=True),
            Column("p90", lambda row: time(row[1].untraced_ns.p90), right=True),
            Column("images a second", lambda row: f"{row[1].images_per_second:,.0f}", right=True),
            Column("traced", lambda row: time(row[1].traced_ns.median), right=True),
            Column("its ops", lambda row: time(row[1].ops_ns), right=True),
            Column("memory peak", lambda row: size(row[1].peak_bytes), right=True),
        ),
        tuple(found.steps.items()),
    )


def units(found: Comparison) -> str:
    """What each number of `steps` is of: a median and a rate are not of the same time."""
    return (
        "Untraced and traced: the median step, with p10 and p90 of the untraced ones. Images a "
        "second: all images over the time of all untraced steps, slow ones among them, so it is "
        "not the batch size over the median. Its ops: the time of all ops in a traced step, mean."
    )


# All batch sizes


def in_all(found: Comparison, top: int, sizes: Sequence[int]) -> Table:
    """All calls of a row together."""

    def cell(cell: Cell) -> str:
        return f"{time(cell.total_ns)} ({cell.calls:,})"

    title = "In all at each batch size (and the number of calls)"
    return shortened(title, (key(found), *columns(sizes, cell)), found.rows, top)


def an_image(found: Comparison, top: int, sizes: Sequence[int]) -> Table:
    """A row's share of an image."""

    def cell(cell: Cell) -> str:
        return f"{time(cell.ns_per_image)} ({percent(cell.share)})"

    title = "An image at each batch size (and its share of the time of all ops)"
    return shortened(title, (key(found), *columns(sizes, cell)), found.rows, top)


def columns(sizes: Iterable[int], say: Callable[[Cell], str]) -> Iterator[Column]:
    for batch in sizes:

        def cell(row: Compared, batch: int = batch) -> str:
            return say(row.cells[batch]) if batch in row.cells else ""

        yield Column(f"batch {batch}", cell, right=True)


def side_by_side(found: Comparison, top: int, sizes: Sequence[int] = ()) -> Table:
    """A call at every batch size, and how much longer it takes than at the one before.

    Where the ops of a row are of many kinds, it is a step instead.
    """
    before = dict(pairwise(reversed(found.batch_sizes)))
    times = {row.key: unit_times(found, row) for row in found.rows}
    fits = {key: rising(batch_fit.line(by_size)) for key, by_size in times.items()}

    def column(batch: int) -> Column:
        def cell(row: Compared) -> str:
            if batch not in row.cells:
                return ""
            mean, smaller = times[row.key][batch], times[row.key].get(before.get(batch, 0))
            return f"{time(mean)} ({mean / smaller:.1f} x)" if smaller else time(mean)

        return Column(f"batch {batch}", cell, right=True)

    def fit(row: Compared) -> str:
        line = fits[row.key]
        return f"{time(line.fixed_ns)} + {time(line.per_image_ns)}" if line else ""

    def error(row: Compared) -> str:
        line = fits[row.key]
        return percent(line.error) if line else ""

    sizes = sizes or found.batch_sizes
    title = f"A {batch_fit.unit(found.by)} at each batch size (and its ratio to the one before)"
    fitted: tuple[Column, ...] = ()
    if sizes[-1:] == found.batch_sizes[-1:] and any(fits[row.key] for row in found.rows[:top]):
        title += "; fixed cost + cost an image"
        fitted = (Column("fit", fit, right=True), Column("error", error, right=True))
    return shortened(title, (key(found), *map(column, sizes), *fitted), found.rows, top)


def unit_times(found: Comparison, row: Compared) -> dict[int, float]:
    """By batch size, the time of a row that is shown."""
    return {
        size: batch_fit.unit_ns(cell, found.steps[size], found.by)
        for size, cell in row.cells.items()
    }


def rising(line: Fit | None) -> Fit | None:
    """No image costs less than nothing: a line that falls is that of something else. One that is
    all but level would be shown with `+ 0 ns`."""
    return line if line and line.per_image_ns >= LEVEL_NS else None


def key(found: Comparison) -> Column:
    return Column(NAMES[found.by], lambda row: row.key, elastic=True, least=24, name=True)


def configs(found: Comparison) -> Iterator[Table]:
    """The untraced step with a column for each configuration of the runtime."""
    measured = {(row.batch_size, row.config): row for row in found.configs}
    others = list(dict.fromkeys(row.config for row in found.configs))[1:]

    def column(config: str) -> Column:
        def cell(batch: int) -> str:
            row = measured[batch, config]
            against = f"{row.ratio:.2f} x" if row.significant else "noise"
            step = time(row.untraced_ns.median)
            return step if config == "default" else f"{step} ({against})"

        return Column(config, cell, right=True)

    for part in chunks(others, CONFIGS_ABREAST):
        yield Table(
            "The untraced step under other configurations, in turn (ratio to default, or noise)",
            (Column("batch", str, right=True), *map(column, ("default", *part))),
            tuple(dict.fromkeys(row.batch_size for row in found.configs)),
        )


def chunks(items: Sequence[Item], count: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + count] for start in range(0, len(items), count))


def cold(found: Comparison) -> Table:
    """The very first step beside a warm one: this is not what an op costs."""
    batch, warm = next(iter(found.steps.items()))

    def usual_ns(row: OpTotal) -> float | None:
        # In a loop a node runs more than once in a step.
        known = found.warm_ns.get(row.name)
        return None if known is None else row.calls * known

    def usual(row: OpTotal) -> str:
        known = usual_ns(row)
        return "" if known is None else time(known)

    def ratio(row: OpTotal) -> str:
        known = usual_ns(row)
        return f"{row.self_ns / known:,.0f} x" if known else ""

    return Table(
        f"Cold: the first step of all, at batch {batch}, took {time(found.cold_step_ns)}, a warm "
        f"one {time(warm.traced_ns.median)}; kernels and memory were set up",
        (
            Column("node", lambda row: row.name, elastic=True, least=30, name=True),
            Column("type that ran", lambda row: row.op),
            Column("first run", lambda row: time(row.self_ns), right=True),
            Column("warm", usual, right=True),
            Column("ratio", ratio, right=True),
        ),
        found.cold,
    )
