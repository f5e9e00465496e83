"""Configurations: settings of the runtime under which a step can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Configuration:
    """What is set for it beside the defaults."""

    options: Mapping[str, Any] = field(default_factory=dict)  # fields of Options
    environment: Mapping[str, str] = field(default_factory=dict)  # read when TensorFlow is imported
    beside_default: bool = False  # whether `default` has that environment, too, to be compared with


CONFIGURATIONS = {
    "default": Configuration(),
    "xla": Configuration({"xla": True}),
    "no-onednn": Configuration(environment={"TF_ENABLE_ONEDNN_OPTS": "0"}),
    "no-grappler": Configuration({"without": ("grappler",)}),
    # Else the threads of the first session are those of all (core/common_runtime/local_device.cc).
    "one-thread": Configuration(
        {"threads": 1}, {"TF_OVERRIDE_GLOBAL_THREADPOOL": "1"}, beside_default=True
    ),
    "gpu": Configuration({"soft_placement": True}),
}
