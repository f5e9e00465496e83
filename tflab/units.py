"""Units: how times, sizes, shares and devices are written wherever a reader sees them."""

from __future__ import annotations

import re

ROUNDS_UP = 0.9995  # from here on three digits of the smaller unit would show 1000


def time(ns: float) -> str:
    """`812 ns`, `18.3 us`, `2.40 ms`, `1.25 s`: three digits and the unit that suits them."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size * ROUNDS_UP:
            return f"{three_digits(ns / size)} {unit}"
    return f"{ns:.0f} ns"


def size(bytes_: float) -> str:
    """`512 B`, `73.5 KB`, `1.20 MB`, in powers of 1024."""
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(bytes_) >= factor * ROUNDS_UP:
            return f"{three_digits(bytes_ / factor)} {unit}"
    return f"{bytes_:.0f} B"


def three_digits(value: float) -> str:
    return f"{value:.{2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0}f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


CLUSTER_JOBS = ("/job:worker", "/job:client")  # of the tasks that tflab starts, and of itself
TASK = re.compile(r"/job:([^/]+)(?:/replica:(\d+))?(?:/task:(\d+))?")


def short_device(device: str) -> str:
    """`/job:localhost/replica:0/task:0/device:CPU:1` as `CPU:1`; that of a task as `task 1 CPU:0`,
    and this process beside them as `client CPU:0`."""
    task = short_task(task_of(device))
    return f"{task} {device.rpartition('device:')[2]}".strip()


def task_of(device: str) -> str:
    """The part of a device's name that names its task."""
    return device.rpartition("/device:")[0]


def short_task(task: str) -> str:
    """`/job:worker/replica:0/task:1` as `task 1`, that of a job with another name as `ps task 1`;
    this process as `client` beside tasks, and as nothing without them."""
    match = TASK.fullmatch(task)
    if not match:
        return task
    job, replica, number = match.groups()
    if job in ("localhost", "client") and replica in (None, "0") and number in (None, "0"):
        return job.removeprefix("localhost")
    words = [] if job == "worker" and number else [job]
    words += [f"replica {replica}"] if replica not in (None, "0") else []
    return " ".join([*words, *([f"task {number}"] if number else [])])


def each(unit: str) -> str:
    """`an image`, `a row`."""
    return f"{'an' if unit[0] in 'aeiou' else 'a'} {unit}"
