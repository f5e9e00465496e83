"""Python 2: whether a script is written in it, judged by code that only Python 2 can read.

If Python 3 cannot read a script, known constructs of Python 2 are translated at the position of the
error. If Python 3 can read it then, the script is written in Python 2.
"""

from __future__ import annotations

import re
import warnings

# Constructs of Python 2, and replacements of the same length that Python 3 can read
TRANSLATIONS = (
    (re.compile(r"\b(print|exec)\b(?=[ \t]*[\"'`]|[ \t]+[^\s=(.,)\]}:#>])"), "_="),
    (re.compile(r"\bexcept\s+([^:#]+?)\s*,\s*(\w+)\s*:"), r"except (\1, \2):"),
    (re.compile(r"\braise\s+([\w.]+)\s*,"), r"_= \1,"),
    (re.compile(r"`([^`\n]*)`"), r"(\1)"),
    (re.compile(r"<>"), "!="),
    (re.compile(r"\b0(\d+)\b"), r"0o\1"),
    (re.compile(r"\b(0[xX][\da-fA-F]+|\d+)[lL]\b"), r"\1"),
    (re.compile(r"\b[uU][rR](?=[\"'])"), "r"),
    (re.compile(r"(\bdef\s+\w+\s*\(.*|\blambda\s*)\((\w+(?:\s*,\s*\w+)*)\)"), r"\1_"),
)


def line_of(source: str) -> int | None:
    """The first line that only Python 2 can read, if the script is written in Python 2; otherwise
    None."""
    error = error_in(source)
    first = error.lineno if error else None
    if isinstance(error, TabError):
        source = source.expandtabs()
        error = error_in(source)
    for _ in TRANSLATIONS:
        if error is None:
            return first
        lines = source.splitlines(keepends=True)
        line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
        for pattern, translation in TRANSLATIONS:
            if pattern.search(line):
                source = pattern.sub(translation, source)
        error = error_in(source)
    return first if error is None else None


def error_in(source: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError:  # a zero byte
        return None
    return None
