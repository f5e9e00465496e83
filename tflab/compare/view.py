"""View of a comparison: ops at several batch sizes, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tflab.analysis import row_labels, verdicts
from tflab.analysis.row_labels import NO_LINE
from tflab.compare import WITHOUT
from tflab.compare.findings import gain, largest_share
from tflab.records.blocks import Block, Column, Table, dearest, listing, numbers, sentences, table
from tflab.records.graph import grouped
from tflab.records.measured import Change, Compared, Comparison
from tflab.units import plural, size, three_digits, time
from tflab.views import execution, op_table
from tflab.views.op_table import costs, text_or_blank, work
from tflab.views.words import control_text, listed, ratio_text

CONCLUSIONS = 4  # sentences on one screen
LINES = 6  # named in a sentence
LONG = 16  # characters of a word in the head of a column
DIFFERENT = "slower", "faster"  # verdicts
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
    yield from basis(comparison)
    if len(sizes) > 1:
        yield at_each_size(comparison, top)
    for batch in comparison.tables if full or len(sizes) == 1 else ():
        yield costs(comparison, batch, top)
        if full:
            yield work(comparison, batch, top)
    yield from fused_lines(comparison)
    if not full:
        yield "More: --full has each batch size; --by op, node, layer or line; docs/reference.md."


def conclusions(comparison: Comparison, full: bool) -> Iterator[Table]:
    """Yield why a step is slow, and the findings; for one screen, only the first of both."""
    reasons, found = [each.sentence for each in comparison.diagnosis], comparison.findings
    shown = found if full else (*reasons[:1], *found)[:CONCLUSIONS]
    if full and reasons:
        yield sentences("Why a step is slow (largest cost first)", reasons)
    if shown:
        yield sentences(FINDINGS, shown)


def headline(comparison: Comparison) -> str:
    """Return which batch size processes most images a second, compared with the smallest, or with
    the next best if that is the smallest."""
    rates = {size: comparison.steps[size].mean_images_per_second for size in comparison.batch_sizes}
    best, *others = sorted(rates, key=lambda size: -rates[size])
    rate = f"{rate_text(rates[best])} {comparison.unit}s a second"
    said = f"{comparison.model}: batch size {best} processes {rate}"
    if not others:
        return f"{said}."
    other = min(others) if min(others) < best else others[0]
    times, low = gain(comparison.steps[other], comparison.steps[best])
    if low > 1:
        return f"{said}, {times} as many as batch size {other}."
    why = times or "too few rounds, or too noisy"
    return f"{said}; cannot tell if batch size {other} processes less: {why}."


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
    return table(
        "Untraced steps of each batch size",
        comparison.steps.items(),
        numbers("batch", lambda row: str(row[0])),
        numbers("steps", lambda row: f"{row[1].untraced_steps:,}", 1),
        numbers("mean step", lambda row: time(1e9 * row[0] / row[1].mean_images_per_second)),
        numbers(
            f"{comparison.unit}s a second", lambda row: rate_text(row[1].mean_images_per_second)
        ),
        numbers("p10", lambda row: time(row[1].untraced_ns.p10), 3),
        numbers("median", lambda row: time(row[1].untraced_ns.median)),
        numbers("p90", lambda row: time(row[1].untraced_ns.p90), 3),
        numbers("memory peak", lambda row: size(row[1].peak_bytes), 2),
    )


# All batch sizes


def at_each_size(comparison: Comparison, top: int) -> Table:
    """Return the times and the share of the rows at every batch size, the most expensive at any of
    them first."""

    def column(name: str, spare: int, batch: int) -> Column:
        def cell(row: Compared) -> str:
            return shown.cell(row.cells[batch]).removesuffix(" %") if batch in row.cells else ""

        shown = op_table.COLUMNS[name]
        return numbers(f"{'%' if name == 'share' else shown.header} at {batch}", cell, spare)

    spares = OF_STEPS if row_labels.unit(comparison.by) == "step" else OF_CALLS
    rows = op_table.ranked(comparison.by, comparison.rows, top, largest_share)
    return table(
        "Times in traced steps, and % of the time of all ops, at each batch size",
        rows,
        *op_table.keys(comparison.by, lambda row: next(iter(row.cells.values())).code),
        *(column(*each, size) for size in comparison.batch_sizes for each in spares.items()),
        most=top,
        tone=dearest(rows, largest_share),
    )


def fused_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines with ops that ran as a part of another line's op."""
    rows = comparison.rows if comparison.by == "line" else ()
    lines = [f"{line} at {row.key}" for row in rows for line in row.fused_from if line != NO_LINE]
    if lines:
        yield f"Lines with ops fused at another line, which has their time: {listed(lines, LINES)}."


