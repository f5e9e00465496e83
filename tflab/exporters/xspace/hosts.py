"""Hosts: which file of a profile a run belongs to. XProf takes each file for a machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tflab.analysis import wires
from tflab.records import Capture, OpRun
from tflab.units import short_task, task_of


def split(capture: Capture, host: str) -> Iterator[tuple[str, Capture, Sequence[OpRun]]]:
    """Each host with its part of the capture, and the runs that are not in that part. A capture of
    one process stays whole; `host` is the name of what says no task."""
    tasks = {device: task_named_in(device) for device in {run.device for run in capture.runs}}
    named = set(tasks.values()) - {""}
    if len(named) < 2:
        yield file_name("".join(named), host), capture, ()
        return
    files = {device: file_name(task, host) for device, task in tasks.items()}
    runs: dict[str, list[OpRun]] = {}
    for run in capture.runs:
        runs.setdefault(files[run.device], []).append(run)
    for name in sorted(runs):
        elsewhere = [run for other in runs if other != name for run in runs[other]]
        yield name, replace(capture, runs=tuple(runs[name])), elsewhere


def task_named_in(device: str) -> str:
    """The task that has this device, and of the wire the one that receives."""
    if device.startswith(wires.ON_WIRE):
        return device.rpartition(" to ")[2]
    return short_task(task_of(device))


def file_name(name: str, otherwise: str) -> str:
    """A name made safe: one without characters that could make it a path."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or otherwise
