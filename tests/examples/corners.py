"""What comes instead of a private part of TensorFlow that is not as it was."""

import pytest

from tflab.errors import TflabError
from tflab.runtime.private.graphs import CHECKED

BEGINS = " cannot be used as in TensorFlow " + CHECKED
WORKS = f" Everything works with tensorflow=={CHECKED}."


def lost(call, what=""):
    """Return what comes instead of what a corner gives, without the reason; expect `what`."""
    with pytest.raises(TflabError) as error:
        call()
    begins, _, reason = str(error.value).partition(f"{BEGINS} (")
    assert begins.startswith(what) and reason.endswith(WORKS)
    assert not what or begins == what
    return begins
