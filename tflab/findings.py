"""Findings: sentences about a comparison, each computed from its table. No TensorFlow in here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tflab.records import Cell, Compared, ConfigTimes, Fit, StepTimes
from tflab.rows import STEPWISE
from tflab.table import percent, time

TOP = 3  # rows that are spoken of
FIXED = 0.5  # a larger share of fixed cost is worth a sentence
HELPS = 1.1  # a batch size has to bring at least this factor in images per second
LINE = 3  # points that a line has to fit: through two there always is one


def fit(cells: Mapping[int, Cell], steps: Mapping[int, StepTimes]) -> Fit | None:
    """The line through the time that a step spends in a row at each batch size."""
    return line({size: step_ns(cell, steps[size]) for size, cell in cells.items()})


def line(times: Mapping[int, float]) -> Fit | None:
    """Least squares for `time = fixed + per image * batch size`, relative errors weighted
    equally, so that the small batch counts as much as the large. None for fewer than LINE sizes.
    """
    points = [(size, ns) for size, ns in times.items() if ns > 0]
    if len(points) < LINE:
        return None
    # Weights 1 / ns^2 turn the sum of squares into one of relative errors.
    weights = [1 / ns**2 for _, ns in points]
    total = sum(weights)
    mean_n = sum(w * n for w, (n, _) in zip(weights, points, strict=True)) / total
    mean_t = sum(w * t for w, (_, t) in zip(weights, points, strict=True)) / total
    spread = sum(w * (n - mean_n) ** 2 for w, (n, _) in zip(weights, points, strict=True))
    slope = (
        sum(w * (n - mean_n) * (t - mean_t) for w, (n, t) in zip(weights, points, strict=True))
        / spread
    )
    fixed = mean_t - slope * mean_n
    error = max(abs(fixed + slope * n - t) / t for n, t in points)
    return Fit(fixed, slope, error)


def step_ns(cell: Cell, steps: StepTimes) -> float:
    """The time that a step spends in a row."""
    return cell.total_ns / steps.steps


def unit(by: str) -> str:
    """What one time of a row is: a call, or where its ops are of many kinds a step."""
    return "step" if by in STEPWISE else "call"


def unit_ns(cell: Cell, steps: StepTimes, by: str) -> float:
    """The mean time of a `unit`."""
    return step_ns(cell, steps) if unit(by) == "step" else cell.mean_ns


def sentences(
    rows: Sequence[Compared],
    steps: Mapping[int, StepTimes],
    by: str = "op",
    configs: Sequence[ConfigTimes] = (),
) -> tuple[str, ...]:
    """What the table says, in the order in which a reader would ask."""
    sizes = sorted(steps)
    rows = sorted(rows, key=lambda row: -sum(cell.total_ns for cell in row.cells.values()))
    return (
        *growth(rows, sizes),
        *longer(rows, steps, sizes, by),
        *fixed_costs(rows, sizes),
        *throughput(steps, sizes),
        *overhead(steps, sizes),
        *configurations(configs),
    )


def growth(rows: Sequence[Compared], sizes: Sequence[int]) -> Iterator[str]:
    """Whose share grows or shrinks most from the smallest batch to the largest."""
    everywhere = [row for row in rows if all(size in row.cells for size in sizes)]
    if len(sizes) < 2 or not everywhere:
        return
    first, last = sizes[0], sizes[-1]

    def change(row: Compared) -> float:
        return row.cells[last].share - row.cells[first].share

    for row, verb in (
        (max(everywhere, key=change), "rises"),
        (min(everywhere, key=change), "falls"),
    ):
        if change(row) > 0 if verb == "rises" else change(row) < 0:
            between = (f"{percent(row.cells[n].share)} at {n}" for n in sizes[1:-1])
            way = f" by way of {', '.join(between)}" if len(sizes) > 2 else ""
            yield (
                f"The share of {row.key} {verb} from {percent(row.cells[first].share)} at batch "
                f"{first} to {percent(row.cells[last].share)} at {last}{way}."
            )


def longer(
    rows: Sequence[Compared], steps: Mapping[int, StepTimes], sizes: Sequence[int], by: str
) -> Iterator[str]:
    """`X: from 1 to 16 a call takes 2.30 x as long for 16 x the work.`"""
    for row in rows[:TOP]:
        times = {size: unit_ns(cell, steps[size], by) for size, cell in row.cells.items()}
        parts = [
            f"from {small} to {large} a {unit(by)} takes {times[large] / times[small]:.2f} x as "
            f"long for {large / small:g} x the work"
            for small, large in pairwise(sizes)
            if large in times and times.get(small)
        ]
        if parts:
            yield f"{row.key}: {'; '.join(parts)}."


def fixed_costs(rows: Sequence[Compared], sizes: Sequence[int]) -> Iterator[str]:
    """Where the fixed cost is most of what a step costs at the smallest batch."""
    size = sizes[0]
    for row in rows[:TOP]:
        if row.fit and size in row.cells:
            at_size = row.fit.fixed_ns + row.fit.per_image_ns * size
            share = row.fit.fixed_ns / at_size if at_size > 0 else 0
            if share > FIXED and row.fit.per_image_ns > 0:
                yield (
                    f"{row.key} costs {time(row.fit.fixed_ns)} a step before the first image and "
                    f"{time(row.fit.per_image_ns)} for each (a straight line, within "
                    f"{percent(row.fit.error)}): at batch {size}, {percent(min(share, 1))} of it "
                    "is fixed cost."
                )


def throughput(steps: Mapping[int, StepTimes], sizes: Sequence[int]) -> Iterator[str]:
    """How images per second grow, and from where on a larger batch no longer helps."""
    for small, large in pairwise(sizes):
        gain = steps[large].images_per_second / steps[small].images_per_second
        if gain < HELPS:
            yield (
                f"From batch {small} to {large} images per second change by a factor of only "
                f"{gain:.2f}: a larger batch no longer helps."
            )
        else:
            yield f"Batch {large} does {gain:.2f} x the images per second of batch {small}."


def overhead(steps: Mapping[int, StepTimes], sizes: Sequence[int]) -> Iterator[str]:
    """Where a step takes longer than all of its ops together."""
    for size in sizes:
        wall, ops = steps[size].untraced_ns.median, steps[size].ops_ns
        if wall > 2 * ops:
            yield (
                f"At batch {size} an untraced step takes {time(wall)}, its ops together only "
                f"{time(ops)}: Python and the session cost more than the ops."
            )


def configurations(configs: Sequence[ConfigTimes]) -> Iterator[str]:
    """Where a step under another configuration takes clearly more or less time than usual.

    Clearly: by the sign test, by a factor of HELPS at least, and with a median that lies outside
    the middle eight tenths of the usual steps.
    """
    usual = {row.batch_size: row.untraced_ns for row in configs if row.config == "default"}
    found: dict[str, list[str]] = {}
    for row in configs:
        default, now = usual[row.batch_size], row.untraced_ns.median
        factor = max(row.ratio, 1 / row.ratio) if row.ratio else 0.0
        if row.significant and factor >= HELPS and not default.p10 <= now <= default.p90:
            found.setdefault(row.config, []).append(
                f"{row.ratio:.2f} x as long at batch {row.batch_size} "
                f"({time(now)} against {time(default.median)})"
            )
    for config, parts in found.items():
        yield f"Against default, an untraced step under {config} takes {', '.join(parts)}."
