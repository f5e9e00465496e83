"""View of a comparison: ops at several batch sizes, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite

from tflab.analysis import row_labels, verdicts
from tflab.compare import WITHOUT
from tflab.compare.findings import fused_lines, gain, largest_share
from tflab.records.blocks import Block, Column, Table, dearest, listing, numbers, sentences, table
from tflab.records.graph import grouped
from tflab.records.measured import Change, Compared, Comparison, Verdict
from tflab.units import plural, rounded, size, three_digits, time
from tflab.views import execution, op_table
from tflab.views.op_table import costs, text_or_blank, work
from tflab.views.words import DIFFERENT, ends_text

CONCLUSIONS = 4  # sentences on one screen
LONG = 16  # characters of a word in the head of a column
# The columns of one batch size beside others: their headers, and how spare they are
HEADS = {"calls": ("calls", 2), "total": ("total", 3), "mean": ("a call", 1), "share": ("%", 0)}
HEADS |= {"step": ("a step", 1)}


def blocks(comparison: Comparison, top: int = 10, full: bool = True) -> Iterable[Block]:
    """Yield the blocks of a comparison, in full or for one screen; `--top` sets rows of a table."""
    for block in parts(comparison, top, full):
        yield replace(block, option="--top shows more") if isinstance(block, Table) else block


def parts(comparison: Comparison, top: int, full: bool) -> Iterator[Block]:
    """Yield the conclusions, the steps and the most expensive rows; if `full`, every table."""
    sizes = comparison.batch_sizes
    yield headline(comparison)
    if said := [*decided(comparison)]:
        yield sentences("The time of a step, compared with the default's", said)
    yield from execution.load_line(comparison.load, brief=True)
    yield from execution.partial(comparison.interrupted, comparison.failure)
    yield protocol(comparison)
    yield from conclusions(comparison, full)
    yield steps(comparison)
    yield from configs(comparison)
    yield from passes(comparison)
    yield from basis(comparison)
    if len(sizes) > 1:
        yield at_each_size(comparison, top, full)
    for batch in comparison.tables if full or len(sizes) == 1 else ():
        yield costs(comparison, batch, top)
        if full:
            yield work(comparison, batch, top)
    if rows := [row for row in comparison.rows if comparison.by == "line" and fused_lines(row)]:
        yield table(
            "Lines whose time includes ops of other lines, fused into theirs",
            rows,
            Column("line", lambda row: row.key),
            Column("includes ops of", lambda row: ", ".join(fused_lines(row)), hanging=True),
            most=top,
        )
    if not full:
        yield "More: --full has each batch size; --by op, node, layer or line; docs/reference.md."


def conclusions(comparison: Comparison, full: bool) -> Iterator[Table]:
    """Yield why a step is slow, and the findings; for one screen, only the first of both."""
    reasons, found = [each.sentence for each in comparison.diagnosis], comparison.findings
    shown = found if full else (*reasons[:1], *found)[:CONCLUSIONS]
    if full and reasons:
        yield sentences("Why a step is slow (largest cost first)", reasons)
    if shown:
        yield sentences("Findings, computed from the tables", shown)


def headline(comparison: Comparison) -> str:
    """Return which batch size processes most images a second, compared with the others."""
    rates = {size: comparison.steps[size].mean_images_per_second for size in comparison.batch_sizes}
    best = max(rates, key=lambda size: rates[size])
    others = sorted({*rates} - {best})
    rate = f"{rounded(rates[best])} {comparison.unit}s a second"
    said = f"{comparison.model}: batch size {best} processes {rate}"
    for other in others:
        times, low, _ = gain(comparison.steps[other], comparison.steps[best])
        if low <= 1:
            why = times if low else "too few rounds"
            said += f". It is not certain to be more than at batch size {other}: {why}"
        elif other == others[0]:
            said += f", {times} as many as batch size {other}"
    return f"{said}.{' In brackets: 99 % intervals.' * ('[' in said)}"


def protocol(comparison: Comparison) -> str:
    """Return how the steps were measured."""
    images = f"{'up to ' * comparison.partial}{plural(comparison.images, comparison.unit)}"
    rests = {size: comparison.images % size for size in comparison.batch_sizes}
    rest = [f"{plural(of, comparison.unit)} at batch {size}" for size, of in rests.items() if of]
    last = f" The last step has {', '.join(rest)}." * bool(rest and not comparison.partial)
    tasks = (
        f" A step ran over {plural(comparison.tasks, 'task')}. Times of ops are without the "
        "tensors on the wire."
    )
    return (
        f"Steps of {comparison.phase} at each batch size, on {images} of {comparison.data}: "
        f"untraced and traced steps alternate.{last} All times are of warm steps: the first "
        f"{comparison.warmup} of both kinds at each size, which are cold, are not counted."
        f"{tasks * bool(comparison.tasks)}"
    )


def steps(comparison: Comparison) -> Table:
    return table(
        "Untraced steps of each batch size",
        comparison.steps.items(),
        numbers("batch", lambda row: str(row[0])),
        numbers("steps", lambda row: f"{row[1].untraced_steps:,}", 1),
        numbers("mean step", lambda row: time(row[1].mean_step_ns)),
        numbers("p10", lambda row: time(row[1].untraced_ns.p10), 3),
        numbers("median", lambda row: time(row[1].untraced_ns.median)),
        numbers("p90", lambda row: time(row[1].untraced_ns.p90), 3),
        numbers(f"{comparison.unit}s a second", lambda row: rounded(row[1].mean_images_per_second)),
        numbers("memory peak", lambda row: size(row[1].peak_bytes), 2),
    )


# All batch sizes


def at_each_size(comparison: Comparison, top: int, full: bool = False) -> Table:
    """Return times and shares at every batch size; if `full`, others have calls and totals."""

    def column(name: str, batch: int) -> Column:
        def cell(row: Compared) -> str:
            shown = op_table.COLUMNS[name].cell
            return shown(row.cells[batch]).removesuffix(" %") if batch in row.cells else ""

        header, spare = HEADS[name]
        return numbers(f"{header} at {batch}", cell, spare)

    unit = row_labels.unit(comparison.by)
    of_calls = ("mean", "share") if full else op_table.TIME_OF_CALLS
    chosen = op_table.TIME_OF_STEPS if unit == "step" else of_calls
    rows = op_table.ranked(comparison.by, comparison.rows, top, largest_share)
    key, *code = op_table.keys(comparison.by, lambda row: next(iter(row.cells.values())).code)
    return table(
        f"Traced steps at each batch size: mean time of a {unit}, % of the time of all ops",
        rows,
        *(replace(key, name=False, hanging=True, least=24), *code),
        *(column(name, size) for size in comparison.batch_sizes for name in chosen),
        most=top,
        tone=dearest(rows, largest_share),
    )


# Verdicts, of a race and of files


def in_words(rows: Iterable[Change]) -> str:
    """Return `slower at batch 64 (1.35 x the time [1.30, 1.40]); cannot tell at batch 1, 16`."""
    said: dict[tuple[str, str], list[Change]] = {}
    for row, of in ((row, row.verdict) for row in rows if row.verdict):
        ratio = f" ({three_digits(of.ratio)} x the time {ends_text(of.low, of.high)})"
        said.setdefault((of.word, ratio * (of.word in DIFFERENT)), []).append(row)
    return "; ".join(
        f"{word} at batch {', '.join(str(row.batch_size) for row in of)}{ratio}"
        if of[0].batch_size
        else f"{word} for the {' and the '.join(row.key for row in of)}{ratio}"
        for (word, ratio), of in said.items()
    )


def differing(rows: Iterable[Change], full: bool) -> list[Change]:
    """Return the rows that differ or are in one only, the largest change first; if `full`, all."""
    differ = [row for row in rows if full or not row.verdict or tone(row)]
    return sorted(differ, key=lambda row: -abs((row.second_ns or 0) - (row.first_ns or 0)))


def configs(comparison: Comparison) -> Iterator[Block]:
    """Yield the untraced step under other configurations, each beside its `default`."""
    rows = [row for row in raced(comparison) if not row.key.startswith(WITHOUT)]
    if rows:
        title = "The untraced step under other configurations, each in turn with the default"
        yield compared(title, rows, ("default anew", "step"), (BATCH, label("config")))


def decided(comparison: Comparison) -> Iterator[str]:
    """Yield what each configuration, and each pass that makes a difference, does to a step."""
    rows = (row for row in raced(comparison) if tone(row) or not row.key.startswith(WITHOUT))
    for config, of in grouped((row.key, row) for row in rows).items():
        yield f"{config}: {in_words(of)}."


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
            numbers("nodes changed", lambda row: f"{known[row.key].changed_nodes:,}", 3),
            numbers("first run", lambda row: text_or_blank(known[row.key].first_run_ns, time), 5),
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
) -> Table:
    """Return a table of changes: their labels, both times, their ratio, and its control, without
    other columns that would be empty. Long names would leave no room for the times."""
    long = any(len(word) > LONG for name in names for word in name.split())
    usual, other = ("first", "second") if long else names
    alone = f"only in {usual}", f"only in {other}"

    def judged(show: Callable[[Verdict], str]) -> Callable[[Change], str]:
        return lambda row: show(row.verdict) if row.verdict else ""

    columns = (
        *labels,
        numbers(usual, lambda row: text_or_blank(row.first_ns, time), 4),
        numbers(other, lambda row: text_or_blank(row.second_ns, time), 4),
        numbers("ratio", judged(lambda of: f"{three_digits(of.ratio)} x" * isfinite(of.high))),
        Column("99 % interval", judged(lambda of: ends_text(of.low, of.high)), spare=1),
        Column("control", judged(lambda of: ends_text(of.control_low, of.control_high)), spare=2),
        Column("verdict", lambda row: row.verdict.word if row.verdict else alone[not row.first_ns]),
    )
    kept = (of for of in columns if of.header in (usual, other) or any(map(of.cell, rows)))
    shown = table(title, rows, *kept, most=top or len(rows), tone=tone)
    return replace(shown, option="--top shows more")


def tone(row: Change) -> str:
    return row.verdict.word if row.verdict and row.verdict.word in DIFFERENT else ""


def basis(comparison: Comparison) -> Iterator[Table]:
    """Yield how to read what `configs` and `passes` show."""
    mean = "mean of the observations' medians, in new processes, so not that of the table of steps"
    anew = ("default anew", mean), ("step", "default anew x ratio")
    if rows := [*raced(comparison)]:
        yield reading(
            rows,
            f"step divided by default: mean of {observations(rows)}",
            "90 % interval of the default divided by itself in the same turns",
            *(anew if any(configs(comparison)) else ()),
        )


def reading(rows: Iterable[Change], ratio: str, control: str, *last: tuple[str, str]) -> Table:
    """Return how to read ratios, their controls and the verdicts of these rows."""
    clear = "the interval is clear of the control, and clear of 1 even if it is widened, so that"
    words = {row.verdict.word for row in rows if row.verdict}
    facts = (
        ("ratio", ratio),
        ("control", control),
        (
            ", ".join(sorted(words & {*DIFFERENT})),
            f"{clear} all verdicts together err once in 100 comparisons",
        ),
        ("alike" * ("alike" in words), "the interval is within 5 % of 1"),
        (
            "cannot tell" * ("cannot tell" in words),
            "neither a difference nor its absence is proven; a quieter machine may tell",
        ),
        *last,
    )
    return listing("", ((name, [text]) for name, text in facts if name))
