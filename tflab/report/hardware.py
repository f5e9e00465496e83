"""Hardware: what the report has to say of the machine. Asked of the system and of TensorFlow."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from tflab.cli import environment
from tflab.units import size


def inspected() -> list[tuple[str, str]]:
    """(what, found) for each line of the environment table. Imports TensorFlow."""
    import tensorflow as tf

    about = environment.describe()
    packages = dict(about["packages"])
    framework = packages.pop("tensorflow")
    return [
        ("(v)CPUs", f"{about['cpus']} ({about['processor']})"),
        ("Memory", memory()),
        ("GPUs", gpus(tf)),
        ("Operating system", about["os"]),
        ("Framework", f"tensorflow {framework}"),
        ("Python", about["python"]),
        ("CUDA", cuda(tf)),
        ("Other packages", ", ".join(f"{name} {has}" for name, has in packages.items() if has)),
    ]


def memory() -> str:
    try:
        return size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError):
        return "not known"


def gpus(tf: Any) -> str:
    """`2 x NVIDIA A100`, or that there are none that TensorFlow can use."""
    found = tf.config.list_physical_devices("GPU")
    details = (tf.config.experimental.get_device_details(one) for one in found)
    names = Counter(one.get("device_name", "unnamed") for one in details)
    return ", ".join(f"{count} x {name}" for name, count in names.items()) or "none"


def cuda(tf: Any) -> str:
    """The version that TensorFlow was built for, and whether it is in use."""
    built = tf.sysconfig.get_build_info().get("cuda_version")
    if not built:
        return "none: this TensorFlow is built without it"
    used = "in use" if tf.config.list_physical_devices("GPU") else "not in use, there is no GPU"
    return f"built for {built}; {used}"
