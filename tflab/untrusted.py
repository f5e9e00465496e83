"""Untrusted files: opened only if they are regular files, and read up to a limit.

Errors are OSErrors, whose `strerror` ends the sentence of the caller.
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
KINDS = {
    stat.S_IFIFO: "it is a pipe, not a file",
    stat.S_IFCHR: "it is a device, not a file",
    stat.S_IFBLK: "it is a device, not a file",
    stat.S_IFSOCK: "it is a socket, not a file",
}


def opened(path: str | Path, buffer: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Return the file at a path, opened for reading without waiting.

    Raises OSError for a pipe, a device, a folder, and a file that may not be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if kind != stat.S_IFREG:
            raise OSError(errno.EINVAL, KINDS.get(kind, "it is not a file"))
        return io.BufferedReader(io.FileIO(descriptor), buffer)
    except BaseException:
        os.close(descriptor)
        raise


def content(path: str | Path, largest: int = LARGEST) -> bytes:
    """Return the content of a file. Raises OSError, before reading, if it exceeds the limit."""
    with opened(path) as file:
        has = os.fstat(file.fileno()).st_size
        if has > largest:
            raise OSError(
                errno.EINVAL, f"it has {size(has)}, but tflab reads at most {size(largest)}"
            )
        parts, total = [], 0
        while part := file.read(max(has, PART)):  # some files do not report their size
            parts.append(part)
            total += len(part)
            if total > largest:
                raise OSError(errno.EINVAL, f"it has more than {size(largest)}")
        return parts[0] if len(parts) == 1 else b"".join(parts)
