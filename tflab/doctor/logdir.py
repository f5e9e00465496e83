"""Logdir: what TensorBoard will find in a folder, and what it will not.

Profiles are found by their path: `plugins/profile/<run>/<host>.xplane.pb`, anywhere below the
logdir. For a trace anywhere else TensorBoard says "No profile data was found". The content of event
files is read with TensorBoard's own reader.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from tflab.doctor.checks import WRONG, Finding
from tflab.runtime import child
from tflab.units import plural

SECONDS = 180  # time limit; TensorBoard's reader may have many event files to read
PLACE = ("plugins", "profile")
EVENTS = "events.out.tfevents"
TRACE = ".xplane.pb"
CACHES = "*op_stats*.pb"  # of the Profile plugin, which does not check their age (xprof 2.24)
DASHBOARDS = {  # the plugin's name in event files -> the name of its data here
    "graphs": "graphs",
    "graph_tagged_run_metadata": "traces of graphs",
    "graph_run_metadata": "traces of graphs",
    "scalars": "scalars",
    "images": "images",
    "histograms": "histograms",
}


def runs(logdir: str) -> Iterator[Finding]:
    """What the event files hold for each dashboard."""
    folder = Path(logdir)
    if not folder.is_dir():
        about = "is no folder" if folder.exists() else "is not there"
        yield Finding("Logdir", logdir, about, WRONG, "Give --logdir the folder of a run, or runs.")
        return
    inside = list(files_below(folder))
    if not any(EVENTS in path.name or path.name.endswith(TRACE) for path in inside):
        yield Finding(
            "Logdir",
            logdir,
            "holds nothing that TensorBoard shows: no event files, no profiles",
            WRONG,
            f"Write a run into it: python -m tflab.lifecycle --logdir {quoted(folder)}",
        )
        return
    for path in inside:
        if not path.is_file():  # whoever reads it may wait for ever
            about = "is no file; TensorBoard would wait for what comes out of it"
            yield Finding("Logdir", relative(path, folder), about, WRONG, f"rm {quoted(path)}")
            return
    events = sum(EVENTS in path.name for path in inside)
    yield Finding("Logdir", "event files", plural(events, "file"))
    if events:
        yield from dashboards(child.call(f"{__name__}:count_tags", logdir, seconds=SECONDS))


def dashboards(tags: dict[str, dict[str, int]]) -> Iterator[Finding]:
    """A finding for each dashboard that has data; `tags` are counts by plugin and run."""
    by_name: dict[str, dict[str, int]] = {}
    for plugin, numbers_of_run in tags.items():
        for run, count in numbers_of_run.items():
            numbers = by_name.setdefault(DASHBOARDS.get(plugin, plugin), {})
            numbers[run] = numbers.get(run, 0) + count
    for name, numbers_of_run in sorted(by_name.items()):
        tagged = plural(sum(numbers_of_run.values()), "tag")
        yield Finding(
            "Logdir",
            name,
            f"{tagged} in {plural(len(numbers_of_run), 'run')}: {first_three(numbers_of_run)}",
        )


def count_tags(logdir: str) -> dict[str, dict[str, int]]:
    """In a process of its own: the number of tags of each run, by the plugin that shows them."""
    from tensorboard.backend.event_processing import plugin_event_multiplexer

    reader = plugin_event_multiplexer.EventMultiplexer()
    reader.AddRunsFromDirectory(logdir)
    reader.Reload()
    numbers: dict[str, dict[str, int]] = {}
    for run, tags in reader.Runs().items():
        for tag in tags["tensors"]:
            plugin = reader.SummaryMetadata(run, tag).plugin_data.plugin_name
            numbers_of_run = numbers.setdefault(plugin, {})
            numbers_of_run[run] = numbers_of_run.get(run, 0) + 1
    return numbers


# Profiles


def profiles(logdir: str) -> Iterator[Finding]:
    """Traces in the right place and in others, and caches that are older than their trace."""
    folder = Path(logdir)
    traces = [path for path in files_below(folder) if path.name.endswith(TRACE)]
    placed = {path: path.parent for path in traces if in_place(path.relative_to(folder))}
    if run_folders := dict.fromkeys(placed.values()):
        names = (profile_name(run.relative_to(folder)) for run in run_folders)
        yield Finding(
            "Logdir", "profiles", f"{plural(len(run_folders), 'run')}: {first_three(names)}"
        )
    elif folder.is_dir():
        yield Finding("Logdir", "profiles", "none: the Profile tab stays empty")
    yield from misplaced(folder, [path for path in traces if path not in placed])
    for path in placed:
        if not path.stat().st_size:
            yield Finding(
                "Logdir", relative(path, folder), "is empty", WRONG, "Record the trace again."
            )
    for run in run_folders:
        yield from stale(run, folder)


def in_place(trace: Path) -> bool:
    return trace.parts[-4:-2] == PLACE


def profile_name(run: Path) -> str:
    """The name of a run in Profile: `train/first` for `train/plugins/profile/first`."""
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
            relative(where, folder),
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
            relative(run, folder),
            f"{plural(len(old), 'cache')} older than the trace: Profile may show other numbers",
            WRONG,
            f"rm {' '.join(map(quoted, old))}",
        )


# Both


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, sorted; links are not followed."""
    for place, places, names in os.walk(folder):
        places.sort()
        yield from (Path(place, name) for name in sorted(names))


def relative(path: Path, folder: Path) -> str:
    return os.fspath(path.relative_to(folder)) if path != folder else os.fspath(folder)


def quoted(path: Path) -> str:
    return shlex.quote(os.fspath(path))


def first_three(names: Iterable[str]) -> str:
    """The first three names, sorted, and how many more there are."""
    names = sorted(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
