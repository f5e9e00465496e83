"""Roofline: the most that this machine can do at an intensity. No TensorFlow in here."""

from __future__ import annotations

from tflab.records import Peaks


def roof(peaks: Peaks, intensity: float) -> float:
    """The most GFLOP/s that this machine can do at an intensity, in FLOPs a byte.

    The roofline of Williams, Waterman and Patterson, "Roofline: an insightful visual performance
    model for multicore architectures", CACM 52(4), 2009: the lower of the peak of the processor
    and of what memory can feed.
    """
    return min(peaks.gflops, intensity * peaks.gigabytes_per_s)
