"""Libraries: the files whose code is not the program's. The user's line of a node is the last frame
outside them.

`Sampler.new_kind` in tflab/run/sampler.py decides in the same way.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

TFLAB = str(Path(__file__).parents[1])
# What tflab makes of a Keras model and of a program on the live page
OWN = tuple(os.path.join(TFLAB, part) for part in ("models/keras.py", "explore/program.py"))
FOLDERS = OWN + tuple(
    os.path.dirname(spec.origin) + os.sep
    for spec in map(importlib.util.find_spec, ("tensorflow", "keras", "tf_keras"))
    if spec and spec.origin
)
PACKAGES = ("site-packages", "dist-packages")
PROGRAMS: set[str] = set()  # installed packages that are programs, or that have models


def add_program(function: Callable[..., object]) -> None:
    """Note the package of this model function, which is no library even if it is installed."""
    code = getattr(function, "__code__", None)
    if code and (package := installed_package(code.co_filename)):
        PROGRAMS.add(package)


def includes(file: str) -> bool:
    """Return whether a file is a library's: one of TensorFlow or Keras, or of an installed package
    that is not the program."""
    if file.startswith(FOLDERS):
        return True
    package = installed_package(file)
    if package is None or package in PROGRAMS or file.startswith(TFLAB + os.sep):
        return False
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return package != (installed_package(main) if main else None)


@cache
def installed_package(file: str) -> str | None:
    """Return the folder, or the file, of an installed package."""
    parts = file.split(os.sep)
    place = next((at for at, part in enumerate(parts) if part in PACKAGES), None)
    return None if place is None else os.sep.join(parts[: place + 2])
