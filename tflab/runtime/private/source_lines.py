"""Source lines: the user's line behind a node. If the Python stack lacks it, as for nodes of an
optimiser or of a Keras layer, it is the line that created the optimiser or the layer."""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tflab.records.graph import BACKWARD, FORWARD, UPDATE, Source
from tflab.runtime.import_hook import Hook
from tflab.runtime.private.graphs import corner, derivations, stack

if TYPE_CHECKING:
    from tflab.runtime.import_hook import Execute

LAYER, MODEL = "keras.src.layers.layer", "keras.src.models.model"
# module, class, method
OPTIMIZER = ("tensorflow.python.training.optimizer", "Optimizer", "__init__")
OF_KERAS = (
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer", "__init__"),
    (LAYER, "Layer", "__new__"),
    (LAYER, "Layer", "__call__"),
    ("keras.src.trainers.trainer", "Trainer", "compile"),
)
LAYER_FILE = LAYER.replace(".", os.sep) + ".py"
# Functions of these files in whose calls the optimiser's ops and the gradients' are made
UPDATING = (
    (os.path.join("tensorflow", "python", "training", "optimizer.py"), ("apply_gradients",)),
    (
        os.path.join("keras", "src", "optimizers", "base_optimizer.py"),
        ("apply", "apply_gradients", "stateless_apply"),
    ),
)
DERIVING = (
    os.path.join("tensorflow", "python", "ops", "gradients_util.py"),
    os.path.join("tensorflow", "python", "eager", "imperative_grad.py"),
)
TRACING = os.path.join("tensorflow", "python", "framework", "func_graph.py")
# calls the program; frames above it are tflab's
CALLER = os.path.join("tflab", "lifecycle", "frontend.py")

CONSTRUCTED: WeakKeyDictionary[Any, Source | None] = WeakKeyDictionary()  # by optimiser or layer
COMPILED: WeakKeyDictionary[Any, Source | None] = WeakKeyDictionary()  # by Keras model
Place = tuple[tuple[str, int, str] | None, bool, str]  # the line, whether in a layer, the phase
PLACES: WeakKeyDictionary[Any, dict[Any, Place]] = WeakKeyDictionary()  # graph -> stack -> place
OF_LAYERS: WeakKeyDictionary[Any, dict[str, Source]] = WeakKeyDictionary()  # graph -> node -> line

# graph -> name scope -> the id of the Keras layer whose call opened it, and the names of those
# around it and of itself
SCOPES: WeakKeyDictionary[Any, dict[str, tuple[int, str]]] = WeakKeyDictionary()


# Whose code a line is: the program's if it is outside of libraries. `Sampler.new_kind` in
# tflab/run/sampler.py decides in the same way.

STANDARD = os.path.dirname(os.__file__) + os.sep
TFLAB = str(Path(__file__).parents[2])
# What tflab makes of a Keras model and of a program on the live page
OWN = tuple(os.path.join(TFLAB, part) for part in ("models/keras.py", "explore/program.py"))
PACKAGES = ("site-packages", "dist-packages")
PROGRAMS: set[str] = set()  # installed packages that are programs, or that have models


def add_program(function: Callable[..., object]) -> None:
    """Make the package of this model function count as the program, even if it is installed."""
    file = function.__code__.co_filename if hasattr(function, "__code__") else ""
    PROGRAMS.update(filter(None, [installed_package(file)]))


def is_library(file: str) -> bool:
    """Return whether a file belongs to Python or an installed package, not to the program."""
    if file.startswith(OWN):
        return True
    package = installed_package(file)
    if package is None or package in PROGRAMS or file.startswith(TFLAB + os.sep):
        return package is None and file.startswith(STANDARD)
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return package != (installed_package(main) if main else None)


@functools.cache
def installed_package(file: str) -> str | None:
    """Return the folder, or the file, of an installed package."""
    parts = file.split(os.sep)
    place = next((at for at, part in enumerate(parts) if part in PACKAGES), None)
    return None if place is None else os.sep.join(parts[: place + 2])


def layer_names(graph: Any) -> dict[str, str]:
    """Return Keras's name for the layer of each name scope that a layer's call opened, such as
    `sequential/first` for `training/sequential_1/first_1`. Layers that share a name have none."""
    scopes = SCOPES.get(graph, {})
    layers = Counter(name for _, name in set(scopes.values()))
    return {scope: name for scope, (_, name) in scopes.items() if layers[name] == 1}


def constructed(thing: Any) -> Source | None:
    """Return the user's line that made an optimiser or a Keras layer; None if unknown."""
    return None if thing is None else CONSTRUCTED.get(thing)


@contextmanager
def on_line(line: Source | None) -> Iterator[None]:
    """Give nodes of the default graph this line meanwhile, unless the user's lines add them."""
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    before = len(graph.get_operations())
    yield
    if line:
        lines = OF_LAYERS.setdefault(graph, {})
        for op in graph.get_operations()[before:]:
            lines.setdefault(op.name, line)


