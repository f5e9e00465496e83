"""View of a comparison: ops at several batch sizes, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tflab.analysis import row_labels, verdicts
from tflab.compare import WITHOUT
from tflab.compare.findings import largest_share
from tflab.records.blocks import Block, Column, Table, dearest, numbers, sentences, table
from tflab.records.graph import grouped
from tflab.records.measured import Change, Compared, Comparison, StepTimes
from tflab.units import plural, size, three_digits, time
from tflab.views import execution, op_table
from tflab.views.op_table import costs, text_or_blank, work
from tflab.views.words import control_text, ratio_text

CONCLUSIONS = 4  # sentences on one screen
FINDINGS = "Findings, computed from the tables"
# The columns of one batch size beside others, and how spare they are
OF_CALLS = {"calls": 3, "total": 2, "mean": 0, "share": 1}
OF_STEPS = {"step": 0, "share": 1}


def blocks(comparison: Comparison, top: int = 10, full: bool = True) -> Iterable[Block]:
    """Yield the blocks of a comparison, in full or for one screen; `--top` sets rows of a table."""
    for block in parts(comparison, top, full):
        yield replace(block, option="--top") if isinstance(block, Table) else block


def parts(comparison: Comparison, top: int, full: bool) -> Iterator[Block]:
    """Yield the conclusions, the steps and the most expensive rows; if `full`, every table."""
    sizes = comparison.batch_sizes
    yield headline(comparison)
    if said := " ".join(decided(comparison)):
        yield said
    yield from execution.load_line(comparison.load)
    yield from execution.partial(comparison.interrupted, comparison.failure)
    yield protocol(comparison)
    yield from conclusions(comparison, full)
    yield steps(comparison)
    yield from configs(comparison)
    yield from passes(comparison)
    if len(sizes) > 1:
        yield side_by_side(comparison, top) if full else at_each_size(comparison, top)
    for batch in comparison.tables if full or len(sizes) == 1 else ():
        yield costs(comparison, batch, top)
        if full:
            yield work(comparison, batch, top)
    if not full:
        apart = len(sizes) > 1 and row_labels.unit(comparison.by) == "call"
        full_has = " has calls and totals" * apart
        yield f"More: --full{full_has}; --by op, node, layer or line; docs/reference.md."


def conclusions(comparison: Comparison, full: bool) -> Iterator[Table]:
    """Yield why a step is slow, and the findings; for one screen, only the first of both."""
    reasons, found = [each.sentence for each in comparison.diagnosis], comparison.findings
    shown = found if full else (*reasons[:1], *found)[:CONCLUSIONS]
    if full and reasons:
        yield sentences("Why a step is slow (largest cost first)", reasons)
    if shown:
        yield sentences(FINDINGS, shown)


def headline(comparison: Comparison) -> str:
    """Return which batch size processes most images a second."""
    first, *others = comparison.batch_sizes
    rates = {size: comparison.steps[size].mean_images_per_second for size in (first, *others)}
    best = max(rates, key=rates.__getitem__)
    beside = f", {three_digits(rates[best] / rates[first])} times as many as batch size {first}"
    if best == first:
        beside = ", more than the larger batch sizes" if others else ""
    rate = f"{rate_text(rates[best])} {comparison.unit}s a second"
    return f"{comparison.model}: batch size {best} processes {rate}{beside}."


def rate_text(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else three_digits(rate)


def protocol(comparison: Comparison) -> str:
    """Return how the steps were measured."""
    images = f"{'up to ' * comparison.partial}{plural(comparison.images, comparison.unit)}"
    tasks = (
        f" A step ran over {plural(comparison.tasks, 'task')}. Times of ops are without the "
        "tensors on the wire."
    )
    return (
        f"Steps of {comparison.phase} at each batch size, on {images} of {comparison.data}: "
        "untraced and traced steps alternate. All times are of warm steps: the first "
        f"{comparison.warmup} of each, which are cold, are not counted."
        f"{tasks * bool(comparison.tasks)}"
    )


def steps(comparison: Comparison) -> Table:
    def traced(row: tuple[int, StepTimes]) -> str:
        some, all_ = row[1].steps, row[1].untraced_steps
        return f"{some:,}" if some == all_ else f"{some:,} of {all_:,}"

    return table(
        f"Steps of each batch size: medians, and {comparison.unit}s a second of all untraced steps",
        comparison.steps.items(),
        numbers("batch", lambda row: str(row[0])),
        numbers("traced steps", traced),
        numbers("untraced", lambda row: time(row[1].untraced_ns.median)),
        numbers("p10", lambda row: time(row[1].untraced_ns.p10), 3),
        numbers("p90", lambda row: time(row[1].untraced_ns.p90), 3),
        numbers(
            f"{comparison.unit}s a second", lambda row: rate_text(row[1].mean_images_per_second)
        ),
        numbers("traced", lambda row: time(row[1].traced_ns.median), 1),
        numbers("memory peak", lambda row: size(row[1].peak_bytes), 2),
    )


# All batch sizes


def at_each_size(comparison: Comparison, top: int) -> Table:
    """Return the times and the share of each op, or group of ops, at every batch size."""

    def column(name: str, spare: int, batch: int) -> Column:
        def cell(row: Compared) -> str:
            return shown.cell(row.cells[batch]).removesuffix(" %") if batch in row.cells else ""

        shown = op_table.COLUMNS[name]
        return numbers(f"{'%' if name == 'share' else shown.header} at {batch}", cell, spare)

    spares, times = OF_CALLS, "Calls, total and mean time"
    if row_labels.unit(comparison.by) == "step":
        spares, times = OF_STEPS, "Time of a step"
    columns = (column(*each, size) for size in comparison.batch_sizes for each in spares.items())
    title = f"{times}, and % of the time of all ops, at each batch size"
    return of_rows(title, columns, comparison, top)


def of_rows(title: str, columns: Iterable[Column], comparison: Comparison, top: int) -> Table:
    """Return a table of the rows of all batch sizes, the most expensive at any of them first."""
    rows = op_table.ranked(comparison.by, comparison.rows, top, largest_share)
    keys = op_table.keys(comparison.by, lambda row: next(iter(row.cells.values())).code)
    return table(title, rows, *keys, *columns, most=top, tone=dearest(rows, largest_share))


def side_by_side(comparison: Comparison, top: int) -> Table:
    """Return a call's time at every batch size; a step's if rows have ops of many kinds."""
    before = dict(pairwise(reversed(comparison.batch_sizes)))
    a_step = row_labels.unit(comparison.by) == "step"

    def column(batch: int) -> Column:
        def cell(row: Compared) -> str:
            if batch not in row.cells:
                return ""
            known = (row.cells.get(size) for size in (batch, before.get(batch, 0)))
            mean, *smaller = (of.step_ns if a_step else of.mean_ns for of in known if of)
            return f"{time(mean)} ({mean / smaller[0]:.1f} x)" if any(smaller) else time(mean)

        return numbers(f"batch {batch}", cell)

    mean = f"Mean time of a {row_labels.unit(comparison.by)}"
    title = f"{mean} at each batch size (and its ratio to the size before)"
    return of_rows(title, map(column, comparison.batch_sizes), comparison, top)


# Verdicts, of a race and of files


def configs(comparison: Comparison) -> Iterator[Block]:
    """Yield the untraced step under other configurations, each beside its `default`."""
    rows = [row for row in raced(comparison) if not row.key.startswith(WITHOUT)]
    if rows:
        title = "The untraced step under other configurations, in turn with the default"
        names = "default, median", "step, median"
        yield compared(title, rows, names, (BATCH, label("configuration")))
        yield BASIS.format(observations(rows))


def decided(comparison: Comparison) -> Iterator[str]:
    """Yield what each configuration did to a step, and whether to measure it again."""
    rows = [(row, row.verdict.word) for row in raced(comparison) if row.verdict]
    shown = [(row, word) for row, word in rows if not row.key.startswith(WITHOUT)]
    sizes = grouped(((row.key, word), f"{row.batch_size}") for row, word in shown)
    for (config, word), at in sorted(sizes.items()):
        yield f"With {config}: {word} at batch size {', '.join(at)}."
    load, undecided = comparison.load, any(word == "cannot tell" for _, word in rows)
    if undecided and load and max(load.before or 0, 4 * (load.during or 0)) > load.processors:
        yield "The machine was busy: measure again when it is quiet."


def raced(comparison: Comparison) -> Iterator[Change]:
    for row in comparison.configs:
        if row.verdict:
            yield Change(row.batch_size, row.config, row.default_ns, row.step_ns, row.verdict)


def observations(rows: Sequence[Change]) -> str:
    """Return the number of observations, and which of them do not count."""
    number = min(row.verdict.observations for row in rows if row.verdict)
    trimmed = ", without the least and the largest seventh" * (number >= verdicts.TRIMMED)
    return f"{plural(number, 'observation')}{trimmed}"


def passes(comparison: Comparison) -> Iterator[Block]:
    """Yield the untraced step without each graph pass, the pass that saves most first."""
    if comparison.passes is None:
        return
    if not comparison.passes:
        yield "No graph pass changed this graph, so none was switched off."
    known = {f"{WITHOUT}{each.name}": each for each in comparison.passes}
    rows = [row for row in raced(comparison) if row.key in known]
    rows.sort(key=lambda row: -row.verdict.ratio if row.verdict else 0)
    if rows:
        title = "The untraced step without each graph pass, in turn with all of them"
        columns = (
            Column("pass", lambda row: known[row.key].name, elastic=True, name=True),
            numbers("nodes changed", lambda row: f"{known[row.key].changed_nodes:,}"),
            numbers("first run", lambda row: text_or_blank(known[row.key].first_run_ns, time), 3),
            *(BATCH,) * (len(comparison.batch_sizes) > 1),
        )
        yield compared(title, rows, ("all passes", "without it"), columns)
        yield f"Without a pass, others may do its work. {BASIS.format(observations(rows))}"
    if others := [each for each in comparison.passes if not each.has_switch]:
        named = ", ".join(
            f"{each.name} ({plural(each.changed_nodes, 'node')} changed)" for each in others
        )
        yield f"Not switched off, because tflab has no switch for it: {named}."


BATCH = numbers("batch", lambda row: str(row.batch_size))


def label(header: str) -> Column:
    return Column(header, lambda row: row.key, elastic=True, least=16, name=True)


def compared(
    title: str,
    rows: Sequence[Change],
    names: tuple[str, str],
    labels: Iterable[Column],
    top: int | None = None,
    last: Iterable[Column] = (),
) -> Table:
    """Return a table of changes: their labels, both times, their ratio, and its control, without
    the columns that would be empty."""
    usual, other = names
    columns = (
        *labels,
        numbers(usual, lambda row: text_or_blank(row.first_ns, time), 5),
        numbers(other, lambda row: text_or_blank(row.second_ns, time), 4),
        Column("ratio", ratio),
        Column("control", lambda row: control_text(row.verdict) if row.verdict else "", spare=1),
        *last,
    )
    filled = (column for column in columns if any(map(column.cell, rows)))
    return table(title, rows, *filled, most=top or len(rows), tone=tone)


def tone(row: Change) -> str:
    return row.verdict.word if row.verdict and row.verdict.word in ("slower", "faster") else ""


def ratio(row: Change) -> str:
    if row.verdict:
        return ratio_text(row.verdict)
    return f"{row.second_ns / row.first_ns:.2f} x" if row.first_ns and row.second_ns else ""


BASIS = (
    "Each ratio is the mean of {}. Each observation has new processes, in which the configuration "
    "and the default take turns. Times are those of these turns. The interval contains the true "
    "ratio in 99 of 100 comparisons. The control is the default compared with itself in the same "
    "turns; its interval contains 1 in 90 of 100 comparisons. Slower and faster mean that the "
    "interval is clear of the control, and clear of 1 even if it is widened, so that all verdicts "
    "together err once in 100 comparisons. Alike means that it is within 5 % of 1. Otherwise tflab "
    "cannot tell: there are too few observations, or the machine is too noisy."
)
