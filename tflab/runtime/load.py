"""Load: what else the machine does while it measures.

What measures is itself a load, so the average is read before it begins. What the host of a virtual
machine takes away meanwhile stands in /proc/stat as stolen; other systems do not say.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tflab.records.quality import Load

STAT = Path("/proc/stat")
LOOK_S = 0.5  # for what runs now
LEAST_TICKS = 50  # half a second of processor time; of fewer, a single tick is a large share


@dataclass(frozen=True)
class Ticks:
    """Processor time since the machine was started, in hundredths of a second."""

    used: int
    stolen: int


@dataclass(frozen=True)
class Beginning:
    """The machine before a measurement."""

    average: float | None
    ticks: Ticks | None


def beginning(average: float | None = None) -> Beginning:
    """What is known before a measurement; `average` is the load where it was read even before."""
    return Beginning(load_average() if average is None else average, ticks())


def since(start: Beginning) -> Load:
    """The load of a measurement that ends now.

    The average counts who waits for any core of the machine, so it is compared with all of them.
    """
    return Load(os.cpu_count() or 1, start.average, stolen_share(start.ticks, ticks()))


def load_average() -> float | None:
    """How many wanted a core, on average over the last minute; None where nobody counts.

    What kept the machine busy may have ended meanwhile, tflab's last run for one. So where the
    average is above the cores it is asked what runs now: where most of them are idle, that counts.
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


def ticks(stat: Path = STAT) -> Ticks | None:
    """The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal."""
    try:
        name, *numbers = stat.read_text("utf-8").partition("\n")[0].split()
        user, nice, system, _, _, irq, softirq, stolen = map(int, numbers[:8])
    except (OSError, ValueError):
        return None
    return Ticks(user + nice + system + irq + softirq, stolen) if name == "cpu" else None


def stolen_share(start: Ticks | None, end: Ticks | None) -> float | None:
    """The share of the time in which something wanted to run that the host gave to others."""
    if start is None or end is None:
        return None
    stolen = end.stolen - start.stolen
    wanted = end.used - start.used + stolen
    return stolen / wanted if wanted >= LEAST_TICKS else None
