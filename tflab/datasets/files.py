"""Files of data sets: where they are and how they are read.

The folder that the user gave comes first, then the cache.
"""

from __future__ import annotations

import functools
import gzip
import http.client
import os
import shutil
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import wrap_file

from tflab.cli import terminal
from tflab.errors import TflabError, UsageError, reason
from tflab.escaping import visible

# Folders and paths


def given_folder(data_dir: str | Path | None, wanted: str) -> Path | None:
    """Return the folder that the user gave, if any. Raises UsageError if it cannot be read."""
    given = data_dir or os.environ.get("TFLAB_DATA_DIR")
    if not given:
        return None
    folder = Path(given).expanduser()
    try:
        os.listdir(folder)
    except OSError as error:
        raise UsageError(
            f"The data folder {folder} cannot be read: {error.strerror}; it should have {wanted}."
        ) from error
    return folder


def cache_folder(name: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # also "~/.cache" itself, where the user has no home
        raise TflabError(f"The cache {base} is not an absolute path; set XDG_CACHE_HOME to one.")
    return Path(base, "tflab", name)


def require(folder: Path, names: Iterable[str]) -> list[Path]:
    """Return the path of each file; raises UsageError with all that are missing."""
    paths = {name: locate(folder, name) for name in names}
    if missing := [name for name, path in paths.items() if path is None]:
        raise UsageError(
            f"{folder} lacks {', '.join(missing)} (tflab looked for each name as it is and with "
            ".gz)."
        )
    return [path for path in paths.values() if path]


def locate(folder: Path, name: str) -> Path | None:
    return next(filter(Path.is_file, (folder / name, folder / f"{name}.gz")), None)


@functools.cache
def announce(line: str) -> None:
    """Print a line about replaced data on stderr, once: not again for the test split."""
    terminal.say(visible(line), sys.stderr)


# Contents


def read(path: Path, limit: int) -> bytes:
    """Return up to `limit` bytes of a file's content, unpacked if it is gzipped: a few kilobytes
    can expand to gigabytes. Raises TflabError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            gzipped = file.read(2) == b"\x1f\x8b"  # the suffix proves nothing: browsers keep it
            file.seek(0)
            return gzip.GzipFile(fileobj=file).read(limit) if gzipped else file.read(limit)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TflabError(
            f"{path} is a truncated or damaged gzip file ({error}); download it again."
        ) from error
    except OSError as error:
        raise TflabError(f"{path} cannot be read: {error.strerror}.") from error


# Downloads
#
# A file gets its name only after it was recognised as the published one.

ANSWER_SECONDS = 5  # a host that needs longer counts as unreachable
BROKEN = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def fetch(path: Path, is_published: Callable[[Path], bool], mirrors: Iterable[str]) -> None:
    """Download a file from the first mirror that has the published one, or raise TflabError."""
    complaints = []
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        for url in (mirror + path.name for mirror in mirrors):
            try:
                receive(url, part)
            except TflabError as error:
                complaints.append(str(error))
                continue
            if is_published(part):
                os.replace(part, path)
                return
            complaints.append(f"{url} differs from the published file (its SHA-256 differs).")
    finally:
        part.unlink(missing_ok=True)
    raise TflabError(" ".join(complaints))


def receive(url: str, path: Path) -> None:
    """Download to a file, with a bar on a terminal. Raises TflabError if the host fails."""
    console = Console(stderr=True)
    try:
        with path.open("wb") as part, urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            with wrap_file(
                answer,
                size,
                description=url.rpartition("/")[2],
                console=console,
                transient=True,
                disable=not console.is_terminal,
            ) as content:
                shutil.copyfileobj(content, part)
    except BROKEN as error:
        raise TflabError(f"{url} failed: {reason(error)}.") from error
