"""Untrusted files: opened only if they are files, and read up to a limit.

What is wrong is an OSError, whose `strerror` ends the sentence that a caller makes of it.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

from tflab.units import size

PART = 2**20  # bytes to read at once
LARGEST = 2**31 - 1  # bytes of a proto; TensorFlow itself reads no larger one
# Nothing is waited for. Windows has no such flags, and gives bytes only where it is asked to.
FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
KINDS = {
    stat.S_IFIFO: "it is a pipe, not a file",
    stat.S_IFCHR: "it is a device, not a file",
    stat.S_IFBLK: "it is a device, not a file",
    stat.S_IFSOCK: "it is a socket, not a file",
}


def opened(path: str | Path, buffer: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """The file at a path, to read; nothing is waited for.

    Raises OSError for a pipe, a device, a folder, and what may not be read.
    """
    if os.path.isdir(path):  # of which Windows says that it is not permitted
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    descriptor = os.open(path, os.O_RDONLY | FLAGS)
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind != stat.S_IFREG:
            raise OSError(errno.EINVAL, KINDS.get(kind, "it is not a file"))
        return io.BufferedReader(io.FileIO(descriptor), buffer)
    except BaseException:
        os.close(descriptor)
        raise


def content(path: str | Path, largest: int = LARGEST) -> bytes:
    """All that is in a file. Raises OSError for one that has more than it may, before reading."""
    with opened(path) as file:
        has = os.fstat(file.fileno()).st_size
        if has > largest:
            raise OSError(
                errno.EINVAL, f"it has {size(has)}, but tflab reads at most {size(largest)}"
            )
        parts, known = [], 0
        while part := file.read(max(has, PART)):  # some files do not know their size
            parts.append(part)
            known += len(part)
            if known > largest:
                raise OSError(errno.EINVAL, f"it has more than {size(largest)}")
        return parts[0] if len(parts) == 1 else b"".join(parts)
