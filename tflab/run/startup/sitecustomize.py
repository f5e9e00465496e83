"""Python imports this module at its start, before the program: watching begins here.

The program sees nothing of it. Modules of the standard library that were imported meanwhile are
removed from `sys.modules` again, because a program may have files of the same names.
"""

import _signal
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = HERE.rsplit(os.sep, 3)[0]  # of the package tflab
PREFIX = "TFLAB_RUN_"  # of the variables; as in tflab/run/__init__.py


def begin() -> None:
    given = {
        name[len(PREFIX) :]: os.environ.pop(name) for name in [*os.environ] if PREFIX in name[:10]
    }
    os.environ.pop("PYTHONPATH", None)
    if "PYTHONPATH" in given:
        os.environ["PYTHONPATH"] = given["PYTHONPATH"]
    sys.path.remove(HERE)
    sys.path_importer_cache.pop(HERE, None)
    modules, handler = {*sys.modules}, _signal.getsignal(_signal.SIGINT)
    sys.path.insert(0, ROOT)
    try:
        from tflab.run import watcher

        watcher.begin(given)
    except Exception as error:  # the program runs all the same
        with open(os.path.join(given["FOLDER"], "fault"), "w", encoding="utf-8") as file:
            file.write(f"{type(error).__name__}: {error}")
    finally:
        sys.path.remove(ROOT)
        _signal.signal(_signal.SIGINT, handler)
        for name in {*sys.modules} - modules:
            if name.partition(".")[0] != "tflab":
                del sys.modules[name]


def import_the_usual() -> None:
    """Import the module of this name that Python would have found."""
    own = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


begin()
import_the_usual()
