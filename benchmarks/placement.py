"""How the time of the stages before execution grows with the graph: 1,000 to 16,000 nodes.

    python -m benchmarks.placement

The graphs are generated: layers of a multiplication, an addition and a tanh, each with its own
variable, and a loss. Each size runs in a separate process; the import of TensorFlow is timed
separately. A constant time per node means linear growth.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

SIZES = (1_000, 2_000, 4_000, 8_000, 11_000, 16_000)
STAGES = ("frontend", "backward", "placement")


def rows() -> Iterator[dict[str, float]]:
    """The seconds of each stage, the nodes and the memory (MiB), for each size."""
    for size in SIZES:
        process = subprocess.run(
            [sys.executable, "-m", "benchmarks.placement", str(size)],
            capture_output=True,
            text=True,
            check=True,
        )
        yield json.loads(process.stdout)


def main() -> None:
    print(f"{'nodes':>7} {'import':>8}", *(f"{stage:>10}" for stage in STAGES), end=" ")
    print(f"{'stages':>8} {'per node':>9} {'memory':>9}")
    for row in rows():
        total = sum(row[stage] for stage in STAGES)
        print(f"{row['nodes']:>7,} {row['import']:>6.2f} s", end=" ")
        print(*(f"{row[stage]:>8.2f} s" for stage in STAGES), end=" ")
        print(f"{total:>6.2f} s {1e6 * total / row['nodes']:>6.0f} us {row['mib']:>5.0f} MiB")


def measure_size(size: int) -> None:
    from tflab import lifecycle, models
    from tflab.runtime import dumps

    dumps.prepare()
    start = time.perf_counter()
    import tensorflow as tf  # noqa: F401

    row: dict[str, float] = {"import": time.perf_counter() - start}
    models.MODELS["generated"] = f"benchmarks.placement:layers_{size}"
    globals()[f"layers_{size}"] = lambda: layers(size)
    sys.modules["benchmarks.placement"] = sys.modules["__main__"]
    start = time.perf_counter()
    for name, stage in zip(STAGES, lifecycle.walk("generated", stop="placement"), strict=True):
        row[name] = time.perf_counter() - start
        start = time.perf_counter()
        if name == "backward":
            row["nodes"] = len(stage.nodes)
    row["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(row))


def layers(size: int):
    """A model of about `size` nodes, gradients included: a layer adds about 36."""
    import numpy as np
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    from tflab.datasets import Dataset
    from tflab.records.options import Model

    x = hidden = tf1.placeholder(tf.float32, [None, 8], name="x")
    for index in range(max(1, size // 36)):
        with tf1.variable_scope(f"layer{index}", use_resource=True):
            scale = tf1.get_variable("scale", [8], initializer=tf1.ones_initializer())
            shift = tf1.get_variable("shift", [8], initializer=tf1.zeros_initializer())
            hidden = tf.tanh(hidden * scale + shift)
    data = np.random.default_rng(0).normal(size=(256, 8)).astype(np.float32)
    return Model(
        output=hidden,
        feeds={x: "x"},
        data=lambda split, data_dir: Dataset("random", split, {"x": data}),
        loss=tf.reduce_mean(hidden**2, name="loss"),
        optimizer=tf1.train.GradientDescentOptimizer(0.1),
    )


if __name__ == "__main__":
    measure_size(int(sys.argv[1])) if len(sys.argv) > 1 else main()