# Verdicts, of a race and of files


def headline_of(names: tuple[str, str], rows: Iterable[Change]) -> str:
    """Return a sentence with the verdicts on the second name, compared with the first."""
    first, second = names
    said = grouped((ratio_text(row.verdict), named(row)) for row in rows if row.verdict)
    verdicts = "; ".join(f"{verdict} ({', '.join(of)})" for verdict, of in said.items())
    return f"'{second}' compared with '{first}': {verdicts or 'cannot tell, too few runs'}."


def named(row: Change) -> str:
    return f"batch {row.batch_size}" if row.batch_size else row.key


def configs(comparison: Comparison) -> Iterator[Block]:
    """Yield the untraced step under other configurations, each beside its `default`."""
    rows = [row for row in raced(comparison) if not row.key.startswith(WITHOUT)]
    if rows:
        title = "The untraced step under other configurations, in turn with the default"
        names = "default, median", "step, median"
        yield compared(title, rows, names, (BATCH, label("configuration")))


def decided(comparison: Comparison) -> Iterator[str]:
    """Yield what each configuration did to a step, and which pass made a difference."""
    pairs = []
    for row in comparison.configs:
        said = ratio_text(row.verdict).partition(" [")[0] if row.verdict else ""
        word, _, more = said.partition(", ")
        pairs.append(((row.config, word), f"{row.batch_size}{f' ({more})' if more else ''}"))
    for (config, word), at in sorted(grouped(pairs).items()):
        of_pass = config.startswith(WITHOUT)
        if word in DIFFERENT or (word and not of_pass):
            name = config.capitalize() if of_pass else f"With {config}"
            yield f"{name}: {word} at batch size {', '.join(at)}."


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
        yield "Without a pass, others may do its work."
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
    the columns that would be empty. Long names would leave no room for the times."""
    long = any(len(word) > LONG for name in names for word in name.split())
    usual, other = ("first", "second") if long else names
    columns = (
        *labels,
        numbers(usual, lambda row: text_or_blank(row.first_ns, time), 1),
        numbers(other, lambda row: text_or_blank(row.second_ns, time), 1),
        Column("ratio", lambda row: ratio_text(row.verdict) if row.verdict else ""),
        Column("control", lambda row: control_text(row.verdict) if row.verdict else "", spare=4),
        *last,
    )
    filled = (column for column in columns if any(map(column.cell, rows)))
    return table(title, rows, *filled, most=top or len(rows), tone=tone)


def tone(row: Change) -> str:
    return row.verdict.word if row.verdict and row.verdict.word in DIFFERENT else ""


def basis(comparison: Comparison) -> Iterator[Table]:
    """Yield how to read what `configs` and `passes` show."""
    turns = "each in new processes, in which the configuration and the default take turns"
    control = "the default divided by itself in the same turns; in brackets its 90 % interval"
    if rows := [*raced(comparison)]:
        of_default = f"step divided by default: mean of {observations(rows)}"
        yield reading(of_default, control, ("observations, times", turns))


def reading(ratio: str, control: str, last: tuple[str, str]) -> Table:
    """Return how to read ratios, their controls and verdicts."""
    clear = "the interval is clear of the control, and clear of 1 even if it is widened, so that"
    facts = (
        ("ratio", f"{ratio}; in brackets its 99 % interval"),
        ("control", control),
        ("slower, faster", f"{clear} all verdicts together err once in 100 comparisons"),
        ("alike", "the interval is within 5 % of 1"),
        ("cannot tell", "otherwise: too few observations, or too noisy"),
        last,
    )
    return listing("", ((name, [text]) for name, text in facts))
