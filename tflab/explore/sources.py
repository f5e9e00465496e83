"""Programs: the one with which the page opens, and the file that it shows instead, which is read
when it changes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tflab.errors import UsageError, reason
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
