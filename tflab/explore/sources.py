"""Programs: the one with which the page opens, and the file that it shows instead, which is read
when it changes, and written on request."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from tflab.errors import TflabError, UsageError, reason
from tflab.explore.request import LARGEST_TEXT

# The first program of the page, if no file is given
TOY = """\
# Change a line, and see what moves.
x = tf1.placeholder(tf.float32, [None], name="x")
y = tf1.get_variable("y", initializer=2.0)
z = tf1.get_variable("z", initializer=1.0)
output = x * y + z
targets = tf1.placeholder(tf.float32, [None], name="targets")
error = tf.math.squared_difference(output, targets)
loss = tf.reduce_mean(error)
rows = np.linspace(-1, 1, 64)
feeds = {x: rows, targets: 3 * rows + 2}
"""


# The file of the page


class ChangedError(TflabError):
    """The file has changed since the page read it."""


def text_of(path: Path) -> str:
    """Return the text of a program. Raises UsageError if there is none that the page can show."""
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
        raise UsageError(f"'{path}' is not UTF-8 text.") from error


def mark(text: str) -> str:
    """Return a short hash that distinguishes texts."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def save(path: Path, text: str, known: str) -> None:
    """Write the text atomically, with the permissions of the file, if the file still has the mark
    `known`. Raises ChangedError if it has another one, TflabError if it cannot be written."""
    if path.exists() and mark(text_of(path)) != known:
        raise ChangedError(
            f"'{path.name}' was changed elsewhere since the page read it. Save again to replace it."
        )
    real = Path(os.path.realpath(path))
    draft = real.with_name(f".{real.name}-{secrets.token_hex(8)}")
    try:
        draft.write_bytes(text.encode())
        if real.exists():
            shutil.copymode(real, draft)
        os.replace(draft, real)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise TflabError(f"'{path}' cannot be written: {reason(error)}.") from error
