"""V1: what programs of TensorFlow 1 expect, in the process of such a program.

`imports` sees to it that `import tensorflow` gives `namespace`'s TensorFlow 1: all of
`tensorflow.compat.v1`, and beside it thin adapters for what is no longer there. Each adapter that
the program uses is noted here. This imports nothing, because it is there before the program: its
files may have the names of other modules.
"""

from __future__ import annotations

stood_in: dict[str, None] = {}  # what the program used of the adapters, in the order of its use
notes: dict[str, None] = {}  # sentences for the end
# What no adapter can stand in for, because it was a framework of its own:
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


def note(name: str) -> None:
    stood_in[name] = None


def reason(path: str) -> str | None:
    """Why there is no `tf.PATH`, in a sentence; None where it is not among these."""
    for name, release in GONE.items():
        if is_within(path, name) and not any(is_within(path, data) for data in DATA):
            part = "" if path == name else f" is part of tf.{name}, which"
            return f"tf.{path}{part} ended with TensorFlow {release}; nothing stands in for it."
    return None


def is_within(path: str, module: str) -> bool:
    return f"{path}.".startswith(f"{module}.")
