"""Environment: the machine and its software, the extras that are missing, and free memory."""

from __future__ import annotations

import functools
import os
import platform
from contextlib import suppress
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tflab.errors import TflabError

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"  # TensorFlow reads it when it is imported
HAS_AFFINITY = hasattr(os, "sched_getaffinity")
MEMINFO = Path("/proc/meminfo")
PACKAGES = ("tensorflow", "tensorboard", "xprof", "numpy", "protobuf")


def describe() -> dict[str, Any]:
    """Return Python, operating system, processors and packages; import none of them."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.platform()
    return {
        "python": platform.python_version(),
        "os": system,
        "processor": processor(),
        "cpus": len(os.sched_getaffinity(0)) if HAS_AFFINITY else os.cpu_count(),
        "date": now(),
        ONEDNN: os.environ.get(ONEDNN),
        "packages": {name: version(name) for name in PACKAGES},
    }


def now() -> str:
    """Return the time in UTC, as `2026-11-22T12:40:31Z`."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


@functools.cache
def version(package: str) -> str | None:
    from importlib import metadata  # `--help` does not need it

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# The extras of pyproject.toml, which not everybody installs

EXTRAS = {  # the packages of each, by the names under which they are imported
    "profile": ("xprof",),
    "report": ("matplotlib", "igraph", "sklearn", "PIL"),
    "code": ("capstone", "elftools"),
}
INSTALL = "python -m pip install 'tflab[{}]'"


def missing(*packages: str) -> str:
    """Return the command that installs the extra of the first missing package; "" without one."""
    extras = (name for p in packages if not find_spec(p) for name in EXTRAS if p in EXTRAS[name])
    return next(map(INSTALL.format, extras), "")


def lack(what: str, *packages: str) -> str:
    """Return a sentence if one of the packages that something needs is missing."""
    command = missing(*packages)
    return f"{what} needs packages that are not installed. Run: {command}" if command else ""


def require(what: str, *packages: str) -> None:
    """Raise TflabError if one of the packages that something needs is missing."""
    if sentence := lack(what, *packages):
        raise TflabError(sentence)


def processor() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def free_memory() -> int | None:
    """Return the bytes that are free on this machine; None if unknown."""
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text("ascii").splitlines())
        return sum(int(lines[name].split()[0]) for name in ("MemAvailable", "SwapFree")) * 1024
    except (OSError, KeyError, ValueError):
        return None
