"""Files of data sets: where they are, how they are read, and how they are downloaded.

The folder that the user gave comes first, then the cache. Files that the cache lacks are
downloaded by pooch, with a progress bar. pooch gives a file its name in the cache only after it
verified its checksum. There is one attempt per process, because without a network another one only
costs time.
"""

from __future__ import annotations

import functools
import gzip
import os
import sys
import threading
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from tflab import untrusted
from tflab.cli import terminal
from tflab.errors import TflabError, UsageError, reason
from tflab.escaping import visible

# Where they are


def given_folder(data_dir: str | Path | None, wanted: str) -> Path | None:
    """The folder that the user gave, if any. It must exist; no other place is tried.

    `wanted` says what it should contain, for the error.
    """
    given = data_dir or os.environ.get("TFLAB_DATA_DIR")
    if not given:
        return None
    folder = Path(os.path.expanduser(given))
    try:
        os.listdir(folder)
    except OSError as error:
        origin = "the data directory given" if data_dir else "from TFLAB_DATA_DIR"
        raise UsageError(
            f"{folder} ({origin}) cannot be read: {error.strerror}; "
            f"it should be a folder with {wanted}."
        ) from error
    return folder


def cache_folder(name: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # also "~/.cache" itself, where the user has no home
        raise TflabError(f"The cache {base} is not an absolute path; set XDG_CACHE_HOME to one.")
    return Path(base, "tflab", name)


def require(folder: Path, names: Iterable[str]) -> list[Path]:
    """The path of each file; raises UsageError with all that are missing."""
    paths = {name: locate(folder, name) for name in names}
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        raise UsageError(
            f"{folder} lacks {', '.join(missing)} (tflab looked for each name as it is and with "
            ".gz)."
        )
    return [path for path in paths.values() if path]


def locate(folder: Path, name: str) -> Path | None:
    paths = [
        folder / candidate
        for candidate in (name, f"{name}.gz")
        if os.path.exists(folder / candidate)
    ]
    return min(paths, key=os.path.isdir, default=None)  # a file before a directory


announced: set[str] = set()


def announce(stand_in: str, line: str) -> None:
    """Print a line on stderr for a stand-in, once per process and not again for the test split."""
    if stand_in not in announced:
        announced.add(stand_in)
        terminal.say(visible(line), sys.stderr)


# What is in them


def read(path: Path, limit: int) -> bytes:
    """The content of a file, unpacked if it is gzipped, but no more than `limit` bytes."""
    try:
        with untrusted.opened(path) as file:
            return unpack(file, limit)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TflabError(
            f"{path} is a truncated or damaged gzip file ({error}); download it again."
        ) from error
    except OSError as error:
        raise TflabError(
            f"{path} cannot be read: {error.strerror}; it should be a file that you may read."
        ) from error


def unpack(file: BinaryIO, limit: int) -> bytes:
    """The content up to `limit` bytes: a few kilobytes of gzip can expand to gigabytes."""
    gzipped = file.read(2) == b"\x1f\x8b"  # the suffix proves nothing: browsers unpack and keep it
    file.seek(0)
    return gzip.GzipFile(fileobj=file).read(limit) if gzipped else file.read(limit)


def is_web_page(content: bytes) -> bool:
    """Whether this is a web page: a sign-in page or an error page saved under a file's name."""
    return content[:64].lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml"))


# Downloads

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


def fetch(folder: Path, name: str, sha256: str, mirrors: Iterable[str]) -> None:
    """Download a file from the first mirror that has the published one. If it is in the folder with
    this checksum, it stays.

    Raises TflabError if every mirror fails, and OSError if the folder cannot be written.
    """
    import pooch  # here, because it takes 0.1 s to import
    from requests import RequestException

    pooch.get_logger().setLevel("WARNING")  # the bar tells what is downloaded
    complaints = []
    for mirror in mirrors:
        url = mirror + name
        try:
            pooch.retrieve(url, sha256, name, folder, downloader=receive)
            return
        except RequestException as error:
            complaints.append(f"{url} failed: {cause(error)}.")
        except ValueError:  # of pooch, for a wrong checksum
            complaints.append(f"{url} differs from the published file (its SHA-256 differs).")
        except TflabError as error:
            complaints.append(str(error))
    raise TflabError(" ".join(complaints))


def receive(url: str, path: str, _: object) -> None:
    """Download to a file, for pooch: with a bar, and one time limit for all before the answer.

    The time limit of requests is for each address of a host, and there can be a dozen; it does not
    include the name lookup: behind a silent firewall that adds up to minutes.
    """
    from pooch import HTTPDownloader
    from requests import RequestException
    from tqdm import tqdm

    def ask() -> None:
        with suppress(RequestException):  # the download will fail in the same way
            HTTPDownloader()(url, None, None, check_only=True)

    asking = threading.Thread(target=ask, daemon=True)  # daemon: it must not keep Python alive
    asking.start()
    asking.join(ANSWER_SECONDS)
    if asking.is_alive():
        raise TflabError(f"{url} did not answer within {ANSWER_SECONDS} s.")
    name = url.rpartition("/")[2]
    # On a terminal only, and removed at the end. pooch replaces the total.
    with tqdm(desc=name, total=1, unit="B", unit_scale=True, leave=False, disable=None) as bar:
        HTTPDownloader(bar, CHUNK_BYTES, timeout=ANSWER_SECONDS)(url, path, None)


def cause(error: BaseException) -> str:
    """What went wrong first, in words: requests wraps an error several times."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    while inner := error.__cause__ or error.__context__:
        error = inner
    return reason(error)
