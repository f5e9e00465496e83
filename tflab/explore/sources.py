"""Programs: the examples in the menu of the page, and the file that it shows instead.

The first example is shown if no file is given. A file is read when it changes, and written on
request.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tflab.errors import TflabError, UsageError, reason
from tflab.explore.request import LARGEST_TEXT


@dataclass(frozen=True)
class Example:
    """A program in the menu, with its switches."""

    title: str
    text: str
    devices: int = 1


EXAMPLES = (
    Example(
        "x*y + z",
        """\
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
""",
    ),
    Example(
        "A layer of LeNet",
        """\
images = tf1.placeholder(tf.float32, [None, 28, 28, 1], name="images")
labels = tf1.placeholder(tf.int64, [None], name="labels")
kernel = tf1.get_variable("kernel", [5, 5, 1, 6])
bias = tf1.get_variable("bias", [6], initializer=tf1.zeros_initializer())
maps = tf.nn.conv2d(images, kernel, strides=1, padding="SAME")
maps = tf.nn.relu(tf.nn.bias_add(maps, bias))
pooled = tf.nn.max_pool2d(maps, 2, 2, "VALID")
dense = tf1.get_variable("dense", [14 * 14 * 6, 10])
logits = tf.matmul(tf.reshape(pooled, [-1, 14 * 14 * 6]), dense)
errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
loss = tf.reduce_mean(errors)
""",
    ),
    Example(
        "A loop",
        """\
# Newton's method for a square root, in the graph.
number = tf1.get_variable("number", initializer=9.0)
root = tf.while_loop(
    lambda step, guess: step < 5,
    lambda step, guess: (step + 1, (guess + number / guess) / 2),
    (0, 1.0),
)[1]
loss = tf.square(root - 2.0)
""",
    ),
    Example(
        "A formula with a NaN",
        """\
# The gradient of a square root at 0 is infinite: see where it begins.
x = tf1.placeholder(tf.float32, [None], name="x")
w = tf1.get_variable("w", initializer=1.0)
root = tf.sqrt(x * w)
chosen = tf.where(x > 0, root, tf.zeros_like(root))
loss = tf.reduce_sum(chosen)
feeds = {x: np.arange(64) / 8}
""",
    ),
    Example(
        "Two devices",
        """\
x = tf1.placeholder(tf.float32, [None, 16], name="x")
with tf.device("/CPU:0"):
    first = tf1.get_variable("first", [16, 8])
    hidden = tf.nn.relu(tf.matmul(x, first))
with tf.device("/CPU:1"):
    second = tf1.get_variable("second", [8, 1])
    output = tf.matmul(hidden, second)
loss = tf.reduce_mean(tf.square(output))
""",
        devices=2,
    ),
)


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
