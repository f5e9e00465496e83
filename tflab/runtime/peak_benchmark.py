"""Peak benchmark: the arithmetic rate of this computer, and the bandwidth of memory and caches."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from tflab.cli import environment
from tflab.records.measured import Level, Peaks
from tflab.runtime import load

MATRIX_SIDES = (1024, 1536, 2048)  # large enough that multiplying hides the reading
ARRAY_BYTES = 128 * 2**20  # each of three: far beyond the caches of most processors
BENCHMARK_SECONDS = 0.7  # for each of the two
WORKING_SETS = tuple(2**power for power in (14, 16, 18, 20, 22, 24, 27))  # 16 KiB to 128 MiB
LEVEL_SECONDS = 0.02  # for each of two ways, at each working set, with one thread and with all
# read from a working set repeatedly, so that starting threads takes little of the time
SWEPT_BYTES = 2**26
FLOAT32 = 4  # bytes


def measure() -> Peaks:
    """The best of many short runs. Other programs only slow a run down; on a machine that is always
    busy the peaks are too low, and marked as such.

    GFLOP/s: square float32 products by NumPy's BLAS, with its default threads, a multiply-add
    counted as two operations. TensorFlow has its own kernels, so a convolution may slightly exceed
    this peak.

    GB/s: the copy and add of McCalpin's STREAM benchmark (1995) with a thread for each processor,
    counting the bytes that are read and written, but not those that a cache fetches before it
    overwrites them.

    Levels: the add of that benchmark on arrays of increasing size; see `level`.
    """
    threads = environment.describe()["cpus"]
    average = load.load_average()
    return Peaks(
        best_gflops(MATRIX_SIDES),
        best_gigabytes_per_s(ARRAY_BYTES),
        tuple(level(size, threads) for size in WORKING_SETS),
        busy=average is not None and average > (os.cpu_count() or 1),
    )


def best_gflops(sides: Sequence[int]) -> float:
    end = time.perf_counter() + BENCHMARK_SECONDS
    best = 0.0
    for index, side in enumerate(sides):
        operations = 2 * side**3
        left = end - time.perf_counter()
        if best and 2 * operations / best / 1e9 > left:
            break  # on a slow machine the next product would take too long
        factor: np.ndarray = np.full((side, side), 0.5, np.float32)
        product = np.empty_like(factor)
        multiply = partial(np.matmul, factor, factor, out=product)
        seconds = quickest(multiply, left / (len(sides) - index))
        best = max(best, operations / seconds / 1e9)
    return best


def best_gigabytes_per_s(array_bytes: int) -> float:
    threads = environment.describe()["cpus"]
    arrays: list[np.ndarray] = [np.ones(array_bytes // 4, np.float32) for _ in range(3)]
    parts = [np.array_split(array, threads) for array in arrays]
    with ThreadPoolExecutor(threads) as pool:  # NumPy releases Python's lock meanwhile
        copying = quickest(lambda: all_of(pool.map(copy, *parts)), BENCHMARK_SECONDS / 2)
        adding = quickest(lambda: all_of(pool.map(add, *parts)), BENCHMARK_SECONDS / 2)
    return max(2 * array_bytes / copying, 3 * array_bytes / adding) / 1e9


def level(size: int, threads: int) -> Level:
    """The bandwidth of one thread, and of all, for repeated access to a working set of this
    size."""
    return Level(size, sweeping_gb_s(size, 1), sweeping_gb_s(size, threads))


def sweeping_gb_s(size: int, threads: int) -> float:
    """GB/s of adding one array to another, if both together have this size.

    Each turn reads two arrays and writes one. The quicker of two ways counts: all turns in one call
    of NumPy, so that small arrays do not wait for Python, or one call per turn, which is quicker
    for large ones. The first turn within one call copies: it reads one array.
    """
    elements = max(1, size // (2 * FLOAT32) // threads)
    turns = max(1, SWEPT_BYTES // size)
    arrays: list[list[np.ndarray]] = [
        [np.ones(elements, np.float32) for _ in range(threads)] for _ in range(2)
    ]
    bytes_a_turn = 3 * FLOAT32 * elements * threads
    with ThreadPoolExecutor(threads) as pool:

        def seconds(work: Callable[[int, np.ndarray, np.ndarray], None]) -> float:
            return quickest(lambda: all_of(pool.map(partial(work, turns), *arrays)), LEVEL_SECONDS)

        within = bytes_a_turn * (turns - 1 / 3) / seconds(add_in_one_call)
        between = bytes_a_turn * turns / seconds(add_in_turns)
    return max(within, between) / 1e9


def add_in_one_call(turns: int, a: np.ndarray, total: np.ndarray) -> None:
    np.add.reduce(np.broadcast_to(a, (turns, len(a))), axis=0, out=total)


def add_in_turns(turns: int, a: np.ndarray, total: np.ndarray) -> None:
    for _ in range(turns):
        np.add(a, total, out=total)


def copy(a: np.ndarray, _: np.ndarray, c: np.ndarray) -> None:
    np.copyto(c, a)


def add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    np.add(a, b, out=c)


def all_of(results: Iterable[None]) -> None:
    for _ in results:
        pass


def quickest(work: Callable[[], Any], seconds: float) -> float:
    """Seconds of the quickest of as many runs as fit into a time, but at least one.

    A previous run pays for threads and for new memory; it does not count.
    """
    deadline = time.perf_counter() + seconds
    work()
    best = math.inf
    while best == math.inf or time.perf_counter() < deadline:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
