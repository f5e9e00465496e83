"""Load: what else the machine does during a measurement.

A measurement is itself a load, so the average is read before it begins. The time that the host of a
virtual machine takes is in /proc/stat as "stolen"; other systems do not report it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tflab.records.verdicts import Load

STAT = Path("/proc/stat")
LOOK_S = 0.2  # duration of the check of what runs now; an edit of the live page waits for it
LEAST_TICKS = 50  # half a second of processor time; of fewer, a single tick is a large share


@dataclass(frozen=True)
class ProcessorTime:
    """Processor time since the machine was started, in hundredths of a second."""

    used: int
    stolen: int


@dataclass(frozen=True)
class Beginning:
    """The machine before a measurement."""

    average: float | None
    ticks: ProcessorTime | None


def beginning(average: float | None = None) -> Beginning:
    """The state before a measurement; `average` is the load if it was read earlier."""
    return Beginning(load_average() if average is None else average, ticks())


def since(start: Beginning) -> Load:
    """The load during a measurement that ends now.

    The average counts waiting for any core, so it is compared with all cores.
    """
    return Load(os.cpu_count() or 1, start.average, stolen_share(start.ticks, ticks()))


def load_average() -> float | None:
    """The average number of running and waiting processes over the last minute; None if unknown.

    That load may have ended meanwhile, such as a previous run of tflab. So if the average exceeds
    the number of cores, the current load is checked, and counts if most cores are idle.
    """
    try:
        average = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows; a container without /proc
        return None
    cores = os.cpu_count() or 1
    if average <= cores:
        return average
    start = ticks()
    time.sleep(LOOK_S)
    end = ticks()
    if start is None or end is None:
        return average
    busy = (end.used - start.used) / 100 / LOOK_S
    return busy if busy < cores / 2 else average


def ticks(stat: Path = STAT) -> ProcessorTime | None:
    """The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal."""
    try:
        name, *numbers = stat.read_text("utf-8").partition("\n")[0].split()
        user, nice, system, _, _, irq, softirq, stolen = map(int, numbers[:8])
    except (OSError, ValueError):
        return None
    return ProcessorTime(user + nice + system + irq + softirq, stolen) if name == "cpu" else None


def stolen_share(start: ProcessorTime | None, end: ProcessorTime | None) -> float | None:
    """The share of the time in which something wanted to run that the host took."""
    if start is None or end is None:
        return None
    stolen = end.stolen - start.stolen
    wanted = end.used - start.used + stolen
    return stolen / wanted if wanted >= LEAST_TICKS else None
