"""Configurations: settings of the runtime under which a step can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT = "default"


@dataclass(frozen=True)
class Configuration:
    """What is set for it beside the defaults."""

    about: str
    setting: str  # how to have it without tflab
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of Options
    environment: Mapping[str, str] = field(default_factory=dict)  # read when TensorFlow is imported
    beside_default: bool = False  # whether `default` has that environment, too, to be compared with


CONFIGURATIONS = {
    DEFAULT: Configuration("the runtime's default settings", ""),
    "xla": Configuration(
        "XLA compiles what it can into its own code",
        "tf.config.optimizer.set_jit(True)",
        {"xla": True},
    ),
    "no-onednn": Configuration(
        "TensorFlow's own kernels, mostly Eigen, instead of those of oneDNN",
        "TF_ENABLE_ONEDNN_OPTS=0 in the environment before TensorFlow is imported",
        environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    ),
    "no-grappler": Configuration(
        "the graph runs as written: no pass of Grappler rewrites it",
        "disable_meta_optimizer among the optimizer's experimental options",
        {"without": ("grappler",)},
    ),
    # Else the threads of the first session are those of all (core/common_runtime/local_device.cc).
    "one-thread": Configuration(
        "one thread instead of one for each processor, as on a single core",
        "one thread within an op and one between ops, as tf.config.threading sets them",
        {"threads": 1},
        {"TF_OVERRIDE_GLOBAL_THREADPOOL": "1"},
        beside_default=True,
    ),
    "gpu": Configuration(
        "on a GPU; ops that it cannot run are on the processor", "the GPU", {"soft_placement": True}
    ),
}
