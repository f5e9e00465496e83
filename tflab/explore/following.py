"""Following: the file that the page shows, read when it changes and written on request."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from tflab.errors import TflabError, UsageError, reason
from tflab.explore.asked import LARGEST_TEXT


class ChangedError(TflabError):
    """The file has changed since the page read it."""


def text_of(path: Path) -> str:
    """The text of a program. Raises UsageError if there is none that the page can show."""
    try:
        if path.stat().st_size > LARGEST_TEXT:
            raise UsageError(
                f"'{path}' is too large for the page, which takes {LARGEST_TEXT:,} characters."
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is not a text in UTF-8.") from error


def mark(text: str) -> str:
    """A short hash that distinguishes texts."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def save(path: Path, text: str, known: str) -> None:
    """Write the text atomically, with the permissions of the file, if the file still has the mark
    `known`. Raises ChangedError if it has another one, TflabError if it cannot be written."""
    if path.exists() and mark(text_of(path)) != known:
        raise ChangedError(
            f"'{path.name}' was changed elsewhere since the page read it. Save again to replace it."
        )
    real = Path(os.path.realpath(path))
    try:
        descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            with suppress(FileNotFoundError):
                os.chmod(name, real.stat().st_mode & 0o7777)
            os.replace(name, real)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise TflabError(f"'{path}' cannot be written: {reason(error)}.") from error
