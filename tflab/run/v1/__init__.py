"""V1: what programs of TensorFlow 1 expect, in the process of such a program.

`import tensorflow` gives `namespace`'s TensorFlow 1: all of `tensorflow.compat.v1`, and beside it
thin adapters for what is no longer there. Each adapter that the program uses is noted here. This
imports only built-in modules, because it is there before the program: its files may have the names
of other modules.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # that of `typing`, which is not imported
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

TENSORFLOW, PYPLOT, KERAS = "tensorflow", "matplotlib.pyplot", "tf_keras"
OF_PYTHON = {kind.__name__: kind for kind in (bool, int, float, complex, str, object)}

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


# Imports: `import tensorflow` gives TensorFlow 1, in the program and in all that it imports.
# TensorFlow itself is imported as always. Only then its place in `sys.modules` is taken, so that
# its own modules find each other as they are used to.


def begin() -> None:
    """Let this process import TensorFlow 1 from now on."""
    finder = Version1Finder()
    sys.meta_path.insert(0, finder)
    if finder.of_others(KERAS):
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ.setdefault("MPLBACKEND", "Agg")
        finder.changed[PYPLOT] = pass_over_waiting


class Version1Finder:
    """Finds modules as Python does, but changes some of them once they are imported."""

    def __init__(self) -> None:
        self.changed: dict[str, Callable[[ModuleType], None]] = {
            TENSORFLOW: be_version_1,
            "numpy": give_numpy_its_names,
        }

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in self.changed:
            spec = self.of_others(name, path, target)
            if spec and spec.loader:
                changed: Any = Changed(spec.loader, self.changed.pop(name))
                spec.loader = changed
            return spec
        package, _, rest = name.partition(".")
        if package == TENSORFLOW and rest:
            from tflab.run.v1 import namespace

            return namespace.spec(name, rest)
        return None

    def of_others(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec:
                return spec
        return None


class Changed:
    """A loader after which something is done with the module."""

    def __init__(self, loader: Any, change: Callable[[ModuleType], None]) -> None:
        self._loader, self._change = loader, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._change(module)


def be_version_1(tensorflow: ModuleType) -> None:
    from tflab.run.v1 import namespace

    sys.modules[TENSORFLOW] = namespace.version_1(tensorflow)


def give_numpy_its_names(numpy: Any) -> None:
    """NumPy had names for types of Python until 1.24: `numpy.int` was `int`. `reshape` called its
    argument `newshape` until 2.4."""
    import functools  # which NumPy has imported

    usual, reshape = numpy.__getattr__, numpy.reshape

    def named(name: str) -> Any:
        if name in OF_PYTHON:
            note(f"numpy.{name}")
            return OF_PYTHON[name]
        return usual(name)

    @functools.wraps(reshape)
    def reshaped(*given: Any, **options: Any) -> Any:
        if "newshape" in options:
            note("numpy.reshape(newshape)")
            # By position, because NumPy has the name `shape` only since 2.1
            array = [options.pop("a")] if "a" in options else []
            given = (*given, *array, options.pop("newshape"))
        return reshape(*given, **options)

    numpy.__getattr__, numpy.reshape = named, reshaped


def pass_over_waiting(pyplot: Any) -> None:
    """There is no display: what shows a figure, or waits for somebody to touch it, returns."""

    def passing_over(name: str) -> Callable[..., Any]:
        def passed_over(*args: Any, **options: Any) -> None:
            notes[f"There is no display: plt.{name}() was skipped."] = None

        return passed_over

    for name in ("show", "waitforbuttonpress", "ginput"):
        setattr(pyplot, name, passing_over(name))
