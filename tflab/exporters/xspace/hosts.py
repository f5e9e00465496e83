"""Hosts: which file of a profile a run belongs to. XProf takes each file for a machine.

No TensorFlow in here.
"""

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
    tasks = {task_of_run(run) for run in capture.runs} - {""}
    if len(tasks) < 2:
        yield file_name("".join(tasks), host), capture, ()
        return
    runs: dict[str, list[OpRun]] = {}
    for run in capture.runs:
        runs.setdefault(file_name(task_of_run(run), host), []).append(run)
    for name in sorted(runs):
        elsewhere = [run for other in runs if other != name for run in runs[other]]
        yield name, replace(capture, runs=tuple(runs[name])), elsewhere


def task_of_run(run: OpRun) -> str:
    """The task that ran it, and of a tensor on the wire the one that received it."""
    if run.op == wires.OP and run.device.startswith(wires.FROM):
        return run.device.rpartition(" to ")[2]
    return short_task(task_of(run.device))


def file_name(name: str, otherwise: str) -> str:
    """A name made safe: one without characters that could make it a path."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or otherwise
