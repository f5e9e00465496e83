"""Download: a published file from the first mirror that has it, with a progress bar.

A file gets its name only after its checksum was verified. There is one attempt per process, because
without a network another one only costs time.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import wrap_file

from tflab.errors import TflabError, reason

ANSWER_SECONDS = 5  # a host that needs longer counts as unreachable
CHUNK_BYTES = 1 << 16
BROKEN = (ConnectionError, TimeoutError)  # while the file arrives

Content = TypeVar("Content")


def cached(folder: Path, read: Callable[[Path], Content], fill: Callable[[Path], None]) -> Content:
    """Return what `read` makes of a folder of the cache, which `fill` completes if that fails.

    Raises TflabError if both fail.
    """
    try:
        return read(folder)
    except TflabError as error:
        if os.environ.get("TFLAB_OFFLINE", "0") not in ("", "0"):
            raise TflabError(f"{error} TFLAB_OFFLINE forbids downloads.") from error
    if failure := fill_once(folder, fill):
        raise TflabError(failure)
    return read(folder)


@functools.cache
def fill_once(folder: Path, fill: Callable[[Path], None]) -> str | None:
    """Fill the folder, once per process. Returns why that failed, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fill(folder)
    except OSError as error:
        return f"The cache {folder} cannot be written: {error.strerror}."
    except TflabError as error:
        return str(error)
    return None


def fetch(folder: Path, name: str, sha256: str, mirrors: Iterable[str]) -> None:
    """Download a file from the first mirror that has the published one. If it is in the folder with
    this checksum, it stays.

    Raises TflabError if every mirror fails, and OSError if the folder cannot be written.
    """
    path = folder / name
    if path.exists() and checksum(path) == sha256:
        return
    complaints = []
    part = folder / f".{name}.{os.getpid()}"
    try:
        for mirror in mirrors:
            url = mirror + name
            try:
                receive(url, part)
            except TflabError as error:
                complaints.append(str(error))
                continue
            if checksum(part) == sha256:
                os.replace(part, path)
                return
            complaints.append(f"{url} differs from the published file (its SHA-256 differs).")
    finally:
        part.unlink(missing_ok=True)
    raise TflabError(" ".join(complaints))


def checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def receive(url: str, path: Path) -> None:
    """Download to a file, with a bar on a terminal. Raises TflabError if the host fails."""
    name = url.rpartition("/")[2]
    console = Console(stderr=True)
    with path.open("wb") as part:
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:
                size = int(response.headers.get("Content-Length") or 0)
                with wrap_file(
                    response,
                    size,
                    description=name,
                    console=console,
                    transient=True,
                    disable=not console.is_terminal,
                ) as content:
                    shutil.copyfileobj(content, part, CHUNK_BYTES)
            if part.tell() < size:
                raise TflabError(f"{url} failed: it ended after {part.tell()} of {size} bytes.")
        except urllib.error.HTTPError as error:
            raise TflabError(f"{url} failed: {error.code} {error.reason}.") from error
        except (urllib.error.URLError, http.client.HTTPException, *BROKEN) as error:
            cause = getattr(error, "reason", error)
            words = reason(cause) if isinstance(cause, BaseException) else str(cause)
            raise TflabError(f"{url} failed: {words}.") from error
