"""View of a comparison: ops at several batch sizes, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tflab.analysis import row_labels
from tflab.compare import WITHOUT
from tflab.records.blocks import Block, Column, Table, dearest, numbers, sentences, table
from tflab.records.measured import Change, Compared, Comparison, StepTimes
from tflab.units import plural, size, time
from tflab.views import execution, op_table
from tflab.views.op_table import costs, work
from tflab.views.words import control_text, ratio_text

BRIEF = 10  # rows of each table
CONCLUSIONS = 4  # sentences on one screen
FINDINGS = "Findings, computed from the tables"
MORE = "More: --full, --by node, layer or line, docs/reference.md."
SIZES_ABREAST = 3  # that fit next to a name
# The columns of one batch size beside others, and how spare they are
ABREAST = {"calls": 0, "total": 0, "mean": 9, "share": 8}
LINES_ABREAST = ABREAST | {"calls": 8, "share": 0}  # beside the code


def blocks(comparison: Comparison, top: int = BRIEF, full: bool = True) -> Iterable[Block]:
    """Yield the blocks of a comparison, in full or for one screen; `--top` sets rows of a table."""
    for block in parts(comparison, top, full):
        yield replace(block, option="--top") if isinstance(block, Table) else block


def parts(comparison: Comparison, top: int, full: bool) -> Iterator[Block]:
    """Yield the conclusions, the steps and the most expensive rows; if `full`, every table."""
    sizes = comparison.batch_sizes
    abreast = [
        sizes[start : start + SIZES_ABREAST] for start in range(0, len(sizes), SIZES_ABREAST)
    ]
    yield from execution.load_line(comparison.load)
    yield from execution.partial(comparison.interrupted, comparison.failure)
    yield opening(comparison)
    yield from conclusions(comparison, full)
    yield steps(comparison)
    if len(sizes) > 1:
        yield from (calls_and_totals(comparison, top, some) for some in abreast)
    elif not full:
        yield from (costs(comparison, batch, top) for batch in comparison.tables)
    yield from configs(comparison)
    yield from passes(comparison)
    if not full:
        yield MORE
        return
    if len(sizes) > 1:
        yield from (side_by_side(comparison, top, some) for some in abreast)
    for batch in comparison.tables:
        yield costs(comparison, batch, top)
        yield work(comparison, batch, top)


def conclusions(comparison: Comparison, full: bool) -> Iterator[Table]:
    """Yield why a step is slow, and the findings; for one screen, only the first of both."""
    reasons, found = [each.sentence for each in comparison.diagnosis], comparison.findings
    shown = (*reasons[:1], *found)[:CONCLUSIONS]
    if full and reasons:
        yield sentences("Why a step is slow (largest cost first)", reasons)
    if full and found:
        yield sentences(FINDINGS, found)
    if shown and not full:
        every = len(reasons) + len(found)
        some = f" ({len(shown)} of {every}; --full shows all)" if len(shown) < every else ""
        yield sentences(f"{FINDINGS}{some}", shown)


def opening(comparison: Comparison) -> str:
    images = f"{'up to ' if comparison.partial else ''}{plural(comparison.images, comparison.unit)}"
    tasks = (
        f" A step ran over {plural(comparison.tasks, 'task')}. Times of ops are without the "
        "tensors on the wire."
    )
    return (
        f"{comparison.model}, {comparison.phase}, {images} of {comparison.data} at each batch "
        f"size, each processed once untraced and once traced, alternating, after "
        f"{plural(comparison.warmup, 'step')} that warm up.{tasks * bool(comparison.tasks)}"
    )


def steps(comparison: Comparison) -> Table:
    def traced(row: tuple[int, StepTimes]) -> str:
        some, all_ = row[1].steps, row[1].untraced_steps
        return f"{some:,}" if some == all_ else f"{some:,} of {all_:,}"

    return table(
        "Steps of each batch size",
        comparison.steps.items(),
        numbers("batch", lambda row: str(row[0])),
        numbers("traced steps", traced),
        numbers("median", lambda row: time(row[1].untraced_ns.median)),
        numbers("p10", lambda row: time(row[1].untraced_ns.p10), 3),
        numbers("p90", lambda row: time(row[1].untraced_ns.p90), 3),
        numbers("mean", lambda row: time(1e9 * row[0] / row[1].mean_images_per_second), 1),
        numbers(
            f"{comparison.unit}s a second", lambda row: f"{row[1].mean_images_per_second:,.0f}"
        ),
        numbers("traced, median", lambda row: time(row[1].traced_ns.median)),
        numbers("ops, mean", lambda row: time(row[1].ops_ns), 1),
        numbers("memory peak", lambda row: size(row[1].peak_bytes), 2),
    )


# All batch sizes


def calls_and_totals(comparison: Comparison, top: int, sizes: Sequence[int]) -> Table:
    """Return the calls, times and share of each op, or group of ops, at every batch size."""

    def column(name: str, spare: int, batch: int) -> Column:
        def cell(row: Compared) -> str:
            return op_table.COLUMNS[name].cell(row.cells[batch]) if batch in row.cells else ""

        return numbers(f"{name} at {batch}", cell, spare)

    spares = LINES_ABREAST if comparison.by == "line" else ABREAST
    columns = (column(*names, batch) for batch in sizes for names in spares.items())
    return of_rows("Calls and times at each batch size", columns, comparison, top)


def of_rows(title: str, columns: Iterable[Column], comparison: Comparison, top: int) -> Table:
    """Return a table of the rows of all batch sizes, the most expensive at any of them first."""

    def cost(row: Compared) -> float:
        return max(stats.image_ns or stats.total_ns for stats in row.cells.values())

    rows = op_table.ranked(comparison.by, comparison.rows, top, cost)
    keys = op_table.keys(comparison.by, lambda row: next(iter(row.cells.values())).code)
    return table(title, rows, *keys, *columns, most=top, tone=dearest(rows, cost))


def side_by_side(comparison: Comparison, top: int, sizes: Sequence[int]) -> Table:
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
    return of_rows(title, map(column, sizes), comparison, top)


# Verdicts, of a race and of files


def configs(comparison: Comparison) -> Iterator[Block]:
    """Yield the untraced step under other configurations, each beside its `default`."""
    rows = [row for row in raced(comparison) if not row.key.startswith(WITHOUT)]
    if rows:
        title = "The untraced step under other configurations, in turn with the default"
        yield compared(title, rows, ("default, median", "step, median"), "configuration")
        yield basis(rows)


def raced(comparison: Comparison) -> Iterator[Change]:
    for row in comparison.configs:
        if row.verdict:
            yield Change(row.batch_size, row.config, row.default_ns, row.step_ns, row.verdict)


def basis(rows: Sequence[Change]) -> str:
    number = min(row.verdict.observations for row in rows if row.verdict)
    return BASIS.format(plural(number, "observation"))


def passes(comparison: Comparison) -> Iterator[Block]:
    """Yield the untraced step without each graph pass, the pass that saves most first."""
    if comparison.passes is None:
        return
    if not comparison.passes:
        yield "No graph pass changed this graph, so none was switched off."
    known = {f"{WITHOUT}{each.name}": each for each in comparison.passes}

    def of_first_run(row: Change) -> str:
        ns = known[row.key].first_run_ns
        return "" if ns is None else time(ns)

    rows = [row for row in raced(comparison) if row.key in known]
    rows.sort(key=lambda row: -row.verdict.ratio if row.verdict else 0)
    if rows:
        of_step = verdict_columns("all passes", "without it", batch=len(comparison.batch_sizes) > 1)
        yield table(
            "The untraced step without each graph pass, in turn with all of them",
            rows,
            Column("pass", lambda row: known[row.key].name, elastic=True, name=True),
            numbers("changed", lambda row: f"{known[row.key].changed_nodes:,}"),
            numbers("first run", of_first_run),
            *of_step,
            tone=tone,
        )
        yield f"{PASSES_BASIS} {basis(rows)}"
    if others := [each for each in comparison.passes if not each.has_switch]:
        named = ", ".join(
            f"{each.name} ({plural(each.changed_nodes, 'node')} changed)" for each in others
        )
        yield f"Not switched off, because tflab has no switch for it: {named}."


PASSES_BASIS = (
    "The column changed counts the nodes that the pass added, changed or removed, in all its "
    "runs. The column first run has its time in a new session, measured once. Without a pass, "
    "others may do its work."
)


def tone(row: Change) -> str:
    return row.verdict.word if row.verdict and row.verdict.word in ("slower", "faster") else ""


def compared(
    title: str,
    rows: Sequence[Change],
    names: tuple[str, str],
    key: str = "",
    top: int | None = None,
    batch: bool = True,
    last: Sequence[Column] = (),
) -> Table:
    """Return a table of changes. If no change has a verdict, there is no column for the control."""
    columns = [*verdict_columns(*names, key, batch)]
    if not any(row.verdict for row in rows):
        columns.pop()
    return table(title, rows, *columns, *last, most=top or len(rows), tone=tone)


def verdict_columns(usual: str, other: str, key: str = "", batch: bool = True) -> Iterator[Column]:
    """Yield the columns of a table of Change: both times, their ratio, and its control."""
    if batch:
        yield numbers("batch", lambda row: str(row.batch_size))
    if key:
        yield Column(key, lambda row: row.key, elastic=True, least=16, name=True)
    yield numbers(usual, lambda row: "" if row.first_ns is None else time(row.first_ns))
    yield numbers(other, lambda row: "" if row.second_ns is None else time(row.second_ns))
    yield Column("ratio", ratio)
    yield Column(
        "control",
        lambda row: control_text(row.verdict) if row.verdict else "",
        spare=1,
    )


def ratio(row: Change) -> str:
    if row.verdict:
        return ratio_text(row.verdict)
    return f"{row.second_ns / row.first_ns:.2f} x" if row.first_ns and row.second_ns else ""


BASIS = (
    "Each ratio is the mean of {}, without the least and the largest seventh. Each observation "
    "has new processes, in which the configuration and the default take turns. Both times are "
    "those of these turns. The interval contains the true ratio in 99 of 100 comparisons. The "
    "control is the default compared with itself in the same turns; its interval contains 1 in 90 "
    "of 100 comparisons. Slower and faster mean that the interval is clear of 1 and of the "
    "control. Alike means that it is within 5 % of 1. Otherwise tflab cannot tell: there are too "
    "few observations, or the machine is too noisy."
)
