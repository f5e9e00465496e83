"""Errors: the system's reasons come without their numbers, and names that are near are found."""

import errno
import os
from urllib.error import URLError

from tflab.errors import did_you_mean, nearest, reason

REASONS = {
    "No such file or directory: 'x.npy'": FileNotFoundError(2, os.strerror(2), "x.npy"),
    "No space left on device": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "Connection refused": URLError(OSError(errno.ECONNREFUSED, "Connection refused")),
    "cannot be read": OSError("cannot be read"),
    "bad": ValueError("bad"),
}
NAMES = ("loss", "conv1/Conv2D", "conv2/Conv2D", "net/block/Conv2D")
NEAR = {
    "Conv2D": ["conv1/Conv2D", "conv2/Conv2D", "net/block/Conv2D"],  # the last parts
    "block/Conv2D": ["net/block/Conv2D", "conv2/Conv2D", "conv1/Conv2D"],
    "Conv2": ["conv1/Conv2D"],
    "lost": ["loss"],
    "qqqqqqqq": [],
}


def test_the_reason_of_an_error_has_no_number():
    assert list(map(reason, REASONS.values())) == [*REASONS]


def test_a_near_name_is_also_one_that_ends_alike():
    assert {name: nearest(name, NAMES, 3) for name in NEAR} == NEAR
    assert [nearest(name, NAMES) for name in NEAR] == [near[:1] for near in NEAR.values()]


def test_near_names_are_asked_for():
    names = ("add", "a/add", "b/add", "mul")
    assert did_you_mean("add", names) == " Did you mean 'a/add'?"
    assert did_you_mean("add", names, 2) == " Did you mean 'a/add' or 'b/add'?"
    assert did_you_mean("add", names, 3) == " Did you mean 'a/add', 'b/add' or 'add'?"
    assert did_you_mean("xyz", names, 3) == ""
