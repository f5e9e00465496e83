"""Machine load: what else keeps the processors of the machine busy during a measurement, by the
time of all processors in /proc/stat, and that of the host of a virtual machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tflab.records.measured import Load

STAT = Path("/proc/stat")


def begin() -> Callable[[], Load]:
    """Return a function that returns the Load from now until its call."""
    others_before, start, processors = others_s(), time.monotonic(), os.cpu_count() or 1

    def load() -> Load:
        others, elapsed, during = others_s(), time.monotonic() - start, None
        if others is not None and others_before is not None and elapsed > 0:
            during = min(processors, max(0.0, (others - others_before) / elapsed))
        return Load(processors, during)

    return load


def others_s(stat: Path = STAT) -> float | None:
    """Return the processor time that other programs and the host used: user, nice, system, irq,
    softirq and steal in the first line of /proc/stat, less the time of this process and of its
    children that ended. None if it is unknown."""
    try:
        _, *numbers = stat.read_text("utf-8").partition("\n")[0].split()
        user, nice, system, _, _, irq, softirq, stolen = map(int, numbers[:8])
    except (OSError, ValueError):
        return None
    ticks = user + nice + system + irq + softirq + stolen
    return ticks / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])
