"""Scaling: what more tasks bring, and how it would go on. No TensorFlow in here.

Strong scaling: the same batch on more and more tasks. Amdahl's law ("Validity of the single
processor approach to achieving large scale computing capabilities", 1967) says what a serial part
leaves to gain; the bytes on the wire, which grow with the tasks, are counted besides, at what a
byte was measured to cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import mean

from tflab.records.cluster import WireTensor
from tflab.records.scaling import Amdahl, Extrapolated, ScalingRow, WireCost

LEAST = 3  # numbers of tasks: two always lie on a curve of two parts
WORST_FIT = 0.2  # relative error of a measured step, from which on a fit says nothing of others
FURTHER = (2, 4)  # times the largest that was measured


def against_alone(rows: Sequence[ScalingRow]) -> tuple[ScalingRow, ...]:
    """The rows with their speed-up against the first one, which is this process alone."""
    alone = rows[0].step_ns.median
    filled = []
    for row in rows:
        speed_up = alone / row.step_ns.median
        efficiency = speed_up / row.tasks if row.tasks else None
        filled.append(replace(row, speed_up=speed_up, efficiency=efficiency))
    return tuple(filled)


def wire_cost(tensors: Iterable[WireTensor]) -> WireCost | None:
    """A line through the median times of messages by their bytes; None where all are of a size."""
    points = [(row.bytes, row.median_ns) for row in tensors]
    if len({size for size, _ in points}) < 2:
        return None
    fixed, slope = line(points)
    if slope < 0:  # noise is larger than what the bytes cost
        return WireCost(mean(ns for _, ns in points), 0.0, len(points))
    return WireCost(max(0.0, fixed), slope, len(points))


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope, by least squares."""
    x_mean, y_mean = mean(x for x, _ in points), mean(y for _, y in points)
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / spread
    return y_mean - slope * x_mean, slope


def amdahl(rows: Iterable[ScalingRow], byte_ns: float) -> Amdahl | None:
    """The serial and the parallel part, neither of them negative."""
    rows = [row for row in rows if row.tasks]
    if len({row.tasks for row in rows}) < LEAST:
        return None
    points = [(1 / row.tasks, row.step_ns.median - byte_ns * row.bytes) for row in rows]
    serial, parallel = line(points)
    if parallel < 0:  # more tasks only cost
        serial, parallel = mean(y for _, y in points), 0.0
    elif serial < 0:
        serial, parallel = 0.0, sum(x * y for x, y in points) / sum(x * x for x, _ in points)
    fitted = Amdahl(serial, parallel, 0.0)
    ratios = (step_ns(fitted, row.tasks, byte_ns * row.bytes) / row.step_ns.median for row in rows)
    return replace(fitted, error=max(abs(ratio - 1) for ratio in ratios))


def step_ns(fitted: Amdahl, tasks: int, wire_ns: float) -> float:
    return fitted.serial_ns + fitted.parallel_ns / tasks + wire_ns


def extrapolated(
    rows: Sequence[ScalingRow], fitted: Amdahl | None, byte_ns: float, batch_size: int
) -> tuple[Extrapolated, ...]:
    """More tasks than were measured; the bytes go on as a line through those that were."""
    measured = [row for row in rows if row.tasks]
    if fitted is None or fitted.error > WORST_FIT:
        return ()
    most = max(row.tasks for row in measured)
    fixed, slope = line([(row.tasks, row.bytes) for row in measured])
    most = max(row.tasks for row in measured)
    return tuple(
        beyond(rows[0], fitted, factor * most, fixed, slope, byte_ns, batch_size)
        for factor in FURTHER
    )


def beyond(
    alone: ScalingRow,
    fitted: Amdahl,
    tasks: int,
    fixed: float,
    slope: float,
    byte_ns: float,
    batch_size: int,
) -> Extrapolated:
    size = max(0.0, fixed + slope * tasks)
    ns = step_ns(fitted, tasks, byte_ns * size)
    return Extrapolated(tasks, ns, batch_size * 1e9 / ns, alone.step_ns.median / ns, size)
