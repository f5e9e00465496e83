"""Download: a published file from the first mirror that has it, with a progress bar.

A file gets its name only after it was recognised as the published one.
"""

from __future__ import annotations

import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import wrap_file

from tflab.errors import TflabError, reason

ANSWER_SECONDS = 5  # a host that needs longer counts as unreachable
CHUNK_BYTES = 1 << 16
BROKEN = (ConnectionError, TimeoutError)  # while the file arrives


def fetch(path: Path, is_published: Callable[[Path], bool], mirrors: Iterable[str]) -> None:
    """Download a file from the first mirror that has the published one, by its name there.

    Raises TflabError if every mirror fails, and OSError if its folder cannot be written.
    """
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
    with path.open("wb") as part:
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:
                size = int(response.headers.get("Content-Length") or 0)
                with wrap_file(
                    response,
                    size,
                    description=url.rpartition("/")[2],
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
            raise TflabError(f"{url} failed: {reason(error)}.") from error
