"""Stacks: the ledger of a process as collapsed stacks, which speedscope and flamegraph.pl draw.

A line has the frames, the outermost first, separated by semicolons, and then nanoseconds. The lines
add up to the time of the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tflab.escaping import visible
from tflab.records.watched import Watched, WatchedLine
from tflab.run import sampler, view

PYTHON = (sampler.BEFORE, sampler.BETWEEN, sampler.AFTER, "Python")  # owners with known lines


def collapsed(seen: Watched) -> str:
    return "".join(
        f"{';'.join(map(frame, frames))} {ns}\n" for frames, ns in stacks(seen) if ns > 0
    )


def stacks(seen: Watched) -> Iterator[tuple[tuple[str, ...], int]]:
    """The frames below the name of the program, and the time spent there itself."""
    name = view.name_of(seen)
    for owner in seen.process.owners:
        if owner.owner not in PYTHON:
            yield (name, owner.owner), owner.ns
    python_ns = sum(owner.ns for owner in seen.process.owners if owner.owner in PYTHON)
    for line in seen.lines:
        yield (name, "Python", frame_of(line)), line.python_ns
    yield (name, "Python"), python_ns - sum(line.python_ns for line in seen.lines)


def frame_of(line: WatchedLine) -> str:
    return f"{os.path.basename(line.file)}:{line.line} {line.code}"


def frame(text: str) -> str:
    return visible(text).replace(";", ",")
