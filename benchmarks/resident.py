"""Resident: the resident memory of this process according to Linux. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def now() -> int:
    """Bytes resident now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def forget_peak() -> None:
    """Reset `peak`. `ru_maxrss` cannot be reset: it includes memory that was freed before."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most bytes resident since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
