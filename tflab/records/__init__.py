"""Records: the data that stages, tables and exporters pass to one another.

Each word has one meaning: `name` is a node, `op` its type, `run` one execution of it, `step` one
`session.run`. Field names carry units. A tensor is written as in a GraphDef: `split:1` is the
second output of `split`, plain `mul` the first of `mul`.

There is a file for each subject. All records can be imported from here too, as a model file does
with `Model`. The metadata of a field says if JSON omits it or gives it another key.
"""

TYPE_CHECKING = False  # as in `typing`
if TYPE_CHECKING:
    from tflab.records.options import Model, Options, Program

__all__ = ["Model", "Options", "Program"]


def __getattr__(name: str) -> object:
    """Return a record, from the module of its subject: a process loads only those that it needs."""
    import importlib
    import pkgutil

    for module in pkgutil.iter_modules(__path__) if not name.startswith("_") else ():
        subject = importlib.import_module(f"{__name__}.{module.name}")
        if name in vars(subject):
            value = vars(subject)[name]
            if getattr(value, "__module__", None) in (subject.__name__, "types", None):
                return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
