"""Records: the data that stages, tables and exporters pass to one another.

Each word has one meaning: `name` is a node, `op` its type, `run` one execution of it, `step` one
`session.run`. Field names carry units. A tensor is written as in a GraphDef: `split:1` is the
second output of `split`, plain `mul` the first of `mul`.

There is a file for each subject. A model file needs only `tflab.records.Model` and `Options`. The
metadata of a field says if JSON omits it or gives it another key.
"""

TYPE_CHECKING = False  # as in `typing`
if TYPE_CHECKING:
    from tflab.records.options import Model, Options, Program

__all__ = ["Model", "Options", "Program"]


def __getattr__(name: str) -> object:
    """Those of model files, imported when one is used: a process loads only what it needs."""
    if name not in __all__:
        raise AttributeError(f"module 'tflab.records' has no attribute '{name}'")
    from tflab.records import options

    return getattr(options, name)
