"""Namespace: the modules of TensorFlow 1, made of `tensorflow.compat.v1` and of adapters, and where
each name is."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tflab.run.v1 import note, reason
from tflab.runtime import private

SLIM = "tf_slim"
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
    "layers": (f"{OWN}layers", f"{OWN}layer_arguments", f"{SLIM}.layers", SLIM),
    "framework": (f"{OWN}layer_arguments:SCOPES", f"{OWN}contrib:FRAMEWORK", SLIM),
    "rnn": (f"{OWN}rnn",),
    "seq2seq": (f"{OWN}contrib:SEQ2SEQ",),
    "slim": (f"{OWN}layers", f"{OWN}layer_arguments", f"{OWN}contrib:FRAMEWORK", SLIM),
    "legacy_seq2seq": (f"{OWN}legacy_seq2seq",),
    "training": (f"{OWN}contrib:TRAINING", f"{SLIM}.training"),
    "util": (f"{OWN}contrib:FRAMEWORK",),
    "losses": (f"{SLIM}.losses",),
    "metrics": (f"{SLIM}.metrics",),
    "data": (f"{OWN}contrib:DATA_SETS",),
}


class Namespace(ModuleType):
    """A module whose names come, in this order, from other namespaces, adapters and TensorFlow.

    `inner` makes what is in it by name; `adapters` are modules; one whose package is not installed
    is omitted, and `module:NAMES` has only the names in this list of the module; `base` is the
    module of TensorFlow, where it has one.
    """

    def __init__(
        self,
        path: str,
        inner: Mapping[str, Callable[[], Any]],
        adapters: Sequence[str] = (),
        base: Any = None,
    ) -> None:
        super().__init__(".".join(filter(None, ("tensorflow", path))))
        self.__path__: list[str] = []
        self.__dict__.update(_path=path, _inner=inner, _adapters=adapters, _base=base)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [word for word in dir(self._base) if not word.startswith("_")]
        value = getattr(self._base, name) if name.startswith("__") else self._find(name)
        setattr(self, name, value)  # from now on nothing is looked for
        return value

    def _find(self, name: str) -> Any:
        if name in self._inner:
            return self._inner[name]()
        path = f"{self._path}.{name}".lstrip(".")
        for module, names in installed(self._adapters):
            if hasattr(module, name) and name in getattr(module, names, (name,)):
                if name not in getattr(module, "NOTE_THEMSELVES", ()):
                    own = module.__name__.startswith("tflab.")
                    note(path if own else f"{path} (tf-slim)")
                return getattr(module, name)
        if hasattr(self._base, name):
            return getattr(self._base, name)
        of_slim = any(module.partition(".")[0] == SLIM for module in self._adapters)
        if of_slim and not importlib.util.find_spec(SLIM):
            raise AttributeError(
                f"tf.{path} may be in the package tf-slim, which is not installed: "
                "python -m pip install tf-slim"
            )
        raise AttributeError(missing(path))


def installed(adapters: Sequence[str]) -> Iterator[tuple[ModuleType, str]]:
    """Those of the modules whose package is installed, and the name of the list of their names."""
    for adapter in adapters:
        name, _, names = adapter.partition(":")
        package = name.partition(".")[0]
        if package == SLIM and importlib.util.find_spec(SLIM):
            private.give_ops_their_tensor()
        if importlib.util.find_spec(package):
            yield importlib.import_module(name), names or "__all__"


def missing(path: str) -> str:
    """The sentence for a name that is not here."""
    if why := reason(path):
        return why
    if path.startswith("contrib"):
        return f"tf.{path} ended with TensorFlow 1, and nothing stands in for it."
    package, _, name = f"tensorflow.{path}".rpartition(".")
    return f"module '{package}' has no attribute '{name}'"


# Where the names of TensorFlow 1 are


def tensorflow_1(v1: Any, compat: ModuleType) -> ModuleType:
    """The module `tensorflow` of version 1. `compat` is that of version 2, which has all of it."""
    contrib = Namespace(CONTRIB, contrib_modules())
    inner: dict[str, Callable[[], Any]] = {
        "compat": lambda: compat,
        "contrib": lambda: contrib,
        "examples": lambda: folder(
            "examples.tutorials.mnist",
            {"input_data": mnist, "mnist": lambda: adapter("tutorials", "tutorials' mnist")},
        ),
        "models": lambda: folder(
            "models.rnn",
            {
                "rnn": lambda: adapter("old_names", "models.rnn.rnn"),
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
            (f"{OWN}old_names:NN",),
            v1.nn,
        ),
        "train": lambda: Namespace("train", {}, (f"{OWN}old_names:SUMMARIES",), v1.train),
    }
    return Namespace("", inner, (f"{OWN}old_names:TF",), v1)


def contrib_modules() -> dict[str, Callable[[], Any]]:
    def module(name: str) -> Callable[[], Any]:
        return lambda: Namespace(f"{CONTRIB}.{name}", {}, CONTRIB_MODULES[name])

    return {
        **{name: module(name) for name in CONTRIB_MODULES},
        "learn": lambda: Namespace("contrib.learn", {"datasets": datasets, "python": learn_python}),
        "tensorboard": lambda: (
            folder(
                "contrib.tensorboard.plugins",
                {"projector": lambda: adapter("contrib", "contrib.tensorboard.plugins.projector")},
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
    return importlib.import_module(f"{OWN}tutorials")  # which is noted once it reads something


def of_keras(name: str, parent: Any) -> Any:
    """A module that is in tf-keras since TensorFlow 2.16."""
    if not importlib.util.find_spec("tf_keras"):
        raise ImportError(f"tf.{name} is in the package tf-keras: python -m pip install tf-keras")
    note(f"{name} (tf-keras)")
    return getattr(parent, name.rpartition(".")[2])


def keras(v1: Any) -> Any:
    """tf.keras, whose MNIST is that of tflab."""
    from tflab.run.v1 import tutorials

    v1.keras.datasets.mnist.load_data = tutorials.load_data
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
