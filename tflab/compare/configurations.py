"""Configurations: runtime settings under which a step can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT = "default"


@dataclass(frozen=True)
class Configuration:
    """The settings that differ from the defaults."""

    about: str
    setting: str  # how to get it without tflab
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of Options
    environment: Mapping[str, str] = field(default_factory=dict)  # read when TensorFlow is imported
    # whether `default` needs that environment, too, for the comparison
    beside_default: bool = False


CONFIGURATIONS = {
    DEFAULT: Configuration("the runtime's default settings", ""),
    "xla": Configuration(
        "XLA compiles what it can into its own code",
        "tf.config.optimizer.set_jit(True)",
        {"xla": True},
    ),
    "no-onednn": Configuration(
        "TensorFlow's own kernels, mostly Eigen, instead of oneDNN's",
        "TF_ENABLE_ONEDNN_OPTS=0 in the environment before TensorFlow is imported",
        environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    ),
    "no-grappler": Configuration(
        "the graph runs as written: no pass of Grappler rewrites it",
        "disable_meta_optimizer among the optimizer's experimental options",
        {"without": ("grappler",)},
    ),
    # Otherwise all sessions share the threads of the first (core/common_runtime/local_device.cc).
    "one-thread": Configuration(
        "one thread instead of one for each processor, as on a single core",
        "one thread within an op and one between ops, as tf.config.threading sets them",
        {"threads": 1},
        {"TF_OVERRIDE_GLOBAL_THREADPOOL": "1"},
        beside_default=True,
    ),
    "gpu": Configuration(
        "on a GPU; ops that it cannot run stay on the processor",
        "the GPU",
        {"soft_placement": True},
    ),
}
