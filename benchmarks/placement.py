"""How the time of the stages before execution grows with the graph: 1,000 to 100,000 nodes.

    python -m benchmarks.placement

The graphs are generated: layers of a multiplication, an addition and a tanh, each with its own
variable, and a loss. Plain TensorFlow beside it builds the same graph, adds the same gradients and
updates, and runs one step. Each size runs in separate processes. The import of TensorFlow is not
included. A constant time per node means linear growth.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 100_000)
STAGES = ("frontend", "backward", "placement")


def rows() -> Iterator[dict[str, Any]]:
    """For each size the nodes, and for tflab and for plain TensorFlow the processor seconds of each
    part, the seconds in total, and the memory (MiB)."""
    for size in SIZES:
        tflab, plain = run("stages", size), run("plain", size)
        yield {**tflab, "plain": plain}


def run(what: str, size: int) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.placement", what, str(size)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(process.stdout))


def main() -> None:
    print(f"{'nodes':>7}", *(f"{stage:>10}" for stage in STAGES), end=" ")
    print(f"{'stages':>9} {'per node':>9} {'plain':>9} {'ratio':>6}", end=" ")
    print(f"{'memory':>10} {'plain':>10} {'ratio':>6}")
    for row in rows():
        total, plain = sum(row[stage] for stage in STAGES), row["plain"]
        print(f"{row['nodes']:>7,}", *(f"{row[stage]:>8.2f} s" for stage in STAGES), end=" ")
        print(f"{total:>7.2f} s {1e6 * total / row['nodes']:>6.0f} us", end=" ")
        print(f"{plain['cpu']:>7.2f} s {total / plain['cpu']:>6.2f}", end=" ")
        print(f"{row['mib']:>6,.0f} MiB {plain['mib']:>6,.0f} MiB", end=" ")
        print(f"{row['mib'] / plain['mib']:>6.2f}")
    print("Times are of the processor. Targets: ratios of at most 2 (time) and 1.5 (memory).")


def stages(size: int) -> None:
    """The processor seconds of each stage and the memory, as JSON."""
    from tflab import lifecycle, models
    from tflab.runtime import dumps, tf_import

    dumps.prepare()
    tf_import.load()

    models.MODELS["generated"] = f"benchmarks.placement:layers_{size}"
    globals()[f"layers_{size}"] = lambda: layers(size)
    sys.modules["benchmarks.placement"] = sys.modules["__main__"]
    row: dict[str, float] = {}
    start = time.process_time()
    for name, stage in zip(STAGES, lifecycle.walk("generated", stop="placement"), strict=True):
        row[name] = time.process_time() - start
        start = time.process_time()
        if name == "backward":
            row["nodes"] = len(stage.nodes)
    print(json.dumps(row | {"mib": peak_mib()}))


def plain(size: int) -> None:
    """The processor seconds and the memory of the same calls without tflab, as JSON."""
    import tensorflow.compat.v1 as tf1

    start = time.process_time()
    with tf1.Graph().as_default():
        model = layers(size)
        train = model.optimizer.minimize(model.loss)
        (feed,) = model.feeds
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run([model.loss, train], {feed: model.data("train", None).columns["x"][:16]})
    print(json.dumps({"cpu": time.process_time() - start, "mib": peak_mib()}))


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    {"stages": stages, "plain": plain}[sys.argv[1]](int(sys.argv[2])) if sys.argv[1:] else main()
