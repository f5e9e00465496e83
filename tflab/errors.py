"""Errors: what was given, what is wrong with it, and what would be right."""

from collections.abc import Sequence
from typing import Any


class TflabError(Exception):
    """The run failed for a reason that the user can understand. Commands exit with `status`."""

    status = 1
    line: int | None = None  # of the program that is shown beside the error


class RefusedError(TflabError):
    """TensorFlow refused or failed; its log may contain more."""

    nodes: tuple[str, ...] = ()  # the nodes in its message, the one that failed first
    inside: tuple[tuple[str, str], ...] = ()  # nodes of functions: the function's name, the node's


class RanDryError(RefusedError):
    """The step's own input data ended. The runtime's log adds nothing to that."""


class NotImportableError(TflabError):
    """A graph can be parsed but not imported: only its nodes can be shown."""

    def __init__(self, message: str, nodes: tuple[Any, ...], functions: tuple[Any, ...]) -> None:
        super().__init__(message)
        self.nodes = nodes
        self.functions = functions


class UsageError(TflabError):
    """The arguments were wrong; nothing ran."""

    status = 2


def reason(error: BaseException) -> str:
    """Return an error's message; of an error of the operating system, without its number."""
    if isinstance(error, OSError):
        inner = getattr(error, "reason", None)  # that of a URL
        if isinstance(inner, OSError):
            return reason(inner)
        if error.strerror:
            file_name = f": '{error.filename}'" if error.filename else ""
            return f"{error.strerror}{file_name}"
    return str(error)


def did_you_mean(name: str, names: Sequence[str], most: int = 1) -> str:
    """Return ` Did you mean 'lenet'?`, with up to `most` near names. If none is near, return the
    first names instead, or "" if only one is wanted."""
    import difflib  # most commands do not need it

    in_scopes = [known for known in names if known.endswith(f"/{name}")]
    near = dict.fromkeys([*in_scopes, *difflib.get_close_matches(name, names, n=most)])
    quoted = [f"'{one}'" for one in near or names][:most]
    if near:
        return f" Did you mean {' or '.join(quoted)}?"
    return f" Some names: {', '.join(quoted)}." if most > 1 and quoted else ""
