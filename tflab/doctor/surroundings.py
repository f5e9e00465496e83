"""Surroundings: the system, data, variables and folders."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tflab.cli import confinement
from tflab.cli.logdirs import RUNS
from tflab.datasets import files, mnist
from tflab.doctor.checks import NOTE, Finding
from tflab.errors import TflabError

VARIABLES = ("TFLAB_DATA_DIR", "TFLAB_OFFLINE", "TFLAB_ARTEFACTS")  # that tflab reads


def system() -> Iterator[Finding]:
    """Whether graphs from files can be confined; docs/elsewhere.md has what else differs."""
    if not confinement.is_available():
        found = "no Landlock: only rules about ops protect your files, not the kernel"
        advice = "Take Linux 5.13 or later, or run only graphs that you trust."
        yield Finding("System", "graphs from files", found, advice, NOTE)


def data() -> Iterator[Finding]:
    """Whether MNIST is where it is looked for, with the right checksums. Nothing is downloaded."""
    advice = "Put its four files into a folder and set TFLAB_DATA_DIR to it."
    given = os.environ.get("TFLAB_DATA_DIR")
    try:
        folder = files.given_folder(None, "the four files of MNIST") or files.cache_folder("mnist")
        for split in ("train", "test"):
            mnist.read_split(folder, split)
    except TflabError as error:
        if given:
            yield Finding("Data", "MNIST", str(error), f"{advice} Or unset it.")
            return
        found = "not here: the first use downloads it; without a network, other images stand in"
        yield Finding("Data", "MNIST", found, advice, NOTE)


def variables() -> Iterator[Finding]:
    """Variables that begin with TFLAB_ and that tflab does not read: misspelt ones do nothing."""
    for name in sorted(name for name in os.environ if name.startswith("TFLAB_")):
        if name not in VARIABLES:
            nearest = difflib.get_close_matches(name, VARIABLES, n=1)
            hint = f"Did you mean {nearest[0]}? " if nearest else ""
            advice = f"{hint}It reads {', '.join(VARIABLES)}."
            yield Finding("Variables", name, "tflab knows no such variable", advice, NOTE)


def folders() -> Iterator[Finding]:
    """Folders for runs and temporary files that cannot be written."""
    for what, path, advice in (
        ("runs", RUNS.absolute(), "Work in a folder of your own, or give --logdir."),
        ("temporary files", Path(tempfile.gettempdir()), "Set TMPDIR to a folder of your own."),
    ):
        there = next(place for place in (path, *path.parents) if place.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            found = f"{path} cannot be written: {error.strerror}"
            yield Finding("Folders", what, found, advice)
