"""Roofline: the highest rate that this machine can reach at an intensity. No TensorFlow in here."""

from __future__ import annotations

from tflab.records import Peaks


def roof(peaks: Peaks, intensity: float) -> float:
    """The highest rate in GFLOP/s that this machine can reach at an intensity in FLOPs per byte.

    The roofline of Williams, Waterman and Patterson, "Roofline: an insightful visual performance
    model for multicore architectures", CACM 52(4), 2009: the lower of the processor's peak and of
    what memory bandwidth allows.
    """
    return min(peaks.gflops, intensity * peaks.gigabytes_per_s)
