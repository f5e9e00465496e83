"""Surroundings: the system, data, variables, folders and logdirs."""

from __future__ import annotations

import difflib
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tflab.cli import confinement
from tflab.cli.new_files import RUNS
from tflab.datasets import files, mnist
from tflab.doctor.checks import NOTE, Finding
from tflab.errors import TflabError
from tflab.units import plural

VARIABLES = ("TFLAB_DATA_DIR", "TFLAB_OFFLINE", "TFLAB_ARTEFACTS")  # that tflab reads


def system() -> Iterator[Finding]:
    """Whether graphs from files can be confined; docs/compatibility.md has what else differs."""
    if not confinement.is_available():
        state = "no Landlock: rules about ops protect your files, but the kernel does not"
        advice = "Use Linux 5.13 or later, or run only graphs that you trust."
        yield Finding("System", "graphs from files", state, advice, NOTE)


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
            yield Finding("Data", "MNIST", str(error), f"{advice} Or unset the variable.")
            return
        state = (
            "not on this machine: the first use downloads it; without a network, other images "
            "replace it"
        )
        yield Finding("Data", "MNIST", state, advice, NOTE)


def variables() -> Iterator[Finding]:
    """Variables that begin with TFLAB_ and that tflab does not read: misspelt ones do nothing."""
    for name in sorted(name for name in os.environ if name.startswith("TFLAB_")):
        if name not in VARIABLES:
            nearest = difflib.get_close_matches(name, VARIABLES, n=1)
            hint = f"Did you mean {nearest[0]}? " if nearest else ""
            advice = f"{hint}It reads {', '.join(VARIABLES)}."
            yield Finding("Variables", name, "tflab has no such variable", advice, NOTE)


def folders() -> Iterator[Finding]:
    """Folders for runs and temporary files that cannot be written."""
    for what, path, advice in (
        ("runs", RUNS.absolute(), "Use a folder that you may write to, or give --logdir."),
        (
            "temporary files",
            Path(tempfile.gettempdir()),
            "Set TMPDIR to a folder that you may write to.",
        ),
    ):
        existing = next(place for place in (path, *path.parents) if place.exists())
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as error:
            state = f"{path} cannot be written: {error.strerror}"
            yield Finding("Folders", what, state, advice)


PLACE = ("plugins", "profile")
EVENTS = "events.out.tfevents"
TRACE = ".xplane.pb"
CACHES = "*op_stats*.pb"  # of the Profile plugin, which does not check their age (xprof 2.24)


def logdir_problems(logdir: str) -> Iterator[Finding]:
    folder = Path(logdir)
    files = list(files_below(folder))
    traces = [path for path in files if path.name.endswith(TRACE)]
    if not traces and not any(EVENTS in path.name for path in files):
        state = "contains nothing that TensorBoard shows: no event files, no profiles"
        advice = f"Write a run into it: python -m tflab.lifecycle --logdir {quoted(folder)}"
        yield Finding("Logdir", logdir, state, advice)
    for path in files:
        if not path.is_file():
            state = "is not a regular file; TensorBoard would wait for data from it"
            yield Finding("Logdir", relative(path, folder), state, f"rm {quoted(path)}")
    placed = [path for path in traces if path.relative_to(folder).parts[-4:-2] == PLACE]
    yield from misplaced(folder, [path for path in traces if path not in placed])
    for path in placed:
        if path.is_file() and not path.stat().st_size:
            yield Finding("Logdir", relative(path, folder), "is empty", "Record the trace again.")
    for run in dict.fromkeys(path.parent for path in placed):
        yield from stale(run, folder)


def misplaced(folder: Path, traces: Iterable[Path]) -> Iterator[Finding]:
    """Traces that TensorBoard does not see, one finding for each folder with any."""
    for where in dict.fromkeys(path.parent for path in traces):
        whole = where.resolve()
        if whole.parts[-3:-1] == PLACE:
            advice = (
                "The logdir is a subfolder of the right one: tensorboard --logdir "
                f"{quoted(whole.parents[2])}"
            )
        else:
            target = quoted(folder / Path(*PLACE) / whole.name)
            advice = f"mkdir -p {target} && mv {quoted(where)}/*{TRACE} {target}"
        state = f"has traces, but not in {'/'.join(PLACE)}/<run>: no profile data will be found"
        yield Finding("Logdir", relative(where, folder), state, advice)


def stale(run: Path, folder: Path) -> Iterator[Finding]:
    newest = max(path.stat().st_mtime_ns for path in run.glob(f"*{TRACE}"))
    old = [path for path in sorted(run.glob(CACHES)) if path.stat().st_mtime_ns < newest]
    if old:
        state = f"{plural(len(old), 'cache')} older than the trace: Profile may show other numbers"
        yield Finding("Logdir", relative(run, folder), state, f"rm {' '.join(map(quoted, old))}")


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, sorted; links are not followed."""
    for place, places, names in os.walk(folder):
        places.sort()
        yield from (Path(place, name) for name in sorted(names))


def relative(path: Path, folder: Path) -> str:
    return os.fspath(path.relative_to(folder)) if path != folder else os.fspath(folder)


def quoted(path: Path) -> str:
    return shlex.quote(os.fspath(path))
