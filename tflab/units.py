"""Units: how times, sizes, shares and devices are written wherever a reader sees them.

Sizes are in KiB, MiB and GiB, powers of 1024; rates in GB/s and Gbit/s, powers of 1000. Pages get
texts that were written here, so that a number reads alike in a drawing and beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ROUNDS_UP = 0.9995  # from here on three digits of the smaller unit would show 1000
TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}  # unit -> ns
SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}  # unit -> bytes


def time(ns: float) -> str:
    """Return `812 ns`, `18.3 us`, `2.40 ms`, `1.25 s`."""
    return in_units(ns, TIMES)


def size(bytes_: float) -> str:
    """Return `512 B`, `73.5 KiB`, `1.20 MiB`: powers of 1024."""
    return in_units(bytes_, SIZES)


def in_units(value: float, units: Mapping[str, int]) -> str:
    """Return a value with the largest unit that it reaches; the smallest has no decimals."""
    smallest, *larger = units
    for unit in reversed(larger):
        if abs(value) >= units[unit] * ROUNDS_UP:
            return f"{three_digits(value / units[unit])} {unit}"
    return f"{value:.0f} {smallest}"


def three_digits(value: float) -> str:
    return f"{value:.{2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0}f}"


def rounded(value: float) -> str:
    """Return a rate with three digits: `1,830,000`, `4,810`, `85.3`."""
    return f"{float(f'{value:.3g}'):,.10g}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


TASK = re.compile(r"/job:([^/]+)(?:/replica:0)?(?:/task:(\d+))?")


def short_device(device: str) -> str:
    """Return `/job:localhost/replica:0/task:0/device:CPU:1` as `CPU:1`; a device of a task as `task
    1 CPU:0`, and a device of this process beside tasks as `client CPU:0`."""
    task = short_task(task_of(device))
    return f"{task} {device.rpartition('device:')[2]}".strip()


def task_of(device: str) -> str:
    """Return the part of a device's name that names its task."""
    return device.rpartition("/device:")[0]


def short_task(task: str) -> str:
    """Return `/job:worker/replica:0/task:1` as `task 1`, a task of another job as `ps task 1`, and
    this process beside tasks as `client`; "" without tasks."""
    match = TASK.fullmatch(task)
    if not match:
        return task
    job, number = match.groups()
    if job in ("localhost", "client") and number in (None, "0"):
        return job.removeprefix("localhost")
    words = [] if job == "worker" and number else [job]
    return " ".join([*words, *([f"task {number}"] if number else [])])
