"""Records: the data that stages, tables and exporters pass to one another.

Each word has one meaning: `name` is a node, `op` its type, `run` one execution of it, `step` one
`session.run`. Field names carry units. A tensor is written as in a GraphDef: `split:1` is the
second output of `split`, plain `mul` the first of `mul`.

There is a file for each subject. What a model file needs can be imported from here too. The
metadata of a field says if JSON omits it or gives it another key.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflab.records.options import Model, Options, Program, Recipe, Saved, Start

__all__ = ["Model", "Options", "Program", "Recipe", "Saved", "Start"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tflab.records import options

    return getattr(options, name)
