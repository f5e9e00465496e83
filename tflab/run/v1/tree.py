"""Tree: where the names of TensorFlow 1 are, and which of them have no replacement."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tflab.run.v1 import note
from tflab.run.v1.namespace import SLIM, Namespace, missing

TENSORFLOW, CONTRIB = "tensorflow", "contrib"
# Modules of TensorFlow's folders that programs imported, and what they are here
IN_FOLDERS = {
    "python.ops.rnn_cell": "nn.rnn_cell",
    "python.ops.seq2seq": "contrib.legacy_seq2seq",
}
# Folders of TensorFlow that are found as always
REAL = ("_api", "compat", "compiler", "core", "dtensor", "lite", "python", "security", "tools")
OWN = "tflab.run.v1."
CONTRIB_MODULES = {  # what of `tf.contrib` the adapters are in, in the order of the search
    "layers": (
        f"{OWN}layers",
        f"{OWN}scopes",
        f"{OWN}normalization",
        f"{OWN}initializers",
        f"{SLIM}.layers",
        SLIM,
    ),
    "framework": (f"{OWN}scopes", f"{OWN}framework", SLIM),
    "rnn": (f"{OWN}rnn",),
    "seq2seq": (f"{OWN}seq2seq",),
    "slim": (
        *(f"{OWN}{name}" for name in ("layers", "normalization", "initializers", "scopes")),
        *(f"{OWN}framework", SLIM),
    ),
    "legacy_seq2seq": (f"{OWN}legacy_seq2seq",),
    "training": (f"{OWN}training", f"{SLIM}.training"),
    "util": (f"{OWN}framework",),
    "losses": (f"{SLIM}.losses",),
    "metrics": (f"{SLIM}.metrics",),
    "data": (f"{OWN}data",),
}


def tensorflow_1(v1: Any, compat: ModuleType) -> ModuleType:
    """The module `tensorflow` of version 1. `compat` is that of version 2, which has all of it."""
    contrib = Namespace(CONTRIB, contrib_modules())
    inner: dict[str, Callable[[], Any]] = {
        "compat": lambda: compat,
        "contrib": lambda: contrib,
        "examples": lambda: folder(
            "examples.tutorials.mnist",
            {"input_data": mnist, "mnist": lambda: adapter("mnist_network", "tutorials' mnist")},
        ),
        "models": lambda: folder(
            "models.rnn",
            {
                "rnn": lambda: adapter("old_rnn", "models.rnn.rnn"),
                "rnn_cell": lambda: of_keras("nn.rnn_cell", v1.nn),
                "seq2seq": lambda: contrib.legacy_seq2seq,
            },
        ),
        "keras": lambda: keras(v1),
        "layers": lambda: of_keras("layers", v1),
        "nn": lambda: Namespace(
            "nn",
            {
                "rnn_cell": lambda: of_keras("nn.rnn_cell", v1.nn),
                "seq2seq": lambda: contrib.legacy_seq2seq,
            },
            (f"{OWN}old_rnn", f"{OWN}old_losses"),
            v1.nn,
        ),
        "train": lambda: Namespace("train", {}, (f"{OWN}old_summaries",), v1.train),
    }
    adapters = (f"{OWN}old_names", f"{OWN}old_summaries", f"{OWN}old_arguments")
    return Namespace("", inner, adapters, v1)


def contrib_modules() -> dict[str, Callable[[], Any]]:
    def module(name: str) -> Callable[[], Any]:
        return lambda: Namespace(f"{CONTRIB}.{name}", {}, CONTRIB_MODULES[name])

    return {
        **{name: module(name) for name in CONTRIB_MODULES},
        "learn": lambda: Namespace("contrib.learn", {"datasets": datasets, "python": learn_python}),
        "tensorboard": lambda: (
            folder(
                "contrib.tensorboard.plugins",
                {
                    "projector": lambda: adapter(
                        "projector", "contrib.tensorboard.plugins.projector"
                    )
                },
            ).tensorboard
        ),
    }


def folder(path: str, inner: dict[str, Callable[[], Any]]) -> Any:
    """The outermost of the modules of a path, with what is in the innermost one."""
    words = path.split(".")
    made = Namespace(path, inner)
    for at in range(len(words) - 1, 0, -1):
        made = Namespace(".".join(words[:at]), {words[at]: lambda made=made: made})  # type: ignore[misc]
    return made


def datasets() -> Any:
    return Namespace("contrib.learn.datasets", {"mnist": mnist})


def learn_python() -> Any:
    """`contrib.learn.python.learn.datasets.mnist`, where data were read from for a while."""
    path = "contrib.learn.python.learn"
    made = folder(path, {"datasets": datasets})
    return made.learn.python


def adapter(module: str, name: str) -> ModuleType:
    note(name)
    return importlib.import_module(OWN + module)


def mnist() -> ModuleType:
    return importlib.import_module(f"{OWN}input_data")  # which is noted once it reads something


def of_keras(name: str, parent: Any) -> Any:
    """A module that is in tf-keras since TensorFlow 2.16."""
    if not importlib.util.find_spec("tf_keras"):
        raise ImportError(f"tf.{name} is in the package tf-keras: python -m pip install tf-keras")
    note(f"{name} (tf-keras)")
    return getattr(parent, name.rpartition(".")[2])


def keras(v1: Any) -> Any:
    """tf.keras, whose MNIST is that of tflab."""
    from tflab.run.v1 import input_data

    v1.keras.datasets.mnist.load_data = input_data.load_data
    return v1.keras


def version_1(tensorflow: ModuleType) -> ModuleType:
    """TensorFlow 1, of the TensorFlow that is imported."""
    v1 = importlib.import_module("tensorflow.compat.v1")
    level = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.ERROR)  # TensorFlow warns of what is asked of it here
    v1.disable_v2_behavior()
    v1.logging.set_verbosity(level)
    made = tensorflow_1(v1, tensorflow.compat)
    for name in ("__spec__", "__file__", "__path__", "__doc__", "__loader__", "__package__"):
        setattr(made, name, getattr(tensorflow, name))
    return made


class Existing:
    """The loader of a module that is there already."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = self.module


def spec(name: str, path: str) -> ModuleSpec | None:
    """That of `tensorflow.PATH`, where it is not one of TensorFlow's own folders.

    Raises ImportError where it is gone.
    """
    module: Any = sys.modules.get(TENSORFLOW)
    if not isinstance(module, Namespace):
        return None  # TensorFlow imports itself
    if path in IN_FOLDERS:
        path = IN_FOLDERS[path]
    elif path.partition(".")[0] in REAL:
        return None
    for word in path.split("."):
        module = getattr(module, word, None)
        if module is None:
            if path.startswith(CONTRIB):
                raise ImportError(missing(path), name=name)
            return None
    if not isinstance(module, ModuleType):
        return None
    return ModuleSpec(name, Existing(module), is_package=True)  # type: ignore[arg-type]
