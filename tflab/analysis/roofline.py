"""Roofline: the highest rate that this machine can reach at an arithmetic intensity."""

from __future__ import annotations

from tflab.records.measured import Peaks


def roof(peaks: Peaks, intensity: float, size: float | None = None) -> float:
    """The highest rate in GFLOP/s that this machine can reach at an intensity in FLOPs per byte.

    The roofline of Williams, Waterman and Patterson, "Roofline: an insightful visual performance
    model for multicore architectures", CACM 52(4), 2009: the lower of the processor's peak and of
    what bandwidth allows. `size` is the bytes of the inputs and outputs of a call, which decide
    between caches and memory; without it, memory is assumed.
    """
    return min(peaks.gflops, intensity * bandwidth(peaks, size))


def bandwidth(peaks: Peaks, size: float | None = None) -> float:
    """The bandwidth in GB/s for inputs and outputs of this size in bytes.

    A roof for each level of the caches is that of Ilic, Pratas and Sousa, "Cache-aware roofline
    model: upgrading the loft", IEEE Computer Architecture Letters 13(1), 2014. The level is the
    smallest measured working set that the tensors fit into. A smaller working set is at least as
    fast as a larger one: if it was measured to be slower, the benchmark was disturbed.
    """
    if size is None:
        return peaks.gigabytes_per_s
    levels = (level for level in peaks.levels if level.working_set_bytes >= size)
    rates = (max(level.one_thread_gb_s, level.all_threads_gb_s) for level in levels)
    return max((peaks.gigabytes_per_s, *rates))
