"""Import hook: calls a function around the execution of a module, when the module is imported. This
imports nothing at its start: the files of a watched program may have the names of other modules."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `typing`, which is not imported
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Execute = Callable[[ModuleType], object]


class Hook:
    """Finds one module as Python does. When it is imported, `around` is called to execute it."""

    def __init__(self, module: str, around: Callable[[ModuleType, Execute], object]) -> None:
        self.module, self.around, self.looking = module, around, False
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.module or self.looking:
            return None
        from importlib.util import find_spec

        self.looking = True
        try:
            spec = find_spec(name)
        finally:
            self.looking = False
        if spec and spec.loader:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self.around(module, execute)  # type: ignore
        return spec

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
