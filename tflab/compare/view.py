"""View of a comparison: the same ops at several batch sizes, side by side, then one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tflab.analysis import batch_fit
from tflab.records.blocks import Block, Column, Frame, Strip, Table, shortened
from tflab.records.measured import Compared, Comparison, ConfigTimes, Fit, OpStats, StepTimes
from tflab.records.verdicts import Verdict
from tflab.units import percent, plural, size, three_digits, time
from tflab.views import execution, op_table
from tflab.views.abreast import chunks, control_text, ratio_text
from tflab.views.op_table import costs, legend, work

BRIEF = 10  # rows of each table
MORE = (
    "More: --full (totals, calls, FLOPs, memory and the first step, for each batch size), --by "
    "node, layer or line, docs/glossary.md (the terms)."
)
SIZES_ABREAST = 3  # that fit next to a name and a fit


def blocks(comparison: Comparison, top: int = BRIEF, full: bool = True) -> Iterable[Block]:
    """Yield the blocks of a comparison, in full or for one screen; `--top` sets rows of a table."""
    for block in (parts if full else short)(comparison, top):
        yield replace(block, option="--top") if isinstance(block, Table) else block


def short(comparison: Comparison, top: int) -> Iterator[Block]:
    """Yield the most important results: the steps, the most expensive rows, and the findings."""
    yield from head(comparison)
    if len(comparison.batch_sizes) > 1:
        for sizes in chunks(comparison.batch_sizes, SIZES_ABREAST):
            yield an_image(comparison, top, sizes)
    else:
        for batch in comparison.tables:
            yield costs(comparison, batch, top)
    yield from conclusions(comparison)
    unseen = comparison.cold_step_ns is None
    yield MORE.replace(", memory and the first step", " and memory") if unseen else MORE


def parts(comparison: Comparison, top: int) -> Iterator[Block]:
    yield from head(comparison)
    yield units(comparison)
    for table in (in_all, side_by_side, an_image) if len(comparison.batch_sizes) > 1 else ():
        for sizes in chunks(comparison.batch_sizes, SIZES_ABREAST):
            yield table(comparison, top, sizes)
    yield from conclusions(comparison)
    for batch in comparison.tables:
        yield costs(comparison, batch, top)
        yield work(comparison, batch, top)
    yield legend(comparison)
    yield from cold(comparison)


def head(comparison: Comparison) -> Iterator[Block]:
    """Yield the first lines: the machine, the diagnosis, and the time of a step."""
    yield from execution.load_line(comparison.load)
    yield from execution.partial(comparison.interrupted, comparison.failure)
    yield from diagnosis(comparison)
    yield opening(comparison)
    yield steps(comparison)


def conclusions(comparison: Comparison) -> Iterator[Block]:
    """Yield configurations and experiments, if requested, and the findings."""
    yield from configs(comparison)
    for batch, made in comparison.experiments.items():
        yield from execution.op_costs(made, {}, f" at batch {batch}")
    yield from findings(comparison)


def findings(comparison: Comparison) -> Iterator[Strip]:
    if comparison.findings:
        yield Strip(
            "Findings, computed from the tables",
            (Frame("", "", comparison.findings),),
        )


def diagnosis(comparison: Comparison) -> Iterator[Strip]:
    """Yield why a step is slow."""
    if comparison.diagnosis:
        sentences = tuple(reason.sentence for reason in comparison.diagnosis)
        title = "Why a step is slow (largest cost first)"
        yield Strip(title, (Frame("", "", sentences),))


def opening(comparison: Comparison) -> str:
    images = f"{'up to ' if comparison.partial else ''}{plural(comparison.images, comparison.unit)}"
    one_step = comparison.warmup == 1
    warm_up = "first step" if one_step else f"first {comparison.warmup} steps"
    sentences = [
        f"{comparison.model}, {comparison.phase}, {images} of {comparison.data} at each batch "
        f"size, each processed once untraced and once traced, alternating.",
        f"Warm: the {warm_up} of each batch size {'is' if one_step else 'are'} not counted.",
    ]
    if comparison.tasks:
        sentences.append(
            f"A step ran over {plural(comparison.tasks, 'task')}. Times of ops are without the "
            "tensors on the wire."
        )
    if comparison.without:
        sentences.append(f"Graph passes switched off: {', '.join(comparison.without)}.")
    if comparison.calls_python:
        sentences.append(
            f"The node {comparison.calls_python} calls a Python function that only this process "
            "has, so no other process ran the step: no other configuration was measured, and the "
            "first step is not shown."
        )
    return " ".join(sentences)


def steps(comparison: Comparison) -> Table:
    def traced(row: tuple[int, StepTimes]) -> str:
        some, all_ = row[1].steps, row[1].untraced_steps
        return f"{some:,}" if some == all_ else f"{some:,} of {all_:,}"

    return Table(
        "Steps of each batch size",
        (
            Column("batch", lambda row: str(row[0]), right=True),
            Column("traced steps", traced, right=True),
            Column("median", lambda row: time(row[1].untraced_ns.median), right=True),
            Column("p10", lambda row: time(row[1].untraced_ns.p10), right=True, spare=3),
            Column("p90", lambda row: time(row[1].untraced_ns.p90), right=True, spare=3),
            Column("mean", lambda row: mean_step(*row), right=True, spare=1),
            Column(
                f"{comparison.unit}s a second",
                lambda row: f"{row[1].mean_images_per_second:,.0f}",
                right=True,
            ),
            Column("traced, median", lambda row: time(row[1].traced_ns.median), right=True),
            Column("ops, mean", lambda row: time(row[1].ops_ns), right=True, spare=1),
            Column("memory peak", lambda row: size(row[1].peak_bytes), right=True, spare=2),
        ),
        tuple(comparison.steps.items()),
    )


def mean_step(batch: int, steps: StepTimes) -> str:
    """Return the mean untraced step: the batch size divided by the images per second."""
    return time(1e9 * batch / steps.mean_images_per_second) if steps.mean_images_per_second else ""


def units(comparison: Comparison) -> str:
    """Say what each column of `steps` means."""
    return (
        f"Median, p10, p90 and mean describe untraced steps. {comparison.unit.capitalize()}s per "
        "second are the batch size divided by the mean, which slow steps raise above the median. "
        "Ops is the total time of all ops in a traced step."
    )


# All batch sizes


def in_all(comparison: Comparison, top: int, sizes: Sequence[int]) -> Table:
    """Return the time and number of all calls of a row."""
    title = "Total time at each batch size (and number of calls)"
    columns = at_each(sizes, "total", "calls")
    return shortened(title, (*keys(comparison), *columns), in_order(comparison, top), top)


def an_image(comparison: Comparison, top: int, sizes: Sequence[int]) -> Table:
    """Return the time of each op, or group of ops, per image or row of data."""
    unit = "row of data" if comparison.unit == "row" else comparison.unit
    title = f"Time per {unit} at each batch size (and share of the time of all ops)"
    columns = at_each(sizes, "image", "share")
    return shortened(title, (*keys(comparison), *columns), in_order(comparison, top), top)


def at_each(sizes: Iterable[int], value: str, about: str) -> Iterator[Column]:
    """Yield a column for each batch size with two columns of an op table: `70.0 us (75.0 %)`."""
    for batch in sizes:

        def cell(row: Compared, batch: int = batch) -> str:
            stats = row.cells.get(batch)
            if stats is None:
                return ""
            return f"{op_table.text(value, stats)} ({op_table.text(about, stats)})"

        yield Column(f"batch {batch}", cell, right=True)


def side_by_side(comparison: Comparison, top: int, sizes: Sequence[int] = ()) -> Table:
    """Return the time of a call at every batch size, and its ratio to the batch size before.

    For rows with ops of many kinds, the time of a step instead.
    """
    before = dict(pairwise(reversed(comparison.batch_sizes)))
    times = {row.key: unit_times(comparison, row) for row in comparison.rows}

    def column(batch: int) -> Column:
        def cell(row: Compared) -> str:
            if batch not in row.cells:
                return ""
            mean, smaller = times[row.key][batch], times[row.key].get(before.get(batch, 0))
            return f"{time(mean)} ({mean / smaller:.1f} x)" if smaller else time(mean)

        return Column(f"batch {batch}", cell, right=True)

    sizes = sizes or comparison.batch_sizes
    title = (
        f"Mean time of a {batch_fit.unit(comparison.by)} at each batch size (and its ratio to the "
        "size before)"
    )
    fitted: tuple[Column, ...] = ()
    last = sizes[-1:] == comparison.batch_sizes[-1:]
    fit_is_known = any(row.fit for row in comparison.rows[:top])
    if last and fit_is_known:
        title += f"; fit: fixed cost + cost per {comparison.unit}"
        fitted = (
            Column("fit", lambda row: line_of(row.fit), right=True, spare=2),
            Column(
                "error", lambda row: percent(row.fit.error) if row.fit else "", right=True, spare=1
            ),
        )
    return shortened(
        title, (*keys(comparison), *map(column, sizes), *fitted), in_order(comparison, top), top
    )


def line_of(fit: Fit | None) -> str:
    return f"{time(fit.fixed_ns)} + {time(fit.per_image_ns)}" if fit else ""


def unit_times(comparison: Comparison, row: Compared) -> dict[int, float]:
    """Return the time of a row that is shown, by batch size."""
    return {
        size: batch_fit.unit_ns(stats, comparison.steps[size], comparison.by)
        for size, stats in row.cells.items()
    }


def in_order(comparison: Comparison, top: int) -> Sequence[Compared]:
    """Return the rows as they are cut off: the most expensive at any batch size first."""

    def time_of(row: Compared) -> float:
        return max(stats.image_ns or stats.self_ns for stats in row.cells.values())

    return op_table.ranked(comparison.by, comparison.rows, top, time_of)


def keys(comparison: Comparison) -> tuple[Column, ...]:
    return op_table.keys(comparison.by, 24, lambda row: next(iter(row.cells.values())).code)


def configs(comparison: Comparison) -> Iterator[Block]:
    """Yield the untraced step under other configurations, each beside the default of its turns."""
    others = tuple(row for row in comparison.configs if row.verdict)
    if not others:
        return

    def text_of(part: Callable[[Verdict], str]) -> Callable[[ConfigTimes], str]:
        return lambda row: part(row.verdict) if row.verdict else ""

    yield Table(
        "The untraced step under other configurations, in turn with the default",
        (
            Column("batch", lambda row: str(row.batch_size), right=True),
            Column("configuration", lambda row: row.config),
            Column("step, median", lambda row: time(row.step_ns), right=True),
            Column("default, median", lambda row: time(row.default_ns), right=True),
            Column("ratio", text_of(ratio_text)),
            Column("control", text_of(control_text)),
        ),
        others,
    )
    number = min(row.verdict.observations for row in others if row.verdict)
    yield BASIS.format(plural(number, "observation"))


BASIS = (
    "Each ratio is the mean of {}, each in new processes, in which the configuration and the "
    "default take turns; both times are those of these turns. The interval contains the true ratio "
    "in 99 of 100 comparisons. The control is the default compared with itself in the same turns. "
    "Slower and faster mean that the interval is clear of 1 and of the control, alike that it is "
    "within 5 % of 1; otherwise there are too few observations, or the machine is too noisy."
)


def cold(comparison: Comparison) -> Iterator[Table]:
    """Yield the first step next to a warm one: its times are not what ops cost."""
    if comparison.cold_step_ns is None:
        return
    batch, steps = next(iter(comparison.steps.items()))
    cold_step, warm_step = time(comparison.cold_step_ns), time(steps.traced_ns.median)

    def warm_ns(row: OpStats) -> float | None:
        # In a loop a node runs more than once in a step.
        a_call = comparison.warm_ns.get(row.key)
        return None if a_call is None else row.calls * a_call

    def ratio(row: OpStats) -> str:
        ns = warm_ns(row)
        return f"{three_digits(row.self_ns / ns)} x" if ns else ""

    yield Table(
        f"Cold: the first step, at batch {batch}, took {cold_step}, and a warm traced step took "
        f"{warm_step} (median); the first step also set up kernels and memory",
        (
            op_table.key("node", 30),
            *op_table.columns(("type", "self"), {"self": "first run"}),
            Column(
                "warm, mean", lambda row: op_table.text_or_blank(warm_ns(row), time), right=True
            ),
            Column("ratio", ratio, right=True),
        ),
        comparison.cold,
    )
