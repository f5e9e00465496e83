"""Hardware: the description of the machine, from the system and from TensorFlow."""

from __future__ import annotations

import os

from tflab.cli import environment
from tflab.runtime import devices
from tflab.units import size


def inspected() -> list[tuple[str, str]]:
    """(property, value) for each line of the environment table."""
    about = environment.describe()
    packages = dict(about["packages"])
    framework = packages.pop("tensorflow")
    return [
        ("(v)CPUs", f"{about['cpus']} ({about['processor']})"),
        ("Memory", memory()),
        ("GPUs", devices.gpu_names()),
        ("Operating system", about["os"]),
        ("Framework", f"tensorflow {framework}"),
        ("oneDNN", devices.onednn()),
        ("Python", about["python"]),
        ("CUDA", devices.cuda()),
        ("Other packages", ", ".join(f"{name} {has}" for name, has in packages.items() if has)),
    ]


def memory() -> str:
    try:
        return size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows; a system without this information
        return "not known"
