"""Surroundings: variables that tflab reads, folders that it writes to, the port of TensorBoard."""

from __future__ import annotations

import difflib
import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tflab.cli.logdirs import RUNS
from tflab.datasets import files
from tflab.doctor import systems
from tflab.doctor.checks import FINE, NOTE, WRONG, Finding
from tflab.errors import TflabError
from tflab.units import size

VARIABLES = {  # the environment variables that tflab reads, and their purpose
    "TFLAB_DATA_DIR": "the folder with data sets",
    "TFLAB_OFFLINE": "forbids downloads if it is not 0",
    "TFLAB_ARTEFACTS": "where the browser tests leave their screenshots",
}
LEAST_BYTES = 500 * 2**20  # of free space: a data set and the traces of some runs
PORT = 6006  # TensorBoard's default


def variables() -> Iterator[Finding]:
    """The variables that begin with TFLAB_, because a misspelt one would silently do nothing."""
    names = sorted(name for name in os.environ if name.startswith("TFLAB_"))
    for name in names:
        if name in VARIABLES:
            yield Finding("Variables", name, f"{os.environ[name]} ({VARIABLES[name]})")
            continue
        nearest = difflib.get_close_matches(name, VARIABLES, n=1)
        hint = f"Did you mean {nearest[0]}? " if nearest else ""
        yield Finding(
            "Variables",
            name,
            "tflab knows no such variable",
            NOTE,
            f"{hint}It reads {', '.join(VARIABLES)}.",
        )
    if not names:
        yield Finding("Variables", "TFLAB_...", "none is set, and none has to be")


def folders() -> Iterator[Finding]:
    """The folders for runs, downloads and temporary files."""
    yield check_folder(
        "runs", RUNS.absolute(), WRONG, "Work in a folder of your own, or give --logdir."
    )
    try:
        cache = files.cache_folder("")
    except TflabError as error:
        yield Finding("Folders", "cache", str(error), NOTE, "Set XDG_CACHE_HOME to a folder.")
    else:
        advice = "Set XDG_CACHE_HOME to a folder that you may write to."
        yield check_folder("cache", cache, NOTE, advice)
    advice = "Set TMPDIR to a folder that you may write to."
    yield check_folder("temporary files", Path(tempfile.gettempdir()), WRONG, advice)


def check_folder(what: str, path: Path, verdict: str, advice: str) -> Finding:
    """Whether a folder, or the nearest existing one above it, can be written and has free space.

    `verdict` and `advice` are for one that cannot be written.
    """
    there = next(place for place in (path, *path.parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
        free = shutil.disk_usage(there).free
    except OSError as error:
        state = f"{path} cannot be written: {error.strerror}"
        return Finding("Folders", what, state, verdict, advice)
    state = f"{path}, with {size(free)} free"
    if free < LEAST_BYTES:
        return Finding("Folders", what, state, NOTE, f"Free some: {size(LEAST_BYTES)} are safe.")
    return Finding("Folders", what, state, FINE)


def port() -> Iterator[Finding]:
    """Whether TensorBoard's usual port is free. It listens for a moment to find out."""
    try:
        socket.create_server(("127.0.0.1", PORT)).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        yield Finding(
            "Network",
            f"port {PORT}",
            "taken, most likely by a TensorBoard that is still running",
            NOTE,
            "Look at that one, or start another with: tensorboard --port 0 --logdir runs",
        )
    else:
        yield Finding("Network", f"port {PORT}", "free for TensorBoard")


def browser() -> Iterator[Finding]:
    """Whether there is a browser, which only `make test` needs."""
    if path := shutil.which("chromium"):
        yield Finding("Browser", "chromium", path)
    else:
        yield Finding(
            "Browser",
            "chromium",
            "missing; only the browser tests want it",
            NOTE,
            systems.chromium(),
        )
