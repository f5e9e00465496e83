"""Logdir: what TensorBoard will find in a folder, and what it will not.

Profiles are found by their place: `plugins/profile/<run>/<host>.xplane.pb`, anywhere below the
logdir; a trace anywhere else is what "No profile data was found" means. What the event files hold
is asked of TensorBoard's own reader.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from tflab.doctor.checks import WRONG, Finding
from tflab.runtime import child
from tflab.units import plural

SECONDS = 180  # TensorBoard's reader may have many event files to go through
PLACE = ("plugins", "profile")
EVENTS = "events.out.tfevents"
TRACE = ".xplane.pb"
CACHES = "*op_stats*.pb"  # of the Profile plugin, which does not look at their age (xprof 2.24)
DASHBOARDS = {  # the plugin's name in event files -> what its data are called here
    "graphs": "graphs",
    "graph_tagged_run_metadata": "traces of graphs",
    "graph_run_metadata": "traces of graphs",
    "scalars": "scalars",
    "images": "images",
    "histograms": "histograms",
}


def runs(logdir: str) -> Iterator[Finding]:
    """What the event files hold, by dashboard."""
    folder = Path(logdir)
    if not folder.is_dir():
        about = "is no folder" if folder.exists() else "is not there"
        yield Finding("Logdir", logdir, about, WRONG, "Give --logdir the folder of a run, or runs.")
        return
    inside = list(below(folder))
    if not any(EVENTS in path.name or path.name.endswith(TRACE) for path in inside):
        yield Finding(
            "Logdir",
            logdir,
            "holds nothing that TensorBoard shows: no event files, no profiles",
            WRONG,
            f"Write a run into it: python -m tflab.lifecycle --logdir {quoted(folder)}",
        )
        return
    events = sum(EVENTS in path.name for path in inside)
    yield Finding("Logdir", "event files", plural(events, "file"))
    if events:
        yield from held(child.call(f"{__name__}:read", logdir, seconds=SECONDS))


def held(tags: dict[str, dict[str, int]]) -> Iterator[Finding]:
    """A finding for each dashboard that has data; `tags` are numbers by plugin and run."""
    by_name: dict[str, dict[str, int]] = {}
    for plugin, of_run in tags.items():
        for run, count in of_run.items():
            found = by_name.setdefault(DASHBOARDS.get(plugin, plugin), {})
            found[run] = found.get(run, 0) + count
    for name, of_run in sorted(by_name.items()):
        tagged = plural(sum(of_run.values()), "tag")
        yield Finding("Logdir", name, f"{tagged} in {plural(len(of_run), 'run')}: {listed(of_run)}")


def read(logdir: str) -> dict[str, dict[str, int]]:
    """In a process of its own: the number of tags of each run, by the plugin that shows them."""
    from tensorboard.backend.event_processing import plugin_event_multiplexer

    reader = plugin_event_multiplexer.EventMultiplexer()
    reader.AddRunsFromDirectory(logdir)
    reader.Reload()
    found: dict[str, dict[str, int]] = {}
    for run, tags in reader.Runs().items():
        for tag in tags["tensors"]:
            plugin = reader.SummaryMetadata(run, tag).plugin_data.plugin_name
            of_run = found.setdefault(plugin, {})
            of_run[run] = of_run.get(run, 0) + 1
    return found


# Profiles


def profiles(logdir: str) -> Iterator[Finding]:
    """Traces in their place and out of it, and caches that are older than their trace."""
    folder = Path(logdir)
    traces = [path for path in below(folder) if path.name.endswith(TRACE)]
    placed = {path: path.parent for path in traces if in_place(path.relative_to(folder))}
    if found := dict.fromkeys(placed.values()):
        names = (named(run.relative_to(folder)) for run in found)
        yield Finding("Logdir", "profiles", f"{plural(len(found), 'run')}: {listed(names)}")
    elif folder.is_dir():
        yield Finding("Logdir", "profiles", "none: the Profile tab stays empty")
    yield from misplaced(folder, [path for path in traces if path not in placed])
    for path in placed:
        if not path.stat().st_size:
            yield Finding(
                "Logdir", shown(path, folder), "is empty", WRONG, "Record the trace again."
            )
    for run in found:
        yield from stale(run, folder)


def in_place(trace: Path) -> bool:
    return trace.parts[-4:-2] == PLACE


def named(run: Path) -> str:
    """What Profile calls the folder of a run: `train/first` for `train/plugins/profile/first`."""
    return os.path.join(*run.parts[:-3], run.name)


def misplaced(folder: Path, traces: Iterable[Path]) -> Iterator[Finding]:
    """Traces that TensorBoard does not see, one finding for each folder with any."""
    for where in dict.fromkeys(path.parent for path in traces):
        whole = where.resolve()
        if whole.parts[-3:-1] == PLACE:
            advice = f"The logdir is too deep: tensorboard --logdir {quoted(whole.parents[2])}"
        else:
            target = quoted(folder / Path(*PLACE) / whole.name)
            advice = f"mkdir -p {target} && mv {quoted(where)}/*{TRACE} {target}"
        yield Finding(
            "Logdir",
            shown(where, folder),
            f"has traces, but not in {'/'.join(PLACE)}/<run>: no profile data will be found",
            WRONG,
            advice,
        )


def stale(run: Path, folder: Path) -> Iterator[Finding]:
    newest = max(path.stat().st_mtime_ns for path in run.glob(f"*{TRACE}"))
    old = [path for path in sorted(run.glob(CACHES)) if path.stat().st_mtime_ns < newest]
    if old:
        yield Finding(
            "Logdir",
            shown(run, folder),
            f"{plural(len(old), 'cache')} older than the trace: Profile shows other numbers",
            WRONG,
            f"rm {' '.join(map(quoted, old))}",
        )


# Both


def below(folder: Path) -> Iterator[Path]:
    """All files below a folder, in order; links are not followed."""
    for place, places, names in os.walk(folder):
        places.sort()
        yield from (Path(place, name) for name in sorted(names))


def shown(path: Path, folder: Path) -> str:
    return os.fspath(path.relative_to(folder)) if path != folder else os.fspath(folder)


def quoted(path: Path) -> str:
    return shlex.quote(os.fspath(path))


def listed(names: Iterable[str]) -> str:
    """The first three, in order, and how many more."""
    names = sorted(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
