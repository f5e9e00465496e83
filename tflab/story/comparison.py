"""The story of a comparison: the same ops at several batch sizes, side by side."""

from __future__ import annotations

from collections.abc import Iterable

from tflab.records import Compared, Comparison, ConfigTimes, StepTimes
from tflab.table import Block, Column, Frame, Strip, Table, percent, plural, size, time

NAMES = {"op": "type that ran", "node": "node", "layer": "layer", "line": "line"}


def tell(found: Comparison, top: int) -> Iterable[Block]:
    if found.interrupted:
        yield "Partial: interrupted, what follows was measured until then."
    if found.failure:
        yield f"Partial: what follows was measured until a step failed. {found.failure}"
    images = plural(max(step.images for step in found.steps.values()), "image")
    partial = "up to " if found.interrupted or found.failure else ""
    yield (
        f"{found.model}, {found.phase}, {partial}{images} of "
        f"{found.data} at each batch size, each worked on untraced and traced in turn. Warm: the "
        f"first {found.warmup} steps of each batch size are not counted."
    )
    yield steps(found)
    for batch in found.batch_sizes:
        yield costs(found, batch, top)
    yield side_by_side(found, top)
    if len(found.configs) > 1:
        yield configs(found)
    if found.findings:
        yield Strip("Findings, each computed from the tables", (Frame("", "", found.findings),))
    yield cold(found)
    if found.uncovered:
        yield (
            "The framework's registry has no FLOPs for: "
            + ", ".join(found.uncovered)
            + ". They have none here either, and are not counted as 0."
        )


def steps(found: Comparison) -> Table:
    def rate(row: tuple[int, StepTimes]) -> str:
        return f"{row[1].images_per_second:,.0f}"

    return Table(
        "Steps: median, and the middle eight tenths",
        (
            Column("batch", lambda row: str(row[0]), right=True),
            Column("steps", lambda row: f"{row[1].steps:,}", right=True),
            Column("untraced", lambda row: time(row[1].untraced_ns.median), right=True),
            Column("p10", lambda row: time(row[1].untraced_ns.p10), right=True),
            Column("p90", lambda row: time(row[1].untraced_ns.p90), right=True),
            Column("traced", lambda row: time(row[1].traced_ns.median), right=True),
            Column("its ops", lambda row: time(row[1].ops_ns), right=True),
            Column("images a second", rate, right=True),
        ),
        tuple(found.steps.items()),
    )


def costs(found: Comparison, batch: int, top: int) -> Table:
    """The rows that cost most at one batch size."""

    whole = {row.key: row for row in found.tables.get(batch, ())}

    def rate(row: Compared) -> str:
        gflops = row.cells[batch].gflops
        return "" if gflops is None else f"{gflops:.1f}"

    def roof(row: Compared) -> str:
        share = whole[row.key].roof_share if row.key in whole else None
        return "" if share is None else percent(share)

    def late(row: Compared) -> str:
        return time(whole[row.key].p95_ns) if row.key in whole else ""

    rows = [row for row in found.rows if batch in row.cells]
    if found.by == "layer":
        heading = f"Batch {batch}: the layers in the order of execution (self time)"
    else:
        rows.sort(key=lambda row: -row.cells[batch].total_ns)
        heading = f"Batch {batch}: what costs most (self time)"
    return Table(
        heading,
        (
            Column(NAMES[found.by], lambda row: row.key, elastic=True, least=18, name=True),
            Column("calls", lambda row: f"{row.cells[batch].calls:,}", right=True),
            Column("total", lambda row: time(row.cells[batch].total_ns), right=True),
            Column("a call", lambda row: time(row.cells[batch].mean_ns), right=True),
            Column("p95", late, right=True),
            Column("an image", lambda row: time(row.cells[batch].ns_per_image), right=True),
            Column("share", lambda row: percent(row.cells[batch].share), right=True),
            Column("memory", lambda row: size(row.cells[batch].bytes), right=True),
            Column("GFLOP/s", rate, right=True),
            Column("of roof", roof, right=True),
        ),
        tuple(rows[:top]),
        more=max(0, len(rows) - top),
    )


def side_by_side(found: Comparison, top: int) -> Table:
    """A call at every batch size, and how much longer it takes than at the one before."""

    def call(size: int, before: int | None) -> Column:
        def cell(row: Compared) -> str:
            if size not in row.cells:
                return ""
            mean = row.cells[size].mean_ns
            if before is None or before not in row.cells:
                return time(mean)
            return f"{time(mean)} ({mean / row.cells[before].mean_ns:.1f} x)"

        return Column(f"batch {size}", cell, right=True)

    def fit(row: Compared) -> str:
        if row.fit is None:
            return ""
        return f"{time(row.fit.fixed_ns)} + {time(row.fit.per_image_ns)}"

    def error(row: Compared) -> str:
        return "" if row.fit is None or row.fit.error is None else percent(row.fit.error)

    sizes: list[int | None] = [None, *found.batch_sizes]
    return Table(
        "A call at each batch size (and its ratio to the one before); fixed cost + cost an image",
        (
            Column(NAMES[found.by], lambda row: row.key, elastic=True, least=24),
            *(call(size, before) for before, size in zip(sizes, found.batch_sizes, strict=False)),
            Column("fit", fit, right=True),
            Column("error", error, right=True),
        ),
        found.rows[:top],
        more=max(0, len(found.rows) - top),
    )


def configs(found: Comparison) -> Table:
    def difference(row: ConfigTimes) -> str:
        if row.config == "default":
            return ""
        return f"{row.ratio:.2f} x" if row.significant else "no significant difference"

    return Table(
        "Untraced steps under other configurations, measured in turn",
        (
            Column("configuration", lambda row: row.config),
            Column("batch", lambda row: str(row.batch_size), right=True),
            Column("step", lambda row: time(row.untraced_ns.median), right=True),
            Column("p10", lambda row: time(row.untraced_ns.p10), right=True),
            Column("p90", lambda row: time(row.untraced_ns.p90), right=True),
            Column("images a second", lambda row: f"{row.images_per_second:,.0f}", right=True),
            Column("time against default", difference, right=True),
        ),
        found.configs,
    )


def cold(found: Comparison) -> Table:
    """The very first step, for comparison: this is not what an op costs."""
    return Table(
        f"Cold: the very first step of a process took {time(found.cold_step_ns)}: kernels and "
        "memory were set up",
        (
            Column("node", lambda row: row.name, elastic=True, least=30),
            Column("type that ran", lambda row: row.op),
            Column("first run", lambda row: time(row.self_ns), right=True),
        ),
        found.cold,
    )
