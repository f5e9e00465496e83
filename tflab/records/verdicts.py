"""What a comparison of step times allows to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """How many times as long one way to run a step takes as another, and what that is worth."""

    ratio: float  # geometric mean of the observed ratios
    low: float  # of the interval that holds the true ratio in 99 of 100 comparisons
    high: float
    p_value: float  # of the ratios, if both ways took the same time
    observations: int  # independent of one another
    word: str  # slower, faster, alike, or cannot tell
