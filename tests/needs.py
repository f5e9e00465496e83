"""What some tests need of the machine. Where it is missing a test is skipped, but CI fails: there
nobody would notice that something was not tested. A test of what an older TensorFlow cannot do is
skipped there, with the reason."""

import os
from importlib import metadata

import pytest

from tflab.cli import landlock

HERE = tuple(int(part) for part in metadata.version("tensorflow").split(".")[:2])
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


def since(major: int, minor: int, reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif((major, minor) > HERE, reason=f"TensorFlow {major}.{minor}: {reason}")


# Both are about the first run of a step, which tflab reads from the runtime's log
LOG_IS_SET = since(2, 20, "the level of the runtime's log cannot be set")
LOG_HAS_PASSES = since(2, 21, "the runtime's log has no lines of passes")
