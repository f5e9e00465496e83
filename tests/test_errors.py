"""Errors: the system's reasons come without their numbers."""

import errno
import os
from urllib.error import URLError

import pytest

from tflab.errors import reason


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
