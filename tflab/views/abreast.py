"""Abreast: ratios with their intervals, and tables that are cut to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TypeVar

from tflab.records.verdicts import Verdict

Item = TypeVar("Item")


def ratio_text(verdict: Verdict) -> str:
    """Return `1.35 x [1.30, 1.40]`, or `alike` or `cannot tell` with the interval."""
    if verdict.word in ("slower", "faster"):
        return f"{verdict.ratio:.2f} x {ends_text(verdict.low, verdict.high)}"
    return f"{verdict.word} {ends_text(verdict.low, verdict.high)}".rstrip()


def control_text(verdict: Verdict) -> str:
    """Return the interval of the control."""
    return ends_text(verdict.control_low, verdict.control_high)


def ends_text(low: float, high: float) -> str:
    """Return `[0.98, 1.02]`; nothing for the interval of too few observations."""
    return f"[{low:.2f}, {high:.2f}]" if isfinite(low) and isfinite(high) else ""


def chunks(items: Sequence[Item], count: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + count] for start in range(0, len(items), count))
