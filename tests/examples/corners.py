"""What comes instead of a private part of TensorFlow that is not as it was."""

import re

import pytest

from tflab.errors import TflabError
from tflab.runtime.private.corner import CHECKED

BEGINS = "{} cannot be used as in TensorFlow " + CHECKED
WORKS = f"Everything works with tensorflow=={CHECKED}."


def lost(call, what):
    """Expect the sentence that comes instead of what a corner gives."""
    with pytest.raises(TflabError, match=rf"^{re.escape(BEGINS.format(what))} \(") as error:
        call()
    assert str(error.value).endswith(f" {WORKS}")
