"""Environment: the machine and software of a measurement, read from the system."""

from __future__ import annotations

import functools
import os
import platform
from datetime import datetime, timezone
from typing import Any

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"  # TensorFlow reads it when it is imported
PACKAGES = ("tensorflow", "tensorboard", "xprof", "numpy", "protobuf")


def describe() -> dict[str, Any]:
    """Python, operating system, processors and packages; imports none of them."""
    return {
        "python": platform.python_version(),
        "os": operating_system(),
        "processor": processor(),
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "date": now(),
        ONEDNN: os.environ.get(ONEDNN),
        "packages": {name: version(name) for name in PACKAGES},
    }


def now() -> str:
    """The time in UTC, as `2026-11-22T12:40:31Z`."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


@functools.cache
def version(package: str) -> str | None:
    from importlib import metadata  # `--help` does not need it

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def operating_system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