def making(op: Any) -> tuple[Source | None, str]:
    """Return the user's line that made an op, and its phase, from the Python stack at its creation.

    The line is the last frame outside of libraries. If Keras called a layer below that frame, it is
    the line that made the layer, if known. An imported op has no line.
    """
    key = op.traceback  # TensorFlow makes another object each time, with the same hash
    known = isinstance(key, Hashable) and op.graph is not None
    places = PLACES.setdefault(op.graph, {}) if known else {}
    place = places.get(key) if known else None
    if place is None:
        place = place_of(op)
        places |= {key: place} if known else {}
    line, in_layer, phase = place
    of_layer = OF_LAYERS.get(op.graph, {}).get(op.name) if in_layer or line is None else None
    return of_layer or (with_code(*line) if line else None), phase


def with_code(file: str, line: int, function: str) -> Source:
    return Source(file, line, function, linecache.getline(file, line).strip())


def place_of(op: Any) -> Place:
    line, phase = None, FORWARD
    layer = traced = in_function = False
    for file, number, function in stack(op):
        if file.endswith(CALLER):
            break
        if line is None and not (file == __file__ or is_library(file)):
            line = file, number, function
        elif file.endswith(LAYER_FILE) and function == "__call__":
            if line is None:
                layer, in_function = True, traced
        elif file.endswith(TRACING) and function == "func_graph_from_py_func":
            traced = True
        elif file.endswith(DERIVING) and phase == FORWARD:
            phase = BACKWARD
        elif any(file.endswith(end) and function in names for end, names in UPDATING):
            phase = UPDATE
    # A function that a layer traced has the line of the layer's call
    return None if in_function else line, layer, phase


@contextmanager
def noted() -> Iterator[None]:
    """Record, while this is open, the lines outside of libraries that make optimisers and Keras
    layers, the nodes that each layer makes, and those that add up gradients. The methods of Keras
    (checked with 3.15.1) are wrapped once it is imported."""
    with ExitStack() as wrapped:
        wrapped.enter_context(derivations())
        wrap(OPTIMIZER, wrapped)

        def execute_and_wrap(module: ModuleType, execute: Execute) -> None:
            execute(module)
            for place in OF_KERAS:
                wrap(place, wrapped)

        if keras := sys.modules.get("keras"):
            execute_and_wrap(keras, lambda module: None)
        else:
            wrapped.callback(Hook("keras", execute_and_wrap).remove)
        yield


def wrap(place: tuple[str, str, str], wrapped: ExitStack) -> None:
    """Wrap a method until the stack is closed."""
    from unittest.mock import patch  # imports asyncio, which help and wrong arguments do not need

    module, kind, method = place
    with corner(
        "the lines of optimisers and layers",
        f"`{kind}.{method}` in {module.replace('.', '/')}.py",
    ):
        owner = getattr(import_module(module), kind)
        original = getattr(owner, method)
    wrapper = calling(original) if method == "__call__" else noting(original, method)
    static = staticmethod(wrapper) if method == "__new__" else wrapper
    wrapped.enter_context(patch.object(owner, method, static))


def noting(original: Any, method: str) -> Any:
    """Return a method that notes its caller's line, for its object or for the one it made."""
    lines = COMPILED if method == "compile" else CONSTRUCTED

    @functools.wraps(original)
    def noted(first: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(first, *args, **kwargs)
        made = result if method == "__new__" else first
        if line := caller(made):
            # A class of the user's may be neither hashable nor weakly referenceable
            with suppress(TypeError):
                lines.setdefault(made, line)
        return result

    return noted


def calling(original: Any) -> Any:
    """Return a `Layer.__call__` that records which nodes it made, and in which name scope. Of
    nested layers the innermost gives a node its line. Only models and their layers have scopes."""
    import tensorflow as tf

    around: list[Any] = []  # the calls that are running, the outermost first

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.executing_eagerly():
            return original(self, *args, **kwargs)
        graph = tf.compat.v1.get_default_graph()
        outer, before = graph.get_name_scope(), len(graph.get_operations())
        model = import_module(MODEL).Model  # not at once: Keras itself may be in its import
        within_models = all(isinstance(layer, model) for layer in around)
        around.append(self)
        try:
            with on_line(CONSTRUCTED.get(self)):
                result = original(self, *args, **kwargs)
        finally:
            name = "/".join(layer.name for layer in around)
            around.pop()
        # The scope that the call opened has the layer's name, which TensorFlow may have numbered
        prefix = f"{outer}/" if outer else ""
        numbered = re.compile(re.escape(self.name) + r"(_\d+)?")
        added = [op.name for op in graph.get_operations()[before:] if op.name.startswith(prefix)]
        parts = (added_name.removeprefix(prefix).split("/") for added_name in added)
        scopes = {first for first, *inner in parts if inner and numbered.fullmatch(first)}
        if within_models and len(scopes) == 1:
            SCOPES.setdefault(graph, {})[prefix + scopes.pop()] = id(self), name
        return result

    return call


def caller(maker: Any) -> Source | None:
    """Return the line that makes an object: the innermost frame of the running stack outside of
    libraries and outside of the object's own constructors."""
    frame: FrameType | None = sys._getframe(2)
    while frame:
        code = frame.f_code
        first = code.co_varnames[0] if code.co_argcount else ""
        constructor = code.co_name == "__init__" and frame.f_locals.get(first) is maker
        file = code.co_filename
        if not (constructor or file == __file__ or is_library(file)):
            return with_code(file, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None
