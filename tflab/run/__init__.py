"""Run: a program, unchanged, watched from its first line to its last.

Two processes take part. The command (`__main__`, `launch`, `summary`, `view`) starts the program in
a process of its own, waits, and prints the results after its end. In the program's process Python
imports `startup/sitecustomize.py` before anything else; that begins `watcher`, whose `sampler`
gives each nanosecond an owner and whose `recorder` sees each run of a session. Both processes share
a temporary folder, to which the program's writes results, every few seconds and at its end.

Here is what both processes know: the settings, in environment variables, and the results, as Python
literals. This imports nothing that a file of the program may be named like.
"""

from __future__ import annotations

import os

PREFIX = "TFLAB_RUN_"  # of the variables; as in startup/sitecustomize.py
# Files in the folder
SEGMENT = "segment"
FAULT = "fault"  # why watching failed


class Settings:
    """The settings of one run."""

    def __init__(self, given: dict[str, str]) -> None:
        self.folder = given["FOLDER"]
        self.start_ns = int(given["START"])  # of the program, by time.perf_counter_ns
        self.overhead = float(given["OVERHEAD"])  # percent of the program's time
        self.steps = int(given["STEPS"])  # runs of one kind until an interruption; 0: no limit
        # After so many the process stops itself at the end of a step; 0: never. See `turns`.
        self.turn_ns = int(given.get("TURN", 0))
        self.v1 = "V1" in given
        self.logdir = given.get("LOGDIR", "")
        self.keeps = "KEEP" in given  # the graph of the largest group
        self.values = int(given.get("VALUES", 0))  # the run whose values are fetched; 0: no run


def write_segment(folder: str, segment: dict[str, object]) -> None:
    """Write the results to a new file, then rename it: the process may end at any moment."""
    path = os.path.join(folder, SEGMENT)
    with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(repr(segment))
    os.replace(f"{path}.new", path)


def write_fault(folder: str, fault: str) -> None:
    with open(os.path.join(folder, FAULT), "w", encoding="utf-8") as file:
        file.write(fault)
