"""Machine: the highest rates of this computer, which no op can exceed.

Two numbers limit every op: the arithmetic rate of the processor, and the bandwidth of memory or a
cache. A short benchmark measures them once for each machine, and they are kept in the user's cache
folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tflab.cli import environment
from tflab.records.measured import Level, Peaks
from tflab.runtime import peak_benchmark

# variables that NumPy's BLAS obeys
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def peaks(cache: Path | None = None) -> Peaks:
    """The peaks of this machine, from the cache or else measured, in about 3 seconds.

    `cache` is a folder; the default is `tflab` in $XDG_CACHE_HOME or ~/.cache. If the file there is
    damaged, was written on another or a busy machine, or lacks a level, the peaks are measured
    again. If the folder cannot be written, they are measured every time. No error is raised for
    that.
    """
    machine = description()
    path = cache_file(machine, cache)
    if path and (cached := read(path, machine)) and is_whole(cached) and not cached.busy:
        return cached
    measured = peak_benchmark.measure()
    return keep(path, machine, measured) if path else measured


def measure_again(known: Peaks, cache: Path | None = None) -> Peaks:
    """The peaks after another measurement, for an op that was faster than they allow.

    Either something else ran during the first measurement, or the op does less work than its FLOPs.
    The higher values are kept. Only values measured here and now go into the cache: `known` may be
    from another machine, or made up.
    """
    machine = description()
    again = peak_benchmark.measure()
    path = cache_file(machine, cache)
    return best(known, keep(path, machine, again) if path else again)


def best(first: Peaks, second: Peaks) -> Peaks:
    """The higher of both: nothing makes a machine faster than it is."""
    levels: dict[int, Level] = {}
    for level in (*first.levels, *second.levels):
        other = levels.setdefault(level.working_set_bytes, level)
        levels[level.working_set_bytes] = Level(
            level.working_set_bytes,
            max(level.one_thread_gb_s, other.one_thread_gb_s),
            max(level.all_threads_gb_s, other.all_threads_gb_s),
        )
    return Peaks(
        max(first.gflops, second.gflops),
        max(first.gigabytes_per_s, second.gigabytes_per_s),
        tuple(levels[size] for size in sorted(levels)),
        first.busy and second.busy,
    )


def is_whole(peaks: Peaks) -> bool:
    """Whether every working set was measured; older versions of tflab measured memory alone."""
    return {level.working_set_bytes for level in peaks.levels}.issuperset(
        peak_benchmark.WORKING_SETS
    )


# The cache


def description() -> dict[str, Any]:
    """What the peaks depend on, as the key of the cache."""
    facts = environment.describe()
    return {
        "processor": facts["processor"],
        "cpus": facts["cpus"],
        "numpy": np.__version__,
        "threads": {name: os.environ[name] for name in THREADS if name in os.environ},
    }


def cache_file(machine: dict[str, Any], cache: Path | None) -> Path | None:
    folder = cache or default_cache()
    return folder / file_name(machine) if folder else None


def file_name(machine: dict[str, Any]) -> str:
    text = json.dumps(machine, sort_keys=True)
    return f"machine-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"


def default_cache() -> Path | None:
    """The user's cache folder; None if there is no home."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "tflab") if os.path.isabs(base) else None


def read(path: Path, machine: dict[str, Any]) -> Peaks | None:
    """The peaks in a cache file; None if it is missing, incomplete or from another machine."""
    try:
        content = json.loads(path.read_bytes())
        if content["machine"] != machine:
            return None
        peaks = Peaks(
            float(content["gflops"]),
            float(content["gigabytes_per_s"]),
            tuple(
                Level(
                    int(level["working_set_bytes"]),
                    float(level["one_thread_gb_s"]),
                    float(level["all_threads_gb_s"]),
                )
                for level in content.get("levels", ())
            ),
            content.get("busy", False) is True,
        )
    except (ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError):
        return None
    numbers = [peaks.gflops, peaks.gigabytes_per_s]
    for level in peaks.levels:
        numbers += (level.working_set_bytes, level.one_thread_gb_s, level.all_threads_gb_s)
    return peaks if all(0 < number < math.inf for number in numbers) else None


def keep(path: Path, machine: dict[str, Any], measured: Peaks) -> Peaks:
    """The best of what was measured and what is in the cache, which is then updated.

    Others may measure at the same time: each reads and writes while the others wait, so that no
    better number is lost.
    """
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(path.parent):
        cached = read(path, machine)
        better = best(cached, measured) if cached else measured
        if better != cached:
            write(path, machine, better)
    return better


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """One process after the other. If the system or the disk has no locks, no process waits."""
    with ExitStack() as ending:
        with suppress(ImportError, OSError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            ending.callback(os.close, descriptor)  # together with its lock
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def write(path: Path, machine: dict[str, Any], measured: Peaks) -> None:
    """Replace the cache file in one step, so that no other process reads half of it."""
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        text = json.dumps({"machine": machine, **asdict(measured)}, indent=2)
        draft.write_text(text + "\n", "utf-8")
        os.replace(draft, path)
    except OSError:  # it will be measured again; that costs three seconds
        with suppress(OSError):
            draft.unlink()
