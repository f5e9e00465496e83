"""Logdir: what TensorBoard will not find in a folder.

Profiles are found by their path: `plugins/profile/<run>/<host>.xplane.pb`, anywhere below the
logdir. For a trace anywhere else TensorBoard says "No profile data was found".
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from tflab.doctor.checks import Finding
from tflab.units import plural

PLACE = ("plugins", "profile")
EVENTS = "events.out.tfevents"
TRACE = ".xplane.pb"
CACHES = "*op_stats*.pb"  # of the Profile plugin, which does not check their age (xprof 2.24)


def problems(logdir: str) -> Iterator[Finding]:
    folder = Path(logdir)
    inside = list(files_below(folder))
    traces = [path for path in inside if path.name.endswith(TRACE)]
    if not traces and not any(EVENTS in path.name for path in inside):
        found = "contains nothing that TensorBoard shows: no event files, no profiles"
        advice = f"Write a run into it: python -m tflab.lifecycle --logdir {quoted(folder)}"
        yield Finding("Logdir", logdir, found, advice)
    for path in inside:
        if not path.is_file():
            found = "is not a regular file; TensorBoard would wait for data from it"
            yield Finding("Logdir", relative(path, folder), found, f"rm {quoted(path)}")
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
        found = f"has traces, but not in {'/'.join(PLACE)}/<run>: no profile data will be found"
        yield Finding("Logdir", relative(where, folder), found, advice)


def stale(run: Path, folder: Path) -> Iterator[Finding]:
    newest = max(path.stat().st_mtime_ns for path in run.glob(f"*{TRACE}"))
    old = [path for path in sorted(run.glob(CACHES)) if path.stat().st_mtime_ns < newest]
    if old:
        found = f"{plural(len(old), 'cache')} older than the trace: Profile may show other numbers"
        yield Finding("Logdir", relative(run, folder), found, f"rm {' '.join(map(quoted, old))}")


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, sorted; links are not followed."""
    for place, places, names in os.walk(folder):
        places.sort()
        yield from (Path(place, name) for name in sorted(names))


def relative(path: Path, folder: Path) -> str:
    return os.fspath(path.relative_to(folder)) if path != folder else os.fspath(folder)


def quoted(path: Path) -> str:
    return shlex.quote(os.fspath(path))
