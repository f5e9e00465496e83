"""Errors: the system's reasons come without their numbers, and names that are near are found."""

import errno
import os
from urllib.error import URLError

from tflab.errors import did_you_mean, reason

REASONS = {
    "No such file or directory: 'x.npy'": FileNotFoundError(2, os.strerror(2), "x.npy"),
    "No space left on device": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "Connection refused": URLError(OSError(errno.ECONNREFUSED, "Connection refused")),
    "cannot be read": OSError("cannot be read"),
    "bad": ValueError("bad"),
}


def test_the_reason_of_an_error_has_no_number():
    assert list(map(reason, REASONS.values())) == [*REASONS]


def test_near_names_and_equal_ones_in_a_scope_are_asked_for():
    names = ("add", "a/add", "b/add", "mul")
    assert did_you_mean("add", names) == " Did you mean 'a/add'?"
    assert did_you_mean("add", names, 2) == " Did you mean 'a/add' or 'b/add'?"
    assert did_you_mean("add", names, 3) == " Did you mean 'a/add' or 'b/add' or 'add'?"
    assert did_you_mean("ad", names) == " Did you mean 'add'?"
    assert did_you_mean("xyz", names) == ""
    assert did_you_mean("xyz", names, 2) == " Some names: 'add', 'a/add'."
