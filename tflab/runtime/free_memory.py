"""Free memory: what is left on this machine, or in the container."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
LIMIT, USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
DETAILS = Path("/sys/fs/cgroup/memory.stat")
CACHED = ("active_file", "inactive_file")  # pages of files, which the system frees if necessary


def available() -> int | None:
    """Bytes that are free on this machine, or in the container; None if unknown."""
    free = [bytes_ for bytes_ in (free_of_machine(), free_of_container()) if bytes_ is not None]
    return min(free, default=None)


def free_of_machine() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text("ascii").splitlines())
        return sum(int(lines[name].split()[0]) for name in ("MemAvailable", "SwapFree")) * 1024
    except (OSError, KeyError, ValueError):
        return None


def free_of_container() -> int | None:
    try:
        limit, used = int(LIMIT.read_text("ascii")), int(USED.read_text("ascii"))
        details = dict(line.split() for line in DETAILS.read_text("ascii").splitlines())
        return max(0, limit - used + sum(int(details[name]) for name in CACHED))
    except (OSError, KeyError, ValueError):  # no such file, or no limit
        return None
