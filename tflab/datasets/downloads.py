"""Downloads: files that the cache lacks are downloaded from their publisher, with a progress bar.

A file gets its name in the cache only after it has been verified. There is one attempt per process,
because without a network another one only costs time.
"""

from __future__ import annotations

import functools
import http.client
import os
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterable
from concurrent import futures
from pathlib import Path
from typing import Any, TypeVar

from tflab.errors import TflabError, reason

ANSWER_SECONDS = 5  # a host that needs longer counts as unreachable
CHUNK_BYTES = 1 << 16

Content = TypeVar("Content")


def cached(folder: Path, read: Callable[[Path], Content], fill: Callable[[Path], None]) -> Content:
    """The result of `read` for a folder of the cache; if it fails, after `fill` has completed the
    folder.

    Raises TflabError if both fail.
    """
    try:
        return read(folder)
    except TflabError as reason:
        if os.environ.get("TFLAB_OFFLINE", "0") not in ("", "0"):
            raise TflabError(f"{reason} TFLAB_OFFLINE forbids downloads.") from reason
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


def download(
    urls: Iterable[str], folder: Path, limit: int, keep: Callable[[Path, str], None]
) -> None:
    """Download from the first address whose file `keep` accepts.

    `keep` gets a temporary file and its address; it moves what it needs into the folder, or raises
    TflabError.
    """
    complaints = []
    for url in urls:
        with tempfile.TemporaryDirectory(dir=folder) as temporary:  # on the same disk
            part = Path(temporary, url.rpartition("/")[2])
            try:
                receive(url, part, limit)
                keep(part, url)
            except TflabError as error:
                complaints.append(str(error))
            else:
                return
    raise TflabError(" ".join(complaints))


def receive(url: str, part: Path, limit: int) -> None:
    """Stream to a file with a progress bar, and stop soon after `limit` bytes."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    try:
        with (
            open_url(url) as response,
            part.open("wb") as file,
            Progress(*columns, console=Console(stderr=True)) as progress,
        ):
            announced = response.headers.get("Content-Length")
            bar = progress.add_task(part.name, total=float(announced) if announced else None)
            while file.tell() < limit and (chunk := response.read(CHUNK_BYTES)):
                file.write(chunk)
                progress.advance(bar, len(chunk))
    except (OSError, http.client.HTTPException) as error:
        raise TflabError(f"{url} failed: {reason(error)}.") from error


def open_url(url: str) -> Any:
    """`urlopen` with one time limit for everything.

    Its own limit is for each address of a host, of which there can be a dozen, and does not include
    the name lookup: behind a silent firewall that adds up to minutes.
    """
    answer: futures.Future = futures.Future()

    def wait() -> None:
        try:
            answer.set_result(urllib.request.urlopen(url, timeout=ANSWER_SECONDS))
        except Exception as error:  # raised again in the thread that waits for the result
            answer.set_exception(error)

    threading.Thread(target=wait, daemon=True).start()  # daemon: it must not keep Python alive
    try:
        return answer.result(ANSWER_SECONDS)
    except futures.TimeoutError as error:
        raise TflabError(f"{url} did not answer within {ANSWER_SECONDS} s.") from error
