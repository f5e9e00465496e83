"""Errors: the system's reasons come without their numbers."""

import errno
import os
from urllib.error import URLError

import pytest

from tflab.errors import did_you_mean, nearest, reason


@pytest.mark.parametrize(
    "error, words",
    [
        (
            FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "x.npy"),
            "No such file or directory: 'x.npy'",
        ),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
        (URLError(OSError(errno.ECONNREFUSED, "Connection refused")), "Connection refused"),
        (OSError("cannot be read"), "cannot be read"),
        (ValueError("bad"), "bad"),
    ],
)
def test_the_reason_of_an_error_has_no_number(error, words):
    assert reason(error) == words


@pytest.mark.parametrize(
    "name, near",
    [
        ("Conv2D", ["conv1/Conv2D", "conv2/Conv2D", "net/block/Conv2D"]),  # the last parts
        ("block/Conv2D", ["net/block/Conv2D", "conv2/Conv2D", "conv1/Conv2D"]),
        ("Conv2", ["conv1/Conv2D"]),
        ("lost", ["loss"]),
        ("qqqqqqqq", []),
    ],
)
def test_a_near_name_is_also_one_that_ends_alike(name, near):
    names = ("loss", "conv1/Conv2D", "conv2/Conv2D", "net/block/Conv2D")
    assert nearest(name, names, 3) == near
    assert nearest(name, names) == near[:1]


def test_near_names_are_asked_for():
    names = ("add", "a/add", "b/add", "mul")
    assert did_you_mean("add", names) == " Did you mean 'a/add'?"
    assert did_you_mean("add", names, 2) == " Did you mean 'a/add' or 'b/add'?"
    assert did_you_mean("add", names, 3) == " Did you mean 'a/add', 'b/add' or 'add'?"
    assert did_you_mean("xyz", names, 3) == ""
