"""Corner: the error for a private part of TensorFlow that is not as expected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tflab.cli import environment
from tflab.errors import TflabError

CHECKED = "2.21.0"  # the version with which everything was checked


@contextmanager
def corner(what: str, file: str) -> Iterator[None]:
    """Raise a TflabError if `what` in this file of TensorFlow is not as tflab expects, in a `with`
    block or a decorated function."""
    try:
        yield
    except (AttributeError, ImportError) as error:
        raise moved(what, file, str(error)) from error


def moved(what: str, file: str, reason: str) -> TflabError:
    return TflabError(
        f"{what[0].upper()}{what[1:]} cannot be used as in TensorFlow {CHECKED} ({file}): "
        f"{reason.rstrip('.')}. This is TensorFlow {environment.version('tensorflow')}. "
        f"Everything works with tensorflow=={CHECKED}."
    )
