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


CONFIGURATIONS = {
    "default": Configuration(),
    "xla": Configuration({"xla": True}),
    "no-onednn": Configuration(environment={"TF_ENABLE_ONEDNN_OPTS": "0"}),
    "no-grappler": Configuration({"without": ("grappler",)}),
    "one-thread": Configuration({"threads": 1}),
    "gpu": Configuration({"soft_placement": True}),
}
