"""Fuzz target: a trace recorded anywhere, up to its records and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.fuzz import target

try:
    import atheris
except ImportError:  # seeds can be written without it
    from tflab.convert import conversion, read
else:
    with atheris.instrument_imports(include=["tflab"]):
        from tflab.convert import conversion, read


def seeds() -> Mapping[str, bytes]:
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    metadata = tf1.RunMetadata()
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.get_variable("x", [8, 8])
        session.run(x.initializer)
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        session.run(tf.matmul(x, tf.nn.relu(x)), options=options, run_metadata=metadata)
    return {"run_metadata.pb": metadata.SerializeToString()}


def convert(path: Path) -> None:
    conversion.convert(read.read([str(path)]))


if __name__ == "__main__":
    target.run(seeds, convert)
