"""What some tests need of the machine. Where it is missing a test is skipped, but CI fails: there
nobody would notice that something was not tested."""

import os

import pytest

from tflab.cli import landlock

IN_CI = os.environ.get("CI") == "true"


def missing(reason):
    """End the test: it fails in CI, and is skipped elsewhere."""
    if IN_CI:
        pytest.fail(reason)
    pytest.skip(reason)


# In CI they run, and fail
LANDLOCK = pytest.mark.skipif(
    not IN_CI and not landlock.abi(), reason="This kernel has no Landlock."
)
