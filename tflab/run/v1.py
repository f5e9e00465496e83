"""V1: with `--v1` a program gets `tensorflow.compat.v1` under the name `tensorflow`.

This imports nothing at its start, because the program's files may have the names of other modules.
"""

from __future__ import annotations

import sys

from tflab.runtime.import_hook import Hook

TYPE_CHECKING = False  # as in `typing`, which is not imported
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from tflab.runtime.import_hook import Execute

TENSORFLOW, KERAS = "tensorflow", "keras"
TUTORIALS = ("examples", "tutorials", "mnist")  # the package of `input_data`
# How modules of TensorFlow 2.21.0 call themselves, and how programs call them; longer names first
PUBLIC = {
    "tensorflow._api.v2.compat.v1": "tf",
    "tensorflow._api.v2": "tf",
    "tensorflow.compat.v1": "tf",
    "tensorflow": "tf",
    "keras._tf_keras.keras.__internal__.legacy.rnn_cell": "tf.nn.rnn_cell",
    "keras._tf_keras.keras.__internal__.legacy": "tf",
    "keras._tf_keras.keras": "keras",
}


class Names:
    """What `import tensorflow` gives: TensorFlow 1; while Keras is imported, version 2."""

    def __init__(self) -> None:
        Hook(TENSORFLOW, self.import_tensorflow)
        Hook(KERAS, self.import_keras)
        self.version_1: ModuleType | None = None
        self.version_2: ModuleType | None = None
        self.in_keras = False

    def import_tensorflow(self, module: ModuleType, execute: Execute) -> None:
        execute(module)
        self.version_2 = module
        if not self.in_keras:
            self.put_version_1(module)

    def import_keras(self, module: ModuleType, execute: Execute) -> None:
        self.in_keras = True
        if self.version_2:
            sys.modules[TENSORFLOW] = self.version_2
        try:
            execute(module)
        finally:
            self.in_keras = False
            if self.version_2:
                self.put_version_1(self.version_2)

    def put_version_1(self, version_2: ModuleType) -> None:
        """Put TensorFlow 1 in the place of version 2. TensorFlow's own modules still use 2."""
        self.version_1 = self.version_1 or version_1_of(version_2)
        sys.modules[TENSORFLOW] = self.version_1


def version_1_of(tensorflow: Any) -> ModuleType:
    """Return TensorFlow 1 with the module of its tutorials."""
    from tflab.run import input_data

    v1 = tensorflow.compat.v1
    level = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.ERROR)  # TensorFlow warns of what is requested here
    v1.disable_v2_behavior()
    v1.logging.set_verbosity(level)
    v1.__path__ = [*v1.__path__, *tensorflow.__path__]  # for `import tensorflow.python.ops`
    parent, path = v1, TENSORFLOW
    for name in TUTORIALS:
        path += f".{name}"
        module: Any = type(sys)(path)
        module.__path__ = []
        setattr(parent, name, module)
        sys.modules[path] = parent = module
    sys.modules[f"{path}.input_data"] = parent.input_data = input_data
    return v1


def notes() -> list[str]:
    """Return sentences on the data that the program got, and on a missing name that ended it."""
    reader = sys.modules.get("tflab.run.input_data")
    missing = missing_name(getattr(sys, "last_value", None))
    # The program may be importing the reader at this moment
    return [*getattr(reader, "notes", ()), *filter(None, [missing])]


def missing_name(error: BaseException | None) -> str | None:
    """Return a sentence about the name that a program lacked; None if it is not TensorFlow's."""
    given = sys.modules.get(TENSORFLOW)
    if isinstance(error, AttributeError):
        missing = f"{getattr(error.obj, '__name__', '')}.{error.name}"
    elif isinstance(error, ImportError):  # "cannot import name 'Session' from 'tensorflow'"
        within = () if isinstance(error, ModuleNotFoundError) else str(error).split("'")[1:2]
        missing = ".".join([error.name or "", *within])
    else:
        return None
    modules = (module for module in PUBLIC if missing.startswith(f"{module}."))
    if given is None or (module := next(modules, None)) is None:
        return None
    name = PUBLIC[module] + missing[len(module) :]
    sentence = f"The program uses {name}, which TensorFlow {given.__version__} does not have"
    path = name.partition(".")[2]
    old: Any = given.compat.v1
    for part in path.split("."):
        old = getattr(old, part, None)
    if given.__name__ == TENSORFLOW and (path == TUTORIALS[0] or old is not None):
        return f"{sentence}; TensorFlow 1 had tf.{path}: try --v1 before the program's name."
    return f"{sentence}."
