"""Files: opened one at a time; whatever is wrong with one as a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from tflab import untrusted
from tflab.convert.fields import DamagedError
from tflab.errors import TflabError, UsageError

BUFFER = 1 << 16  # bytes of a file


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file at a path; whatever is wrong with it as a sentence."""
    try:
        with untrusted.opened(path, BUFFER) as file:
            yield file
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except DamagedError as error:
        raise TflabError(f"'{path}' {error}.") from error
