"""What older versions of TensorFlow cannot do: such a test is skipped there, with the reason."""

from importlib import metadata

import pytest

HERE = tuple(int(part) for part in metadata.version("tensorflow").split(".")[:2])


def since(major: int, minor: int, reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif((major, minor) > HERE, reason=f"TensorFlow {major}.{minor}: {reason}")
