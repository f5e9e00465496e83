"""Compare: what the ops of a step cost at several batch sizes and under several configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tflab.records.measured import Comparison
from tflab.records.options import Options

DEFAULT = "default"
PASSES = "passes"  # among --configs: one without each pass that changed the graph
WITHOUT = "without "  # before the name of a pass: the configuration that switches it off
WHAT = "comparison"  # the name of a saved file in errors
RACE_S = 300.0  # after which no further observation of the configurations starts


@dataclass(frozen=True)
class Configuration:
    """A configuration: its meaning, and the settings that differ from the defaults."""

    about: str
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of Options
    # Read when TensorFlow is imported; beside options, `default` needs it too, for the comparison
    environment: Mapping[str, str] = field(default_factory=dict)


CONFIGURATIONS = {
    DEFAULT: Configuration("the runtime's default settings"),
    "xla": Configuration("XLA compiles what it can into its own code", {"xla": True}),
    "no-onednn": Configuration(
        "TensorFlow's own kernels, mostly Eigen, instead of oneDNN's",
        environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    ),
    "no-grappler": Configuration(
        "the graph runs as written: no pass of Grappler rewrites it", {"without": ("grappler",)}
    ),
    # Otherwise all sessions share the threads of the first (core/common_runtime/local_device.cc).
    "one-thread": Configuration(
        "one thread instead of one for each processor, as on a single core",
        {"threads": 1},
        {"TF_OVERRIDE_GLOBAL_THREADPOOL": "1"},
    ),
    "gpu": Configuration(
        "on a GPU; ops that it cannot run stay on the processor", {"soft_placement": True}
    ),
}


def setting_of(config: str) -> Configuration:
    """Return a configuration by its name, which may be `without remapper`."""
    if not config.startswith(WITHOUT):
        return CONFIGURATIONS[config]
    name = config.removeprefix(WITHOUT)
    return Configuration(f"the pass {name} is off", {"without": (name,)})


@dataclass(frozen=True)
class SweepOptions:
    """The options of a comparison."""

    phase: str = "inference"
    by: str = "op"  # what a row of the tables is
    images: int | None = None  # from the start of the test split, or of the training split
    steps: int | None = None  # instead: as many images as these steps of the largest batch take
    seconds: float | None = None  # instead: as many images as take about this long
    configs: tuple[str, ...] = (DEFAULT,)  # to race at each batch size, `default` first
    race_s: float = RACE_S  # longer if a verdict requires more observations


def compare_batch_sizes(
    model: str,
    batch_sizes: Sequence[int],
    chosen: SweepOptions | None = None,
    *,
    options: Options | None = None,
) -> Comparison:
    """Measure a model's step at each batch size, and then untraced under each configuration. Raise
    UsageError for too few images or an unsupported configuration; TflabError if a step fails."""
    # Not at the top: a command that leaves the work to a confined process needs none of these
    from tflab.runtime import dumps, tf_import

    dumps.prepare()  # before the following modules import TensorFlow
    tf_import.load()
    from tflab.compare import comparison

    return comparison.compare(model, batch_sizes, chosen or SweepOptions(), options or Options())
