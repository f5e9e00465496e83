"""Gone: what no adapter can stand in for, because it was a framework of its own."""

from __future__ import annotations

GONE = {  # path -> the release of TensorFlow that it ended with
    "estimator": "2.15",
    "contrib.learn": "1",
    "contrib.boosted_trees": "1",
    "contrib.tensor_forest": "1",
    "contrib.factorization": "1",
    "contrib.graph_editor": "1",
    "contrib.eager": "1",
    "contrib.tpu": "1",
}
DATA = ("contrib.learn.datasets", "contrib.learn.python.learn.datasets")  # they have adapters


def reason(path: str) -> str | None:
    """Why there is no `tf.PATH`, in a sentence; None where it is not among these."""
    for name, release in GONE.items():
        if is_within(path, name) and not any(is_within(path, data) for data in DATA):
            part = "" if path == name else f" is part of tf.{name}, which"
            return f"tf.{path}{part} ended with TensorFlow {release}; nothing stands in for it."
    return None


def is_within(path: str, module: str) -> bool:
    return f"{path}.".startswith(f"{module}.")
