"""Namespace: the modules of TensorFlow 1, made of `tensorflow.compat.v1` and of adapters."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from tflab.run.v1 import note
from tflab.run.v1.gone import reason
from tflab.runtime import private

SLIM = "tf_slim"


class Namespace(ModuleType):
    """A module whose names come, in this order, from other namespaces, adapters and TensorFlow.

    `inner` makes what is in it by name; `adapters` are modules, of which one whose package is not
    installed is left out; `base` is the module of TensorFlow, where it has one.
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
        for module in installed(self._adapters):
            if hasattr(module, name) and name in getattr(module, "__all__", (name,)):
                if not hasattr(module, "NOTE_THEMSELVES"):
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


def installed(names: Sequence[str]) -> Iterator[ModuleType]:
    """Those of the modules whose package is installed."""
    for name in names:
        package = name.partition(".")[0]
        if package == SLIM and importlib.util.find_spec(SLIM):
            private.give_ops_their_tensor()
        if importlib.util.find_spec(package):
            yield importlib.import_module(name)


def missing(path: str) -> str:
    """The sentence for a name that is not here."""
    if why := reason(path):
        return why
    if path.startswith("contrib"):
        return f"tf.{path} ended with TensorFlow 1, and nothing stands in for it."
    package, _, name = f"tensorflow.{path}".rpartition(".")
    return f"module '{package}' has no attribute '{name}'"
