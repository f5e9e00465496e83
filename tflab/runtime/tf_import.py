"""Quiet import: TensorFlow is imported without the messages that it writes before a log level can
be set, and without Keras, which takes as long to import; `tf.keras` imports it when it is used."""

from __future__ import annotations

import gc
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from importlib.util import find_spec
from types import ModuleType
from typing import IO

from tflab.cli import temporary

NOTES = (
    r"I\d{4} |To enable the following instructions: |"
    r"WARNING: All log messages before absl::InitializeLog\(\)"
    # TensorFlow 2.18 dates some of its lines, and prints this at every import
    r"|\d{4}-\d\d-\d\d \S+ I |[^]]*\] Unable to register cu\w+ factory"
)
NO_GPU = "|.*failed call to cuInit"  # an error only if the machine has a GPU
SELDOM = (200_000, 10, 10)  # thresholds of the garbage collector


def load() -> None:
    """Import TensorFlow and let it look for GPUs. Show all that it printed if that fails."""
    if "tensorflow" in sys.modules:
        return
    try:
        tempfile.gettempdir()
    except OSError:  # absl.testing, which TensorFlow imports, needs the name of one
        os.environ.setdefault("TEST_TMPDIR", os.devnull)
    notes = ""
    with temporary.file() as log_file:
        try:
            with stderr_into(log_file), fast_imports():
                import tensorflow as tf

                tf.config.list_physical_devices("GPU")
            notes = NOTES if glob("/dev/nvidia[0-9]*") else NOTES + NO_GPU
        finally:
            log_file.seek(0)
            said = log_file.read().decode(errors="backslashreplace")
            sys.stderr.write(without(notes, said))


@contextmanager
def stderr_into(file: IO[bytes]) -> Iterator[None]:
    """Send everything that goes to standard error into the file while this is open."""
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)


@contextmanager
def fast_imports() -> Iterator[None]:
    """Make imports fast while this is open: TensorFlow's import leaves out Keras, and the objects
    that it makes are excluded from garbage collection, then and later.

    TensorFlow imports Keras at the end of its own import, and goes on without it if that fails. It
    makes half a million objects and next to no garbage, and a collection visits them all. The
    records of a large graph are millions of objects without garbage, so later collections are rare.
    """
    collects = gc.isenabled()
    gc.disable()
    legacy = os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True")
    name = "tf_keras" if legacy else "keras"
    spec = None if name in sys.modules else find_spec(name)
    if spec:
        sys.modules[name] = ModuleType(name)  # no package, so that it has no submodules
        sys.modules[name].__spec__ = spec  # by which TensorFlow finds the folder of `tf.keras`
    try:
        yield
        gc.freeze()
        gc.set_threshold(*SELDOM)
    finally:
        if spec:
            del sys.modules[name]
        if collects:
            gc.enable()


def without(notes: str, said: str) -> str:
    """Return the lines that begin like none of the notes, a regular expression; all if it is ""."""
    lines = said.splitlines(keepends=True)
    return "".join(line for line in lines if not (notes and re.match(notes, line)))
