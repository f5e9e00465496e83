"""10,000 images through LeNet: tflab compared with torch.profiler, each in a separate process.

    TORCH_PYTHON=/path/to/python python -m benchmarks.torch_peer

torch is optional (benchmarks/requirements.txt); TORCH_PYTHON names another Python that has it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import report, turns
from tflab.records.blocks import Block, Column, Table
from tflab.runtime import processes
from tflab.units import size

PYTHON = os.environ.get("TORCH_PYTHON", sys.executable)

Pass = dict[str, float]  # seconds and bytes, as `lenet.one_pass` and `torch_lenet` give them


@dataclass(frozen=True)
class Passes:
    images: int
    torch: str  # its version; "" if it is missing
    tflab: list[Pass]
    peer: list[Pass]


def measure(quick: bool) -> Passes:
    images, rounds = (50, 1) if quick else (10_000, 3)
    version = torch_version()
    if not version:
        return Passes(images, "", [], [])
    with TemporaryDirectory(prefix="tflab-") as folder:
        file = Path(folder, "images.npy")
        save(file, images)
        works: dict[str, Callable[[], Pass]] = {
            "tflab": partial(processes.call, "benchmarks.lenet:one_pass", images),
            "torch": partial(torch_pass, file),
        }
        passes = turns.take(works, rounds)
    return Passes(images, version, passes["tflab"], passes["torch"])


def torch_version() -> str:
    """ "" if torch is missing."""
    command = [PYTHON, "-c", "from importlib.metadata import version; print(version('torch'))"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def save(file: Path, images: int) -> None:
    """The images of tflab's pass, for a Python that may not have tflab."""
    import numpy as np

    from tflab.datasets import mnist

    data = mnist.load("test", None).columns["images"].astype(np.float32)
    np.save(file, np.resize(data, (images, *data.shape[1:])))  # repeats the data


def torch_pass(file: Path) -> Pass:
    command = [PYTHON, "-m", "benchmarks.torch_lenet", str(file)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def blocks(measured: Passes) -> Iterator[Block]:
    if not measured.torch:
        yield (
            "torch.profiler was not measured, because torch is missing. Install "
            "benchmarks/requirements.txt, or name a Python that has torch in TORCH_PYTHON."
        )
        return

    yield Table(
        f"{measured.images:,} images through LeNet, one at a time: tflab and "
        f"torch {measured.torch}",
        (
            Column("", lambda row: row[0]),
            Column("tflab", lambda row: row[1](measured.tflab), right=True),
            Column("torch.profiler", lambda row: row[1](measured.peer), right=True),
        ),
        (
            ("untraced", lambda passes: turns.duration(column(passes, "untraced"))),
            ("traced", lambda passes: turns.duration(column(passes, "traced"))),
            ("then, to a table", lambda passes: turns.duration(column(passes, "table"))),
            ("traced and table, to untraced", slowdown),
            (
                "memory at the end, more than before",
                lambda passes: turns.spread(column(passes, "grown"), size),
            ),
            (
                "memory at most, more than before",
                lambda passes: turns.spread(column(passes, "peak"), size),
            ),
        ),
    )
    yield (
        "From the first traced image to the finished table torch.profiler takes "
        f"{turns.ratio(finished(measured.peer), finished(measured.tflab))} times as long as tflab."
    )


def column(passes: list[Pass], key: str) -> list[float]:
    return [pass_[key] for pass_ in passes]


def finished(passes: list[Pass]) -> list[float]:
    return [one["traced"] + one["table"] for one in passes]


def slowdown(passes: list[Pass]) -> str:
    return turns.ratio(finished(passes), column(passes, "untraced"))


if __name__ == "__main__":
    report.show("torch_peer")
